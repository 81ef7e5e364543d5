/*
 * The supervisor process. Everything below supervisor_main() and child_main() runs in memory shared
 * with the running server, on its own small stack: only raw system calls, no libc, no sanitizers.
 */
#include "proc/supervisor.h"

#include "base/hunt.h"
#include "base/rawsys.h"
#include "base/step.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#if defined(__x86_64__)

/* clone() onto a fresh stack, where the child calls fn(arg) and exits with its result. */
long supervisor_clone(unsigned long flags, void *stack, int (*fn)(void *), void *arg);
__asm__(".text\n"
        ".type supervisor_clone,@function\n"
        ".globl supervisor_clone\n"
        ".hidden supervisor_clone\n"
        "supervisor_clone:\n"
        "    sub $16, %rsi\n"
        "    mov %rdx, (%rsi)\n"
        "    mov %rcx, 8(%rsi)\n"
        "    xor %edx, %edx\n"
        "    xor %r10d, %r10d\n"
        "    xor %r8d, %r8d\n"
        "    mov $56, %eax\n" /* clone */
        "    syscall\n"
        "    test %rax, %rax\n"
        "    jnz 1f\n"
        "    xor %ebp, %ebp\n"
        "    pop %rax\n"
        "    pop %rdi\n"
        "    call *%rax\n"
        "    mov %eax, %edi\n"
        "    mov $60, %eax\n" /* exit */
        "    syscall\n"
        "1:  ret\n"
        ".size supervisor_clone,.-supervisor_clone\n");

#elif defined(__aarch64__)

long supervisor_clone(unsigned long flags, void *stack, int (*fn)(void *), void *arg);
__asm__(".text\n"
        ".type supervisor_clone,%function\n"
        ".globl supervisor_clone\n"
        ".hidden supervisor_clone\n"
        "supervisor_clone:\n"
        "    stp x2, x3, [x1, #-16]!\n"
        "    mov x2, #0\n"
        "    mov x3, #0\n"
        "    mov x4, #0\n"
        "    mov x8, #220\n" /* clone */
        "    svc 0\n"
        "    cbz x0, 1f\n"
        "    ret\n"
        "1:  mov x29, #0\n"
        "    ldp x1, x0, [sp], #16\n"
        "    blr x1\n"
        "    mov x8, #93\n" /* exit */
        "    svc 0\n"
        ".size supervisor_clone,.-supervisor_clone\n");

#endif

/* Closes first..last, or marks them close-on-exec; one by one where close_range is refused. */
static void close_fds(unsigned first, unsigned last, unsigned flags) {
    if (sys3(SYS_close_range, first, last, flags) >= 0)
        return;
    for (unsigned fd = first; fd <= MIN(last, 65535u); fd++) {
        if (flags & CLOSE_RANGE_CLOEXEC)
            sys3(SYS_fcntl, fd, F_SETFD, FD_CLOEXEC);
        else
            sys1(SYS_close, fd);
    }
}

/* The first number above a launcher's descriptors. */
static unsigned sup_handed_end(const struct supervisor *s) {
    return 3 + SUPERVISOR_HANDED + (s->intercept >= 0);
}

/* -- the command, between vfork and exec -- */

static int child_launch(const struct supervisor *s) {
    return (int)sys5(SYS_execveat, s->launcher, (long)"", (long)s->argv, (long)s->envp,
                     AT_EMPTY_PATH);
}

/* Sets one limit; notes which one fails. */
static int child_limit(struct supervisor *s, enum limits_kind kind, long r) {
    if (r >= 0)
        return 0;
    s->failed_limit = (int)kind;
    return (int)r;
}

static long child_rlimit(int which, const struct rlimit *v) {
    return sys4(SYS_prlimit64, 0, which, (long)v, 0);
}

