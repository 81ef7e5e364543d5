#include "centre.h"

#include "process/process.h"

#define TTL_MS 10000

static int setup(void **state) {
    (void)state;
    centre_init(NULL, 0, 1);
    centre_init_sessions(TTL_MS);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    centre_fini();
    return 0;
}

static struct session *begin(struct client *c) {
    _cleanup_err_ struct err e = ERR_INIT;
    struct session *s = session_new(&centre.processes, peer_of(c), &e);
    assert_non_null(s);
    assert_ptr_equal(s->peer, peer_of(c));
    return s;
}

/* The session, or NULL with the code of the error. */
static struct session *resume(struct client *c, const char *id, int *code) {
    _cleanup_err_ struct err e = ERR_INIT;
    struct session *s = session_resume(&centre.processes, str_of(id), peer_of(c), &e);
    *code = e.code;
    return s;
}

static void leave(struct client *c) {
    shutdown(c->fd, SHUT_RDWR);
    turn();
    assert_null(c->conn);
}

/* -- without a connection -- */

static void a_session_outlives_its_connection(void **state) {
    (void)state;
    struct client *a = client_new();
    struct session *s = begin(a);
    proc_flow_close(&s->flow); /* its client was slow */
    leave(a);
    assert_int_equal(centre.detached, 1);
    assert_null(s->peer);
    assert_false(s->flow.closed); /* output is drained while nobody listens */
    wait_ms(TTL_MS - 1);
    assert_int_equal(centre.ended, 0);
    int code;
    struct client *b = client_new();
    assert_ptr_equal(resume(b, s->id, &code), s);
    assert_ptr_equal(s->peer, peer_of(b));
    assert_int_equal(centre.processes.detached_count, 0);
    wait_ms(10 * TTL_MS); /* attached: no time runs */
    assert_int_equal(centre.ended, 0);
}

static void a_session_expires(void **state) {
    (void)state;
    struct client *a = client_new();
    struct session *s = begin(a);
    char id[sizeof s->id];
    memcpy(id, s->id, sizeof id);
    leave(a);
    wait_ms(TTL_MS);
    assert_int_equal(centre.ended, 1);
    assert_int_equal(centre.processes.sessions.count, 0);
    int code;
    assert_null(resume(client_new(), id, &code));
    assert_int_equal(code, ERR_INVALID_REQUEST);
}

/* Each detachment gives the whole time again. */
static void time_runs_from_the_last_detachment(void **state) {
    (void)state;
    struct client *a = client_new();
    struct session *s = begin(a);
    int code;
    for (int i = 0; i < 3; i++) {
        leave(a);
        wait_ms(TTL_MS - 1);
        a = client_new();
        assert_ptr_equal(resume(a, s->id, &code), s);
    }
    leave(a);
    wait_ms(TTL_MS);
    assert_int_equal(centre.ended, 1);
}

static void without_a_time_to_live_it_ends_at_once(void **state) {
    (void)state;
    centre.processes.settings.session_ttl_ms = 0;
    struct client *a = client_new(), *b = client_new();
    begin(a);
    leave(a);
    assert_int_equal(centre.ended, 1);
    centre.processes.settings.session_ttl_ms = TTL_MS;
    begin(b);
    centre.processes.stopping = true;
    leave(b);
    assert_int_equal(centre.ended, 2);
}

/* -- how many -- */

/* A session without processes goes first; else the one that was detached first. */
static void detached_sessions_are_bounded(void **state) {
    (void)state;
    struct client *c = client_new();
    struct session *first = begin(c), *second;
    static struct process process; /* in the table of the first, never started */
    list_append(&first->order, &process.order);
    session_detach(first);
    second = begin(c);
    char id[sizeof second->id];
    memcpy(id, second->id, sizeof id);
    session_detach(second);
    for (int i = 2; i < PROCESS_HOST_DETACHED_MAX; i++)
        session_detach(begin(c));
    assert_int_equal(centre.ended, 0);
    session_detach(begin(c));
    assert_int_equal(centre.ended, 1);
    assert_int_equal(centre.processes.detached_count, PROCESS_HOST_DETACHED_MAX);
    int code;
    assert_null(resume(c, id, &code));
    assert_ptr_equal(resume(c, first->id, &code), first);
    list_remove(&process.order);
}

/* -- what a client asks for -- */

#define TTL_MAX_MS (100 * TTL_MS)
#define CLOSED_MS 500
#define CLOSED_MAX_MS 1500

static void allow_more(void) {
    struct process_settings *s = &centre.processes.settings;
    s->session_ttl_max_ms = TTL_MAX_MS;
    s->closed_retention_ms = CLOSED_MS;
    s->closed_retention_max_ms = CLOSED_MAX_MS;
}

