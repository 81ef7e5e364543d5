/* Every exec below real commands, decided by the test. */
#include "intercept/intercept.h"

#include "proc_run.h"

#include "loop/pool.h"

#include <sys/mman.h>

static struct pool pool;
static struct intercept_host *host;

/* A command, what was asked about it, and how it ended. */
static struct {
    struct child child;
    struct intercept *x;
    const char *name; /* of the program that is not just run */
    enum intercept_verdict verdict;
    int asked, named, escalated;
    bool by_shell;
    bool end_inside; /* decide() ends the interception */
    int stub_status;
    char argument[64];
    int status;
    bool ended;
} c;

static bool is_named(const struct intercept_exec *e) {
    const char *slash = strrchr(e->path, '/');
    return c.name != NULL && strcmp(slash == NULL ? e->path : slash + 1, c.name) == 0;
}

static void on_decide(void *owner, struct intercept_ask *ask, const struct intercept_exec *e) {
    assert_ptr_equal(owner, &c);
    c.asked++;
    if (!is_named(e)) {
        intercept_answer(ask, INTERCEPT_RUN, NULL);
        return;
    }
    c.named++;
    if (c.end_inside) {
        intercept_free(steal_ptr(&c.x));
        return;
    }
    c.by_shell = intercept_is_by_shell(ask);
    snprintf(c.argument, sizeof c.argument, "%s", e->argc > 1 ? e->argv[1] : "");
    intercept_answer(ask, c.verdict, "because");
}

static void on_withdrawn(void *owner, struct intercept_ask *ask) {
    (void)owner;
    (void)ask;
}

static void on_escalate(void *owner, struct intercept_escalation *x) {
    (void)owner;
    c.escalated++;
    assert_true(x->fds[1] >= 0 && x->umask == 027);
    assert_int_equal(write(x->fds[1], "outside\n", 8), 8);
    assert_non_null(x->exec->envp);
    intercept_stub_end(x->stub, c.stub_status, c.stub_status == 0 ? "said\n" : NULL);
}

static void on_stub_signal(void *owner, struct intercept_stub *stub, int signo, bool terminal) {
    (void)owner;
    (void)stub;
    (void)signo;
    (void)terminal;
}

static void on_lost(void *owner, struct intercept_stub *stub) {
    (void)owner;
    (void)stub;
}

static const struct intercept_owner calls = {.decide = on_decide,
                                             .withdrawn = on_withdrawn,
                                             .escalate = on_escalate,
                                             .signal = on_stub_signal,
                                             .lost = on_lost};

static void on_changed(struct child *child) {
    if (child->sup != NULL && child->seen == SUPERVISOR_FAILED)
        fail_msg("no start: %s", strerror(child->sup->error));
    if (child->sup != NULL && child->seen == SUPERVISOR_EXITED)
        c.status = child->sup->status;
    c.ended = child->gone;
}

static bool on_stranger(void *owner, pid_t pid, int status) {
    return intercept_host_waited(owner, pid, status);
}

