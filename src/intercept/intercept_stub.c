/* ESCALATE: the call fails, and the caller is made to execute the stub instead. */
#include "intercept/intercept_internal.h"

#include "base/fdpass.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define STUB_NAME "exec-stub"
#define STUB_STATUS_BYTES 4096

#ifndef SECCOMP_IOCTL_NOTIF_ADDFD
struct seccomp_notif_addfd {
    uint64_t id;
    uint32_t flags;
    uint32_t srcfd;
    uint32_t newfd;
    uint32_t newfd_flags;
};
#define SECCOMP_IOCTL_NOTIF_ADDFD _IOW('!', 3, struct seccomp_notif_addfd)
#endif

void intercept_stub_fini(struct intercept_ask *a) {
    if (a->stub.io.fd < 0)
        return;
    loop_io_del(a->host->loop, &a->stub.io);
    util_close_fd(&a->stub.io.fd);
    util_close_fd(&a->stub.err);
    if (a->x != NULL)
        a->x->stubs--;
}

/* -- into the caller -- */

/* Gives the caller a copy of a descriptor; its number there, or -errno. */
static int stub_add(const struct intercept_ask *a, int fd, uint32_t flags) {
    struct seccomp_notif_addfd add = {.id = a->id, .srcfd = (uint32_t)fd, .newfd_flags = flags};
    int r = ioctl(a->x->listener.fd, SECCOMP_IOCTL_NOTIF_ADDFD, &add);
    return r < 0 ? -errno : r;
}

static void stub_on_io(struct loop_io *io, uint32_t events);

/* The socket between us and the stub, and the stub's program, in the caller. */
static int stub_prepare(struct intercept_ask *a) {
    int pair[2];
    if (a->x->stubs >= INTERCEPT_STUBS_MAX)
        return -EAGAIN;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    a->stub.io = (struct loop_io){.fd = pair[0], .fn = stub_on_io};
    a->x->stubs++;
    a->stub_fd = stub_add(a, a->host->stub, O_CLOEXEC);
    a->stub_sock = a->stub_fd < 0 ? a->stub_fd : stub_add(a, pair[1], 0);
    close(pair[1]);
    return MIN(a->stub_sock, 0);
}

void intercept_stub_go(struct intercept_ask *a) {
    int r = intercept_trace_seize(a->tid);
    if (r < 0) { /* somebody else traces it */
        (void)intercept_respond(a, -EACCES);
        intercept_ask_over(a);
        return;
    }
    r = intercept_ask_environment(a);
    if (r == 0)
        r = stub_prepare(a);
    intercept_ask_set(a, r < 0 ? INTERCEPT_LOADING : INTERCEPT_FAILED); /* LOADING: let it go */
    list_append(&a->host->traced, &a->traced);
    (void)intercept_respond(a, r < 0 ? r : -EACCES);
}

/* The arguments of the stub, as they lie on the caller's stack. */
struct stub_stack {
    uint64_t argv[4]; /* name, socket, NULL; an empty environment */
    char name[sizeof STUB_NAME + 1];
    char socket[16];
    char empty[8];
};

static int stub_push(struct intercept_ask *a, uint64_t *at) {
    struct stub_stack s = {.name = STUB_NAME};
    uint32_t narrow[4] = {0};
    *at = intercept_trace_room(&a->saved, sizeof s);
    s.argv[0] = *at + offsetof(struct stub_stack, name);
    s.argv[1] = *at + offsetof(struct stub_stack, socket);
    snprintf(s.socket, sizeof s.socket, "%d", a->stub_sock);
    if (intercept_trace_is_narrow(&a->saved)) {
        narrow[0] = (uint32_t)s.argv[0];
        narrow[1] = (uint32_t)s.argv[1];
        memset(s.argv, 0, sizeof s.argv);
        memcpy(s.argv, narrow, sizeof narrow);
    }
    return intercept_trace_write(a->tid, *at, &s, sizeof s);
}

