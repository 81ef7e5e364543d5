/*
 * What a server says to a client before and in a WebSocket: the answer to the upgrade, then frames.
 * The first byte gives the size of pieces. The verdict on the answer does not depend on how it is
 * cut, and frames in pieces give the events of frames at once. A masked frame is never accepted.
 */
#include "base/utf8.h"
#include "net/http_head.h"
#include "net/ws.h"
#include "net/ws_open.h"

#include <stdlib.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

#define MESSAGE_MAX 65536

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char key[] = "dGhlIHNhbXBsZSBub25jZQ==";

/* What was seen: the number of events and a hash over all of them (FNV-1a). */
struct seen {
    size_t events;
    uint64_t hash;
};

static void mix(struct seen *s, const void *p, size_t n) {
    const unsigned char *b = p;
    for (size_t i = 0; i < n; i++)
        s->hash = (s->hash ^ b[i]) * 0x100000001B3;
}

static int field(struct http_head *h, struct str name, struct str value) {
    uint64_t range[3];
    (void)h;
    REQUIRE(name.n > 0);
    REQUIRE(!http_head_range(value, range) || range[2] < 1000000000000000000);
    return 0;
}

/* Bytes of the head, or -1; an incomplete one says 0 until it is complete. */
static int head(const char *p, size_t n, size_t piece) {
    struct ws_open_answer whole, part;
    int r = ws_open_answer(p, n, key, &whole);
    REQUIRE(r <= (int)n && (r <= 0 || whole.status == 101));
    REQUIRE(r >= 0 || whole.why != NULL);
    struct http_head any = {.field = field};
    int of_any = http_head_read(p, n, &any);
    REQUIRE(of_any <= (int)n && (r <= 0 || of_any == r) && (of_any >= 0 || any.why != NULL));
    for (size_t at = 0; at < n; at += piece) {
        char *copy = malloc(at + 1); /* no byte behind it may be looked at */
        REQUIRE(copy != NULL);
        memcpy(copy, p, at);
        int early = ws_open_answer(copy, at, key, &part);
        REQUIRE(early == 0 || (early < 0) == (r < 0));
        REQUIRE(early <= 0 || early == r);
        free(copy);
    }
    return r < 0 ? -1 : r;
}

static void event(const struct ws_msg *m, struct seen *s) {
    unsigned words[] = {(unsigned)m->kind, (unsigned)m->opcode, m->code, (unsigned)m->n};
    mix(s, words, sizeof words);
    s->events++;
    if (m->kind == WS_FAIL)
        return;
    REQUIRE(m->data != NULL && m->n <= (m->kind == WS_MESSAGE ? MESSAGE_MAX : 125));
    REQUIRE(m->kind != WS_MESSAGE || m->opcode != WS_TEXT || utf8_valid(m->data, m->n));
    mix(s, m->data, m->n);
}

static struct seen frames(const char *p, size_t n, size_t piece) {
    struct seen s = {0, 0xcbf29ce484222325};
    struct ws_parser w;
    char *copy = malloc(n + 1); /* it is decoded in place */
    REQUIRE(copy != NULL);
    memcpy(copy, p, n);
    ws_parser_init(&w, MESSAGE_MAX);
    ws_parser_set_client(&w);
    bool over = false;
    for (size_t at = 0; at < n && !over;) {
        size_t len = MIN(piece, n - at), used = 0;
        while (used < len && !over) {
            struct ws_msg m;
            used += ws_feed(&w, copy + at + used, len - used, &m);
            if (m.kind == WS_NONE)
                continue;
            event(&m, &s);
            over = m.kind == WS_FAIL || m.kind == WS_GOT_CLOSE;
        }
        at += used;
    }
    ws_parser_fini(&w);
    free(copy);
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1)
        return 0;
    size_t piece = 1 + data[0] % 64;
    const char *p = (const char *)data + 1;
    int n = head(p, size - 1, piece);
    size_t at = n > 0 ? (size_t)n : 0;
    struct seen whole = frames(p + at, size - 1 - at, SIZE_MAX);
    struct seen pieces = frames(p + at, size - 1 - at, piece);
    REQUIRE(whole.events == pieces.events && whole.hash == pieces.hash);
    return 0;
}
