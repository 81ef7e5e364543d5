#include "stub_client.h"

#include "base/utf8.h"
#include "json/json.h"
#include "net/ws.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* -- sending -- */

static void client_send(struct client *c, const char *p, size_t n) {
    if (c->fd >= 0 && send(c->fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)n)
        client_close(c);
}

void client_open(struct client *c, int fd, bool upgrade) {
    static const char ask[] = "GET / HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\n"
                              "connection: upgrade\r\nsec-websocket-version: 13\r\n"
                              "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";
    *c = (struct client){.fd = fd,
                         .upgrading = upgrade,
                         .in = BUF_INIT(CLIENT_IN_MAX),
                         .message = BUF_INIT(CLIENT_IN_MAX)};
    if (upgrade)
        client_send(c, ask, sizeof ask - 1);
}

void client_close(struct client *c) {
    if (c->fd < 0)
        return;
    close(steal_fd(&c->fd));
    buf_fini(&c->in);
    buf_fini(&c->message);
}

void client_half_close(struct client *c) {
    if (c->fd >= 0)
        shutdown(c->fd, SHUT_WR);
}

static void client_put_frame(struct client *c, uint8_t first, struct str payload) {
    char head[14] = {(char)first};
    size_t n = 2;
    if (payload.n < 126) {
        head[1] = (char)(0x80 | payload.n);
    } else if (payload.n < 65536) {
        head[1] = (char)(0x80 | 126);
        head[n++] = (char)(payload.n >> 8);
        head[n++] = (char)payload.n;
    } else {
        head[1] = (char)(0x80 | 127);
        for (int i = 7; i >= 0; i--)
            head[n++] = (char)((uint64_t)payload.n >> (8 * i));
    }
    n += 4; /* a mask of zeros */
    client_send(c, head, n);
    if (payload.n > 0)
        client_send(c, payload.p, payload.n);
    c->sent++;
}

void client_text(struct client *c, struct str text) {
    client_put_frame(c, 0x80 | WS_TEXT, text);
}

static int client_digit(char d) {
    return isxdigit((unsigned char)d) ? (isdigit((unsigned char)d) ? d - '0' : (d | 32) - 'a' + 10)
                                      : 0;
}

static uint8_t client_byte(const char *p) {
    return (uint8_t)(client_digit(p[0]) << 4 | client_digit(p[1]));
}

void client_frame(struct client *c, struct str s) {
    if (s.n >= 2)
        client_put_frame(c, client_byte(s.p), (struct str){s.p + 2, s.n - 2});
}

void client_raw(struct client *c, struct str s) {
    _cleanup_free_ char *bytes = malloc(s.n + 1);
    size_t n = 0;
    REQUIRE(bytes != NULL);
    for (size_t i = 0; i < s.n; i++) {
        bytes[n] = s.p[i];
        if (s.p[i] == '\\' && i + 1 < s.n) {
            i++;
            bytes[n] = s.p[i] == 'n' ? '\n' : s.p[i] == 'r' ? '\r' : s.p[i];
        }
        if (s.p[i] == 'x' && i + 2 < s.n && i > 0 && s.p[i - 1] == '\\') {
            bytes[n] = (char)client_byte(s.p + i + 1);
            i += 2;
        }
        n++;
    }
    client_send(c, bytes, n);
    c->sent += n; /* each could end a message */
}

/* -- what comes -- */

/* Events of a process this client started have no gap. */
static void client_check_event(struct client *c, const struct json_node *params) {
    const struct json_node *seq = json_get(params, "seq"), *id = json_get(params, "processId");
    struct client_stream *s = NULL;
    uint64_t n;
    if (seq == NULL || id == NULL || json_get(params, "attachId") != NULL || id->n >= sizeof s->id)
        return;
    REQUIRE(json_u64(seq, &n) == 0 && n > 0);
    for (size_t i = 0; i < CLIENT_STREAMS && s == NULL; i++) {
        struct client_stream *it = &c->streams[i];
        if (it->seq == 0 || (strlen(it->id) == id->n && memcmp(it->id, id->p, id->n) == 0))
            s = it;
    }
    if (s == NULL)
        return;
    REQUIRE(s->seq == 0 || n == s->seq + 1 || n == 1);
    memcpy(s->id, id->p, id->n);
    s->id[id->n] = '\0';
    s->seq = n;
}