/* Makes the caller execute the stub. False: it cannot, and only sees its call fail. */
static bool stub_inject(struct intercept_ask *a) {
    uint64_t at;
    if (intercept_trace_save(a->tid, &a->saved) < 0 ||
        !intercept_trace_can_call(&a->saved, a->arch) || stub_push(a, &at) < 0)
        return false;
    a->stub.blocked = a->saved.mask;
    bool narrow = intercept_trace_is_narrow(&a->saved);
    const uint64_t args[5] = {(uint64_t)a->stub_fd, at + offsetof(struct stub_stack, empty), at,
                              at + (narrow ? 3 * 4 : 3 * 8), AT_EMPTY_PATH};
    return intercept_trace_call(a->tid, &a->saved, TRACE_EXECVEAT, args) == 0;
}

static void stub_give_up(struct intercept_ask *a) {
    intercept_trace_restore(a->tid, &a->saved);
    intercept_trace_let_go(a->tid, 0);
    intercept_ask_over(a);
}

/* Somebody changed the caller under our hands. */
static void stub_kill(const struct intercept_ask *a) {
    kill(a->tgid, SIGKILL);
}

bool intercept_stub_enters(struct intercept_ask *a, const struct seccomp_notif *n) {
    bool ours = n->data.args[0] == (uint64_t)a->stub_fd && n->data.args[4] == AT_EMPTY_PATH;
    a->id = n->id;
    if (!ours || intercept_trace_interrupt(a->tid) < 0) {
        stub_kill(a);
        return true;
    }
    intercept_ask_set(a, INTERCEPT_ENTERED);
    (void)intercept_continue(a);
    return true;
}

/* What the program is to inherit, while the stub stands still. */
static int stub_note(struct intercept_ask *a) {
    char path[64], text[STUB_STATUS_BYTES];
    snprintf(path, sizeof path, "/proc/%d/status", (int)a->tgid);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (n < 0)
        return -errno;
    text[n] = '\0';
    const char *umask = strstr(text, "\nUmask:\t"), *ignored = strstr(text, "\nSigIgn:\t");
    if (umask == NULL || ignored == NULL)
        return -EIO;
    a->stub.umask = (mode_t)strtoul(umask + 8, NULL, 8);
    a->stub.ignored = strtoull(ignored + 9, NULL, 16);
    a->stub.pid = a->tgid;
    return 0;
}

static void stub_stand(struct intercept_ask *a) {
    uint64_t dev, ino;
    bool is_stub = intercept_look_program(a->tgid, &dev, &ino) == 0 && dev == a->host->stub_dev &&
                   ino == a->host->stub_ino;
    if (!is_stub || stub_note(a) < 0 || loop_io_add(a->host->loop, &a->stub.io, EPOLLIN) < 0) {
        stub_kill(a);
        return;
    }
    list_remove(&a->traced);
    intercept_ask_set(a, INTERCEPT_STANDING);
    intercept_trace_let_go(a->tid, 0);
}

void intercept_stub_stop(struct intercept_ask *a, int status) {
    if (a->state == INTERCEPT_FAILED && intercept_trace_is_stop(status)) {
        if (!stub_inject(a)) {
            stub_give_up(a);
            return;
        }
        intercept_ask_set(a, INTERCEPT_ENTERING);
    } else if (a->state == INTERCEPT_ENTERED && intercept_trace_is_exec(status)) {
        stub_stand(a);
        return;
    } else if (a->state == INTERCEPT_ENTERED && intercept_trace_is_stop(status)) {
        stub_give_up(a); /* the kernel could not execute it */
        return;
    }
    intercept_trace_continue(a->tid, false);
}

/* -- talking to the stub -- */

/* Its controlling terminal, from /proc/PID/stat. */
static void stub_terminal(pid_t pid, struct intercept_escalation *x) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (n < 0)
        return;
    text[n] = '\0';
    char *p = strrchr(text, ')'); /* ") S ppid pgrp session tty tpgid" */
    if (p == NULL || strlen(p) < 4)
        return;
    long fields[5];
    p += 3;
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        fields[i] = strtol(p, &p, 10);
    x->terminal = fields[3] != 0;
    x->foreground = x->terminal && fields[4] == x->pgrp;
}

