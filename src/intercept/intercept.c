#include "intercept/intercept.h"

#include "base/fdpass.h"
#include "intercept/intercept_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>

/* -- the listener -- */

static int intercept_reply(struct intercept_ask *a, int error, uint32_t flags) {
    struct seccomp_notif_resp *r = a->host->resp;
    memset(r, 0, a->host->resp_size);
    r->id = a->id;
    r->error = error;
    r->flags = flags;
    return ioctl(a->x->listener.fd, SECCOMP_IOCTL_NOTIF_SEND, r) < 0 ? -errno : 0;
}

int intercept_respond(struct intercept_ask *a, int error) {
    return intercept_reply(a, error, 0);
}

int intercept_continue(struct intercept_ask *a) {
    return intercept_reply(a, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE);
}

/* The command's own exec, made by our code: nobody is asked. */
static bool intercept_is_start(struct intercept *x, const struct seccomp_notif *n) {
    bool own = execfilter_is_start(x->mark, n->data.args[3]) &&
               (x->first == 0 || x->first == (pid_t)n->pid);
    if (!own) {
        x->mark = 0;
        return false;
    }
    x->first = (pid_t)n->pid;
    struct intercept_ask a = {.x = x, .host = x->host, .id = n->id};
    (void)intercept_continue(&a);
    return true;
}

/* The second call of a caller that is to become a stub. */
static bool intercept_is_stub(struct intercept *x, const struct seccomp_notif *n) {
    list_for_each(at, &x->asks) {
        struct intercept_ask *a = list_entry(at, struct intercept_ask, node);
        if (a->tid == (pid_t)n->pid && a->state == INTERCEPT_ENTERING)
            return intercept_stub_enters(a, n);
    }
    return false;
}

/* Takes one notification, if there still is one. */
static void intercept_receive(struct intercept *x) {
    struct seccomp_notif *n = x->host->notif;
    memset(n, 0, x->host->notif_size);
    if (ioctl(x->listener.fd, SECCOMP_IOCTL_NOTIF_RECV, n) < 0)
        return;
    if (intercept_is_start(x, n) || intercept_is_stub(x, n))
        return;
    struct intercept_ask *a = intercept_ask_new(x, n);
    if (a == NULL) {
        struct intercept_ask none = {.x = x, .host = x->host, .id = n->id};
        (void)intercept_respond(&none, -ENOMEM);
    } else if (x->open < INTERCEPT_OPEN_MAX && x->unread == 0) {
        intercept_ask_read(a);
    } else {
        a->counted = true;
        x->unread++;
        intercept_watch(x);
    }
}

/* Every process below the command has ended. */
static void intercept_end(struct intercept *x) {
    x->ended = true;
    loop_io_del(x->host->loop, &x->listener);
    intercept_enter(x);
    list_for_each(n, &x->asks) {
        struct intercept_ask *a = list_entry(n, struct intercept_ask, node);
        if (a->state != INTERCEPT_STANDING)
            intercept_ask_drop(a);
    }
    intercept_leave(x);
}

static void intercept_on_listener_event(struct loop_io *io, uint32_t events) {
    struct intercept *x = container_of(io, struct intercept, listener);
    if (events & EPOLLIN)
        intercept_receive(x); /* one a turn: commands take turns */
    else if (events & (EPOLLHUP | EPOLLERR))
        intercept_end(x);
}

/* The command's process sends the listener before its first exec. */
static void intercept_on_channel(struct loop_io *io, uint32_t events) {
    (void)events;
    struct intercept *x = container_of(io, struct intercept, channel);
    char byte = 0;
    int fd;
    ssize_t n = fdpass_receive(io->fd, &byte, 1, MSG_DONTWAIT, &fd);
    if (n == -EAGAIN)
        return;
    loop_io_del(x->host->loop, io);
    util_close_fd(&io->fd);
    x->listener.fd = fd;
    if (fd < 0 || loop_io_add(x->host->loop, &x->listener, EPOLLIN) < 0) {
        util_close_fd(&x->listener.fd);
        x->ended = true;
    }
}

/* -- one command -- */

void intercept_watch(struct intercept *x) {
    if (x->watch.pos == 0)
        (void)!loop_timer_set(x->host->loop, &x->watch, loop_ms(INTERCEPT_WATCH_MS));
}

