#include "centre.h"

#include "json/jsondec.h"

#include <fcntl.h>

#define CALLS 64

/* Calls that are not answered yet, by id; a call that goes leaves NULL. */
static struct rpc_call *calls[CALLS];
static int begun[CALLS], begun_count; /* ids in the order in which their handlers ran */
static int cancelled, rooms;
static const struct rpc_peer *workers[CALLS]; /* who worked, in order */
static size_t work_count;

/* The id has no NUL. */
static int id_of(const struct rpc_call *c) {
    char text[8] = {0};
    memcpy(text, c->id, MIN(c->id_len, sizeof text - 1));
    return atoi(text);
}

static int any_decode(const struct json_node *params, void *out, struct err *e) {
    (void)params;
    (void)out;
    (void)e;
    return 0;
}

static void on_cancelled(struct rpc_call *c) {
    assert_null(c->peer);
    calls[id_of(c)] = NULL;
    cancelled++;
    rpc_forget(c);
}

static void on_expire(struct rpc_call *c) {
    calls[id_of(c)] = NULL;
    assert_int_equal(buf_putz(rpc_result_begin(c), "{\"expired\":true}"), 0);
    rpc_result_send(c);
}

static void on_room(struct rpc_call *c) {
    (void)c;
    rooms++;
}

static enum rpc_outcome now_run(struct rpc_call *c, void *params, struct buf *result,
                                struct err *e) {
    (void)params;
    (void)e;
    if (begun_count < CALLS)
        begun[begun_count++] = id_of(c);
    return rpc_done_text(result, "{}");
}

static enum rpc_outcome work_run(struct rpc_call *c, void *params, struct buf *result,
                                 struct err *e) {
    assert_in_range(work_count, 0, CALLS - 1);
    workers[work_count++] = c->peer;
    centre.now += LOOP_SLICE;
    return now_run(c, params, result, e);
}

static enum rpc_outcome wait_as(struct rpc_call *k) {
    if (k == NULL)
        return RPC_ERROR;
    int id = id_of(k);
    assert_in_range(id, 0, CALLS - 1);
    begun[begun_count++] = id;
    calls[id] = k;
    k->cancelled = on_cancelled;
    k->expire = on_expire;
    k->room = on_room;
    return RPC_LATER;
}

static enum rpc_outcome defer_run(struct rpc_call *c, void *params, struct buf *result,
                                  struct err *e) {
    (void)params;
    (void)result;
    return wait_as(rpc_defer(c, e));
}

static enum rpc_outcome yield_run(struct rpc_call *c, void *params, struct buf *result,
                                  struct err *e) {
    (void)params;
    (void)result;
    return wait_as(rpc_yield(c, e));
}

/* Yields, is never answered, and has no number: there can be many. */
static enum rpc_outcome rest_run(struct rpc_call *c, void *params, struct buf *result,
                                 struct err *e) {
    (void)params;
    (void)result;
    struct rpc_call *k = rpc_yield(c, e);
    if (k != NULL)
        k->cancelled = rpc_forget;
    return k != NULL ? RPC_LATER : RPC_ERROR;
}

/* Takes Base64 and other texts, and answers with their lengths. */
struct data_params {
    struct str base64, text, bytes;
};

static int data_check(const struct json_node *v, struct err *e) {
    struct str ignored;
    return conn_message_base64(json_str(v), &ignored, e);
}

static const struct jsondec_field data_fields[] = {
    {.name = "data",
     .kind = JSONDEC_STR,
     .offset = offsetof(struct data_params, base64),
     .present = JSONDEC_NO_PRESENT,
     .check = data_check},
    {.name = "text",
     .kind = JSONDEC_STR,
     .offset = offsetof(struct data_params, text),
     .present = JSONDEC_NO_PRESENT},
};
static const struct jsondec_struct data_struct = {"Data", data_fields, ARRAY_LEN(data_fields)};

static int data_decode(const struct json_node *params, void *out, struct err *e) {
    struct data_params *p = out;
    *p = (struct data_params){0};
    int r = jsondec(&data_struct, params, p, e);
    return r < 0 ? r : conn_message_base64(p->base64, &p->bytes, e);
}

