/* Ending commands: signals, descendants, attacks on the supervisor, slow owners. */
#include "proc_run.h"

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
    assert_true(proc_terminate(&r.p, 0));
    assert_true(proc_terminate(&r.p, 0)); /* again: still running */
    finish(&r);
    assert_int_equal(r.p.signal, SIGKILL);
    for (int i = 0; i < 3; i++)
        assert_false(alive(pids[i]));
    assert_false(proc_terminate(&r.p, 0));
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
    assert_true(proc_terminate(&r.p, 0));
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
    struct child_spec spec = spec_of(ARGV("/bin/sleep", "1000"));
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
    pid_t leader = r.p.child.sup->leader;
    assert_int_equal(kill(r.p.child.pid, SIGKILL), 0);
    finish(&r);
    assert_int_equal(r.p.exit_code, 128 + SIGKILL);
    until_dead(leader);
    until_dead(pids[0]);
}

static void the_supervisor_is_stopped(void **state) {
    (void)state;
    static struct run r;
    start_shell(&r, "read x; exit 4");
    assert_int_equal(kill(r.p.child.pid, SIGSTOP), 0);
    assert_int_equal(proc_write(&r.p, "\n", 1), 0);
    finish(&r);
    assert_int_equal(r.p.exit_code, 4);
}

