#include "sandbox/inside/command.h"

#include "base/execfilter.h"
#include "base/pathexec.h"
#include "base/rawsys.h"
#include "sandbox/inside/landlock.h"
#include "sandbox/host/launcher.h"
#include "sandbox/inside/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define COMMAND_STACK 65536

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COMMAND_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define COMMAND_SANITIZED
#endif
#endif

static int command_limits(const struct command *c) {
    const struct launch_request *q = c->args->q;
    struct fault *f = &c->args->shared->fault;
    setrlimit(RLIMIT_NOFILE, &c->args->nofile); /* the limit before the launcher raised it */
    for (size_t i = 0; i < q->limit_count; i++) {
        const struct launch_limit *l = &q->limits[i];
        struct rlimit v = {.rlim_cur = l->soft, .rlim_max = l->hard};
        if (setrlimit((__rlimit_resource_t)l->resource, &v) < 0)
            return fault_os(f, FAULT_LIMIT, errno, "resource %d", l->resource);
    }
    return 0;
}

/* The last steps; `socket` is for the listener of execs, or -1. */
static int command_confine(const struct command *c, int socket) {
    struct fault *f = &c->args->shared->fault;
    int r = c->landlock < 0 ? 0 : landlock_enter(c->landlock);
    if (r < 0)
        return fault_os(f, FAULT_LANDLOCK, -r, "entering");
    r = seccomp_enter(&c->args->q->plan, c->args->q->backend);
    if (r < 0)
        return fault_os(f, FAULT_SECCOMP, -r, "filter");
    if (socket >= 0)
        r = (int)execfilter_install(socket);
    return r < 0 ? fault_os(f, FAULT_SECCOMP, -r, "interception of execs") : 0;
}

/* Puts the further descriptors of the command at their numbers. */
static int command_take_given(const struct command *c) {
    const int32_t *numbers = c->args->q->given;
    int from[LAUNCH_GIVEN] = {-1, -1};
    for (int i = 0; i < LAUNCH_GIVEN; i++) { /* out of the way of each other */
        if (numbers[i] >= 3 &&
            (from[i] = fcntl(LAUNCH_GIVEN_FD + i, F_DUPFD_CLOEXEC, LAUNCH_GIVEN_LIMIT)) < 0)
            return fault_os(&c->args->shared->fault, FAULT_EXEC, errno, "descriptor");
    }
    for (int i = 0; i < LAUNCH_GIVEN; i++) {
        if (numbers[i] >= 3 && dup2(from[i], numbers[i]) < 0)
            return fault_os(&c->args->shared->fault, FAULT_EXEC, errno, "descriptor");
    }
    return 0;
}

static void command_finish(const struct command *c, int socket) {
    struct fault *f = &c->args->shared->fault;
    const struct launch_request *q = c->args->q;
    char scratch[PATHEXEC_MAX];
    sigset_t none;
    /* planted: unfiltered */
    if (command_confine(c, socket) < 0)
        return;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    int r = pathexec(q->program, q->search, q->argv, c->envp, q->mark, scratch);
    fault_os(f, FAULT_EXEC, -r, "%s", q->program);
}

static void command_main(const struct command *c) {
    struct fault *f = &c->args->shared->fault;
    if (!(c->args->namespaces & CLONE_NEWPID))
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (setsid() < 0 || (c->args->q->tty && ioctl(STDIN_FILENO, TIOCSCTTY, 0) < 0)) {
        fault_os(f, FAULT_TTY, errno, "session");
        return;
    }
    if (command_limits(c) < 0)
        return;
    sys_default_signals();
    if (syscall(SYS_close_range, 3, ~0u, CLOSE_RANGE_CLOEXEC) < 0) {
        fault_os(f, FAULT_PRIVILEGES, errno, "close_range");
        return;
    }
    int socket = -1;
    if (c->args->q->mark != 0) /* out of the way of the given */
        socket = fcntl(LAUNCH_INTERCEPT_FD, F_DUPFD_CLOEXEC, LAUNCH_GIVEN_LIMIT);
    if (c->args->q->mark != 0 && socket < 0)
        fault_os(f, FAULT_EXEC, errno, "descriptor");
    else if (command_take_given(c) == 0)
        command_finish(c, socket);
}

static int command_run(void *arg) {
    command_main(arg);
    return 127;
}

/* Shares our memory instead of copying it just to throw it away; we wait for its exec or exit. The
 * sanitizers do not understand a second stack. */
static pid_t command_clone(const struct command *c) {
#ifdef COMMAND_SANITIZED
    pid_t pid = (pid_t)syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0)
        _exit(command_run((void *)(uintptr_t)c));
    return pid;
#else
    static _Alignas(16) char stack[COMMAND_STACK];
    return clone(command_run, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD,
                 (void *)(uintptr_t)c);
#endif
}

pid_t command_start(const struct command *c) {
    struct fault *f = &c->args->shared->fault;
    pid_t pid = command_clone(c);
    if (pid < 0)
        return fault_os(f, FAULT_EXEC, errno, "fork");
    if (f->step == FAULT_NONE)
        return pid;
    waitpid(pid, NULL, __WALL);
    return f->error > 0 ? -f->error : -EINVAL;
}