static enum rpc_outcome data_run(struct rpc_call *c, void *params, struct buf *result,
                                 struct err *e) {
    (void)c;
    (void)e;
    const struct data_params *p = params;
    for (size_t i = 0; i < p->bytes.n; i++)
        assert_int_equal(p->bytes.p[i], 0);
    for (size_t i = 0; i < p->text.n; i++)
        assert_int_equal(p->text.p[i], 'A');
    return rpc_done(result, buf_putf(result, "[%zu,%zu]", p->bytes.n, p->text.n));
}

static const struct rpc_method methods[] = {
    {.name = "data", .decode = data_decode, .run = data_run, .base64 = "data"},
    {.name = "now", .decode = any_decode, .run = now_run},
    {.name = "work", .decode = any_decode, .run = work_run},
    {.name = "defer", .decode = any_decode, .run = defer_run},
    {.name = "yield", .decode = any_decode, .run = yield_run},
    {.name = "rest", .decode = any_decode, .run = rest_run},
    {.name = "named", .key = "name", .decode = any_decode, .run = now_run},
    {.name = "control", .key = "name", .control = true, .decode = any_decode, .run = now_run},
    {.name = "familiar", .family = "test", .decode = any_decode, .run = now_run},
};

static void begin(size_t lanes) {
    centre_init(methods, ARRAY_LEN(methods), lanes);
    memset(calls, 0, sizeof calls);
    begun_count = cancelled = rooms = 0;
    work_count = 0;
}

static int setup(void **state) {
    (void)state;
    begin(1);
    return 0;
}

static int setup_lanes(void **state) {
    (void)state;
    begin(2);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    centre_fini();
    return 0;
}

static void send_answer(int id) {
    struct rpc_call *c = steal_ptr(&calls[id]);
    assert_non_null(c);
    assert_int_equal(buf_putz(rpc_result_begin(c), "{}"), 0);
    rpc_result_send(c);
}

static void answer(int id) {
    send_answer(id);
    turn();
}

static void call(struct client *c, int id, const char *method) {
    client_call(c, id, method, "{}");
    turn();
}

static void call_named(struct client *c, int id, const char *method, const char *name) {
    char params[64];
    snprintf(params, sizeof params, "{\"name\":\"%s\"}", name);
    client_call(c, id, method, params);
    turn();
}

/* -- order -- */

static void one_lane_answers_in_order(void **state) {
    (void)state;
    struct client *c = client_new();
    call(c, 1, "defer");
    call(c, 2, "now");
    call(c, 3, "defer");
    call(c, 4, "now");
    expect_nothing(c);
    assert_int_equal(begun_count, 1); /* the others have not even begun */
    answer(1);
    expect_result(c, 1);
    expect_result(c, 2);
    expect_nothing(c);
    answer(3);
    expect_result(c, 3);
    expect_result(c, 4);
}

static void lanes_run_side_by_side(void **state) {
    (void)state;
    struct client *c = client_new();
    for (int id = 1; id <= 3; id++)
        call(c, id, "defer");
    call(c, 4, "now");
    assert_int_equal(begun_count, 2);
    answer(2); /* the second lane is free: 3 takes it */
    expect_result(c, 2);
    expect_nothing(c);
    assert_int_equal(begun[2], 3);
    answer(3);
    expect_result(c, 3);
    expect_result(c, 4);
    answer(1);
    expect_result(c, 1);
}

static void one_connection_does_not_wait_for_another(void **state) {
    (void)state;
    struct client *a = client_new(), *b = client_new();
    call(a, 1, "defer");
    call(b, 2, "now");
    expect_result(b, 2);
    answer(1);
    expect_result(a, 1);
}

static void control_overtakes(void **state) {
    (void)state;
    struct client *c = client_new();
    call(c, 1, "defer");
    call_named(c, 2, "named", "x");
    call_named(c, 3, "control", "y");
    expect_result(c, 3);
    call_named(c, 4, "control", "x"); /* behind 2, which names the same thing */
    call_named(c, 5, "control", "y");
    expect_result(c, 5);
    expect_nothing(c);
    answer(1);
    expect_result(c, 1);
    expect_result(c, 2);
    expect_result(c, 4);
}

