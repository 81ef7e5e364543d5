#include "proc/child.h"

#include "base/hunt.h"
#include "base/log.h"
#include "base/nullfd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

/* -- supervisor memory -- */

static struct supervisor *child_memory(struct child_host *s) {
    if (s->cached > 0)
        return s->cache[--s->cached];
    void *p = mmap(NULL, sizeof(struct supervisor), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void child_memory_free(struct child_host *s, struct supervisor *sup) {
    if (s->cached < CHILD_CACHED)
        s->cache[s->cached++] = sup;
    else
        munmap(sup, sizeof *sup);
}

/* -- news -- */

static struct child *child_by_pid(struct child_host *s, pid_t pid) {
    struct list *bucket = &s->by_pid[(unsigned)pid % CHILD_BUCKETS];
    list_for_each(n, bucket) {
        struct child *c = list_entry(n, struct child, node);
        if (c->pid == pid)
            return c;
    }
    return NULL;
}

enum supervisor_phase child_phase(const struct child *c) {
    return (enum supervisor_phase)atomic_load_explicit(&c->sup->phase, memory_order_acquire);
}

/* Reports each phase in turn, so that an owner never misses RUNNING before EXITED. */
static void child_check(struct child *c) {
    int phase = (int)child_phase(c);
    if (phase == SUPERVISOR_EXITED && c->seen == SUPERVISOR_STARTING) {
        c->seen = SUPERVISOR_RUNNING;
        c->changed(c);
    }
    if (c->seen != phase) {
        c->seen = phase;
        c->changed(c);
    }
}

static void child_host_on_wake(struct loop_io *io, uint32_t events) {
    (void)events;
    struct child_host *s = container_of(io, struct child_host, wake);
    pid_t pids[64];
    ssize_t n = read(io->fd, pids, sizeof pids);
    lowfds_collect(&s->lowfds);
    for (ssize_t i = 0; i < n / (ssize_t)sizeof pids[0]; i++) {
        struct child *c = child_by_pid(s, pids[i]);
        if (c != NULL)
            child_check(c);
    }
}

/* A launcher that lost its supervisor cleans up after itself: gives it time to do so. */
static void child_host_note_launcher(struct child_host *s, const struct supervisor *sup) {
    if (sup->placeholders != NULL && atomic_load(&sup->placeholders->launcher) > 0)
        s->launchers[s->next_launcher++ % CHILD_LAUNCHERS] =
            atomic_load(&sup->placeholders->launcher);
}

static pid_t *child_host_launcher(struct child_host *s, pid_t pid) {
    for (size_t i = 0; i < CHILD_LAUNCHERS; i++) {
        if (s->launchers[i] == pid)
            return &s->launchers[i];
    }
    return NULL;
}

static void child_gone(struct child_host *s, struct child *c, int status) {
    child_check(c);
    if (c->seen == SUPERVISOR_STARTING || c->seen == SUPERVISOR_RUNNING) {
        /* Killed from outside before it could report: the command died with it. */
        log_warn("supervisor %d ended unexpectedly (status %#x)", (int)c->pid, (unsigned)status);
        if (c->sup->leader > 0 && c->sup->launcher < 0)
            kill(-c->sup->leader, SIGKILL);
        c->sup->error = EIO;
        c->sup->status = SIGKILL;
        c->seen = c->seen == SUPERVISOR_STARTING ? SUPERVISOR_FAILED : SUPERVISOR_EXITED;
        c->changed(c);
    }
    if (WIFSIGNALED(status)) {
        s->hunting = true;
        child_host_note_launcher(s, c->sup);
    }
    list_remove(&c->node);
    s->live--;
    lowfds_drop(&s->lowfds, c->sup);
    child_memory_free(s, steal_ptr(&c->sup));
    c->gone = true;
    c->changed(c);
}

static void child_host_kill_stray(struct hunt *h, pid_t pid) {
    struct child_host *s = h->owner;
    if (child_by_pid(s, pid) != NULL)
        return;
    s->hunting = true;
    if (child_host_launcher(s, pid) != NULL)
        hunt_kill_below(h, pid);
    else
        hunt_kill(h, pid);
}

void child_host_reap(struct child_host *s) {
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0;) {
        struct child *c = child_by_pid(s, pid);
        pid_t *launcher = WIFSTOPPED(status) ? NULL : child_host_launcher(s, pid);
        if (launcher != NULL)
            *launcher = 0;
        if (c == NULL && s->stranger != NULL && s->stranger(s->stranger_owner, pid, status))
            continue; /* we trace it */
        if (WIFSTOPPED(status))
            kill(pid, SIGCONT); /* a command may stop its supervisor: not for long */
        else if (c != NULL)
            child_gone(s, c, status);
    }
    if (s->hunting)
        child_host_hunt(s);
}

void child_host_hunt(struct child_host *s) {
    struct hunt h = {.meet = child_host_kill_stray, .owner = s};
    s->hunting = false;
    if (!s->spare_strays)
        hunt_children(&h);
}

int child_host_init(struct child_host *s, struct loop *loop, struct rlimit nofile) {
    /* Orphans of a killed supervisor become our children, beside those we were started with. */
    bool has_children = waitid(P_ALL, 0, NULL, WEXITED | WNOHANG | WNOWAIT) == 0;
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    *s = (struct child_host){.loop = loop, .nofile = nofile, .wake_fd = -1};
    s->spare_strays = has_children || getpid() == 1;
    lowfds_init(&s->lowfds);
    for (size_t i = 0; i < CHILD_BUCKETS; i++)
        list_init(&s->by_pid[i]);
    int p[2];
    if (pipe2(p, O_CLOEXEC) < 0)
        return -errno;
    s->wake = (struct loop_io){.fd = p[0], .fn = child_host_on_wake};
    s->wake_fd = p[1];
    if (fcntl(p[0], F_SETFL, O_NONBLOCK) < 0)
        return -errno;
    return loop_io_add(loop, &s->wake, EPOLLIN);
}

void child_host_fini(struct child_host *s) {
    lowfds_fini(&s->lowfds);
    loop_io_del(s->loop, &s->wake);
    util_close_fd(&s->wake.fd);
    util_close_fd(&s->wake_fd);
    while (s->cached > 0)
        munmap(s->cache[--s->cached], sizeof(struct supervisor));
}

/* -- starting -- */

/* Both sides of the command's descriptors during a start. */
struct child_ends {
    int child[3];
    struct child_fds ours;
};

static void child_ends_close(struct child_ends *e) {
    if (e->child[1] == e->child[0]) /* a terminal: one descriptor three times */
        e->child[1] = e->child[2] = -1;
    for (int i = 0; i < 3; i++)
        util_close_fd(&e->child[i]);
    util_close_fd(&e->ours.in);
    util_close_fd(&e->ours.out);
    util_close_fd(&e->ours.err);
}

static int child_nonblock(int fd) {
    return fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

static int child_open_tty(struct child_ends *e, const struct child_spec *spec) {
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0)
        return -errno;
    e->ours.out = master;
    /* A descriptor of its own: input and output of a terminal are watched independently. */
    e->ours.in = fcntl(master, F_DUPFD_CLOEXEC, 3);
    if (e->ours.in < 0)
        return -errno;
    struct winsize size = {.ws_row = spec->rows, .ws_col = spec->cols};
    if (unlockpt(master) < 0 || ioctl(master, TIOCSWINSZ, &size) < 0)
        return -errno;
    int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave < 0) {
        char name[64];
        if (ptsname_r(master, name, sizeof name) != 0)
            return -errno;
        slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    }
    if (slave < 0)
        return -errno;
    e->child[0] = e->child[1] = e->child[2] = slave;
    return child_nonblock(master);
}