static long child_write_oom(const struct limits_steps *l) {
    long fd = sys4(SYS_openat, AT_FDCWD, (long)"/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC, 0);
    return fd < 0 ? fd : sys3(SYS_write, fd, (long)l->oom, (long)l->oom_len);
}

/* Sets resource limits; a launcher sets them itself, at the very end. */
static int child_set_rlimits(struct supervisor *s) {
    const struct limits_steps *l = &s->limits;
    int r = 0;
    if (l->set_open_files)
        r = child_limit(s, LIMITS_OPEN_FILES, child_rlimit(RLIMIT_NOFILE, &l->open_files));
    else
        child_rlimit(RLIMIT_NOFILE, &s->nofile); /* those of the server's start, if possible */
    if (r == 0 && l->set_pids)
        r = child_limit(s, LIMITS_PIDS, child_rlimit(RLIMIT_NPROC, &l->pids));
    if (r == 0 && l->set_memory)
        r = child_limit(s, LIMITS_MEMORY, child_rlimit(RLIMIT_AS, &l->memory));
    return r;
}

static int child_set_limits(struct supervisor *s) {
    const struct limits_steps *l = &s->limits;
    int r = 0;
    if (l->join) /* only the command joins: the supervisor shares the server's memory */
        r = (int)MIN(sys3(SYS_write, l->cgroup_fd, (long)"0", 1), 0L);
    if (r == 0 && l->set_nice)
        r = child_limit(s, LIMITS_NICE, sys3(SYS_setpriority, PRIO_PROCESS, 0, l->nice));
    if (r == 0 && l->set_oom)
        r = child_limit(s, LIMITS_OOM, child_write_oom(l));
    return r < 0 || s->launcher >= 0 ? r : child_set_rlimits(s);
}

/* Takes over what the command stands for; *blocked is set. */
static void child_inherit(const struct supervisor_heritage *h, uint64_t *blocked) {
    sys1(SYS_umask, h->umask);
    if (h->umask_only)
        return;
    sys3(SYS_setpriority, PRIO_PROCESS, 0, h->nice);
    for (int n = 1; n <= 64; n++) {
        if (h->ignored >> (n - 1) & 1)
            sys_ignore_signal(n);
    }
    *blocked = h->blocked;
}

/* Puts the further descriptors at their numbers. All others close at the exec. */
static long child_take_given(const struct supervisor *s) {
    long from[SUPERVISOR_GIVEN], r = 0;
    for (unsigned i = 0; r >= 0 && i < s->given_count; i++) /* out of the way of each other */
        r = from[i] = sys3(SYS_fcntl, s->given[i].fd, F_DUPFD_CLOEXEC, SUPERVISOR_GIVEN_LIMIT);
    for (unsigned i = 0; r >= 0 && i < s->given_count; i++)
        r = sys3(SYS_dup3, from[i], s->given[i].number, 0);
    return r;
}

/* The program, of which nobody is asked: whoever listens knows the mark. */
static long child_exec(struct supervisor *s) {
    long r = s->intercept < 0 ? 0 : execfilter_install(s->intercept);
    if (r >= 0)
        r = child_take_given(s); /* may replace `intercept` */
    const struct supervisor_heritage *h = s->heritage;
    for (int i = 0; h != NULL && !h->umask_only && i < RLIM_NLIMITS; i++)
        child_rlimit(i, &h->limits[i]); /* after all descriptors have their numbers */
    return r < 0 ? r : pathexec(s->program, s->search, s->argv, s->envp, s->mark, s->path);
}

static int child_main(void *arg) {
    struct supervisor *s = arg;
    sys5(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* first: we use the parent's memory */
    if (sys0(SYS_getppid) != s->self)
        return 127; /* the parent is dead already: nobody would ever end us */
    bool launch = s->launcher >= 0;
    long r = launch ? sys2(SYS_setpgid, 0, 0) : sys0(SYS_setsid);
    if (r >= 0 && s->tty && !launch)
        r = sys3(SYS_ioctl, 0, TIOCSCTTY, 0);
    if (r >= 0)
        r = sys1(SYS_chdir, launch ? (long)"/" : (long)s->cwd);
    if (r >= 0)
        r = child_set_limits(s);
    if (r >= 0) {
        uint64_t none = 0;
        sys_default_signals();
        if (s->heritage != NULL)
            child_inherit(s->heritage, &none);
        sys4(SYS_rt_sigprocmask, SIG_SETMASK, (long)&none, 0, sizeof none);
        close_fds(launch ? sup_handed_end(s) : 3, ~0u, CLOSE_RANGE_CLOEXEC);
        r = launch ? child_launch(s) : child_exec(s);
    }
    s->error = (int)-r;
    return 127;
}

/* -- the supervisor -- */

static void sup_notify(struct supervisor *s, enum supervisor_phase phase) {
    atomic_store_explicit(&s->phase, (int)phase, memory_order_release);
    pid_t me = (pid_t)sys0(SYS_getpid);
    while (sys3(SYS_write, s->wake_fd, (long)&me, sizeof me) == -EINTR)
        ;
}

/* Moves a descriptor out of the way of those that get fixed numbers. */
static long sup_move_up(int *fd) {
    long r = sys3(SYS_fcntl, *fd, F_DUPFD_CLOEXEC, 3 + SUPERVISOR_HANDED + 1);
    *fd = r >= 0 ? (int)r : *fd;
    return r;
}

/* Gives a launcher its descriptors; drops all others except those still needed. */
static int sup_arrange_launch(struct supervisor *s) {
    long r = sup_move_up(&s->wake_fd);
    if (r >= 0)
        r = sup_move_up(&s->launcher);
    if (r >= 0 && s->limits.join)
        r = sup_move_up(&s->limits.cgroup_fd);
    if (r >= 0 && s->intercept >= 0)
        r = sup_move_up(&s->intercept);
    for (int i = 0; r >= 0 && i < SUPERVISOR_HANDED; i++) {
        if (s->handed[i] >= 0)
            r = sup_move_up(&s->handed[i]);
    }
    for (int i = 0; r >= 0 && i < SUPERVISOR_HANDED; i++) {
        if (s->handed[i] >= 0)
            r = sys3(SYS_dup3, s->handed[i], 3 + i, 0);
        else
            sys1(SYS_close, 3 + i);
    }
    if (r >= 0 && s->intercept >= 0)
        r = sys3(SYS_dup3, s->intercept, 3 + SUPERVISOR_HANDED, 0);
    /* The launcher must not get the server's other descriptors: they close at its exec. */
    if (r >= 0)
        close_fds(sup_handed_end(s), ~0u, CLOSE_RANGE_CLOEXEC);
    return (int)MIN(r, 0L);
}

/* Puts the command's three descriptors in place; drops all others except those still needed. */
static int sup_arrange_fds(struct supervisor *s) {
    for (int i = 0; i < 3; i++) {
        long r = sys3(SYS_dup3, s->fds[i], i, 0);
        if (r < 0)
            return (int)r;
    }
    if (s->launcher >= 0)
        return sup_arrange_launch(s);
    if (s->given_count > 0 || s->intercept >= 0)
        return 0; /* sup_launch() closes the rest */
    int other = s->limits.join ? s->limits.cgroup_fd : s->wake_fd;
    unsigned low = (unsigned)MIN(s->wake_fd, other), high = (unsigned)MAX(s->wake_fd, other);
    if (low > 3)
        close_fds(3, low - 1, 0);
    if (high > low + 1)
        close_fds(low + 1, high - 1, 0);
    close_fds(high + 1, ~0u, 0);
    return 0;
}

/* Starts the command's process; its pid, or -errno, once it has exec'ed or given up. */
static int sup_clone_child(struct supervisor *s) {
    void *top = s->child_stack + sizeof s->child_stack;
    if (!s->forked)
        return (int)supervisor_clone(CLONE_VM | CLONE_VFORK | SIGCHLD, top, child_main, s);
    /* We do not wait here: a pipe that closes on exec or exit tells. */
    int p[2];
    char byte;
    long r = sys2(SYS_pipe2, (long)p, O_CLOEXEC);
    if (r < 0)
        return (int)r;
    r = supervisor_clone(SIGCHLD, top, child_main, s);
    sys1(SYS_close, p[1]);
    while (r > 0 && sys3(SYS_read, p[0], (long)&byte, 1) == -EINTR)
        ;
    sys1(SYS_close, p[0]);
    return (int)r;
}

/* Starts the command; phase FAILED or RUNNING afterwards. */
static bool sup_launch(struct supervisor *s) {
    int r = sup_arrange_fds(s);
    if (r == 0)
        s->leader = r = sup_clone_child(s);
    if (r < 0)
        s->error = -r;
    else if (s->error != 0)
        sys4(SYS_wait4, s->leader, 0, __WALL, 0);
    bool ok = s->error == 0;
    sup_notify(s, ok ? SUPERVISOR_RUNNING : SUPERVISOR_FAILED);
    close_fds(0, 2, 0);
    if (s->launcher >= 0 || s->given_count > 0 ||
        s->intercept >= 0) { /* all but the one that wakes the server */
        close_fds(3, (unsigned)s->wake_fd - 1, 0);
        close_fds((unsigned)s->wake_fd + 1, ~0u, 0);
    } else if (s->limits.join) {
        sys1(SYS_close, s->limits.cgroup_fd);
    }
    return ok;
}

/* A round of kills that spares other sessions. */
struct sup_round {
    pid_t session; /* not spared */
    bool killed;   /* at least one */
};

static void sup_kill_member(struct hunt *h, pid_t pid) {
    struct sup_round *round = h->owner;
    if (sys1(SYS_getsid, pid) == round->session)
        round->killed |= sys2(SYS_kill, pid, SIGKILL) == 0;
}

/* Kills the children in the leader's session. Children of the killed become ours, for the next
 * round. True if only spared ones are left. */
static bool sup_kill_session(struct supervisor *s, bool leader_lives) {
    struct sup_round round = {.session = s->leader};
    struct hunt h = {.meet = sup_kill_member, .owner = &round};
    if (leader_lives)
        sys2(SYS_kill, -s->leader, SIGKILL);
    else
        h.leader = s->leader;
    hunt_children(&h);
    return !leader_lives && !round.killed;
}

/* Kills all descendants; true if nobody lives, and only the dead are left to reap. */
static bool sup_kill_all(struct supervisor *s, bool leader_lives) {
    if (leader_lives)
        sys2(SYS_kill, -s->leader, SIGKILL);
    struct hunt h = {.meet = hunt_kill, .leader = s->leader};
    /* planted: spared-orphan */
    bool done = hunt_down(&h);
    atomic_store(&s->stuck, !done);
    return done;
}

static void sup_term(struct hunt *h, pid_t pid) {
    (void)h;
    sys2(SYS_kill, pid, SIGTERM);
}

/* Sends SIGTERM to the children that a leader has left behind. */
static void sup_term_rest(void) {
    struct hunt h = {.meet = sup_term};
    hunt_children(&h);
}

/* Takes the leader's status, once the server is not about to signal its group. Sleeps until then:
 * yielding does not let the server run where we have priority (sup_hurry()). */
static void sup_reap_leader(struct supervisor *s) {
    struct timespec moment = {0, 20000};
    atomic_store(&s->reaping, true);
    while (atomic_load(&s->signalling) && sys0(SYS_getppid) == s->server)
        sys2(SYS_nanosleep, (long)&moment, 0);
    sys4(SYS_wait4, s->leader, (long)&s->status, __WALL, (long)&s->usage);
    sup_notify(s, SUPERVISOR_EXITED);
}

/* Reaps the dead. False if no child is left. */
static bool sup_reap(struct supervisor *s, bool *leader_lives) {
    for (;;) {
        siginfo_t dead;
        dead.si_pid = 0;
        long r = sys5(SYS_waitid, P_ALL, 0, (long)&dead, WEXITED | WNOHANG | WNOWAIT | __WALL, 0);
        if (r == -EINTR)
            continue;
        if (r < 0 || dead.si_pid == 0)
            return r != -ECHILD;
        bool stopped = dead.si_code == CLD_TRAPPED || dead.si_code == CLD_STOPPED;
        if (stopped) { /* it made us its tracer; it stays stopped */
            sys4(SYS_wait4, dead.si_pid, 0, WNOHANG | __WALL, 0);
        } else if (dead.si_pid == s->leader && *leader_lives) {
            *leader_lives = false;
            sup_reap_leader(s);
        } else {
            sys4(SYS_wait4, dead.si_pid, 0, __WALL, 0);
        }
    }
}

static long sup_call(long n, long a, long b, long c, long d) {
    return sys4(n, a, b, c, d);
}

/* The sandbox is gone: removes its placeholder directories. */
static void sup_sweep(const struct supervisor *s) {
    struct placeholders_sweeper sweeper = {.call = sup_call};
    if (s->placeholders == NULL)
        return;
    step_reach(STEP_SUPERVISOR_SWEEPS);
    placeholders_finish(s->placeholders, &sweeper);
}

/* Gets our own descriptor table. False on failure: then touch nothing. */
static bool sup_unshare(struct supervisor *s) {
    long r = 0;
    if (s->keep > 0 && !s->forked)
        r = sys3(SYS_close_range, s->keep, ~0u, CLOSE_RANGE_UNSHARE);
    if (r < 0) /* an old kernel */
        r = sys1(SYS_unshare, CLONE_FILES);
    if (r < 0) {
        s->error = (int)-r;
        sup_notify(s, SUPERVISOR_FAILED);
    }
    atomic_store_explicit(&s->unshared, true, memory_order_release);
    return r >= 0;
}

/* Runs before everybody else, where that is allowed: a fork bomb of a thousand sessions would leave
 * us a thousandth of the processor to kill it. Our children are scheduled as usual. */
static void sup_hurry(void) {
    int priority = 1;
    sys3(SYS_sched_setscheduler, 0, SCHED_RR | SCHED_RESET_ON_FORK, (long)&priority);
}

static int supervisor_main(void *arg) {
    struct supervisor *s = arg;
    if (!sup_unshare(s))
        return 0;
    /* Signals to the server's group are not for us. But no session of our own: the scheduler would
     * treat it as another user, who waits for the first turn (sched(7), autogroup). */
    sys2(SYS_setpgid, 0, 0);
    sys5(SYS_prctl, PR_SET_NAME, (long)"exec-supervisor", 0, 0, 0);
    sys5(SYS_prctl, PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
    sys5(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    s->self = (pid_t)sys0(SYS_getpid);
    if (s->placeholders != NULL)
        step_reach(STEP_SUPERVISOR_STARTS);
    if (sys0(SYS_getppid) != s->server || !sup_launch(s)) {
        sup_sweep(s);
        return 0;
    }
    sup_hurry();
    if (s->placeholders != NULL)
        step_reach(STEP_SUPERVISOR_WAITS);

    uint64_t wanted = 1ull << (SIGCHLD - 1) | 1ull << (SIGUSR1 - 1) | 1ull << (SIGTERM - 1);
    bool leader_lives = true;
    long pause_ms = 1;
    while (sup_reap(s, &leader_lives)) {
        unsigned kill = atomic_load_explicit(&s->kill, memory_order_acquire);
        if (sys0(SYS_getppid) != s->server)
            kill |= SUPERVISOR_KILL_ALL; /* the server is gone */
        if ((kill & SUPERVISOR_TERM_REST) && !leader_lives) {
            atomic_fetch_and(&s->kill, ~(unsigned)SUPERVISOR_TERM_REST);
            sup_term_rest();
        }
        bool killing = (kill & SUPERVISOR_KILL_ALL) != 0;
        bool spare = (kill & SUPERVISOR_SPARE_SETSID) != 0;
        if (killing && spare && sup_kill_session(s, leader_lives))
            break;
        if (killing && !spare && sup_kill_all(s, leader_lives))
            continue;
        /* Killed children raise SIGCHLD; the pause only covers those that cannot be killed. */
        struct timespec pause = {pause_ms / 1000, pause_ms % 1000 * 1000000};
        if (sys4(SYS_rt_sigtimedwait, (long)&wanted, 0, killing ? (long)&pause : 0,
                 sizeof wanted) == -EAGAIN)
            pause_ms = MIN(pause_ms * 2, 1000L);
    }
    /* A hanging file system may hold us in the sweep; then we only need the CPU to end. */
    atomic_store(&s->stuck, s->placeholders != NULL);
    sup_sweep(s);
    atomic_store(&s->stuck, false);
    return 0;
}

pid_t supervisor_start(struct supervisor *s) {
    void *top = s->stack + sizeof s->stack;
    unsigned long files = s->keep > 0 ? CLONE_FILES : 0; /* else it has a copy at once */
    long pid = supervisor_clone(CLONE_VM | files | SIGCHLD, top, supervisor_main, s);
    if (pid == -EINVAL) {
        s->forked = true;
        pid = supervisor_clone(SIGCHLD, top, supervisor_main, s);
    }
    return (pid_t)pid;
}

static bool sup_signal(struct supervisor *s, pid_t target, int signo) {
    atomic_store(&s->signalling, true);
    bool lives = !atomic_load(&s->reaping);
    if (lives)
        sys2(SYS_kill, target, signo);
    atomic_store(&s->signalling, false);
    return lives;
}

bool supervisor_signal(struct supervisor *s, int signo) {
    return sup_signal(s, -s->leader, signo);
}

bool supervisor_signal_leader(struct supervisor *s, int signo) {
    return sup_signal(s, s->leader, signo);
}
