#include "centre.h"

#include "net/conn_internal.h"

/* What a connection does between its upgrade and its end. */

static int setup(void **state) {
    (void)state;
    centre_init(NULL, 0, 1);
    centre.raw = true;
    return 0;
}

static int teardown(void **state) {
    (void)state;
    centre_fini();
    return 0;
}

/* -- frames -- */

static void a_frame_may_come_byte_by_byte(void **state) {
    (void)state;
    struct client *c = client_new();
    char frame[512], text[300];
    memset(text, 'x', sizeof text);
    size_t n = client_frame(frame, 0x81, (struct str){text, sizeof text});
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(c->messages, 0);
        client_send(c, frame + i, 1);
        turn();
    }
    assert_int_equal(c->messages, 1);
    assert_int_equal(c->last, sizeof text);
}

static void frames_may_come_at_once(void **state) {
    (void)state;
    struct client *c = client_join();
    char bytes[2048];
    size_t n = strlen(CENTRE_UPGRADE);
    memcpy(bytes, CENTRE_UPGRADE, n); /* behind the head in the same packet */
    for (int i = 0; i < 20; i++)
        n += client_frame(bytes + n, 0x81, str_of("{}"));
    client_send(c, bytes, n);
    turn();
    assert_int_equal(c->messages, 20);
}

static void fragments_make_one_message(void **state) {
    (void)state;
    struct client *c = client_new();
    client_say(c, 0x01, str_of("{\"a\""));
    turn();
    client_say(c, 0x89, str_of("between"));
    client_say(c, 0x00, str_of(":"));
    turn();
    assert_int_equal(c->messages, 0);
    client_say(c, 0x80, str_of("1}"));
    turn();
    assert_int_equal(c->messages, 1);
    assert_int_equal(c->last, 7);
    expect_frame(c, 0x8A, "between"); /* answered at once */
}

static void a_bad_frame_ends_it(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        unsigned code;
    } bad[] = {
        {"\x81\x02{}", 4, 1002},           /* not masked */
        {"\x83\x80\0\0\0\0", 6, 1002},     /* a reserved opcode */
        {"\x81\x81\0\0\0\0\xFF", 7, 1007}, /* not UTF-8 */
        {"\x81\xFF\0\0\0\0\x05\0\0\0\0\0\0\0", 14, 1009},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct client *c = client_new();
        client_send(c, bad[i].bytes, bad[i].n);
        turn();
        assert_int_equal(c->gone, 1);
        expect_close(c, bad[i].code);
        assert_int_equal(c->messages, 0);
    }
}

/* A large message goes out in fragments, each of at most CONN_FRAME_OUT_MAX. */
static void a_large_message_leaves_in_fragments(void **state) {
    (void)state;
    struct client *c = client_new();
    size_t n = CONN_FRAME_OUT_MAX + 5, heard = 0;
    char *text = malloc(n);
    assert_non_null(text);
    memset(text, 'x', n);
    conn_send(c->conn, (struct str){text, n});
    free(text);
    int first = 0x01;
    for (struct str payload; heard < n; turn()) {
        int got = client_hear(c, &payload);
        if (got < 0)
            continue;
        assert_int_equal(got, first);
        first = 0x80;
        heard += payload.n;
    }
    assert_int_equal(heard, n);
}

/* -- backpressure -- */

static void send_kib(struct client *c, size_t kib) {
    static char text[1024 - 4]; /* and a header */
    for (size_t i = 0; i < kib; i++)
        conn_send(c->conn, (struct str){text, sizeof text});
}

/* Reads until at most `bytes` are queued. */
static void read_down(struct client *c, size_t bytes) {
    while (conn_backlog(c->conn) > bytes) {
        client_read(c);
        buf_fini(&c->in);
        turn();
    }
}

static void pressure_has_two_marks(void **state) {
    (void)state;
    struct client *c = client_new();
    send_kib(c, CONN_OUT_HIGH / 1024 - 1);
    assert_int_equal(c->highs, 0);
    send_kib(c, 1);
    assert_int_equal(c->highs, 1);
    turn(); /* the socket takes some */
    send_kib(c, 512);
    turn();
    assert_int_equal(c->highs, 1); /* told once */
    assert_true(conn_backlog(c->conn) > CONN_OUT_LOW);
    assert_int_equal(c->lows, 0);
    read_down(c, CONN_OUT_LOW);
    assert_int_equal(c->lows, 1);
    read_down(c, 0);
    assert_int_equal(c->lows, 1);
    send_kib(c, CONN_OUT_HIGH / 1024);
    assert_int_equal(c->highs, 2);
}

