#include "sandbox/inside/init.h"

#include "base/fdpass.h"
#include "base/hunt.h"
#include "base/step.h"
#include "sandbox/inside/bridge.h"
#include "sandbox/inside/caps.h"
#include "sandbox/inside/command.h"
#include "sandbox/inside/ids.h"
#include "sandbox/inside/landlock.h"
#include "sandbox/inside/mounts.h"
#include "sandbox/inside/seccomp.h"
#include "sandbox/policy/sys.h"
#include "sandbox/inside/trial.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define INIT_DONE_FD 5 /* args.done in init: it replaces the launcher's list, which is not for us */

void init_report(struct init_shared *s, enum launch_report_kind kind, int fd) {
    if (atomic_exchange(&s->reported, true))
        return;
    struct launch_report r = {.kind = kind, .step = s->fault.step, .error = s->fault.error};
    size_t n = kind == LAUNCH_FAILED ? strnlen(s->fault.text, sizeof s->fault.text) : 0;
    memcpy(r.text, s->fault.text, n);
    struct str packet = {(const char *)&r, offsetof(struct launch_report, text) + n};
    (void)!fdpass_send(LAUNCH_CONTROL_FD, packet, STR_LIT(""), fd);
}

void init_tell_end(const struct init_shared *s) {
    (void)!send(LAUNCH_CONTROL_FD, &s->outcome, sizeof s->outcome, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* -- privileges -- */

static int init_map_ids(const struct init_args *a) {
    const char *what;
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* until init_drop() */
    int r = ids_map(a->uid, a->gid, &what);
    return r < 0 ? fault_os(&a->shared->fault, FAULT_IDS, -r, "%s", what) : 0;
}

/* Dies with the launcher, even if that is dead already. */
static void init_tie(const struct init_args *a) {
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    struct pollfd p = {.fd = a->launcher, .events = POLLIN};
    if (poll(&p, 1, 0) > 0)
        _exit(1);
}

/* Whether a descriptor is one that the command gets. */
static bool init_is_given(const struct init_args *a, int fd) {
    int i = fd - LAUNCH_GIVEN_FD;
    if (fd == LAUNCH_INTERCEPT_FD)
        return a->q->mark != 0;
    return i >= 0 && i < LAUNCH_GIVEN && a->q->given[i] >= 3;
}

/* Closes all descriptors above `done` but `keep` and those for the command. */
static void init_close_above(const struct init_args *a, int keep) {
    unsigned first = LAUNCH_INTERCEPT_FD + 1, k = (unsigned)keep;
    for (int fd = INIT_DONE_FD + 1; fd < (int)first; fd++) {
        if (fd != keep && !init_is_given(a, fd))
            close(fd);
    }
    if (keep > (int)first)
        syscall(SYS_close_range, first, k - 1, 0);
    syscall(SYS_close_range, keep >= (int)first ? k + 1 : first, ~0u, 0);
}

/* Closes all of the launcher's descriptors but the channel, `done`, `keep` and the command's. */
static void init_close_all(const struct init_args *a, int keep) {
    close(LAUNCH_REQUEST_FD);
    if (a->done != INIT_DONE_FD)
        dup3(a->done, INIT_DONE_FD, O_CLOEXEC);
    init_close_above(a, keep);
}

/* Drops all privileges; nobody inside may look into this process. */
static int init_drop(const struct init_args *a) {
    struct fault *f = &a->shared->fault;
    bool confined = a->l->confine || a->q->plan.confine_files;
    int r = confined ? caps_drop() : caps_effective(true);
    if (r < 0)
        return fault_os(f, FAULT_PRIVILEGES, -r, "capabilities");
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        return fault_os(f, FAULT_PRIVILEGES, errno, "prctl");
    return 0;
}

static int init_set_up(const struct init_args *a) {
    struct fault *f = &a->shared->fault;
    int r = 0;
    if (a->namespaces & CLONE_NEWUSER)
        r = init_map_ids(a);
    else if ((r = caps_effective(true)) < 0)
        r = fault_os(f, FAULT_PRIVILEGES, -r, "capabilities");
    if (r == 0 && (a->namespaces & CLONE_NEWNS))
        r = mounts_build(a->q, a->l, f);
    step_reach(STEP_INIT_MOUNTED);
    if (r == 0 && a->bridge >= 0)
        r = bridge_listen(&a->q->plan, a->bridge, f);
    if (r == 0)
        r = init_drop(a);
    if (r == 0 && chdir(a->l->cwd) < 0)
        r = fault_os(f, FAULT_CWD, errno, "%s", a->l->cwd);
    return r;
}

/* -- the command -- */

/* The environment with PWD set to the real directory. */
static char **init_environment(const struct init_args *a) {
    size_t n = 0;
    while (a->q->envp[n] != NULL)
        n++;
    char **envp = arena_calloc(a->a, n + 2, sizeof *envp);
    char *pwd = arena_alloc(a->a, LOCATE_PATH_MAX + 4);
    if (envp == NULL || pwd == NULL)
        return NULL;
    memcpy(pwd, "PWD=", 4);
    bool known = getcwd(pwd + 4, LOCATE_PATH_MAX) != NULL && pwd[4] == '/';
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        if (!known || strncmp(a->q->envp[i], "PWD=", 4) != 0)
            envp[count++] = a->q->envp[i];
    }
    if (known)
        envp[count] = pwd;
    return envp;
}

static pid_t init_start(const struct init_args *a) {
    struct fault *f = &a->shared->fault;
    struct command c = {.args = a, .envp = init_environment(a)};
    if (c.envp == NULL)
        return fault_os(f, FAULT_EXEC, ENOMEM, "environment");
    bool rules = a->q->plan.confine_files || a->l->confine;
    c.landlock = -1;
    int r = rules ? landlock_make(a->q, a->l, &c.landlock, f) : 0;
    pid_t pid = r < 0 ? r : command_start(&c);
    util_close_fd(&c.landlock);
    return pid;
}

/* -- waiting -- */

/* Passes the server's signals on. False: the server has closed the channel. */
static bool init_signals(pid_t command) {
    unsigned char numbers[64];
    ssize_t n = recv(LAUNCH_CONTROL_FD, numbers, sizeof numbers, MSG_DONTWAIT);
    for (ssize_t i = 0; i < n; i++) {
        if (numbers[i] >= 1 && numbers[i] <= 64)
            kill(-command, numbers[i]);
    }
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/* Reaps the dead. True if the command is among them: do not use its pid any more. */
static bool init_reap(const struct init_args *a, pid_t command) {
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0;) {
        if (pid == command && !WIFSTOPPED(status)) { /* stopped: it made us its tracer */
            a->shared->outcome.status = status;
            return true;
        }
    }
    return false;
}

/* Kills adopted children and theirs, where they do not die with us. */
static void init_kill_rest(void) {
    struct hunt h = {.meet = hunt_kill};
    while (waitpid(-1, NULL, WNOHANG | __WALL) >= 0) {
        if (!hunt_down(&h))
            return; /* stuck in the kernel: the supervisor takes care */
    }
}

static void init_note_usage(struct launch_outcome *o) {
    struct rusage own;
    if (getrusage(RUSAGE_CHILDREN, &o->usage) == 0 && getrusage(RUSAGE_SELF, &own) == 0)
        o->peak_known = o->usage.ru_maxrss > own.ru_maxrss;
    o->kind = LAUNCH_ENDED;
}

/* Ends everything inside before the command counts as ended, and before we let go of it. */
static void init_finish(const struct init_args *a) {
    step_reach(STEP_INIT_ENDING);
    if (a->namespaces & CLONE_NEWPID) {
        if (kill(-1, SIGKILL) == 0) {
            while (waitpid(-1, NULL, __WALL) > 0)
                ;
        }
        init_note_usage(&a->shared->outcome);
        if (!a->cleaner) /* the server need not wait for the kernel to take this down */
            init_tell_end(a->shared);
    } else if (a->namespaces & CLONE_NEWNS) {
        init_kill_rest();
    }
    atomic_store(&a->shared->ended, true);
    (void)!write(INIT_DONE_FD, "", 1); /* the launcher can clean up meanwhile */
    step_reach(STEP_INIT_ENDED);
}

/* Tells the end of the command, then waits for what it has left behind. */
static void init_linger(const struct init_args *a) {
    init_note_usage(&a->shared->outcome);
    init_tell_end(a->shared);
    while (waitpid(-1, NULL, __WALL) > 0 || errno == EINTR)
        ;
}

static void init_wait(const struct init_args *a, pid_t command, int news) {
    struct pollfd p[2] = {{.fd = news, .events = POLLIN},
                          {.fd = LAUNCH_CONTROL_FD, .events = POLLIN}};
    while (!init_reap(a, command)) {
        if (poll(p, 2, -1) < 0)
            continue;
        struct signalfd_siginfo info;
        if ((p[0].revents & POLLIN) && read(news, &info, sizeof info) < 0 && errno != EAGAIN)
            break;
        if (p[1].revents != 0 && !init_signals(command))
            p[1].fd = -1;
    }
    if (a->q->linger)
        init_linger(a);
    init_finish(a);
}

static _Noreturn void init_command(const struct init_args *a) {
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD); /* blocked, like all others */
    int news = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    if (!(a->namespaces & CLONE_NEWPID) && (a->namespaces & CLONE_NEWNS))
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    pid_t pid =
        news < 0 ? fault_os(&a->shared->fault, FAULT_EXEC, errno, "signalfd") : init_start(a);
    if (pid < 0)
        _exit(1); /* the launcher cleans up, then reports */
    for (int fd = 0; fd <= 2; fd++)
        close(fd); /* only the command keeps them */
    for (int fd = LAUNCH_GIVEN_FD; fd <= LAUNCH_INTERCEPT_FD; fd++) {
        if (init_is_given(a, fd))
            close(fd);
    }
    step_reach(STEP_INIT_STARTED);
    init_report(a->shared, LAUNCH_RUNNING, -1);
    step_reach(STEP_INIT_REPORTED);
    init_wait(a, pid, news);
    _exit(0);
}

