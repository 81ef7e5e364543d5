/* Starting commands: what they find, what they write and read, and starts that fail. */
#include "proc_run.h"

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
    } cases[] = {
        {"kill -KILL $$", SIGKILL}, {"kill -TERM $$", SIGTERM}, {"kill -USR1 $$", SIGUSR1}};
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
    assert_false(proc_terminate(&r.p, 0));
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
    struct child_spec spec = spec_of(ARGV("/usr/bin/env"));
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
    f.host.children.nofile.rlim_cur = 123;
    start_shell(&r, "ulimit -n");
    finish(&r);
    assert_out(&r, "123\n");
}

static void leads_a_session_of_its_own(void **state) {
    (void)state;
    static struct run r;
    struct child_spec spec = spec_of(ARGV("/bin/sh", "-c", "cut -d' ' -f1,5,6,7 /proc/$$/stat"));
    start(&r, &spec, NULL);
    finish(&r);
    int pid, group, session, tty;
    r.out[MIN(r.n, sizeof r.out - 1)] = '\0';
    assert_int_equal(sscanf(r.out, "%d %d %d %d", &pid, &group, &session, &tty), 4);
    assert_int_equal(pid, group);
    assert_int_equal(pid, session);
    assert_int_equal(tty, 0);
}

/* Nothing of the server's signal state reaches a command. */
static void signals_are_reset(void **state) {
    (void)state;
    static struct run r;
    signal(SIGPIPE, SIG_IGN);
    signal(SIGUSR2, SIG_IGN);
    struct child_spec spec = spec_of(ARGV("/bin/cat", "/proc/self/status"));
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
        struct child_spec spec = spec_of(ARGV((char *)cases[i].program));
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
    struct child_spec spec = spec_of(ARGV("/bin/true", big));
    assert_int_equal(start_error(&spec), E2BIG);
}

static void bad_working_directories(void **state) {
    (void)state;
    make_file("file", 0644, "");
    char file[64];
    snprintf(file, sizeof file, "%s/file", f.dir);
    struct child_spec spec = spec_of(ARGV("/bin/true"));
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
    struct child_spec spec = spec_of(ARGV((char *)program));
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
    struct child_spec spec = spec_of(ARGV("/bin/sh", "-c", "cat; echo end"));
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
        assert_in_range(++accepted, 1, 2 * STDINQ_BYTES_MAX / sizeof chunk + PROC_PIPE_SIZE);
    assert_int_equal(e, -EAGAIN);
    assert_true(accepted * sizeof chunk >= STDINQ_BYTES_MAX);
    assert_false(r.room);
    while (!r.room) { /* again: it may not have stopped yet */
        proc_signal(&r.p, SIGCONT);
        assert_int_equal(loop_once(&f.loop, 50 * LOOP_MS), 0);
    }
    assert_int_equal(proc_write(&r.p, chunk, sizeof chunk), 0);
    assert_true(proc_terminate(&r.p, 0));
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
    assert_true(proc_terminate(&r.p, 0));
    finish(&r);
}

/* -- terminals -- */

static void a_terminal(void **state) {
    (void)state;
    static struct run r;
    struct child_spec spec = spec_of(ARGV("/bin/sh", "-c",
                                          "test -t 0 && test -t 1 && test -t 2 && stty size && "
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
    struct child_spec spec = spec_of(ARGV("/bin/cat"));
    spec.tty = true;
    start(&r, &spec, NULL);
    assert_int_equal(proc_write(&r.p, "hello\n", 6), 0);
    until_output(&r, 14);
    assert_out(&r, "hello\r\nhello\r\n");
    assert_int_equal(proc_write(&r.p, "\x03", 1), 0);
    finish(&r);
    assert_int_equal(r.p.exit_code, 128 + SIGINT);
}

/* -- many at once -- */

static void many_at_once(void **state) {
    (void)state;
    enum { COUNT = 40 };
    struct run *r = calloc(COUNT, sizeof *r);
    assert_non_null(r);
    struct child_spec spec = spec_of(ARGV("/bin/sh", "-c", "echo x; exit 3"));
    for (int i = 0; i < COUNT; i++) {
        spec.tty = i % 3 == 0;
        proc_init(&r[i].p, &f.host, &ops, NULL, 1 << 20);
        assert_int_equal(proc_start(&r[i].p, &spec), 0);
    }
    assert_int_equal(f.host.children.live, COUNT);
    for (int i = 0; i < COUNT; i++) {
        finish(&r[i]);
        assert_int_equal(r[i].p.exit_code, 3);
        assert_out(&r[i], i % 3 == 0 ? "x\r\n" : "x\n");
    }
    assert_int_equal(f.host.children.live, 0);
    free(r);
}

/* Descriptors run out while a start is put together: an error, and nothing stays open. */
static void out_of_descriptors(void **state) {
    (void)state;
    static struct run r;
    struct child_spec spec = spec_of(ARGV("/bin/true"));
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

int main(void) {
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
        TEST(many_at_once),
        TEST(out_of_descriptors),
        cmocka_unit_test(signal_names),
    };
    return run_twice(tests, ARRAY_LEN(tests));
}