/* The name may lie in an object that the params wrap. */
static void a_wrapped_name_counts(void **state) {
    (void)state;
    struct client *c = client_new();
    call(c, 1, "defer");
    client_call(c, 2, "named", "{\"v2\":{\"name\":\"x\"}}");
    call_named(c, 3, "control", "x");
    expect_nothing(c);
    answer(1);
    for (int id = 1; id <= 3; id++)
        expect_result(c, id);
}

/* A message is read in a thread when it is large; until then it may name anything. */
static void a_large_message_keeps_its_place(void **state) {
    (void)state;
    struct client *c = client_new();
    static char text[RPC_AHEAD + 256];
    int n = snprintf(text, sizeof text,
                     "{\"id\":1,\"method\":\"named\",\"params\":{\"name\":\"x\",\"z\":\"%0*d\"}}",
                     (int)RPC_AHEAD, 0);
    client_say(c, 0x81, (struct str){text, (size_t)n});
    client_call(c, 2, "now", "{}");
    client_call(c, 3, "control", "{\"name\":\"y\"}");
    assert_int_equal(loop_once(&centre.loop, 0), 0);
    assert_int_equal(begun_count, 0);
    while (begun_count < 3) /* until the thread is done */
        assert_int_equal(loop_once(&centre.loop, LOOP_SEC), 0);
    turn();
    for (int id = 1; id <= 3; id++)
        expect_result(c, id);
}

/* -- calls that wait -- */

static void a_yielded_call_leaves_its_lane(void **state) {
    (void)state;
    struct client *c = client_new();
    call(c, 1, "yield");
    call(c, 2, "yield");
    call(c, 3, "now");
    expect_result(c, 3);
    assert_int_equal(peer_of(c)->running, 0);
    answer(2);
    expect_result(c, 2);
    answer(1);
    expect_result(c, 1);
    expect_nothing(c);
}

static void yielded_calls_are_bounded(void **state) {
    (void)state;
    struct client *c = client_new();
    for (int i = 0; i < RPC_YIELDED_MAX; i++) {
        client_call(c, i, "rest", "{}");
        if (i % 128 == 0)
            turn();
    }
    turn();
    expect_nothing(c);
    call(c, 1, "rest");
    expect_error(c, "too many waiting requests on this connection (limit 1024)");
    call(c, 2, "now"); /* all else goes on */
    expect_result(c, 2);
}

static void a_deferred_call_can_fail(void **state) {
    (void)state;
    struct client *c = client_new();
    call(c, 1, "defer");
    call(c, 2, "now");
    _cleanup_err_ struct err e = ERR_INIT;
    err_set(&e, ERR_INTERNAL, "it broke");
    rpc_fail(steal_ptr(&calls[1]), &e);
    turn();
    expect_error(c, "it broke");
    expect_result(c, 2);
    assert_int_equal(centre.rpc.tallies[3].errors, 1);
    call(c, 3, "defer");
    rpc_forget(steal_ptr(&calls[3])); /* no answer, and the lane is free */
    call(c, 4, "now");
    expect_result(c, 4);
}

static void ids_come_back_as_they_were(void **state) {
    (void)state;
    struct client *c = client_new();
    client_text(c, "{\"id\":\"a\\u0062\\n\",\"method\":\"now\"}");
    client_text(c, "{\"id\":-9223372036854775808,\"method\":\"now\"}");
    turn();
    expect_frame(c, 0x81, "{\"id\":\"ab\\n\",\"result\":{}}");
    expect_frame(c, 0x81, "{\"id\":-9223372036854775808,\"result\":{}}");
}

/* -- the end of a connection -- */

static void calls_are_cancelled_with_their_peer(void **state) {
    (void)state;
    struct client *c = client_new();
    call(c, 1, "yield");
    call(c, 2, "defer");
    call(c, 3, "now");
    call(c, 4, "yield");
    shutdown(c->fd, SHUT_RDWR);
    turn();
    assert_int_equal(c->gone, 1);
    assert_null(c->conn);
    assert_int_equal(cancelled, 2);
    assert_int_equal(begun_count, 2); /* what waited never begins */
    assert_int_equal(centre.rpc.tallies[3].dropped + centre.rpc.tallies[4].dropped, 2);
}

