/* Tries interception with a child that executes a program that does not exist. */
#include "intercept/intercept_internal.h"

#include "base/fdpass.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define PROBE_WAIT_MS 5000
#define PROBE_MARK 0x70726f6265

enum probe_step { PROBE_LISTENER, PROBE_NOTICE, PROBE_MEMORY, PROBE_TRACE };

static _Noreturn void probe_child(int sock) {
    char *none[] = {NULL};
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    long r = execfilter_install(sock);
    if (r < 0) {
        int error = (int)r;
        (void)!send(sock, &error, sizeof error, MSG_NOSIGNAL);
        _exit(1);
    }
    execve("/nonexistent", none, none);
    _exit(0);
}

static int probe_wait(int fd) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int r = poll(&p, 1, PROBE_WAIT_MS);
    return r < 0 ? -errno : r == 0 ? -ETIMEDOUT : 0;
}

/* Takes the listener; -errno of the child if it has none. */
static int probe_listener(int sock) {
    char bytes[sizeof(int)];
    int fd, error;
    int r = probe_wait(sock);
    ssize_t n = r < 0 ? r : fdpass_receive(sock, bytes, sizeof bytes, MSG_DONTWAIT, &fd);
    if (n < 0)
        return (int)n;
    if (n == 0)
        return -EIO;
    if (fd >= 0)
        return fd;
    memcpy(&error, bytes, sizeof error);
    return error < 0 ? error : -EIO;
}

static int probe_memory(pid_t pid) {
    char byte;
    struct iovec here = {&byte, 1}, there = {(void *)&probe_memory, 1};
    return process_vm_readv(pid, &here, 1, &there, 1, 0) == 1 ? 0 : -errno;
}

/* Answers the child's call as a denial does. */
static int probe_answer(int listener, pid_t pid, enum probe_step *step) {
    union {
        struct seccomp_notif n;
        char space[1024];
    } u = {.space = {0}};
    union {
        struct seccomp_notif_resp r;
        char space[1024];
    } answer = {.space = {0}};
    *step = PROBE_NOTICE;
    int r = probe_wait(listener);
    if (r < 0)
        return r;
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &u.n) < 0)
        return -errno;
    *step = PROBE_MEMORY;
    r = probe_memory(pid);
    if (r < 0)
        return r;
    *step = PROBE_TRACE;
    r = intercept_trace_seize(pid);
    if (r < 0)
        return r;
    answer.r.id = u.n.id;
    answer.r.error = -ENOENT;
    return ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer.r) < 0 ? -errno : 0;
}

static int probe_explain(enum probe_step step, int error, struct err *e) {
    const char *why = "";
    if (step == PROBE_LISTENER && error == EBUSY)
        why = ": a seccomp listener already watches this process, and the kernel allows only one";
    else if (step == PROBE_LISTENER && (error == EINVAL || error == ENOSYS))
        why = ": it needs Linux 5.19 or newer, with seccomp filters";
    else if (step == PROBE_LISTENER)
        why = ": the seccomp filter cannot be installed";
    else if (step == PROBE_MEMORY || step == PROBE_TRACE)
        why = ": this process may not trace its children (kernel.yama.ptrace_scope, or the seccomp "
              "profile of a container)";
    err_set(e, ERR_INTERNAL, "interception of execs is not possible here%s: %s (os error %d)", why,
            err_os_text(error), error);
    return -error;
}

int intercept_probe(struct err *e) {
    int pair[2];
    enum probe_step step = PROBE_LISTENER;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_os(e, ERR_INTERNAL, errno);
    _cleanup_close_ int sock = pair[0];
    pid_t pid = fork();
    if (pid == 0)
        probe_child(pair[1]);
    close(pair[1]);
    if (pid < 0)
        return err_os(e, ERR_INTERNAL, errno);
    _cleanup_close_ int listener = probe_listener(sock);
    int r = listener < 0 ? listener : probe_answer(listener, pid, &step);
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
        ;
    return r < 0 ? probe_explain(step, -r, e) : 0;
}