static void ask_ttl(struct session *s, uint64_t ms) {
    session_grant(s, &(struct session_ask){.ttl_ms = ms, .has_ttl = true});
}

static void ask_closed(struct session *s, uint64_t ms) {
    session_grant(s,
                  &(struct session_ask){.closed_retention_ms = ms, .has_closed_retention = true});
}

static void assert_granted(const struct session *s, uint64_t ttl, uint64_t closed, size_t lasting) {
    assert_int_equal(s->ttl_ms, ttl);
    assert_int_equal(s->closed_retention_ms, closed);
    assert_int_equal(centre.processes.lasting_count, lasting);
}

static void times_are_granted_up_to_the_maximum(void **state) {
    (void)state;
    allow_more();
    struct session *s = begin(client_new());
    session_grant(s, &(struct session_ask){0});
    assert_granted(s, TTL_MS, CLOSED_MS, 0);
    ask_ttl(s, TTL_MS + 1);
    assert_granted(s, TTL_MS + 1, CLOSED_MS, 1);
    ask_ttl(s, UINT64_MAX);
    assert_granted(s, TTL_MAX_MS, CLOSED_MS, 1);
    ask_closed(s, CLOSED_MAX_MS + 1);
    assert_granted(s, TTL_MAX_MS, CLOSED_MAX_MS, 1);
    session_grant(s, &(struct session_ask){0}); /* asks for nothing: all stays */
    assert_granted(s, TTL_MAX_MS, CLOSED_MAX_MS, 1);
    ask_ttl(s, 0);
    assert_granted(s, 0, CLOSED_MAX_MS, 1);
    ask_closed(s, 1);
    assert_granted(s, 0, 1, 0);
}

/* A maximum below the setting does not lower it. */
static void a_maximum_takes_nothing_away(void **state) {
    (void)state;
    allow_more();
    centre.processes.settings.session_ttl_max_ms = 1;
    struct session *s = begin(client_new());
    ask_ttl(s, UINT64_MAX);
    assert_granted(s, TTL_MS, CLOSED_MS, 0);
    ask_ttl(s, 2);
    assert_granted(s, 2, CLOSED_MS, 0);
}

static void a_lasting_session_lasts(void **state) {
    (void)state;
    allow_more();
    struct client *a = client_new();
    struct session *s = begin(a);
    ask_ttl(s, TTL_MAX_MS);
    leave(a);
    wait_ms(TTL_MAX_MS - 1);
    int code;
    a = client_new();
    assert_ptr_equal(resume(a, s->id, &code), s);
    ask_ttl(s, 5); /* the next client asks for less */
    leave(a);
    wait_ms(5);
    assert_int_equal(centre.ended, 1);
    assert_int_equal(centre.processes.lasting_count, 0);
}

static void few_sessions_last(void **state) {
    (void)state;
    allow_more();
    struct client *c = client_new();
    struct session *lasting[PROCESS_HOST_LASTING_MAX];
    for (size_t i = 0; i < ARRAY_LEN(lasting); i++) {
        lasting[i] = begin(c);
        ask_ttl(lasting[i], TTL_MAX_MS);
        assert_granted(lasting[i], TTL_MAX_MS, CLOSED_MS, i + 1);
        session_detach(lasting[i]);
    }
    struct session *s = begin(c);
    ask_ttl(s, TTL_MAX_MS);
    ask_closed(s, CLOSED_MAX_MS);
    assert_granted(s, TTL_MS, CLOSED_MS, 64);
    ask_ttl(s, TTL_MS - 1); /* less is always granted */
    assert_granted(s, TTL_MS - 1, CLOSED_MS, 64);
    session_detach(s);
    int code;
    assert_ptr_equal(resume(c, lasting[7]->id, &code), lasting[7]);
    ask_ttl(lasting[7], TTL_MAX_MS - 1); /* it keeps its place */
    ask_closed(lasting[7], CLOSED_MAX_MS);
    assert_granted(lasting[7], TTL_MAX_MS - 1, CLOSED_MAX_MS, 64);
    session_detach(lasting[7]);
    session_end(lasting[7]); /* and leaves it */
    s = begin(c);
    ask_closed(s, CLOSED_MAX_MS);
    assert_granted(s, TTL_MS, CLOSED_MAX_MS, 64);
}

/* Other sessions, however many, do not end one that lasts. */
static void lasting_sessions_are_spared(void **state) {
    (void)state;
    allow_more();
    struct client *c = client_new();
    struct session *s = begin(c);
    ask_ttl(s, TTL_MAX_MS);
    session_detach(s);
    for (int i = 0; i < PROCESS_HOST_DETACHED_MAX + 3; i++)
        session_detach(begin(c));
    assert_int_equal(centre.ended, 4);
    int code;
    assert_ptr_equal(resume(c, s->id, &code), s);
}

