#include "sandbox/inside/launch.h"

#include "sandbox/inside/bridge.h"
#include "sandbox/inside/caps.h"
#include "sandbox/host/cause.h"
#include "sandbox/inside/init.h"
#include "sandbox/host/landlock_abi.h"
#include "sandbox/inside/layout.h"
#include "sandbox/inside/network.h"
#include "sandbox/host/placeholder.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

struct launch {
    struct init_shared *shared;
    struct placeholders *list; /* or NULL */
    struct arena arena;
    struct launch_request q;
    struct layout layout;
    struct init_args args;
    int bridge; /* our end of args.bridge, or -1 */
    int done;   /* our end of args.done */
};

static int launch_fault(struct launch *l, enum fault_step step, int error, const char *what) {
    return fault_os(&l->shared->fault, step, error, "%s", what);
}

/* -- input -- */

static int launch_read(struct launch *l) {
    struct stat st;
    if (fstat(LAUNCH_REQUEST_FD, &st) < 0)
        return launch_fault(l, FAULT_REQUEST, errno, "descriptor");
    if (st.st_size <= 0 || st.st_size > LAUNCH_BYTES_MAX)
        return launch_fault(l, FAULT_REQUEST, EINVAL, "size");
    size_t n = (size_t)st.st_size;
    const char *p = mmap(NULL, n, PROT_READ, MAP_PRIVATE, LAUNCH_REQUEST_FD, 0);
    if (p == MAP_FAILED)
        return launch_fault(l, FAULT_REQUEST, errno, "mapping");
    int r = launch_request_decode((struct str){p, n}, &l->arena, &l->q);
    return r < 0 ? launch_fault(l, FAULT_REQUEST, -r, "contents") : 0;
}

/*
 * From now on we outlive a killed supervisor, to remove the placeholder directories; until now we
 * would have died with it. The order matters: a process that finds no pid in the list after
 * the supervisor's end need not wait for us.
 */
static void launch_outlive(struct placeholders *list) {
    atomic_store(&list->launcher, getpid());
    prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
#ifdef EXEC_SERVER_STEPS
    step_wanted = list->step;
#endif
}

/* Maps the list of placeholder directories; without one only we know them. */
static void launch_map_list(struct launch *l) {
    void *p = mmap(NULL, PLACEHOLDERS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
                   LAUNCH_PLACEHOLDERS_FD, 0);
    if (p == MAP_FAILED)
        p = mmap(NULL, PLACEHOLDERS_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                 0);
    l->list = p == MAP_FAILED ? NULL : p;
    if (l->list == NULL)
        return;
    (void)madvise(p, PLACEHOLDERS_BYTES, MADV_DONTFORK); /* not for the processes inside */
    launch_outlive(l->list);
}

/* -- this process -- */

static void launch_quiet(void) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL); /* only SIGKILL ends us before the command does */
    prctl(PR_SET_NAME, "exec-sandbox", 0, 0, 0);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* no process of our user may look into us */
    for (int fd = LAUNCH_REQUEST_FD; fd <= LAUNCH_INTERCEPT_FD; fd++)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* Each writable root takes a descriptor for a while. */
static struct rlimit launch_raise_nofile(void) {
    struct rlimit old = {1024, 4096};
    if (getrlimit(RLIMIT_NOFILE, &old) == 0 && old.rlim_cur < old.rlim_max)
        (void)setrlimit(RLIMIT_NOFILE, &(struct rlimit){old.rlim_max, old.rlim_max});
    return old;
}

/* Looks at the disk with no more rights than the command's. */
static int launch_prepare(struct launch *l) {
    int r = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : caps_effective(false);
    if (r < 0)
        return launch_fault(l, FAULT_PRIVILEGES, -r, "no_new_privs");
    const char *why = NULL;
    if (l->q.backend == LAUNCH_LANDLOCK &&
        !landlock_abi_suffices(&l->q.plan, landlock_abi(l->q.landlock_max), &why))
        return fault_text(&l->shared->fault, FAULT_POLICY,
                          "Landlock alone cannot enforce this policy: %s", why);
    return layout_build(&l->q, l->list, &l->arena, &l->layout, &l->shared->fault);
}

