#include "net/dial.h"

#include "base/buf.h"

#include <errno.h>
#include <stdio.h>

#define DIAL_TEXT_MAX 4096 /* bytes of the list of failures */

static void dial_on_resolved(struct resolve_request *q);
static void dial_on_deadline(struct loop_timer *t);
static void dial_on_next(struct loop_timer *t);
static void dial_on_end(struct loop_task *t);
static void dial_on_io(struct loop_io *io, uint32_t events);

static void dial_attempt_stop(struct dial_attempt *a) {
    loop_io_del(a->dial->loop, &a->io);
    util_close_fd(&a->io.fd);
}

void dial_cancel(struct dial *d) {
    if (d->loop == NULL)
        return;
    resolve_cancel(&d->request);
    loop_timer_del(d->loop, &d->deadline);
    loop_timer_del(d->loop, &d->next);
    loop_task_del(&d->end);
    for (size_t i = 0; i < d->tried; i++)
        dial_attempt_stop(&d->attempt[i]);
    util_close_fd(&d->fd); /* connected, but not reported */
    d->loop = NULL;
}

void dial_fini(struct dial *d) {
    dial_cancel(d);
    resolve_request_fini(&d->request);
    err_fini(&d->err);
}

/* Everything begins in the loop: outside its clock may be old. 0 or -ENOMEM. */
static int dial_prepare(struct dial *d, struct loop *loop, struct str name, uint64_t deadline_ms) {
    err_fini(&d->err);
    d->fd = -1;
    d->request.done = dial_on_resolved;
    d->deadline = (struct loop_timer){.fn = dial_on_deadline};
    d->next = (struct loop_timer){.fn = dial_on_next};
    d->end = (struct loop_task){.fn = dial_on_end};
    d->deadline_ms = deadline_ms;
    d->begun = d->expired = false;
    d->tried = 0;
    d->path = (struct sockaddr_un){0};
    d->port = 0;
    snprintf(d->host, sizeof d->host, "%.*s", (int)MIN(name.n, DIAL_HOST_MAX),
             name.n ? name.p : "");
    if (loop_timer_set(loop, &d->deadline, 0) < 0)
        return -ENOMEM;
    d->loop = loop;
    return 0;
}

int dial_host(struct dial *d, struct resolve *r, struct str host, uint16_t port,
              uint64_t deadline_ms) {
    int n = dial_prepare(d, r->loop, host, deadline_ms);
    d->port = port;
    if (n == 0)
        n = resolve_start(r, &d->request, host, port);
    if (n < 0)
        dial_cancel(d);
    return n;
}

int dial_unix(struct dial *d, struct loop *loop, struct str path, uint64_t deadline_ms) {
    bool abstract = path.n > 0 && (path.p[0] == '@' || path.p[0] == '\0');
    if (path.n == 0 || path.n >= sizeof d->path.sun_path)
        return -ENAMETOOLONG;
    int r = dial_prepare(d, loop, path, deadline_ms);
    if (r < 0)
        return r;
    d->path.sun_family = AF_UNIX;
    memcpy(d->path.sun_path, path.p, path.n);
    d->path_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + path.n + !abstract);
    if (abstract) {
        d->path.sun_path[0] = '\0';
        d->host[0] = '@';
    }
    return 0;
}

/* -- the end -- */

/* Reports d->fd, or d->err if that is -1. */
static void dial_finish(struct dial *d) {
    int fd = steal_fd(&d->fd);
    dial_cancel(d);
    d->fd = fd;
    d->done(d);
}

static int dial_put_failure(const struct dial *d, size_t i, struct buf *b) {
    char name[SOCK_PEER_MAX];
    int error = d->attempt[i].error;
    if (d->path.sun_family == AF_UNIX)
        return buf_putz(b, error ? err_os_text(error) : "no answer");
    sock_peer_name(&d->request.addr[i].u.sa, name);
    return buf_putf(b, "%s%s: %s", i > 0 ? "; " : "", name,
                    error == EPERM ? "not permitted"
                    : error != 0   ? err_os_text(error)
                                   : "no answer");
}

/* Sets the error: no attempt succeeded, or the time is over. */
static void dial_set_error(struct dial *d) {
    _cleanup_buf_ struct buf b = BUF_INIT(DIAL_TEXT_MAX);
    int r = 0;
    for (size_t i = 0; i < d->tried && r == 0; i++)
        r = dial_put_failure(d, i, &b);
    char port[16] = "", late[48] = "";
    if (d->path.sun_family != AF_UNIX)
        snprintf(port, sizeof port, " port %u", d->port);
    if (d->expired)
        snprintf(late, sizeof late, " within %llu ms", (unsigned long long)d->deadline_ms);
    const char *list = r < 0 ? "out of memory" : b.len > 0 ? b.p : "the name has no address yet";
    int len = r < 0 || b.len == 0 ? (int)strlen(list) : (int)b.len;
    err_set(&d->err, ERR_INTERNAL, "cannot connect to %s%s%s: %.*s", d->host, port, late, len,
            list);
}

static void dial_on_end(struct loop_task *t) {
    struct dial *d = container_of(t, struct dial, end);
    if (d->fd < 0)
        dial_set_error(d);
    dial_finish(d);
}

