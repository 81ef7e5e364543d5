#include "net/conn_internal.h"

#include "net/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

/* A host on a clock that only moves when told, and peers at the other ends of socket pairs. */

#define PEERS 8
#define READYZ "GET /readyz HTTP/1.1\r\n\r\n"
#define FILES "GET /v1/files HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\n\r\n"
#define UPGRADE                                                                                    \
    "GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" \
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nAuthorization: Bearer secret\r\n\r\n"

struct peer {
    int fd;
    struct conn *conn; /* NULL: freed */
};

static struct fixture {
    struct loop loop;
    struct auth auth;
    struct conn_host host;
    struct peer peers[PEERS];
    size_t count;
    int messages, transfers, cuts, turned_away;
    int proof_at;               /* number of the message that proves a peer, from 1 */
    uint64_t work;              /* nanoseconds that a message takes */
    const struct conn *log[64]; /* whose messages came, in order */
} f;

static uint64_t fake_now;

static uint64_t fake_clock(void) {
    return fake_now;
}

/* -- the owner of the connections -- */

static void on_open(struct conn *c) {
    (void)c;
}

static void on_message(struct conn *c, const struct conn_message *m) {
    (void)m;
    assert_in_range(f.messages, 0, ARRAY_LEN(f.log) - 1);
    f.log[f.messages++] = c;
    fake_now += f.work;
    if (f.messages >= f.proof_at)
        conn_proof_accept(c);
}

static void on_pressure(struct conn *c, bool high) {
    (void)c;
    (void)high;
}

static void on_files(struct conn *c, const struct http_request *r, const struct http_answer *a) {
    (void)r;
    (void)a;
    f.transfers++;
    conn_http_begin(c);
}

static void on_cut(struct conn *c) {
    (void)c;
    f.cuts++;
}

static void on_refused(struct conn *c, int status, enum http_refusal why, const char *reason) {
    (void)c;
    (void)status;
    (void)why;
    (void)reason;
}

static void on_turned_away(struct conn *c, int status, const char *why) {
    (void)c;
    (void)status;
    (void)why;
    f.turned_away++;
}

static void on_closed(struct conn *c) {
    for (size_t i = 0; i < f.count; i++) {
        if (f.peers[i].conn == c)
            f.peers[i].conn = NULL;
    }
}

static const struct conn_ops ops = {.open = on_open,
                                    .message = on_message,
                                    .pressure = on_pressure,
                                    .drained = on_open,
                                    .input_end = on_open,
                                    .gone = on_open,
                                    .files = on_files,
                                    .body = on_open,
                                    .writable = on_open,
                                    .cut = on_cut,
                                    .turned_away = on_turned_away,
                                    .refused = on_refused,
                                    .closed = on_closed};

/* SHA-256 of "secret". */
static const char secret_digest[] =
    "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";

static int setup(void **state) {
    (void)state;
    f = (struct fixture){0};
    fake_now = 1000 * LOOP_SEC;
    assert_int_equal(loop_init(&f.loop, fake_clock), 0);
    assert_int_equal(conn_host_init(&f.host, &f.loop, &ops, &f.auth, NULL), 0);
    f.host.files = true;
    f.proof_at = 1;
    return 0;
}

static int teardown(void **state) {
    (void)state;
    conn_host_fini(&f.host);
    for (size_t i = 0; i < f.count; i++)
        close(f.peers[i].fd);
    auth_fini(&f.auth);
    loop_fini(&f.loop);
    return 0;
}

static void demand_token(void) {
    struct err e = ERR_INIT;
    assert_int_equal(auth_capability_digest(&f.auth, secret_digest, &e), 0);
}

/* -- peers -- */

static void turn(void) {
    for (int i = 0; i < 4; i++)
        assert_int_equal(loop_once(&f.loop, 0), 0);
}

static void wait_s(uint64_t seconds) {
    fake_now += seconds * LOOP_SEC;
    turn();
}