/* A start in flight goes on for the session; its answer reaches nobody. */
static void a_call_may_outlive_its_peer(void **state) {
    (void)state;
    struct client *c = client_new();
    call(c, 1, "defer");
    calls[1]->cancelled = NULL;
    shutdown(c->fd, SHUT_RDWR);
    turn();
    assert_null(calls[1]->peer);
    _cleanup_err_ struct err e = ERR_INIT;
    err_set(&e, ERR_INTERNAL, "nobody hears this");
    rpc_fail(calls[1], &e);
    assert_int_equal(cancelled, 0);
}

static void the_end_of_stdio_answers_what_waits(void **state) {
    (void)state;
    int in[2], out[2];
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    assert_int_equal(conn_stdio(&centre.conns, in[0], out[1]), 0);
    static const char lines[] =
        "{\"id\":1,\"method\":\"yield\"}\n{\"id\":2,\"method\":\"defer\"}\n{\"id\":3,"
        "\"method\":\"now\"}";
    assert_int_equal(write(in[1], lines, sizeof lines - 1), sizeof lines - 1);
    close(in[1]);
    turn();
    assert_false(list_empty(&centre.conns.conns)); /* 2 is not answered yet */
    answer(2);
    assert_true(list_empty(&centre.conns.conns));
    char text[256] = {0};
    assert_true(read(out[0], text, sizeof text - 1) > 0);
    assert_string_equal(text, "{\"id\":1,\"result\":{\"expired\":true}}\n"
                              "{\"id\":2,\"result\":{}}\n{\"id\":3,\"result\":{}}\n");
    close(in[0]);
    close(out[0]);
    close(out[1]);
}

/* -- bounds -- */

static void the_queue_pauses_input(void **state) {
    (void)state;
    struct client *c = client_new();
    struct rpc_peer *p = peer_of(c);
    call(c, 1, "defer");
    for (int i = 0; i < RPC_QUEUE_MAX; i++) {
        assert_false(c->conn->paused);
        client_call(c, 2, "now", "{}");
        assert_int_equal(loop_once(&centre.loop, 0), 0);
    }
    assert_int_equal(p->queued, RPC_QUEUE_MAX);
    assert_true(c->conn->paused);
    call(c, 3, "now");
    assert_int_equal(p->queued, RPC_QUEUE_MAX); /* it stays in the socket */
    answer(1);
    for (int i = 0; i < RPC_QUEUE_MAX && p->queued > 0; i++) {
        turn();
        client_read(c); /* else the output queue stops it */
    }
    assert_int_equal(p->queued, 0);
    assert_false(c->conn->paused);
    turn();
    expect_result(c, 1);
    for (int i = 0; i < RPC_QUEUE_MAX; i++)
        expect_result(c, 2);
    expect_result(c, 3);
}

static void queued_bytes_pause_input(void **state) {
    (void)state;
    struct client *c = client_new();
    struct rpc_peer *p = peer_of(c);
    call(c, 1, "defer");
    enum { PIECE = 8 << 20 };
    char *text = malloc(PIECE);
    assert_non_null(text);
    memset(text, ' ', PIECE);
    for (size_t n = 0; n < RPC_QUEUE_BYTES; n += PIECE) {
        assert_false(c->conn->paused);
        rpc_peer_message(p, &(struct conn_message){.p = text, .n = PIECE, .utf8 = true});
    }
    free(text);
    assert_int_equal(p->queued_bytes, RPC_QUEUE_BYTES);
    assert_true(c->conn->paused);
}