static void client_check_message(struct client *c, struct str text) {
    struct json_doc d;
    struct err e = ERR_INIT;
    REQUIRE(utf8_valid(text.p, text.n));
    json_doc_init(&d, text.n + 1, 1);
    REQUIRE(json_parse(&d, text.p, text.n, &e) == 0);
    const struct json_node *m = json_root(&d);
    REQUIRE(m->type == JSON_OBJECT);
    const struct json_node *method = json_get(m, "method"), *params = json_get(m, "params");
    if (method == NULL) {
        REQUIRE((json_get(m, "result") != NULL) != (json_get(m, "error") != NULL));
        REQUIRE(++c->answered <= c->sent);
    } else {
        REQUIRE(params != NULL && params->type == JSON_OBJECT && json_get(m, "id") == NULL);
        client_check_event(c, params);
    }
    json_doc_fini(&d);
}

static void client_take_frame(struct client *c, uint8_t first, struct str payload) {
    unsigned opcode = first & 0x0f;
    bool fin = (first & 0x80) != 0;
    REQUIRE((first & 0x70) == 0 && !c->closed);
    if (opcode >= WS_CLOSE) {
        REQUIRE(fin && payload.n <= 125 && opcode <= WS_PONG);
        c->closed = opcode == WS_CLOSE;
        return;
    }
    REQUIRE(opcode == (c->in_message ? WS_CONT : WS_TEXT));
    REQUIRE(buf_put(&c->message, payload.p, payload.n) == 0);
    c->in_message = !fin;
    if (!fin)
        return;
    client_check_message(c, buf_str(&c->message));
    c->message.len = 0;
}

/* One frame at the beginning of what came; its bytes, or 0 when it is not whole. */
static size_t client_parse(struct client *c) {
    const uint8_t *p = (const uint8_t *)c->in.p;
    size_t have = c->in.len, head = 2;
    if (have < 2)
        return 0;
    REQUIRE((p[1] & 0x80) == 0);
    uint64_t n = p[1];
    size_t more = n == 126 ? 2 : n == 127 ? 8 : 0;
    head += more;
    if (have < head)
        return 0;
    for (size_t i = 0; i < more; i++)
        n = (i == 0 ? 0 : n << 8) | p[2 + i];
    if (have - head < n)
        return 0;
    client_take_frame(c, p[0], (struct str){c->in.p + head, (size_t)n});
    return head + (size_t)n;
}

/* The answer to an upgrade. */
static size_t client_parse_head(struct client *c) {
    const char *end = c->in.len > 0 ? memmem(c->in.p, c->in.len, "\r\n\r\n", 4) : NULL;
    if (end == NULL)
        return 0;
    REQUIRE(c->in.len > 12 && memcmp(c->in.p, "HTTP/1.1 101", 12) == 0);
    c->upgrading = false;
    c->framed = true;
    return (size_t)(end + 4 - c->in.p);
}

static void client_take(struct client *c) {
    size_t used = 0;
    do {
        if (!c->upgrading && !c->framed)
            used = c->in.len; /* HTTP, in which anything was asked */
        else
            used = c->upgrading ? client_parse_head(c) : client_parse(c);
        if (used > 0)
            buf_consume(&c->in, used);
    } while (used > 0 && c->in.len > 0);
}

void client_read(struct client *c) {
    while (c->fd >= 0 && !c->lazy) {
        REQUIRE(buf_reserve(&c->in, 65536) == 0);
        ssize_t n = recv(c->fd, c->in.p + c->in.len, 65536, MSG_DONTWAIT);
        if (n <= 0) {
            if (n == 0 || errno != EAGAIN)
                client_close(c);
            return;
        }
        c->in.len += (size_t)n;
        client_take(c);
    }
}