/* Looks whether the callers of open asks still wait. */
static void intercept_on_watch(struct loop_timer *t) {
    struct intercept *x = container_of(t, struct intercept, watch);
    intercept_enter(x);
    list_for_each(n, &x->asks) {
        struct intercept_ask *a = list_entry(n, struct intercept_ask, node);
        bool waits = a->state == INTERCEPT_OPEN || a->state == INTERCEPT_UNREAD;
        if (waits && ioctl(x->listener.fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &a->id) < 0)
            intercept_ask_drop(a);
    }
    if (intercept_leave(x) && x->open + x->unread > 0)
        intercept_watch(x);
}

int intercept_new(struct intercept_host *h, const struct intercept_options *o,
                  struct intercept **out, struct execfilter_start *start) {
    int pair[2];
    struct intercept *x = calloc(1, sizeof *x);
    if (x == NULL)
        return -ENOMEM;
    *x = (struct intercept){.host = h,
                            .o = *o,
                            .channel = {.fd = -1, .fn = intercept_on_channel},
                            .listener = {.fd = -1, .fn = intercept_on_listener_event},
                            .watch = {.fn = intercept_on_watch}};
    list_init(&x->asks);
    x->next.fn = intercept_ask_next;
    list_init(&x->next.node);
    bool known = getrandom(&x->mark, sizeof x->mark, 0) == sizeof x->mark;
    x->mark |= 1;
    int r = !known || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 ? -errno : 0;
    if (r < 0) {
        free(x);
        return r;
    }
    x->channel.fd = pair[0];
    *start = (struct execfilter_start){.socket = pair[1], .mark = x->mark};
    r = loop_io_add(h->loop, &x->channel, EPOLLIN);
    if (r < 0) {
        close(pair[1]);
        start->socket = -1;
        intercept_free(x);
        return r;
    }
    *out = x;
    return 0;
}

void intercept_set_check(struct intercept *x, bool check) {
    x->o.check = check;
}

bool intercept_is_alive(const struct intercept *x) {
    return !x->ended;
}

static void intercept_finish(struct intercept *x) {
    while (!list_empty(&x->asks))
        intercept_ask_free(list_entry(list_first(&x->asks), struct intercept_ask, node));
    free(x);
}

void intercept_enter(struct intercept *x) {
    x->busy++;
}

bool intercept_leave(struct intercept *x) {
    bool dead = x->dead;
    if (--x->busy == 0 && dead)
        intercept_finish(x);
    return !dead;
}

void intercept_free(struct intercept *x) {
    if (x == NULL || x->dead)
        return;
    x->dead = true;
    intercept_enter(x);
    loop_io_del(x->host->loop, &x->channel);
    loop_io_del(x->host->loop, &x->listener);
    loop_timer_del(x->host->loop, &x->watch);
    loop_task_del(&x->next);
    list_for_each(n, &x->asks) {
        struct intercept_ask *a = list_entry(n, struct intercept_ask, node);
        if (!list_empty(&a->traced)) /* in the middle of an exec */
            kill(a->tgid, SIGKILL);
        intercept_ask_drop(a);
    }
    loop_task_del(&x->next); /* dropping has queued it */
    util_close_fd(&x->channel.fd);
    util_close_fd(&x->listener.fd);
    intercept_leave(x);
}

bool intercept_is_by_shell(struct intercept_ask *a) {
    return intercept_ask_is_by_shell(a);
}

void intercept_answer(struct intercept_ask *a, enum intercept_verdict v, const char *reason) {
    if (a->state == INTERCEPT_REOPENED) {
        intercept_run_loaded(a, v);
        return;
    }
    if (a->state != INTERCEPT_OPEN)
        return;
    size_t n = reason == NULL ? 0 : strnlen(reason, INTERCEPT_REASON_MAX);
    a->reason = reason == NULL ? NULL : arena_strdup(&a->arena, (struct str){reason, n});
    if (v == INTERCEPT_DENY)
        intercept_deny_go(a);
    else if (v == INTERCEPT_ESCALATE && !a->look.text && a->e.path != NULL)
        intercept_stub_go(a);
    else
        intercept_run_go(a);
}