/* A pipe; `ours` (0 = read end, 1 = write end) is made non-blocking. */
static int child_open_pipe(int ours, int *our_fd, int *child_fd) {
    int p[2];
    if (pipe2(p, O_CLOEXEC) < 0)
        return -errno;
    *our_fd = p[ours];
    *child_fd = p[!ours];
    return child_nonblock(p[ours]);
}

/* Copies of the caller's descriptors. */
static int child_take_stdio(struct child_ends *e, const int stdio[3]) {
    for (int i = 0; i < 3; i++) {
        e->child[i] = fcntl(stdio[i], F_DUPFD_CLOEXEC, 3);
        if (e->child[i] < 0)
            return -errno;
    }
    return 0;
}

/* The end of the one pipe that stdout and stderr share. */
static int child_merge(struct child_ends *e) {
    e->child[2] = fcntl(e->child[1], F_DUPFD_CLOEXEC, 3);
    return e->child[2] < 0 ? -errno : 0;
}

static int child_open_pipes(struct child_ends *e, const struct child_spec *spec) {
    if (spec->stdio != NULL)
        return child_take_stdio(e, spec->stdio);
    int r = child_open_pipe(0, &e->ours.out, &e->child[1]);
    if (r == 0)
        r = spec->merge ? child_merge(e) : child_open_pipe(0, &e->ours.err, &e->child[2]);
    if (r < 0)
        return r;
    if (spec->pipe_stdin)
        return child_open_pipe(1, &e->ours.in, &e->child[0]);
    e->child[0] = nullfd_open(O_RDONLY);
    return MIN(e->child[0], 0);
}

