#pragma once
/*
 * The centre of the server under test: loop, connections, requests and sessions, without options,
 * listening sockets or commands. The clock moves only when a test moves it. Clients are the other
 * ends of socket pairs; they send masked frames and check the frames that they receive.
 */

#include "process/session.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <cmocka.h>

#define CENTRE_CLIENTS 8
#define CENTRE_IN_MAX (96u << 20) /* bytes received by a client and not looked at */
#define CENTRE_UPGRADE                                                                             \
    "GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" \
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

struct client {
    int fd;
    struct conn *conn; /* NULL: freed */
    struct buf in;
    size_t messages; /* that its connection handed out */
    size_t last;     /* bytes of the last one */
    int highs, lows, gone;
};

static struct centre {
    struct loop loop;
    struct auth auth;
    struct pool pool;
    struct conn_host conns;
    struct rpc_host rpc;
    struct process_host processes;
    struct client clients[CENTRE_CLIENTS];
    size_t count;
    bool raw;            /* messages are counted and go to no peer */
    int detached, ended; /* sessions */
    uint64_t now;        /* nanoseconds */
    uint64_t work;       /* nanoseconds that a message takes */
} centre;

static inline uint64_t centre_clock(void) {
    return centre.now;
}

static inline void turn(void) {
    for (int i = 0; i < 4; i++)
        assert_int_equal(loop_once(&centre.loop, 0), 0);
}

static inline void wait_ms(uint64_t ms) {
    centre.now += ms * LOOP_MS;
    turn();
}

/* -- the owner of the connections, wired as in app/server.c -- */

static inline struct client *client_of(const struct conn *c) {
    for (size_t i = 0; i < centre.count; i++) {
        if (centre.clients[i].conn == c)
            return &centre.clients[i];
    }
    return NULL;
}

static inline struct rpc_peer *peer_of(const struct client *c) {
    return c->conn->user;
}

static inline void on_open(struct conn *c) {
    struct rpc_peer *p = rpc_peer_new(&centre.rpc, c);
    assert_non_null(p);
    p->life = RPC_READY;
    c->user = p;
    conn_proof_accept(c);
}

static inline void on_message(struct conn *c, const struct conn_message *m) {
    struct client *k = client_of(c);
    if (k != NULL) {
        k->messages++;
        k->last = m->n;
    }
    centre.now += centre.work;
    if (!centre.raw)
        rpc_peer_message(c->user, m);
}

static inline void on_pressure(struct conn *c, bool high) {
    struct client *k = client_of(c);
    k->highs += high;
    k->lows += !high;
    if (!high)
        rpc_peer_resume(c->user);
}

static inline void on_drained(struct conn *c) {
    rpc_peer_drained(c->user);
}

static inline void on_input_end(struct conn *c) {
    rpc_peer_input_end(c->user);
}

static inline void on_gone(struct conn *c) {
    struct client *k = client_of(c);
    if (k != NULL)
        k->gone++;
    rpc_peer_free(steal_ptr(&c->user));
}

static inline void on_closed(struct conn *c) {
    struct client *k = client_of(c);
    if (k != NULL)
        k->conn = NULL;
}

static inline void on_turned_away(struct conn *c, int status, const char *why) {
    (void)c;
    fail_msg("turned away with %d: %s", status, why);
}

static const struct conn_ops centre_conn_ops = {.open = on_open,
                                                .message = on_message,
                                                .pressure = on_pressure,
                                                .drained = on_drained,
                                                .input_end = on_input_end,
                                                .gone = on_gone,
                                                .turned_away = on_turned_away,
                                                .closed = on_closed};

static inline void on_peer_gone(struct rpc_peer *p) {
    if (p->user != NULL)
        session_detach(p->user);
}

static inline void on_session_detached(struct session *s) {
    (void)s;
    centre.detached++;
}

static inline void on_session_ended(struct session *s) {
    (void)s;
    centre.ended++;
}

static inline void on_host_change(struct process_host *h) {
    (void)h;
}

static const struct process_hooks centre_hooks = {.detached = on_session_detached,
                                                  .ended = on_session_ended,
                                                  .freed = on_host_change,
                                                  .died = on_host_change};

static inline void centre_init(const struct rpc_method *methods, size_t count, size_t lanes) {
    centre = (struct centre){.now = 1000 * LOOP_SEC};
    signal(SIGPIPE, SIG_IGN); /* as the server does */
    assert_int_equal(loop_init(&centre.loop, centre_clock), 0);
    assert_int_equal(pool_init(&centre.pool, &centre.loop), 0);
    assert_int_equal(
        conn_host_init(&centre.conns, &centre.loop, &centre_conn_ops, &centre.auth, NULL), 0);
    rpc_host_init(&centre.rpc, &centre.pool, methods, count, lanes, on_peer_gone);
}

/* Sessions too, which live for `ttl_ms` without a connection. */
static inline void centre_init_sessions(uint64_t ttl_ms) {
    struct process_host *h = &centre.processes;
    h->loop = &centre.loop;
    h->conns = &centre.conns;
    h->hooks = &centre_hooks;
    struct process_settings settings = {.session_ttl_ms = ttl_ms};
    assert_int_equal(process_host_init(h, &settings, (struct rlimit){1024, 4096}, NULL), 0);
}

static inline void centre_fini(void) {
    conn_host_fini(&centre.conns);
    if (centre.processes.loop != NULL) {
        process_host_end_sessions(&centre.processes);
        process_host_fini(&centre.processes);
    }
    for (size_t i = 0; i < centre.count; i++) {
        close(centre.clients[i].fd);
        buf_fini(&centre.clients[i].in);
    }
    assert_true(pool_fini(&centre.pool));
    rpc_host_fini(&centre.rpc);
    loop_fini(&centre.loop);
}

