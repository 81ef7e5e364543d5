/*
 * The frame parser. The first byte gives the size of the pieces, the second the maximum; the rest
 * is fed whole and in pieces, and both must give the same events. Text must be UTF-8 and no message
 * above the maximum. Of what is collected Base64 may be decoded: it must be what was sent.
 */
#include "net/ws.h"

#include "base/utf8.h"
#include "json/base64.h"

#include <stdlib.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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

/* What a message said before a part of it was predecoded; to be freed. */
static char *restored(const struct ws_msg *m, size_t *n) {
    size_t tail = m->predecoded.at + m->predecoded.n;
    REQUIRE(m->predecoded.n % 3 == 0 && tail <= m->n && m->predecoded.at > 0);
    REQUIRE(m->opcode == WS_TEXT && m->data[m->predecoded.at - 1] == '"');
    *n = m->n + m->predecoded.n / 3;
    char *text = malloc(*n), *at = text;
    REQUIRE(text != NULL);
    at = mempcpy(at, m->data, m->predecoded.at);
    at += base64_encode(at, m->data + m->predecoded.at, m->predecoded.n);
    memcpy(at, m->data + tail, m->n - tail);
    return text;
}

static void check_event(const struct ws_msg *raw, size_t max, struct seen *s) {
    struct ws_msg whole = *raw, *m = &whole;
    if (raw->predecoded.n > 0)
        whole.data = restored(raw, &whole.n);
    unsigned words[] = {(unsigned)m->kind, (unsigned)m->opcode, m->code, (unsigned)m->n};
    mix(s, words, sizeof words);
    s->events++;
    if (m->kind == WS_FAIL) {
        REQUIRE(m->reason != NULL && (m->code == 1002 || m->code == 1007 || m->code == 1009));
        return;
    }
    REQUIRE(m->data != NULL);
    REQUIRE(m->n <= (m->kind == WS_MESSAGE ? max : 125));
    if ((m->kind == WS_MESSAGE && m->opcode == WS_TEXT) || m->kind == WS_GOT_CLOSE)
        REQUIRE(utf8_valid(m->data, m->n));
    mix(s, m->data, m->n);
    for (size_t i = 0; i < raw->n; i++)
        raw->data[i] ^= 0x55;
    if (m->data != raw->data)
        free(m->data);
}

/* Feeds one piece; false when the parser failed. */
static bool feed(struct ws_parser *p, char *data, size_t n, size_t max, struct seen *s) {
    for (size_t off = 0; off < n;) {
        struct ws_msg m;
        size_t used = ws_feed(p, data + off, n - off, &m);
        REQUIRE(used > 0 && used <= n - off);
        off += used;
        if (m.kind == WS_NONE) {
            REQUIRE(off == n);
            return true;
        }
        check_event(&m, max, s);
        if (m.kind == WS_FAIL)
            return false;
    }
    return true;
}

static struct seen run(const uint8_t *data, size_t n, size_t piece, size_t max) {
    struct seen s = {0, 0xCBF29CE484222325};
    struct ws_parser p;
    ws_parser_init(&p, max);
    for (size_t off = 0; off < n; off += piece) {
        size_t len = MIN(piece, n - off);
        char *copy = malloc(len);
        REQUIRE(copy != NULL);
        memcpy(copy, data + off, len);
        bool ok = feed(&p, copy, len, max, &s);
        free(copy);
        REQUIRE(p.msg.len <= max && p.msg.cap <= MAX(max, 1));
        if (!ok)
            break;
    }
    ws_parser_fini(&p);
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 3)
        return 0;
    size_t piece = 1 + data[0], max = (size_t)1 << data[1] % 18U;
    struct seen whole = run(data + 2, size - 2, size, max);
    struct seen cut = run(data + 2, size - 2, piece, max);
    REQUIRE(whole.events == cut.events && whole.hash == cut.hash);
    return 0;
}