static unsigned long launch_namespaces(const struct launch *l) {
    const struct plan *p = &l->q.plan;
    if (!l->layout.confine || l->q.backend == LAUNCH_LANDLOCK)
        return 0;
    unsigned long flags = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
    if (l->q.backend == LAUNCH_USERNS)
        flags |= CLONE_NEWUSER;
    if (!p->inherit_pids)
        flags |= CLONE_NEWPID;
    if (p->network != PLAN_NET_ENABLED)
        flags |= CLONE_NEWNET;
    return flags;
}

/* Joins the shared empty network, if there is one, instead of making another. */
static void launch_join_network(struct launch *l) {
    bool none = l->q.plan.network == PLAN_NET_RESTRICTED && (l->args.namespaces & CLONE_NEWNET);
    if (none && network_join(LAUNCH_NETWORK_FD, l->q.backend) == 0)
        l->args.namespaces &= ~(unsigned long)CLONE_NEWNET;
}

/* Opens a socket for the listeners of a managed network. */
static int launch_open_bridge(struct launch *l) {
    int pair[2];
    if (l->q.plan.network != PLAN_NET_MANAGED || !(l->args.namespaces & CLONE_NEWNET))
        return 0;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return launch_fault(l, FAULT_NETWORK, errno, "socketpair");
    l->bridge = pair[0];
    l->args.bridge = pair[1];
    return 0;
}

/* A pidfd of init; -1: none yet. */
static int launch_init = -1;

static void launch_on_term(int signo) {
    (void)signo;
    syscall(SYS_pidfd_send_signal, launch_init, SIGKILL, NULL, 0);
}

/* When the supervisor ends, kill init; we then clean up as always. */
static void launch_heed(pid_t init) {
    struct sigaction a = {.sa_handler = launch_on_term, .sa_flags = SA_RESTART};
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    launch_init = (int)syscall(SYS_pidfd_open, init, 0);
    sigaction(SIGTERM, &a, NULL);
    sigprocmask(SIG_UNBLOCK, &term, NULL);
}

/* Starts init; its pid, or -errno with the fault noted. */
static pid_t launch_clone(struct launch *l) {
    struct init_args *a = &l->args;
    int pair[2];
    if (pipe2(pair, O_CLOEXEC) < 0)
        return launch_fault(l, FAULT_NAMESPACES, errno, "pipe");
    l->done = pair[0];
    a->done = pair[1];
    a->launcher = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (a->launcher < 0)
        return launch_fault(l, FAULT_NAMESPACES, errno, "pidfd_open");
    /* Effective capabilities decide which namespaces we may make and map into. */
    int r = caps_effective(true);
    if (r < 0)
        return launch_fault(l, FAULT_PRIVILEGES, -r, "capabilities");
    launch_join_network(l);
    long pid = syscall(SYS_clone, a->namespaces | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0)
        init_main(a);
    int error = errno;
    close(a->launcher);
    close(a->done);
    util_close_fd(&a->bridge);
    r = caps_drop();
    if (pid < 0 && l->q.backend == LAUNCH_ROOT && error == EPERM)
        return launch_fault(l, FAULT_PRIVILEGES, error, "CAP_SYS_ADMIN for namespaces");
    if (pid < 0)
        return launch_fault(l, FAULT_NAMESPACES, error, "clone");
    if (r < 0) {
        kill((pid_t)pid, SIGKILL);
        launch_fault(l, FAULT_PRIVILEGES, -r, "capabilities");
    }
    return (pid_t)pid;
}

