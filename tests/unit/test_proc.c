/* Real commands. The group runs twice: with supervisors that share memory, and with forked ones. */
#include "proc/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
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
    size_t fds;    /* open before the test */
    char dir[32];  /* scratch, the working directory of commands */
};

static struct fixture f;

static void on_guard(struct loop_timer *t) {
    (void)t;
    fail_msg("nothing happens any more");
}

static void on_signal(struct loop_io *io, uint32_t events) {
    (void)events;
    struct signalfd_siginfo info;
    while (read(io->fd, &info, sizeof info) == sizeof info)
        spawner_reap(&f.host.spawner);
}

static size_t open_fds(void) {
    size_t n = 0;
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}

static int setup(void **state) {
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

static void remove_tree(const char *path) {
    DIR *d = opendir(path);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        char sub[600];
        snprintf(sub, sizeof sub, "%s/%s", path, e->d_name);
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 && unlink(sub) < 0)
            remove_tree(sub);
    }
    if (d != NULL)
        closedir(d);
    rmdir(path);
}

static void turn(void) {
    assert_int_equal(loop_once(&f.loop, LOOP_SEC), 0);
}

/* After every test: no supervisor, no zombie, no descriptor is left. */
static int teardown(void **state) {
    (void)state;
    while (f.host.spawner.live > 0)
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
    remove_tree(f.dir);
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

static void count(struct run *r, uint64_t seq) {
    assert_int_equal(seq, r->last + 1);
    assert_true(r->started && !r->closed);
    r->last = seq;
}

static void on_started(struct proc *p, int error) {
    struct run *r = container_of(p, struct run, p);
    assert_false(r->started);
    r->started = true;
    r->error = error;
    if (error == 0)
        proc_begin_output(p);
    else
        proc_abandon(p, false, false);
}

static void on_output(struct proc *p, uint64_t seq, enum outlog_stream stream, const char *data,
                      size_t n) {
    struct run *r = container_of(p, struct run, p);
    count(r, seq);
    bool err = stream == OUTLOG_STDERR;
    size_t *len = err ? &r->err_n : &r->n, max = err ? sizeof r->err : sizeof r->out;
    assert_int_equal(stream == OUTLOG_PTY, p->tty);
    if (*len + n < max)
        memcpy((err ? r->err : r->out) + *len, data, n);
    *len += n;
}

static void on_exited(struct proc *p, uint64_t seq) {
    struct run *r = container_of(p, struct run, p);
    count(r, seq);
    assert_false(r->exited);
    r->exited = true;
}

static void on_closed(struct proc *p, uint64_t seq) {
    struct run *r = container_of(p, struct run, p);
    assert_true(r->exited);
    count(r, seq);
    r->closed = true;
}

static void on_room(struct proc *p) {
    container_of(p, struct run, p)->room = true;
}

static void on_gone(struct proc *p) {
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

static void until(const bool *flag) {
    while (!*flag)
        turn();
}

static void until_output(struct run *r, size_t n) {
    while (r->n < n)
        turn();
}

static void finish(struct run *r) {
    if (!r->error)
        until(&r->closed);
    until(&r->gone);
    proc_fini(&r->p);
}

static char *const environment[] = {"PATH=" ENV_PATH, NULL};

#define ARGV(...) ((char *const[]){__VA_ARGS__, NULL})

static struct spawn_spec spec_of(char *const *argv) {
    return (struct spawn_spec){.program = argv[0],
                               .search = strchr(argv[0], '/') ? NULL : ENV_PATH,
                               .argv = argv,
                               .envp = environment,
                               .cwd = f.dir,
                               .rows = 24,
                               .cols = 80};
}

static void start(struct run *r, const struct spawn_spec *spec, struct proc_gate *gate) {
    memset(r, 0, sizeof *r);
    proc_init(&r->p, &f.host, &ops, gate, 1 << 20);
    assert_int_equal(proc_start(&r->p, spec), 0);
    until(&r->started);
}

static void start_shell(struct run *r, const char *script) {
    struct spawn_spec spec = spec_of(ARGV("/bin/sh", "-c", (char *)script));
    spec.pipe_stdin = true;
    start(r, &spec, NULL);
    assert_int_equal(r->error, 0);
}

/* The errno of a start that fails, 0 of one that does not. */
static int start_error(const struct spawn_spec *spec) {
    static struct run r;
    start(&r, spec, NULL);
    finish(&r);
    assert_int_equal(r.exited, r.error == 0);
    return r.error;
}

static void make_file(const char *name, mode_t mode, const char *text) {
    char path[300];
    snprintf(path, sizeof path, "%s/%s", f.dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static void make_dir(const char *name) {
    char path[300];
    snprintf(path, sizeof path, "%s/%s", f.dir, name);
    assert_int_equal(mkdir(path, 0755), 0);
}

static void assert_out(const struct run *r, const char *text) {
    assert_int_equal(r->n, strlen(text));
    assert_memory_equal(r->out, text, r->n);
}

/* -- output and exit -- */

static void output_and_exit_code(void **state) {
    (void)state;
    static struct run r;
    start_shell(&r, "echo out; echo err >&2; exit 7");
    finish(&r);
    assert_out(&r, "out\n");
    assert_int_equal(r.err_n, 4);
    assert_memory_equal(r.err, "err\n", 4);
    assert_int_equal(r.p.exit_code, 7);
    assert_int_equal(r.p.signal, 0);
    assert_int_equal(r.last, 4); /* two chunks, exited, closed */
}

static void silence(void **state) {
    (void)state;
    static struct run r;
    start_shell(&r, "exit 0");
    finish(&r);
    assert_int_equal(r.p.exit_code, 0);
    assert_int_equal(r.last, 2);
}

static void killed_by_a_signal(void **state) {
    (void)state;
    static struct run r;
    static const struct {
        const char *script;
        int signo;
    } cases[] = {{"kill -KILL $$", SIGKILL}, {"kill -TERM $$", SIGTERM}, {"kill -USR1 $$", SIGUSR1}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        start_shell(&r, cases[i].script);
        finish(&r);
        assert_int_equal(r.p.signal, cases[i].signo);
        assert_int_equal(r.p.exit_code, 128 + cases[i].signo);
    }
}

/* All that was written before the leader ended comes before `exited`. */
static void output_precedes_exited(void **state) {
    (void)state;
    static struct run r;
    start_shell(&r, "head -c 60000 /dev/zero");
    until(&r.exited);
    assert_int_equal(r.n, 60000);
    finish(&r);
}

static void much_output(void **state) {
    (void)state;
    static struct run r;
    start_shell(&r, "head -c 3000000 /dev/zero");
    finish(&r);
    assert_int_equal(r.n, 3000000);
    assert_true(r.p.log.tail - r.p.log.head <= 1 << 20);
}

/* A child that holds the output keeps the process from closing; terminate then does nothing. */
static void exited_but_held_open(void **state) {
    (void)state;
    static struct run r;
    start_shell(&r, "exec 3<&0; (head -c 5 <&3) & exit 3");
    until(&r.exited);
    assert_int_equal(r.p.exit_code, 3);
    assert_false(r.closed);
    assert_false(proc_terminate(&r.p));
    proc_signal(&r.p, SIGINT);
    assert_int_equal(proc_write(&r.p, "late\n", 5), 0);
    finish(&r);
    assert_out(&r, "late\n");
}

static void streams_closed_early(void **state) {
    (void)state;
    static struct run r;
    start_shell(&r, "exec >&- 2>&-; read x; exit 5");
    while (r.p.out[0].io.fd >= 0 || r.p.out[1].io.fd >= 0)
        turn();
    assert_false(r.exited);
    assert_int_equal(proc_write(&r.p, "\n", 1), 0);
    finish(&r);
    assert_int_equal(r.p.exit_code, 5);
}

/* -- what a command finds -- */

static void working_directory_and_environment(void **state) {
    (void)state;
    static struct run r;
    char want[128];
    struct spawn_spec spec = spec_of(ARGV("/usr/bin/env"));
    start(&r, &spec, NULL);
    finish(&r);
    assert_out(&r, "PATH=" ENV_PATH "\n");
    start_shell(&r, "pwd -P; echo $0");
    finish(&r);
    snprintf(want, sizeof want, "%s\n/bin/sh\n", f.dir);
    assert_out(&r, want);
    spec = spec_of(ARGV("other", "-c", "echo $0"));
    spec.program = "/bin/sh";
    spec.search = NULL;
    start(&r, &spec, NULL);
    finish(&r);
    assert_out(&r, "other\n");
}

static void only_three_descriptors(void **state) {
    (void)state;
    static struct run r;
    assert_int_equal(dup2(1, 77), 77); /* without close-on-exec */
    start_shell(&r, "ls /proc/self/fd");
    finish(&r);
    close(77);
    r.out[MIN(r.n, sizeof r.out - 1)] = '\0';
    assert_memory_equal(r.out, "0\n1\n2\n", 6);
    assert_null(strstr(r.out, "77\n"));
}

static void limits_are_restored(void **state) {
    (void)state;
    static struct run r;
    f.host.spawner.nofile.rlim_cur = 123;
    start_shell(&r, "ulimit -n");
    finish(&r);
    assert_out(&r, "123\n");
}

static void leads_a_session_of_its_own(void **state) {
    (void)state;
    static struct run r;
    struct spawn_spec spec = spec_of(ARGV("/bin/sh", "-c", "cut -d' ' -f1,5,6,7 /proc/$$/stat"));
    start(&r, &spec, NULL);
    finish(&r);
    int pid, group, session, tty;
    r.out[MIN(r.n, sizeof r.out - 1)] = '\0';
    assert_int_equal(sscanf(r.out, "%d %d %d %d", &pid, &group, &session, &tty), 4);
    assert_int_equal(pid, group);
    assert_int_equal(pid, session);
    assert_int_equal(tty, 0);
}

/* Nothing of the server's signal state reaches a command. (An emulator has one of its own.) */
static void signals_are_reset(void **state) {
    (void)state;
    static struct run r;
    signal(SIGPIPE, SIG_IGN);
    signal(SIGUSR2, SIG_IGN);
    struct spawn_spec spec = spec_of(ARGV("/bin/cat", "/proc/self/status"));
    start(&r, &spec, NULL);
    finish(&r);
    signal(SIGUSR2, SIG_DFL);
    r.out[MIN(r.n, sizeof r.out - 1)] = '\0';
    assert_non_null(strstr(r.out, "SigBlk:\t0000000000000000"));
    const char *ignored = strstr(r.out, "SigIgn:\t");
    assert_non_null(ignored);
    /* An emulator keeps signals of its own, above the classic ones. */
    assert_int_equal(strtoull(ignored + 8, NULL, 16) & 0x7FFFFFFF, 0);
}

/* -- starts that fail -- */

static void programs_that_cannot_run(void **state) {
    (void)state;
    make_file("plain", 0644, "#!/bin/sh\n");
    make_file("garbage", 0755, "no program\n");
    make_file("lost", 0755, "#!/nonexistent/interpreter\n");
    make_dir("directory");
    static const struct {
        const char *program;
        int error;
    } cases[] = {
        {"/nonexistent", ENOENT}, {"./plain", EACCES},     {"./garbage", ENOEXEC},
        {"./lost", ENOENT},       {"./directory", EACCES}, {"./plain/x", ENOTDIR},
        {"/bin/true", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct spawn_spec spec = spec_of(ARGV((char *)cases[i].program));
        for (int tty = 0; tty < 2; tty++) {
            spec.tty = tty;
            int error = start_error(&spec);
            if (error != cases[i].error)
                fail_msg("%s: error %d", cases[i].program, error);
        }
    }
}

static void too_long_arguments(void **state) {
    (void)state;
    size_t n = 1 << 20;
    _cleanup_free_ char *big = malloc(n);
    assert_non_null(big);
    memset(big, 'x', n);
    big[n - 1] = '\0';
    struct spawn_spec spec = spec_of(ARGV("/bin/true", big));
    assert_int_equal(start_error(&spec), E2BIG);
}

static void bad_working_directories(void **state) {
    (void)state;
    make_file("file", 0644, "");
    char file[64];
    snprintf(file, sizeof file, "%s/file", f.dir);
    struct spawn_spec spec = spec_of(ARGV("/bin/true"));
    for (int tty = 0; tty < 2; tty++) {
        spec.tty = tty;
        spec.cwd = "/nonexistent";
        assert_int_equal(start_error(&spec), ENOENT);
        spec.cwd = file;
        assert_int_equal(start_error(&spec), ENOTDIR);
    }
}

/* -- looking a program up -- */

static int lookup(struct run *r, const char *program, const char *search) {
    struct spawn_spec spec = spec_of(ARGV((char *)program));
    spec.search = search;
    start(r, &spec, NULL);
    finish(r);
    return r->error;
}

static void make_tools(void) {
    make_dir("plain");
    make_file("plain/tool", 0644, "");
    make_dir("dir");
    make_dir("dir/tool");
    make_dir("good");
    make_file("good/tool", 0755, "#!/bin/sh\necho good\n");
    make_dir("other");
    make_file("other/tool", 0755, "#!/bin/sh\necho other\n");
    make_file("tool", 0755, "#!/bin/sh\necho here\n");
    make_dir("bad");
    make_file("bad/tool", 0755, "no program\n");
    make_file("file", 0644, "");
}

static void search_order(void **state) {
    (void)state;
    static struct run r;
    make_tools();
    static const struct {
        const char *search, *out;
    } cases[] = {
        {"good:other", "good\n"},
        {"other:good", "other\n"},
        {"/nonexistent:plain:dir:file:good:other", "good\n"}, /* passes over what cannot run */
        {"", "here\n"}, /* an empty component is the working directory */
        {"plain::good", "here\n"},
        {"plain:", "here\n"},
        {":good", "here\n"},
        {".:good", "here\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(lookup(&r, "tool", cases[i].search), 0);
        assert_out(&r, cases[i].out);
    }
}

static void search_that_fails(void **state) {
    (void)state;
    static struct run r;
    make_tools();
    assert_int_equal(lookup(&r, "missing", "good:other"), ENOENT);
    assert_int_equal(lookup(&r, "tool", "/nonexistent"), ENOENT);
    assert_int_equal(lookup(&r, "tool", "plain"), EACCES);
    assert_int_equal(lookup(&r, "tool", "plain:/nonexistent"), EACCES);
    assert_int_equal(lookup(&r, "tool", "dir"), EACCES);
    assert_int_equal(lookup(&r, "tool", "file"), ENOTDIR);
    assert_int_equal(lookup(&r, "tool", "bad:good"), ENOEXEC); /* no shell tries it */
    char name[300];
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    assert_int_equal(lookup(&r, name, "good"), ENAMETOOLONG);
}

/* A component that no path can have does not hide the ones after it. */
static void overlong_components(void **state) {
    (void)state;
    static struct run r;
    make_tools();
    size_t n = 20000;
    _cleanup_free_ char *search = malloc(n + 8);
    assert_non_null(search);
    memset(search, 'x', n);
    strcpy(search + n, ":good");
    assert_int_equal(lookup(&r, "tool", search), 0);
    assert_out(&r, "good\n");
}

/* -- input -- */

static void input_reaches_the_command(void **state) {
    (void)state;
    static struct run r;
    start_shell(&r, "head -c 6; exit 4");
    assert_int_equal(proc_write(&r.p, "abc", 3), 0);
    assert_int_equal(proc_write(&r.p, "", 0), 0);
    assert_int_equal(proc_write(&r.p, "def", 3), 0);
    finish(&r);
    assert_out(&r, "abcdef");
    assert_int_equal(proc_write(&r.p, "x", 1), 0); /* nobody reads it: discarded */
}

static void no_input_asked_for(void **state) {
    (void)state;
    static struct run r;
    struct spawn_spec spec = spec_of(ARGV("/bin/sh", "-c", "cat; echo end"));
    start(&r, &spec, NULL);
    assert_int_equal(proc_write(&r.p, "x", 1), -ENOTCONN);
    finish(&r);
    assert_out(&r, "end\n");
}

/* Input is queued up to a limit, and there is word when it may go on. */
static void a_full_queue(void **state) {
    (void)state;
    static struct run r;
    static const char chunk[40000];
    start_shell(&r, "echo ready; kill -STOP $$; exec cat >/dev/null");
    until_output(&r, 6);
    size_t accepted = 0;
    int e;
    while ((e = proc_write(&r.p, chunk, sizeof chunk)) == 0)
        assert_in_range(++accepted, 1, 2 * INQ_BYTES_MAX / sizeof chunk + PROC_PIPE_SIZE);
    assert_int_equal(e, -EAGAIN);
    assert_true(accepted * sizeof chunk >= INQ_BYTES_MAX);
    assert_false(r.room);
    while (!r.room) { /* again: it may not have stopped yet */
        proc_signal(&r.p, SIGCONT);
        assert_int_equal(loop_once(&f.loop, 50 * LOOP_MS), 0);
    }
    assert_int_equal(proc_write(&r.p, chunk, sizeof chunk), 0);
    assert_true(proc_terminate(&r.p));
    assert_int_equal(proc_write(&r.p, "x", 1), -ECANCELED);
    finish(&r);
}

static void the_command_closes_its_input(void **state) {
    (void)state;
    static struct run r;
    start_shell(&r, "exec 0<&-; echo closed; sleep 1000");
    until_output(&r, 7);
    for (int i = 0; i < 10; i++)
        assert_int_equal(proc_write(&r.p, "xyz", 3), 0);
    assert_true(proc_terminate(&r.p));
    finish(&r);
}

/* -- terminals -- */

static void a_terminal(void **state) {
    (void)state;
    static struct run r;
    struct spawn_spec spec = spec_of(
        ARGV("/bin/sh", "-c", "test -t 0 && test -t 1 && test -t 2 && stty size && "
                              "cut -d' ' -f6,7,8 /proc/$$/stat; echo $$"));
    spec.tty = true;
    spec.rows = 31;
    spec.cols = 117;
    start(&r, &spec, NULL);
    finish(&r);
    int rows, cols, session, tty, foreground, pid;
    r.out[MIN(r.n, sizeof r.out - 1)] = '\0';
    assert_int_equal(sscanf(r.out, "%d %d\r\n%d %d %d\r\n%d\r\n", &rows, &cols, &session, &tty,
                            &foreground, &pid),
                     6);
    assert_int_equal(rows, 31);
    assert_int_equal(cols, 117);
    assert_int_equal(session, pid);
    assert_int_equal(foreground, pid);
    assert_true(tty != 0);
}

static void a_terminal_echoes_and_interrupts(void **state) {
    (void)state;
    static struct run r;
    struct spawn_spec spec = spec_of(ARGV("/bin/cat"));
    spec.tty = true;
    start(&r, &spec, NULL);
    assert_int_equal(proc_write(&r.p, "hello\n", 6), 0);
    until_output(&r, 14);
    assert_out(&r, "hello\r\nhello\r\n");
    assert_int_equal(proc_write(&r.p, "\x03", 1), 0);
    finish(&r);
    assert_int_equal(r.p.exit_code, 128 + SIGINT);
}

/* -- signals -- */

static void a_signal_reaches_the_group(void **state) {
    (void)state;
    static struct run r;
    start_shell(&r, "trap 'echo caught; exit 5' INT; sh -c 'echo ready; exec sleep 1000'; exit 6");
    until_output(&r, 6);
    proc_signal(&r.p, SIGINT); /* ends the sleep, and the shell catches it */
    finish(&r);
    assert_out(&r, "ready\ncaught\n");
    assert_int_equal(r.p.exit_code, 5);
}

/* -- terminate and descendants -- */

/* Whether descendants that lost their parent can be found at all (an emulator may say no). */
static bool can_adopt(void) {
    int on = 0;
    return prctl(PR_GET_CHILD_SUBREAPER, &on, 0, 0, 0) == 0 && on;
}

/* Waits for n pids, one per line, in the output. */
static void read_pids(struct run *r, pid_t *pids, int n) {
    for (int lines = 0; lines < n;) {
        turn();
        lines = 0;
        for (size_t i = 0; i < r->n; i++)
            lines += r->out[i] == '\n';
    }
    const char *p = r->out;
    for (int i = 0; i < n; i++) {
        char *end;
        pids[i] = (pid_t)strtol(p, &end, 10);
        assert_true(pids[i] > 1 && *end == '\n');
        p = end + 1;
    }
}

static bool alive(pid_t pid) {
    return kill(pid, 0) == 0 || errno != ESRCH;
}

static void until_dead(pid_t pid) {
    while (alive(pid))
        assert_int_equal(loop_once(&f.loop, 20 * LOOP_MS), 0);
}

/* A child, one in another session, and one that is a double-forked daemon. */
#define FAMILY                                                                                     \
    "sh -c 'echo $$; exec sleep 1000' & setsid sh -c 'echo $$; exec sleep 1000' & "                \
    "(setsid sh -c 'echo $$; exec sleep 1000' &) & wait; sleep 1000"

static void terminate_kills_all_descendants(void **state) {
    (void)state;
    static struct run r;
    pid_t pids[3];
    if (!can_adopt())
        skip();
    start_shell(&r, FAMILY);
    read_pids(&r, pids, 3);
    assert_true(proc_terminate(&r.p));
    assert_true(proc_terminate(&r.p)); /* again: still running */
    finish(&r);
    assert_int_equal(r.p.signal, SIGKILL);
    for (int i = 0; i < 3; i++)
        assert_false(alive(pids[i]));
    assert_false(proc_terminate(&r.p));
}

/* Terminated while it makes new sessions as fast as it can. */
static void terminate_wins_against_forks(void **state) {
    (void)state;
    static struct run r;
    if (!can_adopt())
        skip();
    start_shell(&r, "echo ready; i=0; while [ $i -lt 300 ]; do setsid sleep 1000 & i=$((i+1)); "
                    "done; wait");
    until_output(&r, 6);
    assert_true(proc_terminate(&r.p));
    finish(&r); /* gone: nobody is left */
}

static void what_is_left_behind_is_killed_in_the_end(void **state) {
    (void)state;
    static struct run r;
    pid_t pids[2];
    if (!can_adopt())
        skip();
    start_shell(&r, "(sh -c 'echo $PPID'; exec sleep 1000 >/dev/null 2>&1) & "
                    "setsid sh -c 'echo $$; exec sleep 1000 >/dev/null 2>&1' & read x; exit 0");
    read_pids(&r, pids, 2);
    assert_int_equal(proc_write(&r.p, "\n", 1), 0);
    until(&r.closed);
    assert_false(r.gone);
    assert_true(alive(pids[0]) && alive(pids[1]));
    proc_abandon(&r.p, true, false);
    until(&r.gone);
    assert_false(alive(pids[0]));
    assert_false(alive(pids[1]));
}

static void another_session_can_be_spared(void **state) {
    (void)state;
    static struct run r;
    pid_t pids[3];
    if (!can_adopt())
        skip();
    start_shell(&r, FAMILY);
    read_pids(&r, pids, 3);
    proc_abandon(&r.p, true, true);
    until(&r.gone);
    int living = 0;
    for (int i = 0; i < 3; i++) {
        living += alive(pids[i]);
        if (alive(pids[i]))
            kill(pids[i], SIGKILL);
    }
    assert_int_equal(living, 2);
}

static void abandoned_before_the_start_is_known(void **state) {
    (void)state;
    static struct run r;
    struct spawn_spec spec = spec_of(ARGV("/bin/sleep", "1000"));
    for (int i = 0; i < 20; i++) {
        memset(&r, 0, sizeof r);
        proc_init(&r.p, &f.host, &ops, NULL, 1 << 20);
        assert_int_equal(proc_start(&r.p, &spec), 0);
        proc_abandon(&r.p, true, false);
        until(&r.gone);
        assert_false(r.started);
        proc_fini(&r.p);
    }
}

/* -- attacks on the supervisor -- */

static void the_supervisor_is_killed(void **state) {
    (void)state;
    static struct run r;
    pid_t pids[1];
    start_shell(&r, "sh -c 'echo $$; exec sleep 1000' & sleep 1000");
    read_pids(&r, pids, 1);
    pid_t leader = r.p.spawn.sup->leader;
    assert_int_equal(kill(r.p.spawn.pid, SIGKILL), 0);
    finish(&r);
    assert_int_equal(r.p.exit_code, 128 + SIGKILL);
    until_dead(leader);
    until_dead(pids[0]);
}

static void the_supervisor_is_stopped(void **state) {
    (void)state;
    static struct run r;
    start_shell(&r, "read x; exit 4");
    assert_int_equal(kill(r.p.spawn.pid, SIGSTOP), 0);
    assert_int_equal(proc_write(&r.p, "\n", 1), 0);
    finish(&r);
    assert_int_equal(r.p.exit_code, 4);
}

/* -- a slow owner -- */

static void a_closed_gate_holds_output_and_exit(void **state) {
    (void)state;
    static struct run r;
    struct proc_gate gate;
    proc_gate_init(&gate);
    proc_gate_close(&gate);
    struct spawn_spec spec = spec_of(ARGV("/bin/sh", "-c", "echo one; exit 9"));
    start(&r, &spec, &gate);
    until(&r.gone);
    assert_false(r.exited);
    assert_int_equal(r.n, 0);
    assert_false(proc_terminate(&r.p));
    proc_gate_open(&gate);
    until(&r.closed);
    assert_out(&r, "one\n");
    assert_int_equal(r.p.exit_code, 9);
    proc_fini(&r.p);
}

static void a_closed_gate_stalls_the_command(void **state) {
    (void)state;
    static struct run r;
    struct proc_gate gate;
    proc_gate_init(&gate);
    struct spawn_spec spec = spec_of(ARGV("/bin/sh", "-c", "head -c 2000000 /dev/zero; exit 2"));
    start(&r, &spec, &gate);
    until_output(&r, 1);
    proc_gate_close(&gate);
    while (list_empty(&gate.held))
        turn();
    size_t n = r.n;
    assert_int_equal(loop_once(&f.loop, 20 * LOOP_MS), 0);
    assert_int_equal(r.n, n);
    proc_gate_open(&gate);
    finish(&r);
    assert_int_equal(r.n, 2000000);
    assert_int_equal(r.p.exit_code, 2);
}

static void terminate_behind_a_closed_gate(void **state) {
    (void)state;
    static struct run r;
    struct proc_gate gate;
    proc_gate_init(&gate);
    struct spawn_spec spec = spec_of(ARGV("/usr/bin/yes"));
    start(&r, &spec, &gate);
    until_output(&r, 1);
    proc_gate_close(&gate);
    while (list_empty(&gate.held))
        turn();
    assert_true(proc_terminate(&r.p));
    until(&r.gone);
    assert_false(r.exited);
    proc_gate_open(&gate);
    until(&r.closed);
    assert_int_equal(r.p.signal, SIGKILL);
    proc_fini(&r.p);
}

/* -- many at once -- */

static void many_at_once(void **state) {
    (void)state;
    enum { COUNT = 40 };
    struct run *r = calloc(COUNT, sizeof *r);
    assert_non_null(r);
    struct spawn_spec spec = spec_of(ARGV("/bin/sh", "-c", "echo x; exit 3"));
    for (int i = 0; i < COUNT; i++) {
        spec.tty = i % 3 == 0;
        proc_init(&r[i].p, &f.host, &ops, NULL, 1 << 20);
        assert_int_equal(proc_start(&r[i].p, &spec), 0);
    }
    assert_int_equal(f.host.spawner.live, COUNT);
    for (int i = 0; i < COUNT; i++) {
        finish(&r[i]);
        assert_int_equal(r[i].p.exit_code, 3);
        assert_out(&r[i], i % 3 == 0 ? "x\r\n" : "x\n");
    }
    assert_int_equal(f.host.spawner.live, 0);
    free(r);
}

/* Descriptors run out while a start is put together: an error, and nothing stays open. */
static void out_of_descriptors(void **state) {
    (void)state;
    static struct run r;
    struct spawn_spec spec = spec_of(ARGV("/bin/true"));
    spec.pipe_stdin = true;
    size_t before = open_fds();
    for (int tty = 0; tty < 2; tty++) {
        spec.tty = tty;
        for (rlim_t spare = 0; spare < 3; spare++) {
            int next = dup(0);
            close(next);
            struct rlimit low = {(rlim_t)next + spare, f.nofile.rlim_max};
            assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
            proc_init(&r.p, &f.host, &ops, NULL, 1 << 20);
            int e = proc_start(&r.p, &spec);
            assert_int_equal(setrlimit(RLIMIT_NOFILE, &f.nofile), 0);
            if (e == 0)
                fail_msg("started with %d descriptors, tty %d", (int)spare, tty);
            assert_int_equal(e, -EMFILE);
            proc_fini(&r.p);
            assert_int_equal(open_fds(), before);
            if (tty)
                break; /* a terminal needs two */
        }
    }
}

static void signal_names(void **state) {
    (void)state;
    char name[16];
    proc_signal_name(SIGKILL, name);
    assert_string_equal(name, "SIGKILL");
    proc_signal_name(SIGRTMIN + 3, name);
    assert_string_equal(name, "SIGRTMIN+3");
    proc_signal_name(33, name);
    assert_string_equal(name, "SIG33");
}

/* -- running it twice -- */

/* Refuses the clone that shares memory, as emulators do. False where that cannot be arranged. */
static bool refuse_shared_memory(void) {
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

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(output_and_exit_code),
        TEST(silence),
        TEST(killed_by_a_signal),
        TEST(output_precedes_exited),
        TEST(much_output),
        TEST(exited_but_held_open),
        TEST(streams_closed_early),
        TEST(working_directory_and_environment),
        TEST(only_three_descriptors),
        TEST(limits_are_restored),
        TEST(leads_a_session_of_its_own),
        TEST(signals_are_reset),
        TEST(programs_that_cannot_run),
        TEST(too_long_arguments),
        TEST(bad_working_directories),
        TEST(search_order),
        TEST(search_that_fails),
        TEST(overlong_components),
        TEST(input_reaches_the_command),
        TEST(no_input_asked_for),
        TEST(a_full_queue),
        TEST(the_command_closes_its_input),
        TEST(a_terminal),
        TEST(a_terminal_echoes_and_interrupts),
        TEST(a_signal_reaches_the_group),
        TEST(terminate_kills_all_descendants),
        TEST(terminate_wins_against_forks),
        TEST(what_is_left_behind_is_killed_in_the_end),
        TEST(another_session_can_be_spared),
        TEST(abandoned_before_the_start_is_known),
        TEST(the_supervisor_is_killed),
        TEST(the_supervisor_is_stopped),
        TEST(a_closed_gate_holds_output_and_exit),
        TEST(a_closed_gate_stalls_the_command),
        TEST(terminate_behind_a_closed_gate),
        TEST(many_at_once),
        TEST(out_of_descriptors),
        cmocka_unit_test(signal_names),
    };
    int failed = cmocka_run_group_tests_name("proc", tests, NULL, NULL);
    if (failed == 0 && refuse_shared_memory())
        failed = cmocka_run_group_tests_name("proc, forked", tests, NULL, NULL);
    return failed;
}