/* How often a process has gone to sleep. */
static long sleeps(pid_t pid) {
    static const char key[] = "\nvoluntary_ctxt_switches:";
    char text[4096];
    snprintf(text, sizeof text, "/proc/%d/status", (int)pid);
    int fd = open(text, O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    assert_true(n > 0);
    text[n] = '\0';
    const char *at = strstr(text, key);
    assert_non_null(at);
    return strtol(at + sizeof key - 1, NULL, 10);
}

/* It may go before the server on every processor: one that spins would keep it from going on. */
static void the_supervisor_waits_for_a_signal_asleep(void **state) {
    (void)state;
    static struct run r;
    start_shell(&r, "read x; exit 4");
    struct supervisor *s = r.p.child.sup;
    atomic_store(&s->signalling, true);
    assert_int_equal(proc_write(&r.p, "\n", 1), 0);
    while (!atomic_load(&s->reaping))
        assert_int_equal(loop_once(&f.loop, LOOP_MS), 0);
    for (long n = sleeps(r.p.child.pid); sleeps(r.p.child.pid) < n + 3;)
        assert_int_equal(loop_once(&f.loop, LOOP_MS), 0);
    assert_false(r.exited);
    atomic_store(&s->signalling, false);
    finish(&r);
    assert_int_equal(r.p.exit_code, 4);
}

/* -- a slow owner -- */

static void a_closed_gate_holds_output_and_exit(void **state) {
    (void)state;
    static struct run r;
    struct proc_flow flow;
    proc_flow_init(&flow);
    proc_flow_close(&flow);
    struct child_spec spec = spec_of(ARGV("/bin/sh", "-c", "echo one; exit 9"));
    start(&r, &spec, &flow);
    until(&r.gone);
    assert_false(r.exited);
    assert_int_equal(r.n, 0);
    assert_false(proc_terminate(&r.p, 0));
    proc_flow_open(&flow);
    until(&r.closed);
    assert_out(&r, "one\n");
    assert_int_equal(r.p.exit_code, 9);
    proc_fini(&r.p);
}

static void a_closed_gate_stalls_the_command(void **state) {
    (void)state;
    static struct run r;
    struct proc_flow flow;
    proc_flow_init(&flow);
    struct child_spec spec = spec_of(ARGV("/bin/sh", "-c", "head -c 2000000 /dev/zero; exit 2"));
    start(&r, &spec, &flow);
    until_output(&r, 1);
    proc_flow_close(&flow);
    while (list_empty(&flow.held))
        turn();
    size_t n = r.n;
    assert_int_equal(loop_once(&f.loop, 20 * LOOP_MS), 0);
    assert_int_equal(r.n, n);
    proc_flow_open(&flow);
    finish(&r);
    assert_int_equal(r.n, 2000000);
    assert_int_equal(r.p.exit_code, 2);
}

static void terminate_behind_a_closed_gate(void **state) {
    (void)state;
    static struct run r;
    struct proc_flow flow;
    proc_flow_init(&flow);
    struct child_spec spec = spec_of(ARGV("/usr/bin/yes"));
    start(&r, &spec, &flow);
    until_output(&r, 1);
    proc_flow_close(&flow);
    while (list_empty(&flow.held))
        turn();
    assert_true(proc_terminate(&r.p, 0));
    until(&r.gone);
    assert_false(r.exited);
    proc_flow_open(&flow);
    until(&r.closed);
    assert_int_equal(r.p.signal, SIGKILL);
    proc_fini(&r.p);
}

/* -- acknowledged output -- */

#define FLOOD 5000000

/* Starts a flood that keeps its output and waits until it stalls. */
static void start_flood(struct run *r, const char *script, struct proc_flow *flow) {
    struct child_spec spec = spec_of(ARGV("/bin/sh", "-c", (char *)script));
    start(r, &spec, flow);
    assert_int_equal(r->error, 0);
    proc_keep_unacked(&r->p, true);
    while (!r->p.unacked_stall)
        turn();
}

/* All that was not acknowledged is there: nothing was evicted. */
static void assert_no_gap(const struct run *r) {
    const struct outlog *l = &r->p.log;
    size_t i = outlog_find(l, r->p.acked_seq);
    assert_true(i < l->count);
    assert_int_equal(outlog_at(l, i)->seq, r->p.acked_seq + 1);
    assert_true(l->tail - l->head <= 1 << 20);
}

/* Acknowledges as it stalls, until the process has closed. */
static void ack_to_the_end(struct run *r) {
    for (; !r->closed; turn()) {
        if (!r->p.unacked_stall || r->p.go_on.queued)
            continue;
        assert_no_gap(r);
        proc_ack(&r->p, r->last);
    }
}

static void a_flood_waits_for_acknowledgements(void **state) {
    (void)state;
    static struct run r;
    start_flood(&r, "head -c 5000000 /dev/zero; exit 3", NULL);
    size_t n = r.n;
    assert_in_range(n, (1 << 20) - OUTLOG_CHUNK_MAX, 1 << 20);
    proc_ack(&r.p, 0);
    assert_int_equal(loop_once(&f.loop, 20 * LOOP_MS), 0);
    assert_int_equal(r.n, n);
    assert_true(proc_has_unacked(&r.p));
    ack_to_the_end(&r);
    assert_int_equal(r.n, FLOOD);
    assert_int_equal(r.p.exit_code, 3);
    finish(&r);
}

static void acknowledgements_do_not_go_back(void **state) {
    (void)state;
    static struct run r;
    start_flood(&r, "exec yes", NULL);
    uint64_t last = r.last;
    proc_ack(&r.p, last);
    proc_ack(&r.p, 1);
    assert_int_equal(r.p.acked_seq, last);
    assert_false(proc_has_unacked(&r.p));
    until_output(&r, r.n + (1 << 19));
    proc_abandon(&r.p, true, false);
    until(&r.gone);
    proc_fini(&r.p);
}

/* The leader is reaped, the rest of its output is in the pipes; both streams count. */
static void the_end_waits_for_acknowledgements(void **state) {
    (void)state;
    static struct run r;
    start_flood(&r, "head -c 1000000 /dev/zero >&2; head -c 49000 /dev/zero; exit 4", NULL);
    until(&r.gone);
    assert_false(r.exited);
    assert_false(proc_terminate(&r.p, 0));
    ack_to_the_end(&r);
    assert_int_equal(r.n, 49000);
    assert_int_equal(r.err_n, 1000000);
    assert_int_equal(r.p.exit_code, 4);
    proc_fini(&r.p);
}

static void terminate_before_an_acknowledgement(void **state) {
    (void)state;
    static struct run r;
    start_flood(&r, "exec yes", NULL);
    assert_true(proc_terminate(&r.p, 0));
    until(&r.gone);
    assert_false(r.exited);
    assert_false(proc_terminate(&r.p, 0));
    size_t n = r.n;
    ack_to_the_end(&r);
    assert_true(r.n > n); /* what it had left in the pipe */
    assert_int_equal(r.p.signal, SIGKILL);
    proc_fini(&r.p);
}

static void a_process_may_forget_again(void **state) {
    (void)state;
    static struct run r;
    start_flood(&r, "head -c 5000000 /dev/zero", NULL);
    proc_keep_unacked(&r.p, false);
    until(&r.closed);
    assert_int_equal(r.n, FLOOD);
    assert_true(outlog_at(&r.p.log, 0)->seq > 1);
    finish(&r);
}

static void begins_to_keep_in_the_middle(void **state) {
    (void)state;
    static struct run r;
    struct child_spec spec = spec_of(ARGV("/usr/bin/head", "-c5000000", "/dev/zero"));
    start(&r, &spec, NULL);
    until_output(&r, 2000000);
    uint64_t first = outlog_at(&r.p.log, 0)->seq;
    assert_true(first > 1);
    proc_keep_unacked(&r.p, true); /* what is left of it is full already */
    while (!r.p.unacked_stall)
        turn();
    assert_int_equal(outlog_at(&r.p.log, 0)->seq, first);
    proc_ack(&r.p, r.last);
    ack_to_the_end(&r);
    assert_int_equal(r.n, FLOOD);
    finish(&r);
}

/* A slow client that acknowledges, and one that reads and does not: either holds. */
static void the_gate_and_acknowledgements_both_hold(void **state) {
    (void)state;
    static struct run r;
    struct proc_flow flow;
    proc_flow_init(&flow);
    start_flood(&r, "head -c 5000000 /dev/zero; exit 5", &flow);
    size_t n = r.n;
    proc_flow_close(&flow);
    proc_ack(&r.p, r.last);
    while (list_empty(&flow.held))
        turn();
    assert_int_equal(r.n, n);
    assert_false(r.p.unacked_stall);
    proc_flow_open(&flow);
    while (!r.p.unacked_stall)
        turn();
    n = r.n;
    proc_flow_close(&flow);
    proc_flow_open(&flow);
    assert_int_equal(loop_once(&f.loop, 20 * LOOP_MS), 0);
    assert_int_equal(r.n, n);
    ack_to_the_end(&r);
    assert_int_equal(r.n, FLOOD);
    assert_int_equal(r.p.exit_code, 5);
    finish(&r);
}

/* An acknowledgement comes just before the process goes: nothing runs on freed memory. */
static void abandoned_while_it_is_about_to_go_on(void **state) {
    (void)state;
    static struct run r;
    start_flood(&r, "exec yes", NULL);
    proc_ack(&r.p, r.last);
    assert_true(r.p.go_on.queued);
    proc_abandon(&r.p, true, false);
    assert_false(r.p.go_on.queued);
    until(&r.gone);
    proc_fini(&r.p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_signal_reaches_the_group),
        TEST(terminate_kills_all_descendants),
        TEST(terminate_wins_against_forks),
        TEST(what_is_left_behind_is_killed_in_the_end),
        TEST(another_session_can_be_spared),
        TEST(abandoned_before_the_start_is_known),
        TEST(the_supervisor_is_killed),
        TEST(the_supervisor_is_stopped),
        TEST(the_supervisor_waits_for_a_signal_asleep),
        TEST(a_closed_gate_holds_output_and_exit),
        TEST(a_closed_gate_stalls_the_command),
        TEST(terminate_behind_a_closed_gate),
        TEST(a_flood_waits_for_acknowledgements),
        TEST(acknowledgements_do_not_go_back),
        TEST(the_end_waits_for_acknowledgements),
        TEST(terminate_before_an_acknowledgement),
        TEST(a_process_may_forget_again),
        TEST(begins_to_keep_in_the_middle),
        TEST(the_gate_and_acknowledgements_both_hold),
        TEST(abandoned_while_it_is_about_to_go_on),
    };
    return run_twice(tests, ARRAY_LEN(tests));
}