/* -- attempts -- */

static size_t dial_targets(const struct dial *d) {
    return d->path.sun_family == AF_UNIX ? 1 : d->request.n;
}

static bool dial_all_failed(const struct dial *d) {
    for (size_t i = 0; i < d->tried; i++) {
        if (d->attempt[i].error == 0)
            return false;
    }
    return d->tried == dial_targets(d);
}

/* Opens a socket and connects it. 0: connected; -EINPROGRESS; -EAGAIN: a Unix socket has no room;
 * or -errno. */
static int dial_connect(struct dial *d, const struct sock_addr *to, int *fd) {
    bool local = to == NULL;
    int family = local ? AF_UNIX : to->u.sa.sa_family;
    *fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (*fd < 0)
        return -errno;
    if (!local)
        sock_tune_tcp(*fd);
    const struct sockaddr *sa = local ? (const void *)&d->path : &to->u.sa;
    return connect(*fd, sa, local ? d->path_len : sock_addr_len(to)) < 0 ? -errno : 0;
}

/*
 * Whether a TCP connection leads to its own socket: to a port of this host where nobody listens,
 * if the kernel picks the same port for our end.
 */
static bool dial_is_self(int fd) {
    struct sock_addr a, b;
    socklen_t an = sizeof a, bn = sizeof b;
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    return getsockname(fd, &a.u.sa, &an) == 0 && getpeername(fd, &b.u.sa, &bn) == 0 && an == bn &&
           sock_addr_eq(&a, &b);
}

/* An attempt has failed; the next one need not wait. */
static void dial_attempt_failed(struct dial_attempt *a, int error) {
    struct dial *d = a->dial;
    dial_attempt_stop(a);
    a->error = error;
    if (dial_all_failed(d) || loop_timer_set(d->loop, &d->next, 0) < 0)
        loop_defer(d->loop, &d->end);
}

/* An attempt is connected: ends the others. */
static void dial_attempt_won(struct dial_attempt *a) {
    struct dial *d = a->dial;
    if (d->path.sun_family != AF_UNIX && dial_is_self(a->io.fd)) {
        dial_attempt_failed(a, ECONNREFUSED);
        return;
    }
    loop_io_del(d->loop, &a->io);
    d->fd = steal_fd(&a->io.fd);
    loop_timer_del(d->loop, &d->next);
    for (size_t i = 0; i < d->tried; i++)
        dial_attempt_stop(&d->attempt[i]);
    loop_defer(d->loop, &d->end);
}

static void dial_on_io(struct loop_io *io, uint32_t events) {
    struct dial_attempt *a = container_of(io, struct dial_attempt, io);
    int error = 0;
    socklen_t len = sizeof error;
    (void)events;
    if (getsockopt(io->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
        error = errno;
    if (error != 0)
        dial_attempt_failed(a, error);
    else
        dial_attempt_won(a);
}

/* Begins the next attempt. */
static void dial_begin_attempt(struct dial *d) {
    struct dial_attempt *a = &d->attempt[d->tried];
    bool local = d->path.sun_family == AF_UNIX;
    const struct sock_addr *to = local ? NULL : &d->request.addr[d->tried];
    *a = (struct dial_attempt){.dial = d, .io = {.fd = -1, .fn = dial_on_io}};
    d->tried++;
    if (to != NULL && d->allow != NULL && !d->allow(d, to)) {
        dial_attempt_failed(a, EPERM);
        return;
    }
    int r = dial_connect(d, to, &a->io.fd);
    if (r == 0) {
        dial_attempt_won(a);
        return;
    }
    if (r == -EAGAIN && local) {
        dial_attempt_stop(a);
        d->tried--;
        r = loop_timer_set(d->loop, &d->next, loop_ms(DIAL_RETRY_MS));
        if (r < 0)
            loop_defer(d->loop, &d->end);
        return;
    }
    if (r == -EINPROGRESS)
        r = loop_io_add(d->loop, &a->io, EPOLLOUT);
    if (r == 0 && d->tried < dial_targets(d))
        r = loop_timer_set(d->loop, &d->next, loop_ms(DIAL_STAGGER_MS));
    if (r < 0)
        dial_attempt_failed(a, -r);
}

static void dial_on_next(struct loop_timer *t) {
    struct dial *d = container_of(t, struct dial, next);
    if (d->tried < dial_targets(d))
        dial_begin_attempt(d);
}

/* -- the beginning -- */

static void dial_on_resolved(struct resolve_request *q) {
    struct dial *d = container_of(q, struct dial, request);
    if (q->status == RESOLVE_OK) {
        dial_begin_attempt(d);
        return;
    }
    err_move(&d->err, &q->err);
    dial_finish(d);
}

static void dial_on_deadline(struct loop_timer *t) {
    struct dial *d = container_of(t, struct dial, deadline);
    if (d->begun) {
        d->expired = true;
        loop_defer(d->loop, &d->end);
        return;
    }
    d->begun = true;
    if (loop_timer_set(d->loop, &d->deadline, loop_ms(d->deadline_ms)) < 0)
        loop_defer(d->loop, &d->end);
    else if (d->path.sun_family == AF_UNIX)
        dial_begin_attempt(d);
}
