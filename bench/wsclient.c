#include "wsclient.h"

#include "util.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

// Large enough for many frames per receive, small enough to stay in the cache.
#define IN_INITIAL ((size_t)256 * 1024)
#define IN_MAX ((size_t)128 * 1024 * 1024)
#define OUT_MAX ((size_t)4 * 1024 * 1024)
#define HEAD_MAX 14

enum { OP_CONTINUATION = 0, OP_TEXT = 1, OP_BINARY = 2, OP_CLOSE = 8, OP_PING = 9, OP_PONG = 10 };

struct frame {
    unsigned opcode;
    bool fin;
    size_t head, len;
};

static void send_all(int fd, const uint8_t *p, size_t len) {
    while (len > 0) {
        ssize_t n = send(fd, p, len, MSG_NOSIGNAL);
        if (n < 0) {
            if (errno == EINTR)
                continue;
            fail("send: %s", strerror(errno));
        }
        p += n;
        len -= (size_t)n;
    }
}

static int tcp_connect(uint16_t port) {
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct timeval tv = {.tv_sec = 30};
    int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&sin, sizeof sin) != 0)
        fail("connect to port %u: %s", (unsigned)port, strerror(errno));
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv) != 0)
        fail("setsockopt: %s", strerror(errno));
    send_unpaced(fd);
    return fd;
}

// Makes room for at least `need` unread bytes from in_head on.
static void in_reserve(struct ws *ws, size_t need) {
    size_t have = ws->in_tail - ws->in_head;

    if (ws->in_head > 0 && (have == 0 || ws->in_cap - ws->in_head < need ||
                            ws->in_cap - ws->in_tail < ws->in_cap / 4)) {
        memmove(ws->in, ws->in + ws->in_head, have);
        ws->in_head = 0;
        ws->in_tail = have;
    }
    if (need > ws->in_cap) {
        if (need > IN_MAX)
            fail("a message of %zu bytes is over the limit of the driver", need);
        ws->in = realloc(ws->in, need);
        if (ws->in == NULL)
            fail("out of memory");
        ws->in_cap = need;
    }
}

static void receive(struct ws *ws) {
    ssize_t n;

    do {
        n = recv(ws->fd, ws->in + ws->in_tail, ws->in_cap - ws->in_tail, 0);
    } while (n < 0 && errno == EINTR);
    if (n == 0)
        fail("the server closed the connection");
    if (n < 0)
        fail("recv: %s", errno == EAGAIN ? "no answer for 30 seconds" : strerror(errno));
    ws->in_tail += (size_t)n;
    ws->bytes_in += (uint64_t)n;
}

static void upgrade(struct ws *ws, uint16_t port) {
    char request[256];
    char *end;
    int len = snprintf(request, sizeof request,
                       "GET / HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nConnection: Upgrade\r\n"
                       "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                       "Sec-WebSocket-Key: ZXhlYy1zZXJ2ZXItYmVuYw==\r\n\r\n",
                       (unsigned)port);

    send_all(ws->fd, (const uint8_t *)request, (size_t)len);
    do {
        in_reserve(ws, ws->in_tail + 4096);
        receive(ws);
        end = memmem(ws->in, ws->in_tail, "\r\n\r\n", 4);
    } while (end == NULL);
    if (memcmp(ws->in, "HTTP/1.1 101", 12) != 0)
        fail("upgrade refused: %.*s", (int)(end - (char *)ws->in), (char *)ws->in);
    ws->in_head = (size_t)(end + 4 - (char *)ws->in);
}

void ws_open(struct ws *ws, uint16_t port) {
    memset(ws, 0, sizeof *ws);
    ws->mask_state = (uint32_t)now_ns() | 1u;
    ws->in_cap = IN_INITIAL;
    ws->in = malloc(ws->in_cap);
    if (ws->in == NULL)
        fail("out of memory");
    ws->fd = tcp_connect(port);
    upgrade(ws, port);
}

void ws_close(struct ws *ws) {
    close(ws->fd);
    free(ws->in);
    free(ws->out);
    ws->fd = -1;
    ws->in = NULL;
    ws->out = NULL;
}

static uint32_t next_mask(struct ws *ws) {
    uint32_t x = ws->mask_state;

    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    ws->mask_state = x;
    return x;
}