/* Runs a script to its end; its output, stdout and stderr. */
static const char *run(const char *script, const char *name, enum intercept_verdict verdict) {
    static char output[4096];
    int status = c.stub_status, fds[3];
    bool end_inside = c.end_inside;
    struct execfilter_start start;
    struct child_fds ours;
    memset(&c, 0, sizeof c);
    c.stub_status = status;
    c.end_inside = end_inside;
    c.name = name;
    c.verdict = verdict;
    c.child.changed = on_changed;
    fds[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    fds[1] = memfd_create("output", MFD_CLOEXEC);
    fds[2] = fds[1];
    const struct intercept_options o = {.calls = &calls, .owner = &c, .check = true};
    assert_int_equal(intercept_new(host, &o, &c.x, &start), 0);
    char *argv[] = {"/bin/sh", "-c", (char *)(uintptr_t)script, NULL};
    char *envp[] = {"PATH=" ENV_PATH, NULL};
    const struct child_spec spec = {.program = argv[0],
                                    .argv = argv,
                                    .envp = envp,
                                    .cwd = "/",
                                    .stdio = fds,
                                    .intercept = &start};
    assert_int_equal(child_start(&f.host.children, &c.child, &spec, &ours), 0);
    close(start.socket);
    until(&c.ended);
    intercept_free(c.x);
    ssize_t n = pread(fds[1], output, sizeof output - 1, 0);
    output[MAX(n, (ssize_t)0)] = '\0';
    close(fds[0]);
    close(fds[1]);
    return output;
}

static void programs_run_after_a_decision(void **state) {
    (void)state;
    assert_string_equal(run("/bin/echo a b; cd /; exec /bin/echo c", "echo", INTERCEPT_RUN),
                        "a b\nc\n");
    assert_int_equal(c.status, 0);
    assert_int_equal(c.asked, 2);
    assert_string_equal(c.argument, "c");
    assert_true(c.by_shell);
}

static void what_does_not_exist_is_not_asked_about(void **state) {
    (void)state;
    run("/nonexistent/x; /etc/passwd; /etc; env -i nosuch", NULL, INTERCEPT_RUN);
    assert_int_equal(c.asked, 1);
    assert_int_equal(WEXITSTATUS(c.status), 127);
}

static void a_denied_program_prints_the_reason(void **state) {
    (void)state;
    assert_string_equal(
        run("/bin/echo a; x=$?; echo $x; env /bin/echo b; exit $x", "echo", INTERCEPT_DENY),
        "Execution denied: because\n1\nExecution denied: because\n");
    assert_int_equal(WEXITSTATUS(c.status), 1);
    assert_false(c.by_shell);
}

static void an_escalated_program_ends_as_its_owner_says(void **state) {
    (void)state;
    static const struct {
        int status;
        const char *output;
    } cases[] = {{7 << 8, "outside\n7\n"},
                 {SIGTERM, "outside\nTerminated\n143\n"},
                 {0, "outside\nsaid\n0\n"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        c.stub_status = cases[i].status;
        const char *output =
            run("umask 027; /bin/echo a 2>&1; echo $?", "echo", INTERCEPT_ESCALATE);
        assert_string_equal(output, cases[i].output);
        assert_int_equal(c.escalated, 1);
    }
}

static void without_a_listener_nothing_starts(void **state) {
    (void)state;
    int fds[3] = {open("/dev/null", O_RDWR | O_CLOEXEC)};
    struct execfilter_start start;
    struct child_fds ours;
    memset(&c, 0, sizeof c);
    fds[1] = fds[2] = fds[0];
    c.child.changed = on_changed;
    c.name = "echo";
    c.verdict = INTERCEPT_RUN;
    const struct intercept_options o = {.calls = &calls, .owner = &c};
    assert_int_equal(intercept_new(host, &o, &c.x, &start), 0);
    char *argv[] = {"/bin/sh", "-c", "/bin/echo; while /bin/true; do :; done; exit 3", NULL};
    const struct child_spec spec = {.program = argv[0],
                                    .argv = argv,
                                    .envp = argv + 3,
                                    .cwd = "/",
                                    .stdio = fds,
                                    .intercept = &start};
    assert_int_equal(child_start(&f.host.children, &c.child, &spec, &ours), 0);
    close(start.socket);
    while (c.named == 0)
        assert_int_equal(loop_once(&f.loop, UINT64_MAX), 0);
    intercept_free(c.x);
    until(&c.ended);
    assert_int_equal(WEXITSTATUS(c.status), 3);
    close(fds[0]);
}

static void an_owner_may_end_it_inside_a_callback(void **state) {
    (void)state;
    c.end_inside = true;
    const char *output =
        run("/bin/true & /bin/true & /bin/echo a 2>/dev/null; echo $?", "echo", INTERCEPT_RUN);
    c.end_inside = false;
    assert_int_equal(c.named, 1);
    assert_string_not_equal(output, "a\n0\n");
}

static int begin(void **state) {
    setup(state);
    assert_int_equal(pool_init(&pool, &f.loop), 0);
    host = intercept_host_new(&f.loop, &pool);
    assert_non_null(host);
    f.host.children.stranger = on_stranger;
    f.host.children.stranger_owner = host;
    return 0;
}

static int end(void **state) {
    intercept_host_free(host);
    assert_true(pool_fini(&pool));
    return teardown(state);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void) {
    _cleanup_err_ struct err e = ERR_INIT;
    if (intercept_probe(&e) < 0) {
        printf("%s\n", err_msg(&e));
        return 77;
    }
    const struct CMUnitTest tests[] = {
        CASE(programs_run_after_a_decision),      CASE(what_does_not_exist_is_not_asked_about),
        CASE(a_denied_program_prints_the_reason), CASE(an_escalated_program_ends_as_its_owner_says),
        CASE(without_a_listener_nothing_starts),  CASE(an_owner_may_end_it_inside_a_callback),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