static void a_full_queue_stops_input(void **state) {
    (void)state;
    struct client *c = client_new();
    send_kib(c, CONN_OUT_MAX / 1024 + 256); /* the socket takes the rest */
    turn();
    assert_true(conn_is_full(c->conn));
    client_text(c, "{}");
    turn();
    assert_int_equal(c->messages, 0);
    read_down(c, CONN_OUT_MAX - 1);
    turn();
    assert_int_equal(c->messages, 1);
}

/* What was read already waits too, and in order. */
static void a_pause_keeps_what_was_read(void **state) {
    (void)state;
    struct client *c = client_new();
    conn_pause(c->conn, true);
    turn();
    client_text(c, "{}");
    turn();
    assert_int_equal(c->messages, 0);
    conn_pause(c->conn, false);
    turn();
    assert_int_equal(c->messages, 1);
}

static void control_frames_pass_a_stream(void **state) {
    (void)state;
    struct client *c = client_new();
    struct conn_parts part = {.after = STR_LIT("ab")};
    conn_stream(c->conn, &part, false);
    conn_send(c->conn, STR_LIT("later"));
    conn_ping(c->conn);
    assert_true(conn_tx_end(c->conn) == UINT64_MAX); /* not known while something is held back */
    conn_stream(c->conn, &part, true);
    turn();
    expect_frame(c, 0x01, "ab");
    expect_frame(c, 0x89, "");
    expect_frame(c, 0x80, "ab");
    expect_frame(c, 0x81, "later");
    assert_true(conn_tx_end(c->conn) == conn_tx_written(c->conn));
}

/* -- a peer that is silent -- */

static void an_idle_peer_is_asked(void **state) {
    (void)state;
    struct client *c = client_new();
    for (int i = 0; i < 3; i++) {
        wait_ms(CONN_PING_MS - 1);
        expect_nothing(c);
        wait_ms(1);
        expect_frame(c, 0x89, "");
    }
    assert_true(conn_is_open(c->conn)); /* silence alone ends nothing: its host may sleep */
}

/* Half open: the peer will send no more. What is queued still reaches it. */
static void a_half_closed_peer_gets_the_rest(void **state) {
    (void)state;
    struct client *c = client_new();
    send_kib(c, 1024);
    turn();
    assert_true(conn_backlog(c->conn) > 0);
    shutdown(c->fd, SHUT_WR);
    turn();
    assert_int_equal(c->gone, 1); /* the owner knows at once */
    assert_false(conn_is_open(c->conn));
    size_t heard = 0;
    for (struct str payload; c->conn != NULL || heard < 1024; turn())
        heard += client_hear(c, &payload) == 0x81;
    assert_int_equal(heard, 1024);
    assert_int_equal(c->gone, 1);
}

static void a_peer_that_reads_nothing_is_given_up(void **state) {
    (void)state;
    struct client *c = client_new();
    send_kib(c, 1024);
    turn();
    shutdown(c->fd, SHUT_WR);
    turn();
    wait_ms(CONN_GOODBYE_MS - 1);
    assert_non_null(c->conn);
    wait_ms(1);
    assert_null(c->conn);
}

/* A server that was stopped has sent nothing: that is not the peer's fault. */
static void a_stopped_server_gives_time(void **state) {
    (void)state;
    struct client *c = client_new();
    send_kib(c, 1024);
    turn();
    shutdown(c->fd, SHUT_WR);
    turn();
    wait_ms(CONN_GOODBYE_MS + 5000);
    assert_non_null(c->conn);
    wait_ms(CONN_GOODBYE_MS - 1);
    assert_non_null(c->conn);
    wait_ms(1);
    assert_null(c->conn);
}

/* -- the close handshake -- */

static void a_close_is_answered(void **state) {
    (void)state;
    struct client *c = client_new();
    conn_send(c->conn, STR_LIT("queued before"));
    client_say(c, 0x88,
               str_of("\x03\xE8"
                      "bye"));
    client_text(c, "{}"); /* after a close nothing counts */
    turn();
    expect_frame(c, 0x81, "queued before");
    expect_close(c, 1000);
    expect_nothing(c);
    assert_int_equal(c->gone, 1);
    assert_int_equal(c->messages, 0);
    assert_non_null(c->conn); /* it waits for the peer to hang up */
    shutdown(c->fd, SHUT_WR);
    turn();
    assert_null(c->conn);
}