/* Data that calls hold is bounded: no other call begins beside so much. */
static void charged_bytes_keep_others_waiting(void **state) {
    (void)state;
    struct client *c = client_new();
    call(c, 1, "defer");
    rpc_charge(calls[1], RPC_CHARGED_MAX);
    call(c, 2, "now");
    expect_nothing(c); /* although there is a second lane */
    rpc_charge(calls[1], RPC_CHARGED_MAX - 1);
    turn();
    expect_result(c, 2);
    call(c, 3, "defer");
    assert_true(rpc_may_charge(calls[1], 1 << 20)); /* one that has begun must be able to end */
    assert_false(rpc_may_charge(calls[3], 2));
    assert_int_equal(rooms, 0);
    answer(1);
    assert_int_equal(rooms, 1);
    assert_true(rpc_may_charge(calls[3], 2));
    assert_int_equal(peer_of(c)->charged_bytes, 0);
}

/* A slow reader: what waits is answered when there is room. */
static void answers_wait_for_room(void **state) {
    (void)state;
    struct client *c = client_new();
    call(c, 1, "yield");
    static char text[64 << 10];
    memset(text, 'x', sizeof text);
    for (; !conn_is_full(c->conn); turn()) /* the socket takes some of it */
        conn_send(c->conn, (struct str){text, sizeof text});
    assert_true(conn_is_full(c->conn) && !rpc_has_room(calls[1]));
    call(c, 2, "now");
    assert_int_equal(begun_count, 1); /* not read, so not begun */
    for (struct str payload; begun_count < 2 || conn_backlog(c->conn) > 0; turn())
        (void)client_hear(c, &payload);
    assert_true(rooms > 0 && rpc_has_room(calls[1]));
}

/* -- turns -- */

/* Both have much to do; neither waits for all of the other's. */
static void peers_share_a_turn(void **state) {
    (void)state;
    struct client *a = client_new(), *b = client_new();
    call(a, 1, "defer");
    call(b, 2, "defer");
    for (int i = 0; i < 6; i++) {
        call(a, 3, "work");
        call(b, 4, "work");
    }
    send_answer(1);
    send_answer(2);
    for (int i = 0; i < 12; i++)
        turn();
    assert_int_equal(work_count, 12);
    size_t changes = 0;
    for (size_t i = 1; i < work_count; i++)
        changes += workers[i] != workers[i - 1];
    assert_true(changes >= 6);
}

/* -- answers in pieces -- */

static struct sendq_seg *piece(const char *text) {
    struct sendq_seg *s = sendq_seg_new(&centre.conns.pool, strlen(text));
    assert_non_null(s);
    s->len = strlen(text);
    memcpy(s->data, text, s->len);
    return s;
}

static void a_streamed_answer_stays_whole(void **state) {
    (void)state;
    struct client *c = client_new();
    call(c, 1, "defer");
    call(c, 2, "defer");
    assert_true(rpc_stream_begin(calls[1], STR_LIT("[\""), piece("abc")));
    assert_false(rpc_stream_begin(calls[2], STR_LIT("[\""), NULL)); /* one at a time */
    turn();
    call(c, 3, "now");
    answer(2);
    rpc_stream_put(calls[1], piece("def"));
    turn();
    expect_frame(c, 0x01, "{\"id\":1,\"result\":[\"abc");
    expect_frame(c, 0x00, "def");
    expect_nothing(c);
    rpc_stream_end(steal_ptr(&calls[1]), piece("ghi"), "\"]");
    turn();
    expect_frame(c, 0x80, "ghi\"]}");
    expect_result(c, 2);
    expect_result(c, 3);
}

static void a_streamed_answer_can_fail(void **state) {
    (void)state;
    struct client *c = client_new();
    call(c, 1, "defer");
    assert_true(rpc_stream_begin(calls[1], STR_LIT("\""), piece("abc")));
    _cleanup_err_ struct err e = ERR_INIT;
    err_set(&e, ERR_INTERNAL, "it broke");
    rpc_stream_fail(steal_ptr(&calls[1]), "!\"", &e);
    call(c, 2, "now");
    expect_frame(c, 0x01, "{\"id\":1,\"result\":\"abc");
    struct str payload;
    assert_int_equal(client_hear(c, &payload), 0x80);
    assert_non_null(memmem(payload.p, payload.n, "!\",\"error\":{", 12));
    expect_result(c, 2);
}

/* -- large values -- */