/* -- takeover -- */

static void a_living_connection_keeps_its_session(void **state) {
    (void)state;
    struct client *a = client_new(), *b = client_new();
    struct session *s = begin(a);
    int code;
    assert_null(resume(b, s->id, &code));
    assert_int_equal(code, ERR_SESSION_BUSY);
    turn();
    expect_frame(a, 0x89, ""); /* it is asked */
    wait_ms(SESSION_PROBE_MS / 2);
    assert_null(resume(b, s->id, &code)); /* and only once */
    turn();
    expect_nothing(a);
    client_say(a, 0x8A, str_of(""));
    wait_ms(SESSION_PROBE_MS);
    assert_true(conn_is_open(a->conn));
    assert_ptr_equal(s->peer, peer_of(a));
    assert_null(resume(b, s->id, &code));
    turn();
    expect_frame(a, 0x89, ""); /* asked again */
}

static void a_silent_connection_loses_its_session(void **state) {
    (void)state;
    struct client *a = client_new(), *b = client_new();
    struct session *s = begin(a);
    int code;
    assert_null(resume(b, s->id, &code));
    wait_ms(SESSION_PROBE_MS - 1);
    assert_ptr_equal(s->peer, peer_of(a));
    wait_ms(1);
    expect_frame(a, 0x89, "");
    expect_close(a, 1008);
    assert_null(s->peer);
    assert_int_equal(centre.detached, 1);
    assert_ptr_equal(resume(b, s->id, &code), s);
    wait_ms(10 * TTL_MS);
    assert_ptr_equal(s->peer, peer_of(b));
    assert_true(conn_is_open(b->conn));
}

/* A connection is alive if bytes have arrived, even if the server does not read them now. */
static void bytes_that_nobody_has_read_are_a_sign_of_life(void **state) {
    (void)state;
    struct client *a = client_new(), *b = client_new();
    struct session *s = begin(a);
    conn_pause(a->conn, true);
    turn();
    int code;
    assert_null(resume(b, s->id, &code));
    client_say(a, 0x8A, str_of(""));
    wait_ms(SESSION_PROBE_MS);
    assert_true(conn_is_open(a->conn));
    assert_ptr_equal(s->peer, peer_of(a));
}

/* The connection ends while it is asked: the session is free at once. */
static void a_connection_may_end_while_it_is_asked(void **state) {
    (void)state;
    struct client *a = client_new(), *b = client_new();
    struct session *s = begin(a);
    int code;
    assert_null(resume(b, s->id, &code));
    leave(a);
    assert_ptr_equal(resume(b, s->id, &code), s);
    wait_ms(2 * SESSION_PROBE_MS); /* the question was for the other one */
    assert_true(conn_is_open(b->conn));
}

/* -- which connection has it -- */

static void its_gate_follows_the_queue_of_its_connection(void **state) {
    (void)state;
    struct client *a = client_new();
    static char text[CONN_OUT_HIGH];
    conn_send(a->conn, (struct str){text, sizeof text});
    assert_true(begin(a)->flow.closed); /* the queue was full before there was a session */
}

static void names_are_cut_between_characters(void **state) {
    (void)state;
    struct client *a = client_new();
    struct session *s = begin(a);
    char name[SESSION_CLIENT_MAX + 2];
    memset(name, 'n', sizeof name);
    memcpy(name + SESSION_CLIENT_MAX - 1, "\xC3\xA9", 2);
    session_named(s, (struct str){name, SESSION_CLIENT_MAX + 1});
    assert_int_equal(strlen(s->client), SESSION_CLIENT_MAX - 1);
    assert_null(s->subject);
    session_named(s, str_of("another"));
    assert_string_equal(s->client, "another");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_session_outlives_its_connection),
        TEST(a_session_expires),
        TEST(time_runs_from_the_last_detachment),
        TEST(without_a_time_to_live_it_ends_at_once),
        TEST(detached_sessions_are_bounded),
        TEST(times_are_granted_up_to_the_maximum),
        TEST(a_maximum_takes_nothing_away),
        TEST(a_lasting_session_lasts),
        TEST(few_sessions_last),
        TEST(lasting_sessions_are_spared),
        TEST(a_living_connection_keeps_its_session),
        TEST(a_silent_connection_loses_its_session),
        TEST(bytes_that_nobody_has_read_are_a_sign_of_life),
        TEST(a_connection_may_end_while_it_is_asked),
        TEST(its_gate_follows_the_queue_of_its_connection),
        TEST(names_are_cut_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