static void a_close_without_a_code_has_none(void **state) {
    (void)state;
    struct client *c = client_new();
    client_say(c, 0x88, str_of(""));
    turn();
    expect_frame(c, 0x88, "");
}

static void a_peer_that_does_not_answer_a_close_goes(void **state) {
    (void)state;
    struct client *c = client_new();
    conn_end(c->conn, 1001, "stopping");
    assert_false(conn_is_open(c->conn)); /* at once, but the owner hears of it later */
    assert_int_equal(c->gone, 0);
    conn_send(c->conn, STR_LIT("too late"));
    conn_end(c->conn, 1002, "again");
    turn();
    assert_int_equal(c->gone, 1);
    expect_close(c, 1001);
    expect_nothing(c);
    client_text(c, "{}"); /* read, and thrown away */
    wait_ms(CONN_LINGER_MS - 1);
    assert_int_equal(c->messages, 0);
    assert_non_null(c->conn);
    wait_ms(1);
    assert_null(c->conn);
}

/* A stream is cut off by the end; the close frame follows what was sent of it. */
static void an_end_cuts_a_stream(void **state) {
    (void)state;
    struct client *c = client_new();
    conn_stream(c->conn, &(struct conn_parts){.after = STR_LIT("ab")}, false);
    conn_send(c->conn, STR_LIT("held back"));
    conn_end(c->conn, 1001, "");
    turn();
    expect_frame(c, 0x01, "ab");
    expect_close(c, 1001);
    expect_nothing(c);
}

static void a_peer_may_vanish(void **state) {
    (void)state;
    struct client *c = client_new();
    send_kib(c, 1024);
    turn();
    shutdown(c->fd, SHUT_RDWR);
    turn();
    assert_null(c->conn);
    assert_int_equal(c->gone, 1);
    assert_int_equal(centre.conns.count, 0);
}

/* Out of memory: nothing more can be sent, and the owner hears of it once. */
static void a_broken_connection_is_dropped(void **state) {
    (void)state;
    struct client *c = client_new();
    conn_break(c->conn);
    conn_end(c->conn, 1011, "");
    assert_int_equal(c->gone, 0); /* never inside the owner's call */
    turn();
    assert_null(c->conn);
    assert_int_equal(c->gone, 1);
    expect_nothing(c);
}

/* The host stops while connections are in every state. */
static void all_can_be_dropped_at_once(void **state) {
    (void)state;
    struct client *open = client_new(), *ending = client_new(), *lingering = client_new();
    client_join();
    conn_end(lingering->conn, 1001, "");
    turn();
    conn_end(ending->conn, 1001, "");
    conn_host_drop(&centre.conns);
    assert_int_equal(open->gone + ending->gone + lingering->gone, 3);
    assert_int_equal(centre.conns.count, 0);
}

/* -- turns -- */

static void long_input_yields(void **state) {
    (void)state;
    struct client *c = client_new();
    char bytes[256];
    size_t n = 0;
    for (int i = 0; i < 5; i++)
        n += client_frame(bytes + n, 0x81, str_of("{}"));
    centre.work = LOOP_SLICE;
    client_send(c, bytes, n);
    for (size_t i = 1; i <= 5; i++) {
        assert_int_equal(loop_once(&centre.loop, 0), 0);
        assert_true(c->messages <= i + 1);
    }
    turn();
    assert_int_equal(c->messages, 5);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_frame_may_come_byte_by_byte),
        TEST(frames_may_come_at_once),
        TEST(fragments_make_one_message),
        TEST(a_bad_frame_ends_it),
        TEST(a_large_message_leaves_in_fragments),
        TEST(pressure_has_two_marks),
        TEST(a_full_queue_stops_input),
        TEST(a_pause_keeps_what_was_read),
        TEST(control_frames_pass_a_stream),
        TEST(an_idle_peer_is_asked),
        TEST(a_half_closed_peer_gets_the_rest),
        TEST(a_peer_that_reads_nothing_is_given_up),
        TEST(a_stopped_server_gives_time),
        TEST(a_close_is_answered),
        TEST(a_close_without_a_code_has_none),
        TEST(a_peer_that_does_not_answer_a_close_goes),
        TEST(an_end_cuts_a_stream),
        TEST(a_peer_may_vanish),
        TEST(a_broken_connection_is_dropped),
        TEST(all_can_be_dropped_at_once),
        TEST(long_input_yields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