/* -- clients: sending -- */

static inline void client_send(struct client *c, const void *bytes, size_t n) {
    assert_int_equal(send(c->fd, bytes, n, MSG_NOSIGNAL), n);
}

/* Writes a frame masked with 1, 2, 3, 4 to dst; returns its length. */
static inline size_t client_frame(char *dst, int first, struct str payload) {
    static const char mask[] = {1, 2, 3, 4};
    size_t head = ws_header(dst, WS_TEXT, true, payload.n);
    dst[0] = (char)first;
    dst[1] = (char)(dst[1] | (char)0x80);
    memcpy(dst + head, mask, sizeof mask);
    for (size_t i = 0; i < payload.n; i++)
        dst[head + sizeof mask + i] = (char)(payload.p[i] ^ mask[i % 4]);
    return head + sizeof mask + payload.n;
}

static inline void client_say(struct client *c, int first, struct str payload) {
    char *frame = malloc(payload.n + 14);
    assert_non_null(frame);
    client_send(c, frame, client_frame(frame, first, payload));
    free(frame);
}

/* A text message, without a turn of the loop. */
static inline void client_text(struct client *c, const char *text) {
    client_say(c, 0x81, str_of(text));
}

/* A call of `method`, with params in JSON. */
static inline void client_call(struct client *c, int id, const char *method, const char *params) {
    char text[512];
    int n = snprintf(text, sizeof text, "{\"id\":%d,\"method\":\"%s\",\"params\":%s}", id, method,
                     params);
    client_say(c, 0x81, (struct str){text, (size_t)n});
}

/* -- clients: receiving -- */

static inline void client_read(struct client *c) {
    int n = 0;
    assert_int_equal(ioctl(c->fd, FIONREAD, &n), 0);
    if (n == 0)
        return;
    assert_int_equal(buf_reserve(&c->in, (size_t)n), 0);
    assert_int_equal(recv(c->fd, c->in.p + c->in.len, (size_t)n, 0), n);
    c->in.len += (size_t)n;
}

/* The next frame: its first byte and payload (borrowed until the next call); -1: there is none. */
static inline int client_hear(struct client *c, struct str *payload) {
    static struct buf last = BUF_INIT(CENTRE_IN_MAX);
    client_read(c);
    const unsigned char *p = (const unsigned char *)c->in.p;
    if (c->in.len < 2)
        return -1;
    size_t ext = p[1] == 126 ? 2u : p[1] == 127 ? 8u : 0u, n = ext > 0 ? 0 : p[1];
    if (c->in.len < 2 + ext)
        return -1;
    for (size_t i = 0; i < ext; i++)
        n = n << 8 | p[2 + i];
    if (c->in.len - 2 - ext < n)
        return -1;
    int first = p[0];
    buf_fini(&last);
    if (n > 0)
        assert_int_equal(buf_put(&last, c->in.p + 2 + ext, n), 0);
    *payload = buf_str(&last);
    buf_consume(&c->in, 2 + ext + n);
    if (c->in.len == 0)
        buf_fini(&c->in);
    return first;
}

static inline void expect_frame(struct client *c, int first, const char *text) {
    struct str payload = {NULL, 0};
    assert_int_equal(client_hear(c, &payload), first);
    assert_int_equal(payload.n, strlen(text));
    if (payload.n > 0)
        assert_memory_equal(payload.p, text, payload.n);
}

static inline void expect_result(struct client *c, int id) {
    char text[64];
    snprintf(text, sizeof text, "{\"id\":%d,\"result\":{}}", id);
    expect_frame(c, 0x81, text);
}

static inline void expect_nothing(struct client *c) {
    struct str payload = {NULL, 0};
    assert_int_equal(client_hear(c, &payload), -1);
}

/* An error whose text has `part` in it. */
static inline void expect_error(struct client *c, const char *part) {
    struct str payload = {NULL, 0};
    assert_int_equal(client_hear(c, &payload), 0x81);
    assert_memory_equal(payload.p, "{\"error\"", 8);
    assert_non_null(memmem(payload.p, payload.n, part, strlen(part)));
}

static inline void expect_close(struct client *c, unsigned code) {
    struct str payload = {NULL, 0};
    assert_int_equal(client_hear(c, &payload), 0x88);
    assert_in_range(payload.n, 2, 125);
    assert_int_equal((unsigned char)payload.p[0] << 8 | (unsigned char)payload.p[1], code);
}

/* -- clients: coming -- */

/* A client on a socket pair, accepted by the centre. It has sent nothing. */
static inline struct client *client_join(void) {
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    assert_in_range(centre.count, 0, CENTRE_CLIENTS - 1);
    struct sockaddr addr = {.sa_family = AF_UNIX};
    assert_int_equal(conn_accept(&centre.conns, pair[0], &addr), 0);
    struct client *c = &centre.clients[centre.count++];
    *c = (struct client){.fd = pair[1], .in = BUF_INIT(CENTRE_IN_MAX)};
    c->conn = list_entry(centre.conns.conns.prev, struct conn, node);
    return c;
}

/* A client whose WebSocket is open. */
static inline struct client *client_new(void) {
    struct client *c = client_join();
    client_send(c, CENTRE_UPGRADE, strlen(CENTRE_UPGRADE));
    turn();
    assert_true(conn_is_open(c->conn));
    client_read(c);
    buf_fini(&c->in);
    return c;
}