static size_t put_head(uint8_t *p, unsigned opcode, size_t len, uint32_t mask) {
    size_t n = 0;

    p[n++] = (uint8_t)(0x80u | opcode);
    if (len < 126) {
        p[n++] = (uint8_t)(0x80u | len);
    } else if (len < 65536) {
        p[n++] = 0x80u | 126u;
        p[n++] = (uint8_t)(len >> 8);
        p[n++] = (uint8_t)len;
    } else {
        p[n++] = 0x80u | 127u;
        for (int shift = 56; shift >= 0; shift -= 8)
            p[n++] = (uint8_t)((uint64_t)len >> shift);
    }
    memcpy(p + n, &mask, 4);
    return n + 4;
}

static void mask_into(uint8_t *out, const char *text, size_t len, uint32_t mask) {
    uint8_t key[4];

    memcpy(key, &mask, 4);
    for (size_t i = 0; i < len; i++)
        out[i] = (uint8_t)((uint8_t)text[i] ^ key[i & 3]);
}

static void queue_frame(struct ws *ws, unsigned opcode, const char *data, size_t len) {
    uint32_t mask = next_mask(ws);
    uint8_t *p;

    if (len > OUT_MAX || ws->out_len + len + HEAD_MAX > OUT_MAX)
        fail("too much queued output");
    if (ws->out_len + len + HEAD_MAX > ws->out_cap) {
        ws->out_cap = (ws->out_len + len + HEAD_MAX) * 2;
        ws->out = realloc(ws->out, ws->out_cap);
        if (ws->out == NULL)
            fail("out of memory");
    }
    p = ws->out + ws->out_len;
    p += put_head(p, opcode, len, mask);
    mask_into(p, data, len, mask);
    ws->out_len = (size_t)(p + len - ws->out);
}

void ws_queue(struct ws *ws, const char *text, size_t len) {
    queue_frame(ws, OP_TEXT, text, len);
}

void ws_flush(struct ws *ws) {
    send_all(ws->fd, ws->out, ws->out_len);
    ws->out_len = 0;
}

void ws_frame_init(struct ws_frame *f, const char *text, size_t len) {
    uint32_t mask = (uint32_t)now_ns() | 1u;

    f->bytes = malloc(len + HEAD_MAX);
    if (f->bytes == NULL)
        fail("out of memory");
    f->head = put_head(f->bytes, OP_TEXT, len, mask);
    f->len = f->head + len;
    mask_into(f->bytes + f->head, text, len, mask);
}

void ws_frame_free(struct ws_frame *f) {
    free(f->bytes);
    f->bytes = NULL;
}

void ws_frame_patch(struct ws_frame *f, size_t at, const char *text, size_t len) {
    const uint8_t *key = f->bytes + f->head - 4;

    for (size_t i = 0; i < len; i++)
        f->bytes[f->head + at + i] = (uint8_t)((uint8_t)text[i] ^ key[(at + i) & 3]);
}

void ws_frame_send(struct ws *ws, const struct ws_frame *f) {
    send_all(ws->fd, f->bytes, f->len);
}

// Reads the frame head at in_head, behind the part of a message. Returns 0 when it is whole, else
// the number of bytes needed before it can be read.
static size_t peek_frame(const struct ws *ws, struct frame *f) {
    const uint8_t *p = ws->in + ws->in_head + ws->part;
    size_t have = ws->in_tail - ws->in_head - ws->part;
    unsigned len7;

    if (have < 2)
        return 2;
    f->opcode = p[0] & 0x0fu;
    f->fin = (p[0] & 0x80u) != 0;
    len7 = p[1] & 0x7fu;
    f->head = len7 == 127 ? 10 : len7 == 126 ? 4 : 2;
    if (have < f->head)
        return f->head;
    f->len = len7;
    if (len7 >= 126) {
        f->len = 0;
        for (size_t i = 2; i < f->head; i++)
            f->len = (f->len << 8) | p[i];
    }
    return 0;
}

int ws_has_message(const struct ws *ws) {
    struct frame f;

    return peek_frame(ws, &f) == 0 && f.fin && ws->in_tail - ws->in_head >= f.head + f.len;
}