/* Ends as the command did. */
static _Noreturn void launch_end(int status) {
    if (WIFSIGNALED(status)) {
        int n = WTERMSIG(status);
        sigset_t one;
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        signal(n, SIG_DFL);
        kill(getpid(), n);
        sigemptyset(&one);
        sigaddset(&one, n);
        sigprocmask(SIG_UNBLOCK, &one, NULL);
        _exit(128 + n);
    }
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

/* Removes the placeholder directories. Nobody inside may live any more. */
static void launch_clean(struct launch *l) {
    syscall(SYS_close_range, LAUNCH_CONTROL_FD + 1, ~0u, 0); /* closes the locks too */
    step_reach(STEP_CLEANING);
    if (l->list != NULL)
        placeholder_finish(l->list);
    step_reach(STEP_CLEANED);
}

/* Adds how to allow a stronger backend, if this one cannot enforce the policy. */
static void launch_advise(const struct launch *l) {
    struct fault *f = &l->shared->fault;
    if (f->step != FAULT_POLICY || l->q.backend != LAUNCH_LANDLOCK || l->q.advice == NULL)
        return;
    size_t n = strnlen(f->text, sizeof f->text - 1);
    snprintf(f->text + n, sizeof f->text - n, "%s", l->q.advice);
}

/* Waits for init, cleans up, and ends. Reports a failure only when nothing is left of the attempt.
 * */
static _Noreturn void launch_wait(struct launch *l, pid_t init) {
    struct init_shared *s = l->shared;
    for (int fd = 0; fd <= LAUNCH_REQUEST_FD; fd++)
        close(fd);
    for (int i = 0; i < LAUNCH_GIVEN; i++) {
        if (l->q.given[i] >= 3)
            close(LAUNCH_GIVEN_FD + i);
    }
    char byte;
    bool told = false;
    if (init > 0)
        launch_heed(init);
    step_reach(STEP_CLONED);
    if (init > 0 && l->bridge >= 0)
        bridge_serve(&l->q.plan, l->bridge, LAUNCH_NETWORK_FD, init);
    else if (init > 0)
        told = read(l->done, &byte, 1) == 1;
    if (told) {
        launch_clean(l);
        if (l->args.cleaner && s->outcome.kind == LAUNCH_ENDED)
            init_tell_end(s);
    }
    while (init > 0 && waitpid(init, NULL, __WALL) < 0 && errno == EINTR)
        ;
    if (!told)
        launch_clean(l);
    if (atomic_load(&s->ended))
        launch_end(s->outcome.status);
    if (atomic_load(&s->reported))
        launch_end(SIGKILL); /* init was killed, and the command with it */
    fault_text(&s->fault, FAULT_LOST,
               "init ended unexpectedly"); /* unless a fault is noted already */
    launch_advise(l);
    init_report(s, LAUNCH_FAILED, -1);
    launch_end(1 << 8);
}

static _Noreturn void launch_network(struct launch *l) {
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    int fd = network_make(l->q.backend);
    if (fd < 0)
        launch_fault(l, FAULT_NAMESPACES, -fd, "network");
    init_report(l->shared, fd < 0 ? LAUNCH_FAILED : LAUNCH_RUNNING, fd);
    _exit(fd < 0);
}

static _Noreturn void launch_calls(struct launch *l) {
    l->shared->fault.error = (int32_t)cause_try_calls();
    init_report(l->shared, LAUNCH_RUNNING, -1);
    _exit(0);
}

_Noreturn void launch_main(launch_helper_fn *helper) {
    static struct launch l = {.bridge = -1};
    launch_quiet();
    l.arena = ARENA_INIT(LAUNCH_ARENA_MAX);
    l.shared =
        mmap(NULL, sizeof *l.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (l.shared == MAP_FAILED)
        _exit(1);
    launch_map_list(&l);
    l.args = (struct init_args){.q = &l.q,
                                .l = &l.layout,
                                .a = &l.arena,
                                .shared = l.shared,
                                .helper = helper,
                                .bridge = -1,
                                .uid = geteuid(),
                                .gid = getegid(),
                                .nofile = launch_raise_nofile()};
    step_reach(STEP_LAUNCHER_STARTS);
    int r = launch_read(&l);
    if (r == 0 && l.q.mode == LAUNCH_NETWORK)
        launch_network(&l);
    if (r == 0 && l.q.mode == LAUNCH_CALLS)
        launch_calls(&l);
    if (r == 0)
        r = launch_prepare(&l);
    pid_t init = -1;
    if (r == 0) {
        step_reach(STEP_LAID_OUT);
        l.args.namespaces = launch_namespaces(&l);
        l.args.cleaner = l.list != NULL && atomic_load(&l.list->used) > 0;
        init = launch_open_bridge(&l) < 0 ? -1 : launch_clone(&l);
    }
    launch_wait(&l, init);
}
