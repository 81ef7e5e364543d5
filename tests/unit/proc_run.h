#pragma once
/*
 * Real commands under test: the server's part of proc.h, a command with what is heard of it, and
 * the check after every test that no supervisor, zombie or descriptor is left.
 */

#include "proc/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <cmocka.h>

#define GIVE_UP (60 * LOOP_SEC) /* for what should take milliseconds */
#define ENV_PATH "/usr/local/bin:/usr/bin:/bin"

/* -- the server's part -- */

struct fixture {
    struct loop loop;
    struct proc_host host;
    struct loop_io signals;
    struct loop_timer guard;
    struct rlimit nofile;
    size_t fds;   /* open before the test */
    char dir[32]; /* scratch, the working directory of commands */
};

static struct fixture f;

static inline void on_guard(struct loop_timer *t) {
    (void)t;
    fail_msg("nothing happens any more");
}

static inline void on_signal(struct loop_io *io, uint32_t events) {
    (void)events;
    struct signalfd_siginfo info;
    while (read(io->fd, &info, sizeof info) == sizeof info)
        child_host_reap(&f.host.children);
}

static inline size_t open_fds(void) {
    size_t n = 0;
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}

static inline int setup(void **state) {
    (void)state;
    f = (struct fixture){.guard.fn = on_guard, .signals.fn = on_signal};
    f.fds = open_fds();
    strcpy(f.dir, "/tmp/test-proc-XXXXXX");
    assert_non_null(mkdtemp(f.dir));
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &f.nofile), 0);
    assert_int_equal(loop_init(&f.loop, NULL), 0);
    assert_int_equal(proc_host_init(&f.host, &f.loop, f.nofile), 0);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    f.signals.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    assert_int_equal(loop_io_add(&f.loop, &f.signals, EPOLLIN), 0);
    assert_int_equal(loop_timer_set(&f.loop, &f.guard, GIVE_UP), 0);
    return 0;
}

static inline int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at) {
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

static inline void turn(void) {
    assert_int_equal(loop_once(&f.loop, LOOP_SEC), 0);
}

/* After every test: no supervisor, no zombie, no descriptor is left. */
static inline int teardown(void **state) {
    (void)state;
    while (f.host.children.live > 0)
        turn();
    for (pid_t pid; (pid = waitpid(-1, NULL, WNOHANG)) >= 0;) {
        if (pid == 0)
            turn(); /* an orphan of a killed supervisor that is still dying */
    }
    assert_int_equal(errno, ECHILD);
    loop_timer_del(&f.loop, &f.guard);
    loop_io_del(&f.loop, &f.signals);
    close(f.signals.fd);
    proc_host_fini(&f.host);
    loop_fini(&f.loop);
    assert_int_equal(nftw(f.dir, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
    assert_int_equal(open_fds(), f.fds);
    return 0;
}

/* -- a command and what is heard of it -- */

struct run {
    struct proc p;
    bool started, exited, closed, gone, room;
    int error;
    uint64_t last; /* seq of the last event */
    size_t n, err_n;
    char out[1 << 16], err[4096]; /* stdout or terminal; stderr */
};

static inline void count(struct run *r, uint64_t seq) {
    assert_int_equal(seq, r->last + 1);
    assert_true(r->started && !r->closed);
    r->last = seq;
}

static inline void on_started(struct proc *p, int error) {
    struct run *r = container_of(p, struct run, p);
    assert_false(r->started);
    r->started = true;
    r->error = error;
    if (error == 0)
        proc_begin_output(p);
    else
        proc_abandon(p, false, false);
}

static inline void on_output(struct proc *p, uint64_t seq, enum outlog_stream stream,
                             const char *data, size_t n) {
    struct run *r = container_of(p, struct run, p);
    count(r, seq);
    bool err = stream == OUTLOG_STDERR;
    size_t *len = err ? &r->err_n : &r->n, max = err ? sizeof r->err : sizeof r->out;
    assert_int_equal(stream == OUTLOG_PTY, p->tty);
    if (*len + n < max)
        memcpy((err ? r->err : r->out) + *len, data, n);
    *len += n;
}

static inline void on_exited(struct proc *p, uint64_t seq) {
    struct run *r = container_of(p, struct run, p);
    count(r, seq);
    assert_false(r->exited);
    r->exited = true;
}

static inline void on_closed(struct proc *p, uint64_t seq) {
    struct run *r = container_of(p, struct run, p);
    assert_true(r->exited);
    count(r, seq);
    r->closed = true;
}

static inline void on_room(struct proc *p) {
    container_of(p, struct run, p)->room = true;
}

static inline void on_gone(struct proc *p) {
    struct run *r = container_of(p, struct run, p);
    assert_false(r->gone);
    r->gone = true;
}

static const struct proc_ops ops = {
    .started = on_started,
    .output = on_output,
    .exited = on_exited,
    .closed = on_closed,
    .stdin_room = on_room,
    .gone = on_gone,
};

static inline void until(const bool *flag) {
    while (!*flag)
        turn();
}

static inline void until_output(struct run *r, size_t n) {
    while (r->n < n)
        turn();
}

static inline void finish(struct run *r) {
    if (!r->error)
        until(&r->closed);
    until(&r->gone);
    proc_fini(&r->p);
}

static char *const environment[] = {"PATH=" ENV_PATH, NULL};

#define ARGV(...) ((char *const[]){__VA_ARGS__, NULL})

static inline struct child_spec spec_of(char *const *argv) {
    return (struct child_spec){.program = argv[0],
                               .search = strchr(argv[0], '/') ? NULL : ENV_PATH,
                               .argv = argv,
                               .envp = environment,
                               .cwd = f.dir,
                               .rows = 24,
                               .cols = 80};
}

static inline void start(struct run *r, const struct child_spec *spec, struct proc_flow *flow) {
    memset(r, 0, sizeof *r);
    proc_init(&r->p, &f.host, &ops, flow, 1 << 20);
    assert_int_equal(proc_start(&r->p, spec), 0);
    until(&r->started);
}

static inline void start_shell(struct run *r, const char *script) {
    struct child_spec spec = spec_of(ARGV("/bin/sh", "-c", (char *)script));
    spec.pipe_stdin = true;
    start(r, &spec, NULL);
    assert_int_equal(r->error, 0);
}

/* The errno of a start that fails, 0 of one that does not. */
static inline int start_error(const struct child_spec *spec) {
    static struct run r;
    start(&r, spec, NULL);
    finish(&r);
    assert_int_equal(r.exited, r.error == 0);
    return r.error;
}

static inline void make_file(const char *name, mode_t mode, const char *text) {
    char path[300];
    snprintf(path, sizeof path, "%s/%s", f.dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static inline void make_dir(const char *name) {
    char path[300];
    snprintf(path, sizeof path, "%s/%s", f.dir, name);
    assert_int_equal(mkdir(path, 0755), 0);
}

static inline void assert_out(const struct run *r, const char *text) {
    assert_int_equal(r->n, strlen(text));
    assert_memory_equal(r->out, text, r->n);
}

/* -- running it twice -- */

/* Refuses the clone that shares memory, as emulators do. False where that cannot be arranged. */
static inline bool refuse_shared_memory(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CLONE_VM | SIGCHLD, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {ARRAY_LEN(code), code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/* Runs a group with supervisors that share memory, then with forked ones. */
static inline int run_twice(const struct CMUnitTest *tests, size_t n) {
    int failed = _cmocka_run_group_tests("shared memory", tests, n, NULL, NULL);
    if (failed == 0 && refuse_shared_memory())
        failed = _cmocka_run_group_tests("forked", tests, n, NULL, NULL);
    return failed;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