// Answers a ping, passes over a pong. Anything else that is not data ends the measurement.
static void take_control(struct ws *ws, const struct frame *f, const uint8_t *payload) {
    if (f->opcode == OP_PING) {
        queue_frame(ws, OP_PONG, (const char *)payload, f->len);
        ws_flush(ws);
    } else if (f->opcode != OP_PONG) {
        fail("unexpected frame, opcode %u%s", f->opcode, f->fin ? "" : " (fragment)");
    }
}

// Whether the frame may come now: text or binary first, then continuations only.
static bool is_data(const struct frame *f, bool begun) {
    return begun ? f->opcode == OP_CONTINUATION : f->opcode == OP_TEXT || f->opcode == OP_BINARY;
}

// Drops `len` bytes behind the part of a message; what follows moves up.
static void drop_behind_part(struct ws *ws, size_t len) {
    uint8_t *p = ws->in + ws->in_head + ws->part;

    memmove(p, p + len, (size_t)(ws->in + ws->in_tail - p) - len);
    ws->in_tail -= len;
}

// The whole next frame is in the buffer; returns true when it completes a message.
static bool take_frame(struct ws *ws, const struct frame *f, bool *begun, struct ws_message *m) {
    const uint8_t *p = ws->in + ws->in_head + ws->part;

    if (!is_data(f, *begun)) {
        take_control(ws, f, p + f->head);
        drop_behind_part(ws, f->head + f->len);
        return false;
    }
    if (!*begun && f->fin) {
        m->data = (const char *)p + f->head;
        m->len = f->len;
        ws->in_head += f->head + f->len;
        return true;
    }
    *begun = true;
    drop_behind_part(ws, f->head);
    ws->part += f->len;
    if (!f->fin)
        return false;
    m->data = (const char *)ws->in + ws->in_head;
    m->len = ws->part;
    ws->in_head += ws->part;
    ws->part = 0;
    return true;
}

void ws_next(struct ws *ws, struct ws_message *m) {
    bool begun = false;
    struct frame f;

    for (;;) {
        size_t need = peek_frame(ws, &f);
        if (need == 0)
            need = f.head + f.len;
        need += ws->part;
        if (ws->in_tail - ws->in_head < need) {
            in_reserve(ws, need);
            receive(ws);
        } else if (take_frame(ws, &f, &begun, m)) {
            return;
        }
    }
}

static void skim_piece(struct ws_skimmed *s, const uint8_t *p, size_t n) {
    size_t keep = n < WS_EDGE ? n : WS_EDGE;
    size_t old = s->edge + keep > WS_EDGE ? WS_EDGE - keep : s->edge;

    memmove(s->tail, s->tail + s->edge - old, old);
    memcpy(s->tail + old, p + n - keep, keep);
    if (s->edge < WS_EDGE) {
        size_t more = n < WS_EDGE - s->edge ? n : WS_EDGE - s->edge;
        memcpy(s->head + s->edge, p, more);
        s->edge += more;
    }
    s->len += n;
}

// Takes `len` bytes of payload out of the buffer and the socket.
static void skim_payload(struct ws *ws, struct ws_skimmed *s, size_t len) {
    while (len > 0) {
        size_t have = ws->in_tail - ws->in_head;
        if (have == 0) {
            in_reserve(ws, 1);
            receive(ws);
            continue;
        }
        if (have > len)
            have = len;
        skim_piece(s, ws->in + ws->in_head, have);
        ws->in_head += have;
        len -= have;
    }
}

void ws_skim(struct ws *ws, struct ws_skimmed *s) {
    bool begun = false;
    struct frame f;

    s->len = s->edge = 0;
    for (;;) {
        size_t need = peek_frame(ws, &f);
        bool data = need == 0 && is_data(&f, begun);
        if (need == 0 && !data)
            need = f.head + f.len;
        if (ws->in_tail - ws->in_head < need) {
            in_reserve(ws, need);
            receive(ws);
        } else if (data) {
            begun = true;
            ws->in_head += f.head;
            skim_payload(ws, s, f.len);
            if (f.fin)
                return;
        } else {
            take_control(ws, &f, ws->in + ws->in_head + f.head);
            ws->in_head += need;
        }
    }
}