/* Sends `before`, n letters that decode to zeros, `after`; the answer has to be `want`. */
static void check_value(struct client *c, const char *before, size_t n, const char *after,
                        const char *want) {
    char *text = malloc(n + 256);
    assert_non_null(text);
    char *at = stpcpy(text, before);
    memset(at, 'A', n);
    strcpy(at + n, after);
    client_say(c, 0x81, str_of(text));
    free(text);
    struct str payload = {NULL, 0};
    while (client_hear(c, &payload) < 0) /* a thread may have to read it */
        assert_int_equal(loop_once(&centre.loop, LOOP_SEC), 0);
    if (memmem(payload.p, payload.n, want, strlen(want)) == NULL)
        fail_msg("%.200s: no %s", payload.p, want);
}

/* Base64 that was decoded on its way in is used by its method, and by nobody else. */
static void decoded_values_reach_their_method(void **state) {
    (void)state;
    struct client *c = client_new();
    enum { N = 120000 };
    const char *call = "{\"id\":1,\"method\":\"data\",\"params\":{\"data\":\"";
    check_value(c, call, N, "\"}}", "[90000,0]");
    check_value(c, call, N, "AA==\"}}", "[90001,0]");
    check_value(c, call, N, "\",\"text\":\"AA\"}}", "[90000,2]");
    check_value(c, call, N, "\\u0041AAA\"}}", "[90003,0]");
    check_value(c, call, N, "!AAA\"}}", "Invalid symbol 33, offset 120000.");
    check_value(c, call, N, "\",\"text\":1}}", "invalid type: number, expected a string");
    check_value(c, call, N, "!\",\"text\":1}}", "Invalid symbol 33, offset 120000.");
    check_value(c, call, N, "\"}", "EOF while parsing an object at line 1 column 120044");
    check_value(c, "{\"id\":1,\"method\":\"data\",\"params\":{\"data\":\"\",\"text\":\"", N, "\"}}",
                "[0,120000]");
    check_value(c, "{\"method\":\"data\",\"params\":{\"data\":\"AAAA\"},\"id\":\"", N, "\"}",
                "AAAA\",\"result\":[3,0]}");
    check_value(c, "{\"id\":1,\"method\":\"now\",\"params\":{\"data\":\"", N, "\"}}", "{}");
}

/* -- messages that are no calls -- */

static void what_cannot_run_is_answered(void **state) {
    (void)state;
    struct client *c = client_new();
    client_text(c, "{");
    client_text(c, "{\"id\":1,\"method\":\"absent\"}");
    client_text(c, "{\"id\":1,\"result\":{}}");
    turn();
    expect_error(c, "failed to parse websocket JSON-RPC message");
    expect_error(c, "does not implement `absent`");
    expect_error(c, "unexpected response");
    peer_of(c)->life = RPC_NEW;
    call(c, 1, "familiar");
    expect_error(c, "client must call initialize before using test methods");
    peer_of(c)->life = RPC_GREETED;
    call(c, 1, "familiar");
    expect_error(c, "client must send initialized before using test methods");
    assert_int_equal(centre.rpc.malformed, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_LANES(name) cmocka_unit_test_setup_teardown(name, setup_lanes, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(one_lane_answers_in_order),
        TEST_LANES(lanes_run_side_by_side),
        TEST(one_connection_does_not_wait_for_another),
        TEST(control_overtakes),
        TEST(a_wrapped_name_counts),
        TEST(a_large_message_keeps_its_place),
        TEST(a_yielded_call_leaves_its_lane),
        TEST(yielded_calls_are_bounded),
        TEST(a_deferred_call_can_fail),
        TEST(ids_come_back_as_they_were),
        TEST(calls_are_cancelled_with_their_peer),
        TEST(a_call_may_outlive_its_peer),
        TEST(the_end_of_stdio_answers_what_waits),
        TEST(the_queue_pauses_input),
        TEST(queued_bytes_pause_input),
        TEST_LANES(charged_bytes_keep_others_waiting),
        TEST(answers_wait_for_room),
        TEST(peers_share_a_turn),
        TEST_LANES(a_streamed_answer_stays_whole),
        TEST(a_streamed_answer_can_fail),
        TEST(decoded_values_reach_their_method),
        TEST(what_cannot_run_is_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