static struct peer *join(void) {
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    struct sockaddr addr = {.sa_family = AF_UNIX};
    assert_int_equal(conn_accept(&f.host, pair[0], &addr), 0);
    struct peer *p = &f.peers[f.count++];
    *p = (struct peer){pair[1], list_entry(f.host.conns.prev, struct conn, node)};
    return p;
}

static void say(const struct peer *p, const char *text) {
    assert_int_equal(send(p->fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
    turn();
}

/* An empty text message, masked with zeros. */
static void send_message(const struct peer *p) {
    static const char frame[] = "\x81\x82\0\0\0\0{}";
    assert_int_equal(send(p->fd, frame, sizeof frame - 1, MSG_NOSIGNAL), sizeof frame - 1);
    turn();
}

/* What has arrived. */
static size_t hear(const struct peer *p, char *text, size_t room) {
    ssize_t n = recv(p->fd, text, room - 1, MSG_DONTWAIT);
    text[MAX(n, 0)] = '\0';
    return (size_t)MAX(n, 0);
}

static struct peer *join_and_say(const char *text) {
    struct peer *p = join();
    say(p, text);
    return p;
}

static struct peer *join_proven(void) {
    struct peer *p = join_and_say(UPGRADE);
    send_message(p);
    assert_int_equal(p->conn->standing, CONN_PROVEN);
    return p;
}

/* -- how much -- */

static void answers_that_nobody_reads(void **state) {
    (void)state;
    struct peer *p = join();
    size_t sent = 0, most = 0;
    for (int i = 0; i < 100000; i++) {
        ssize_t n = send(p->fd, READYZ, strlen(READYZ), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n <= 0)
            break; /* the server does not read any more */
        sent += (size_t)n;
        turn();
        most = MAX(most, conn_backlog(p->conn));
        assert_true(p->conn->in.len <= 2 * CONN_HTTP_READ);
    }
    assert_true(sent < 100000 * strlen(READYZ));
    assert_in_range(most, 1, CONN_OUT_EARLY + 512);
    char text[4096];
    size_t answers = 0;
    for (size_t n; (n = hear(p, text, sizeof text)) > 0; turn())
        answers += n;
    assert_true(answers > most); /* and it goes on when they are read */
    assert_int_equal(conn_backlog(p->conn), 0);
}

static void messages_that_nobody_reads(void **state) {
    (void)state;
    struct peer *p = join_and_say(UPGRADE);
    assert_false(conn_is_full(p->conn));
    char text[CONN_OUT_EARLY] = {0};
    while (!p->conn->blocked) { /* the answers to what came before `initialize` */
        conn_send(p->conn, (struct str){text, sizeof text});
        turn();
    }
    conn_send(p->conn, (struct str){text, sizeof text});
    turn();
    assert_true(conn_is_full(p->conn));
    assert_int_equal(p->conn->io.events & EPOLLIN, 0);
    send_message(p);
    assert_int_equal(f.messages, 0);
    while (hear(p, text, sizeof text) > 0)
        turn();
    assert_int_equal(f.messages, 1);
}

static void a_large_head_comes_in_one_turn(void **state) {
    (void)state;
    struct peer *p = join();
    static char head[60000];
    int n = snprintf(head, sizeof head, "GET /readyz HTTP/1.1\r\nX: %050000d\r\n\r\n", 0);
    assert_int_equal(send(p->fd, head, (size_t)n, 0), n);
    assert_int_equal(loop_once(&f.loop, 0), 0);
    char text[4096];
    assert_true(hear(p, text, sizeof text) > 0);
    assert_non_null(strstr(text, "200 OK"));
    assert_int_equal(p->conn->in.cap, 0);
}

/* -- whose turn -- */

/* Many messages in one piece of input do not keep others waiting. */
static void connections_take_turns(void **state) {
    (void)state;
    struct peer *busy = join_proven(), *other = join_proven();
    int before = f.messages;
    f.work = LOOP_SLICE;
    static const char frame[] = "\x81\x82\0\0\0\0{}";
    char many[10 * (sizeof frame - 1)];
    for (size_t i = 0; i < sizeof many; i += sizeof frame - 1)
        memcpy(many + i, frame, sizeof frame - 1);
    assert_int_equal(send(busy->fd, many, sizeof many, 0), sizeof many);
    assert_int_equal(loop_once(&f.loop, 0), 0);
    assert_int_equal(f.messages - before, 1); /* a slice */
    assert_int_equal(send(other->fd, frame, sizeof frame - 1, 0), sizeof frame - 1);
    shutdown(busy->fd, SHUT_WR);
    assert_int_equal(loop_once(&f.loop, 0), 0);
    assert_int_equal(f.messages - before, 3);
    assert_ptr_equal(f.log[f.messages - 2], other->conn); /* at once, before the next slice */
    struct conn *c = busy->conn;
    for (int i = 0; i < 10; i++)
        turn();
    assert_int_equal(f.messages - before, 11); /* none is lost by the end of input behind them */
    assert_ptr_equal(f.log[f.messages - 1], c);
}

/* Sends requests, and lets nothing happen. */
static void ask(const struct peer *p, int count) {
    for (int i = 0; i < count; i++)
        assert_int_equal(send(p->fd, READYZ, strlen(READYZ), 0), strlen(READYZ));
}

static size_t count_answers(const struct peer *p) {
    char text[8192];
    size_t n = 0;
    (void)hear(p, text, sizeof text);
    for (const char *at = text; (at = strstr(at, "200 OK")) != NULL; at++)
        n++;
    return n;
}

/* Many requests do not stall the loop either. */
static void requests_take_turns(void **state) {
    (void)state;
    struct peer *busy = join(), *other = join();
    ask(busy, 150);
    ask(other, 1);
    assert_int_equal(loop_once(&f.loop, 0), 0);
    size_t answers = count_answers(busy);
    assert_in_range(answers, 1, 60); /* as many as may be queued */
    assert_int_equal(count_answers(other), 1);
    for (int i = 0; i < 8; i++) {
        turn();
        answers += count_answers(busy);
    }
    assert_int_equal(answers, 150);
}

/* A request that came in time is answered, even if the server was stopped before its turn. */
static void a_request_waits_for_its_turn(void **state) {
    (void)state;
    struct peer *p = join();
    ask(p, 150);
    assert_int_equal(loop_once(&f.loop, 0), 0);
    assert_in_range(count_answers(p), 1, 60);
    wait_s(11);
    assert_true(count_answers(p) > 0);
}

/* -- how long -- */

static void a_head_has_its_time(void **state) {
    (void)state;
    struct peer *p = join_and_say("GET /rea");
    wait_s(9);
    assert_non_null(p->conn);
    wait_s(1);
    assert_null(p->conn);
}

/* An answer in the last seconds says that the connection closes. */
static void no_place_is_kept_by_asking(void **state) {
    (void)state;
    struct peer *p = join();
    char text[4096];
    int asked = 0;
    for (; p->conn != NULL && p->conn->state == CONN_HTTP; asked++) {
        assert_in_range(asked, 0, 3);
        say(p, READYZ);
        assert_true(hear(p, text, sizeof text) > 0);
        assert_int_equal(strstr(text, "connection: close") != NULL, asked == 3);
        wait_s(8);
    }
    assert_int_equal(asked, 4); /* after 0, 8, 16 and 24 seconds */
}

static void an_answer_must_be_read_in_time(void **state) {
    (void)state;
    struct peer *p = join();
    while (!p->conn->blocked)
        say(p, READYZ);
    char byte[2];
    for (int s = 0; s < 29; s++) {
        assert_non_null(p->conn);
        (void)hear(p, byte, sizeof byte); /* a little at a time is not enough */
        wait_s(1);
    }
    wait_s(1);
    assert_null(p->conn);
}

static void on_route(struct conn *c, const struct http_request *r, struct http_answer *a) {
    (void)c;
    http_answer_init(r, a);
    http_check_upgrade(r, a);
}

/* The owner has routes and a time of its own. */
static void an_owner_sets_the_time(void **state) {
    (void)state;
    f.host.route = on_route;
    f.host.proof_ms = 10000;
    f.host.proof_late = "too late";
    struct peer *p = join();
    wait_s(9);
    say(p, UPGRADE);
    char text[4096];
    hear(p, text, sizeof text);
    assert_memory_equal(text, "HTTP/1.1 101", 12);
    wait_s(9); /* from the upgrade on */
    assert_true(conn_is_open(p->conn));
    assert_int_equal(hear(p, text, sizeof text), 0);
    wait_s(1);
    assert_int_equal(hear(p, text, sizeof text), 2 + 2 + strlen("too late"));
    assert_memory_equal(text + 2, "\x03\xF0too late", 10); /* 1008 */
    wait_s(2);
    assert_null(p->conn);
}

static void a_websocket_must_be_proven(void **state) {
    (void)state;
    struct peer *p = join();
    wait_s(9);
    say(p, UPGRADE);
    char text[4096];
    hear(p, text, sizeof text);
    wait_s(29); /* from the upgrade on */
    assert_true(conn_is_open(p->conn));
    assert_int_equal(hear(p, text, sizeof text), 0);
    wait_s(1);
    assert_int_equal(hear(p, text, sizeof text), 2 + 2 + strlen("no initialize in time"));
    assert_memory_equal(text + 2, "\x03\xF0no initialize in time", 23); /* 1008 */
    wait_s(2);
    assert_null(p->conn);
}

/* The last of three messages proves the peer, and its turn comes late. */
static void what_was_read_in_time_counts(void **state) {
    (void)state;
    struct peer *p = join_and_say(UPGRADE);
    f.work = LOOP_SLICE;
    f.proof_at = 3;
    static const char frames[] = "\x81\x82\0\0\0\0{}\x81\x82\0\0\0\0{}\x81\x82\0\0\0\0{}";
    assert_int_equal(send(p->fd, frames, sizeof frames - 1, 0), sizeof frames - 1);
    assert_int_equal(loop_once(&f.loop, 0), 0);
    assert_int_equal(f.messages, 1);
    wait_s(31);
    assert_true(conn_is_open(p->conn));
    assert_int_equal(p->conn->standing, CONN_PROVEN);
}

static void a_proven_peer_stays(void **state) {
    (void)state;
    struct peer *p = join_proven();
    char text[4096];
    hear(p, text, sizeof text);
    for (int i = 0; i < 3; i++) {
        wait_s(30);
        assert_int_equal(hear(p, text, sizeof text), 2);
        assert_memory_equal(text, "\x89\0", 2); /* a ping */
    }
    assert_true(conn_is_open(p->conn));
    conn_end(p->conn, 1000, "");
    turn();
}

/* A client with a token need not hurry like a stranger, but must make progress. */
static void a_transfer_takes_its_time(void **state) {
    (void)state;
    demand_token();
    struct peer *p = join_and_say(FILES);
    assert_int_equal(f.transfers, 1);
    for (int i = 0; i < 5; i++) {
        wait_s(59);
        conn_http_progress(p->conn);
    }
    conn_http_put(p->conn, STR_LIT("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"));
    conn_http_end(p->conn, false);
    turn();
    assert_int_equal(p->conn->standing, CONN_GUEST);
    wait_s(9);
    say(p, FILES);
    assert_int_equal(f.transfers, 2);
    wait_s(59);
    assert_non_null(p->conn);
    wait_s(1);
    assert_null(p->conn);
}

static void an_answer_may_be_read_slowly(void **state) {
    (void)state;
    demand_token();
    struct peer *p = join_and_say(FILES);
    static char large[1 << 20];
    conn_http_put(p->conn, (struct str){large, sizeof large});
    conn_http_end(p->conn, false);
    turn();
    while (conn_backlog(p->conn) > 0) {
        wait_s(50);
        assert_non_null(p->conn);
        assert_true(hear(p, large, sizeof large) > 0);
        turn();
    }
    wait_s(9); /* the next head has its time from then */
    assert_non_null(p->conn);
    wait_s(1);
    assert_null(p->conn);
}

static void a_refusal_gives_no_time(void **state) {
    (void)state;
    demand_token();
    struct peer *p = join();
    for (int i = 0; i < 3; i++) {
        say(p, "GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
               "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x\r\n\r\n");
        assert_int_equal(p->conn->standing, CONN_STRANGER);
        wait_s(9);
    }
    say(p, READYZ);
    char text[4096];
    assert_true(hear(p, text, sizeof text) > 0);
    assert_non_null(strstr(text, "401 Unauthorized"));
    assert_non_null(strstr(text, "connection: close"));
}

static void stdio_has_no_deadline(void **state) {
    (void)state;
    int in[2], out[2];
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    assert_int_equal(conn_stdio(&f.host, in[0], out[1]), 0);
    struct conn *c = list_entry(f.host.conns.prev, struct conn, node);
    wait_s(1000);
    assert_true(conn_is_open(c));
    f.host.max = 1;
    assert_false(conn_proof_make_room(&f.host));
    conn_host_drop(&f.host);
    close(in[0]);
    close(in[1]);
    close(out[0]);
    close(out[1]);
}

/* Out of memory in the middle of a transfer: its owner hears of the end. */
static void a_transfer_that_breaks_is_cut(void **state) {
    (void)state;
    struct peer *p = join_and_say(FILES);
    assert_int_equal(p->conn->state, CONN_BODY);
    conn_break(p->conn);
    turn();
    assert_null(p->conn);
    assert_int_equal(f.cuts, 1);
}

/* -- who makes room -- */

/* All places are taken, and one more asks. Whether it may come. */
static bool make_room(void) {
    f.host.max = f.host.count;
    bool may = conn_proof_make_room(&f.host);
    assert_true(!may || f.host.count <= f.host.max); /* at once */
    turn();
    return may;
}

static void the_oldest_stranger_makes_room(void **state) {
    (void)state;
    demand_token();
    struct peer *proven = join_proven(), *guest = join_and_say(UPGRADE), *stranger = join();
    struct peer *served = join_and_say(FILES), *asked = join_and_say(READYZ);
    struct peer *const order[] = {stranger, asked};
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        assert_non_null(order[i]->conn);
        assert_true(make_room());
        assert_null(order[i]->conn);
        assert_int_equal(f.turned_away, i + 1);
    }
    assert_true(conn_is_open(guest->conn));
    assert_true(conn_is_open(proven->conn));
    assert_int_equal(served->conn->standing, CONN_SERVED);
}

/* Among guests there is a place beyond the maximum for one that has yet to say who it is. */
static void guests_make_room_for_guests(void **state) {
    (void)state;
    demand_token();
    struct peer *first = join_and_say(UPGRADE), *second = join_and_say(UPGRADE);
    assert_true(make_room());
    struct peer *stranger = join();
    assert_true(conn_proof_make_room(&f.host)); /* the next one takes that place */
    turn();
    assert_null(stranger->conn);
    struct peer *owner = join();
    say(owner, READYZ);
    assert_true(conn_is_open(first->conn));
    say(owner, UPGRADE);
    assert_null(first->conn);
    assert_true(conn_is_open(second->conn));
    assert_true(conn_is_open(owner->conn));
    assert_int_equal(f.host.count, f.host.max);
}

static void a_guest_that_finds_no_place_is_told(void **state) {
    (void)state;
    demand_token();
    struct peer *guest = join_and_say(UPGRADE);
    assert_true(make_room());
    struct peer *owner = join();
    send_message(guest); /* it is proven now */
    say(owner, UPGRADE);
    char text[4096];
    hear(owner, text, sizeof text);
    assert_non_null(strstr(text, "HTTP/1.1 503 "));
    assert_true(conn_is_open(guest->conn));
}

/* What proves a connection may have come before the one that wants its place. */
static void what_was_sent_counts_before_a_place_is_lost(void **state) {
    (void)state;
    demand_token();
    struct peer *stranger = join(), *other = join();
    assert_int_equal(send(stranger->fd, UPGRADE, strlen(UPGRADE), 0), strlen(UPGRADE));
    assert_true(make_room());
    assert_null(other->conn);
    assert_true(conn_is_open(stranger->conn));
    struct peer *guest = join_and_say(UPGRADE), *owner = join();
    f.host.max = f.host.count - 1;
    assert_int_equal(send(owner->fd, UPGRADE, strlen(UPGRADE), 0), strlen(UPGRADE));
    send_message(stranger);
    assert_int_equal(stranger->conn->standing, CONN_PROVEN);
    assert_null(guest->conn);
    assert_true(conn_is_open(owner->conn));
}

static void without_tokens_age_counts(void **state) {
    (void)state;
    struct peer *proven = join_proven(), *first = join_and_say(UPGRADE), *second = join();
    assert_true(make_room());
    assert_null(first->conn);
    assert_true(make_room());
    assert_null(second->conn);
    assert_false(make_room());
    assert_true(conn_is_open(proven->conn));
}

static void the_evicted_are_told(void **state) {
    (void)state;
    struct peer *p = join_and_say(UPGRADE), *idle = join();
    char text[4096];
    hear(p, text, sizeof text);
    assert_true(make_room());
    assert_true(hear(p, text, sizeof text) > 4);
    assert_memory_equal(text + 2, "\x03\xF5made room", 11); /* 1013 */
    assert_true(make_room());
    assert_int_equal(hear(idle, text, sizeof text), 0); /* it would be taken for an answer */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(answers_that_nobody_reads, setup, teardown),
        cmocka_unit_test_setup_teardown(messages_that_nobody_reads, setup, teardown),
        cmocka_unit_test_setup_teardown(a_large_head_comes_in_one_turn, setup, teardown),
        cmocka_unit_test_setup_teardown(connections_take_turns, setup, teardown),
        cmocka_unit_test_setup_teardown(requests_take_turns, setup, teardown),
        cmocka_unit_test_setup_teardown(a_request_waits_for_its_turn, setup, teardown),
        cmocka_unit_test_setup_teardown(a_head_has_its_time, setup, teardown),
        cmocka_unit_test_setup_teardown(no_place_is_kept_by_asking, setup, teardown),
        cmocka_unit_test_setup_teardown(an_answer_must_be_read_in_time, setup, teardown),
        cmocka_unit_test_setup_teardown(a_websocket_must_be_proven, setup, teardown),
        cmocka_unit_test_setup_teardown(an_owner_sets_the_time, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_read_in_time_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(a_proven_peer_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(a_transfer_takes_its_time, setup, teardown),
        cmocka_unit_test_setup_teardown(an_answer_may_be_read_slowly, setup, teardown),
        cmocka_unit_test_setup_teardown(a_refusal_gives_no_time, setup, teardown),
        cmocka_unit_test_setup_teardown(stdio_has_no_deadline, setup, teardown),
        cmocka_unit_test_setup_teardown(a_transfer_that_breaks_is_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(the_oldest_stranger_makes_room, setup, teardown),
        cmocka_unit_test_setup_teardown(guests_make_room_for_guests, setup, teardown),
        cmocka_unit_test_setup_teardown(a_guest_that_finds_no_place_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_sent_counts_before_a_place_is_lost, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(without_tokens_age_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(the_evicted_are_told, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