static void stub_escalate(struct intercept_ask *a, const int *fds, size_t count, uint32_t bits) {
    struct intercept_escalation x = {.exec = &a->e,
                                     .stub = &a->stub,
                                     .umask = a->stub.umask,
                                     .ignored = a->stub.ignored,
                                     .blocked = a->stub.blocked,
                                     .nice = getpriority(PRIO_PROCESS, (id_t)a->stub.pid),
                                     .pgrp = getpgid(a->stub.pid),
                                     .session = getsid(a->stub.pid)};
    size_t used = 0;
    for (int fd = 0; fd < INTERCEPT_FDS; fd++)
        x.fds[fd] = (bits >> fd & 1) && used < count ? fds[used++] : -1;
    for (; used < count; used++)
        close(fds[used]);
    for (int i = 0; i < RLIM_NLIMITS; i++)
        (void)prlimit(a->stub.pid, (__rlimit_resource_t)i, NULL, &x.limits[i]);
    stub_terminal(a->stub.pid, &x);
    a->stub.told = true;
    a->stub.err = x.fds[2] < 0 ? -1 : fcntl(x.fds[2], F_DUPFD_CLOEXEC, 0);
    struct intercept *command = a->x;
    intercept_enter(command);
    command->o.calls->escalate(command->o.owner, &x);
    intercept_leave(command);
    for (int fd = 0; fd < INTERCEPT_FDS; fd++)
        util_close_fd(&x.fds[fd]);
}

/* Takes a packet with up to 16 descriptors. Its bytes; 0 at the end; or -errno. */
static ssize_t stub_receive(int sock, struct stub_packet *p, int fds[STUB_FDS], size_t *count) {
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE(STUB_FDS * sizeof(int))];
    } control;
    struct iovec iov = {p, sizeof *p};
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = &control,
                       .msg_controllen = sizeof control};
    *count = 0;
    ssize_t n = recvmsg(sock, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0)
        return -errno;
    const struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    if (c != NULL && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
        *count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(fds, CMSG_DATA(c), *count * sizeof(int));
    }
    return n;
}

static void stub_on_io(struct loop_io *io, uint32_t events) {
    (void)events;
    struct intercept_stub *s = container_of(io, struct intercept_stub, io);
    struct intercept_ask *a = container_of(s, struct intercept_ask, stub);
    struct stub_packet p = {0};
    int fds[STUB_FDS];
    size_t count;
    ssize_t n = stub_receive(io->fd, &p, fds, &count);
    if (n == -EAGAIN || n == -EINTR)
        return;
    bool hello = n == sizeof p && p.kind == STUB_HELLO && !s->told;
    if (hello) {
        stub_escalate(a, fds, count, (uint32_t)p.value);
        return;
    }
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
    int signo = p.value & ~STUB_KERNEL;
    struct intercept *x = a->x;
    intercept_enter(x);
    if (n == sizeof p && p.kind == STUB_SIGNAL && s->told && signo > 0 && signo <= 64)
        x->o.calls->signal(x->o.owner, s, signo, (p.value & STUB_KERNEL) != 0);
    else
        intercept_ask_drop(a); /* it ended, or is not our stub */
    intercept_leave(x);
}

void intercept_stub_end(struct intercept_stub *s, int status, const char *text) {
    struct intercept_ask *a = container_of(s, struct intercept_ask, stub);
    struct stub_packet p = {STUB_END, status};
    size_t n = text == NULL || s->err < 0 ? 0 : strnlen(text, STUB_TEXT_MAX);
    if (!s->told)
        return;
    s->told = false;
    (void)!fdpass_send(s->io.fd, (struct str){(const char *)&p, sizeof p}, (struct str){text, n},
                       n > 0 ? s->err : -1);
    util_close_fd(&s->err);
    intercept_ask_over(a);
}

void intercept_stub_stopped(struct intercept_stub *s, int status) {
    struct stub_packet p = {STUB_STOP, 0};
    if (WIFSTOPPED(status))
        (void)send(s->io.fd, &p, sizeof p, MSG_DONTWAIT | MSG_NOSIGNAL);
    else if (WIFCONTINUED(status))
        kill(s->pid, SIGCONT);
}