static int init_confine(const struct init_args *a) {
    struct fault *f = &a->shared->fault;
    int landlock = -1;
    int r = landlock_make(a->q, a->l, &landlock, f);
    if (r == 0 && landlock >= 0 && (r = landlock_enter(landlock)) < 0)
        fault_os(f, FAULT_LANDLOCK, -r, "entering");
    util_close_fd(&landlock);
    if (r == 0 && (r = seccomp_enter(&a->q->plan, a->q->backend)) < 0)
        fault_os(f, FAULT_SECCOMP, -r, "filter");
    return r;
}

/* 0 if /proc shows our own pid namespace; EXDEV if it shows another; or another errno. */
static int init_proc_error(void) {
    char text[16] = "";
    if (readlink("/proc/self", text, sizeof text - 1) < 0)
        return errno;
    return atoi(text) == getpid() ? 0 : EXDEV;
}

static _Noreturn void init_helper(const struct init_args *a) {
    /* A probe reports whose /proc it sees in `error`, which is otherwise 0. */
    bool probe = a->q->mode == LAUNCH_PROBE;
    int proc = probe ? init_proc_error() : 0;
    int r = 0;
    if (setsid() < 0) /* away from the server's terminal, if there is one */
        r = fault_os(&a->shared->fault, FAULT_TTY, errno, "session");
    if (r == 0)
        r = init_confine(a);
    if (r == 0 && probe)
        r = trial_check(a->q, &a->shared->fault);
    if (r == 0)
        a->shared->fault.error = proc;
    if (r < 0)
        _exit(1);
    init_report(a->shared, LAUNCH_RUNNING, -1);
    int code = probe ? 0 : a->helper(a->l, LAUNCH_CONTROL_FD);
    a->shared->outcome.status = (code & 0xff) << 8;
    atomic_store(&a->shared->ended, true);
    _exit(0);
}

_Noreturn void init_main(const struct init_args *a) {
    step_reach(STEP_INIT_STARTS);
    init_tie(a);
    step_reach(STEP_INIT_TIED);
    init_close_all(a, a->bridge);
    step_reach(STEP_INIT_CLOSED);
    int r = init_set_up(a);
    step_reach(STEP_INIT_READY);
    init_close_above(a, -1); /* the mounts' and the bridge's */
    if (r < 0)
        _exit(1);
    if (a->q->mode == LAUNCH_COMMAND)
        init_command(a);
    init_helper(a);
}