/* Signals stay blocked in the supervisor: it waits for them with sigtimedwait. */
static pid_t child_clone(struct supervisor *sup) {
    sigset_t all, old;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &old);
    pid_t pid = supervisor_start(sup);
    sigprocmask(SIG_SETMASK, &old, NULL);
    return pid;
}

static void child_fill(struct supervisor *sup, struct child_host *s, const struct child_spec *spec,
                       const int child[3]) {
    /* Not `*sup = ...`: the struct ends in stacks that need no zeros. */
    memset(sup, 0, offsetof(struct supervisor, path));
    sup->server = getpid();
    memcpy(sup->fds, child, sizeof sup->fds);
    sup->wake_fd = s->wake_fd;
    sup->tty = spec->tty;
    sup->program = spec->program;
    sup->search = spec->search;
    sup->argv = spec->argv;
    sup->envp = spec->envp;
    sup->cwd = spec->cwd;
    sup->nofile = s->nofile;
    sup->limits = spec->limits;
    sup->failed_limit = -1;
    sup->launcher = -1;
    sup->intercept = spec->intercept != NULL ? spec->intercept->socket : -1;
    sup->mark = spec->intercept != NULL ? spec->intercept->mark : 0;
    sup->heritage = spec->heritage;
    if (spec->launch == NULL) {
        sup->given_count = spec->given_count;
        if (spec->given_count > 0)
            memcpy(sup->given, spec->given, spec->given_count * sizeof *spec->given);
        return;
    }
    sup->launcher = spec->launch->program;
    memcpy(sup->handed, spec->launch->handed, sizeof sup->handed);
    sup->placeholders = spec->launch->placeholders;
}

int child_start(struct child_host *s, struct child *c, const struct child_spec *spec,
                struct child_fds *fds) {
    struct child_ends e = {{-1, -1, -1}, {-1, -1, -1}};
    struct supervisor *sup = child_memory(s);
    int r = sup == NULL ? -ENOMEM : 0;
    if (r == 0)
        r = spec->tty ? child_open_tty(&e, spec) : child_open_pipes(&e, spec);
    if (r == 0) {
        child_fill(sup, s, spec, e.child);
        r = lowfds_place(&s->lowfds, sup);
    }
    if (r == 0)
        r = child_clone(sup);
    if (r < 0) {
        if (sup != NULL) {
            lowfds_drop(&s->lowfds, sup);
            child_memory_free(s, sup);
        }
        child_ends_close(&e);
        return r;
    }
    *fds = e.ours;
    e.ours = (struct child_fds){-1, -1, -1};
    child_ends_close(&e);
    c->sup = sup;
    c->pid = r;
    c->seen = SUPERVISOR_STARTING;
    c->gone = false;
    list_append(&s->by_pid[(unsigned)c->pid % CHILD_BUCKETS], &c->node);
    s->live++;
    return 0;
}

/* -- requests -- */

void child_signal(struct child *c, int signo) {
    if (c->sup != NULL && c->seen == SUPERVISOR_RUNNING)
        supervisor_signal(c->sup, signo);
}

void child_signal_leader(struct child *c, int signo) {
    if (c->sup != NULL && c->seen == SUPERVISOR_RUNNING)
        supervisor_signal_leader(c->sup, signo);
}

void child_ask_to_end(struct child *c) {
    if (c->sup == NULL)
        return;
    if (c->sup->launcher < 0) /* a launcher must not get the command's signals */
        child_signal(c, SIGTERM);
    atomic_fetch_or(&c->sup->kill, SUPERVISOR_TERM_REST);
    kill(c->pid, SIGUSR1);
}

void child_kill(struct child *c, bool spare_setsid) {
    if (c->sup == NULL)
        return;
    bool spare = spare_setsid && c->sup->launcher < 0; /* nothing outlives a sandbox */
    unsigned how = SUPERVISOR_KILL_ALL | (spare ? SUPERVISOR_SPARE_SETSID : 0u);
    atomic_store_explicit(&c->sup->kill, how, memory_order_release);
    child_signal(c, SIGKILL); /* the group at once, the rest by the supervisor */
    kill(c->pid, SIGUSR1);
}

bool child_is_killing(const struct child *c) {
    return c->sup != NULL && child_phase(c) >= SUPERVISOR_RUNNING &&
           atomic_load(&c->sup->kill) == SUPERVISOR_KILL_ALL && !atomic_load(&c->sup->stuck);
}

bool child_host_is_killing(const struct child_host *s) {
    for (size_t i = 0; i < CHILD_BUCKETS; i++) {
        list_for_each(n, &s->by_pid[i]) {
            if (child_is_killing(list_entry(n, struct child, node)))
                return true;
        }
    }
    return false;
}
