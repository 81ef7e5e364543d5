#include "net/ws.h"

#include "guard.h"
#include "json/base64.h"
#include "json/base64_avx2.h"
#include "net/ws_mask.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#define LIMIT 4096

static struct buf stream, events;
static struct guard memory;
static uint32_t random_state = 1;

static unsigned random_below(unsigned n) {
    random_state = random_state * 1664525 + 1013904223;
    return (random_state >> 8) % n;
}

static void put(struct buf *b, const void *p, size_t n) {
    assert_int_equal(buf_put(b, p, n), 0);
}

/* Appends a masked frame whose header is spelled out by `first` and the length. */
static void frame_raw(unsigned first, const void *payload, size_t n) {
    char head[WS_HEADER_MAX];
    size_t len = ws_header(head, WS_TEXT, true, n);
    const uint8_t mask[4] = {0x37, 0xFA, 0x21, (uint8_t)random_below(256)};
    head[0] = (char)first;
    head[1] = (char)(head[1] | (char)0x80);
    put(&stream, head, len);
    put(&stream, mask, sizeof mask);
    for (size_t i = 0; i < n; i++) {
        char c = (char)(((const char *)payload)[i] ^ mask[i % 4]);
        put(&stream, &c, 1);
    }
}

static void frame(bool fin, enum ws_opcode op, const char *payload) {
    frame_raw((fin ? 0x80U : 0) | (unsigned)op, payload, strlen(payload));
}

static void bytes(const char *p, size_t n) {
    put(&stream, p, n);
}

/* Writes an event as text. Every byte of the payload is read and written. */
static void note(const struct ws_msg *m) {
    static const char *const names[] = {"none", "message", "ping", "pong", "close", "fail"};
    assert_int_equal(buf_putf(&events, "%s", names[m->kind]), 0);
    if (m->kind == WS_FAIL) {
        assert_non_null(m->reason);
        assert_int_equal(buf_putf(&events, " %u\n", m->code), 0);
        return;
    }
    assert_non_null(m->data);
    if (m->kind == WS_MESSAGE)
        assert_int_equal(buf_putz(&events, m->opcode == WS_TEXT ? " text" : " binary"), 0);
    if (m->kind == WS_GOT_CLOSE)
        assert_int_equal(buf_putf(&events, " %u", m->code), 0);
    assert_int_equal(buf_putf(&events, " %zu ", m->n), 0);
    put(&events, m->data, m->n);
    assert_int_equal(buf_putc(&events, '\n'), 0);
    memset(m->data, '!', m->n);
}

/* Feeds a copy of n bytes that ends at the guard page. False after a failure. */
static bool feed(struct ws_parser *p, const char *data, size_t n) {
    char *copy = guard_copy(&memory, data, n);
    for (size_t off = 0; off < n;) {
        struct ws_msg m;
        size_t used = ws_feed(p, copy + off, n - off, &m);
        assert_true(used > 0 && used <= n - off);
        off += used;
        if (m.kind == WS_NONE) {
            assert_int_equal(off, n);
            return true;
        }
        note(&m);
        if (m.kind == WS_FAIL) {
            assert_int_equal(off, n);
            return false;
        }
    }
    return true;
}

/* Events of the stream cut at every multiple of `step` and, if not 0, at `at`. */
static void run(size_t at, size_t step) {
    struct ws_parser p;
    ws_parser_init(&p, LIMIT);
    events.len = 0;
    for (size_t off = 0; off < stream.len;) {
        size_t end = MIN(off - off % step + step, stream.len);
        if (at > off && at < end)
            end = at;
        if (!feed(&p, stream.p + off, end - off))
            break;
        off = end;
    }
    ws_parser_fini(&p);
    assert_int_equal(buf_putc(&events, '\0'), 0);
}

/* The stream gives these events however it is cut. */
static void expect(const char *want) {
    run(0, SIZE_MAX / 2);
    assert_string_equal(events.p, want);
    for (size_t at = 1; at < stream.len; at++) {
        run(at, SIZE_MAX / 2);
        assert_string_equal(events.p, want);
    }
    for (size_t step = 1; step < 12; step++) {
        run(0, step);
        assert_string_equal(events.p, want);
    }
    stream.len = 0;
}

static int setup(void **state) {
    (void)state;
    stream = BUF_INIT(1 << 20);
    events = BUF_INIT(1 << 20);
    memory = guard_new(1 << 20);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    buf_fini(&stream);
    buf_fini(&events);
    guard_free(&memory);
    return 0;
}

static const char REQUEST[] = "{\"id\":7,\"method\":\"environment/status\"}";

static void recorded_accepted(void **state) {
    (void)state;
    frame(true, WS_TEXT, REQUEST);
    expect("message text 38 {\"id\":7,\"method\":\"environment/status\"}\n");
    frame(true, WS_BINARY, REQUEST);
    expect("message binary 38 {\"id\":7,\"method\":\"environment/status\"}\n");
    frame(false, WS_TEXT, "{\"id\"");
    frame(true, WS_PING, "pingy");
    frame(false, WS_CONT, ":7,\"m");
    frame(true, WS_CONT, "ethod\":\"environment/status\"}");
    expect("ping 5 pingy\nmessage text 38 {\"id\":7,\"method\":\"environment/status\"}\n");
    frame(false, WS_BINARY, "{\"id\"");
    frame(true, WS_CONT, ":7,\"method\":\"environment/status\"}");
    expect("message binary 38 {\"id\":7,\"method\":\"environment/status\"}\n");
    frame(true, WS_PING, "");
    expect("ping 0 \n");
    frame(true, WS_PONG, "zz");
    expect("pong 2 zz\n");
    frame(true, WS_TEXT, "");
    expect("message text 0 \n");
    frame(true, WS_BINARY, "");
    expect("message binary 0 \n");
    frame(true, WS_BINARY, "{\"id\":\"\xFF\"}");
    expect("message binary 10 {\"id\":\"\xFF\"}\n");
    frame(true, WS_TEXT, "  \n ");
    expect("message text 4   \n \n");
}

static void recorded_refused(void **state) {
    (void)state;
    bytes("\x81\x26{\"id\":7", 9);
    expect("fail 1002\n");
    for (unsigned rsv = 0x10; rsv <= 0x40; rsv <<= 1) {
        frame_raw(0x81 | rsv, REQUEST, strlen(REQUEST));
        expect("fail 1002\n");
    }
    static const unsigned reserved[] = {3, 4, 5, 6, 7, 11, 12, 13, 14, 15};
    for (size_t i = 0; i < ARRAY_LEN(reserved); i++) {
        frame_raw(0x80 | reserved[i], "", 0);
        expect("fail 1002\n");
    }
    frame(false, WS_PING, "x");
    expect("fail 1002\n");
    frame(false, WS_CLOSE, "");
    expect("fail 1002\n");
    frame(true, WS_CONT, REQUEST);
    expect("fail 1002\n");
    frame(false, WS_CONT, "");
    expect("fail 1002\n");
    frame(false, WS_TEXT, "{\"id\"");
    frame(true, WS_TEXT, REQUEST);
    expect("fail 1002\n");
    frame(true, WS_TEXT, "{\"id\":\"\xFF\"}");
    expect("fail 1007\n");
    bytes("\x81\xFF\0\0\1\0\0\0\0\0mask", 14);
    expect("fail 1009\n");
}

static void control_sizes(void **state) {
    (void)state;
    char text[127], want[160];
    memset(text, 'x', sizeof text);
    text[125] = '\0';
    frame(true, WS_PING, text);
    snprintf(want, sizeof want, "ping 125 %s\n", text);
    expect(want);
    text[125] = 'x';
    text[126] = '\0';
    frame(true, WS_PING, text);
    expect("fail 1002\n");
}

static void close_frames(void **state) {
    (void)state;
    static const struct {
        const char *payload;
        size_t n;
        const char *want;
    } cases[] = {
        {"", 0, "close 1005 0 \n"},
        {"\x03\xE8"
         "bye",
         5, "close 1000 3 bye\n"},
        {"\x03\xE8", 2, "close 1000 0 \n"},
        {"\x03\xEB", 2, "close 1003 0 \n"},
        {"\x03\xEF", 2, "close 1007 0 \n"},
        {"\x03\xF6", 2, "close 1014 0 \n"},
        {"\x0B\xB8x", 3, "close 3000 1 x\n"},
        {"\x13\x87", 2, "close 4999 0 \n"},
        {"\x03", 1, "fail 1002\n"},
        {"\x03\xE7", 2, "fail 1002\n"},
        {"\x03\xEC", 2, "fail 1002\n"},
        {"\x03\xED", 2, "fail 1002\n"},
        {"\x03\xEE", 2, "fail 1002\n"},
        {"\x03\xF7", 2, "fail 1002\n"},
        {"\x07\xD0", 2, "fail 1002\n"},
        {"\x0B\xB7", 2, "fail 1002\n"},
        {"\x13\x88", 2, "fail 1002\n"},
        {"\0\0", 2, "fail 1002\n"},
        {"\xFF\xFF", 2, "fail 1002\n"},
        {"\x03\xE8\xC3", 3, "fail 1007\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        frame_raw(0x88, cases[i].payload, cases[i].n);
        expect(cases[i].want);
    }
}

static void length_forms(void **state) {
    (void)state;
    bytes("\x82\xFE\0\x7D"
          "mask",
          8);
    expect("fail 1002\n");
    bytes("\x82\xFF\0\0\0\0\0\0\xFF\xFF"
          "mask",
          14);
    expect("fail 1002\n");
    bytes("\x82\xFF\x80\0\0\0\0\0\0\0"
          "mask",
          14);
    expect("fail 1002\n");
}

/* A long mixture: all events of all kinds in their order, text cut inside a character. */
static void mixture(void **state) {
    (void)state;
    frame(true, WS_TEXT, "one");
    frame(false, WS_TEXT, "");
    frame(true, WS_PONG, "");
    frame(false, WS_CONT, "gr\xC3");
    frame(true, WS_PING, "p");
    frame(false, WS_CONT, "");
    frame(true, WS_CONT, "\xBCn");
    frame(false, WS_BINARY, "");
    frame(true, WS_CONT, "");
    frame(true, WS_PING, "");
    frame(true, WS_TEXT, "0123456789012345678901234567890123456789");
    frame(false, WS_BINARY, "b");
    frame(true, WS_CONT, "");
    frame_raw(0x88, "\x03\xE9", 2);
    expect("message text 3 one\npong 0 \nping 1 p\nmessage text 5 gr\xC3\xBCn\n"
           "message binary 0 \nping 0 \nmessage text 40 0123456789012345678901234567890123456789\n"
           "message binary 1 b\nclose 1001 0 \n");
    frame(false, WS_TEXT, "a\xC3");
    frame(true, WS_CONT, "(");
    frame(true, WS_TEXT, "never seen");
    expect("fail 1007\n");
}

static void maximum(void **state) {
    (void)state;
    char text[LIMIT + 2];
    memset(text, 'm', sizeof text);
    text[LIMIT] = '\0';
    frame(true, WS_TEXT, text);
    run(0, SIZE_MAX / 2);
    assert_int_equal(strncmp(events.p, "message text 4096 mmm", 21), 0);
    run(0, 7);
    assert_int_equal(strncmp(events.p, "message text 4096 mmm", 21), 0);
    stream.len = 0;
    text[LIMIT] = 'm';
    text[LIMIT + 1] = '\0';
    frame(true, WS_TEXT, text);
    stream.len = 4; /* the length alone decides */
    expect("fail 1009\n");
    text[LIMIT] = '\0';
    frame(false, WS_TEXT, text);
    frame(false, WS_CONT, "");
    frame(true, WS_PING, "still here");
    frame(true, WS_CONT, "!");
    stream.len -= 5;
    run(0, SIZE_MAX / 2);
    assert_string_equal(events.p, "ping 10 still here\nfail 1009\n");
    run(0, 1);
    assert_string_equal(events.p, "ping 10 still here\nfail 1009\n");
    stream.len = 0;
}

/* The new maximum holds from the next message on, not for one that has begun. */
static void changed_maximum(void **state) {
    (void)state;
    struct ws_parser p;
    ws_parser_init(&p, 8);
    events.len = 0;
    frame(false, WS_TEXT, "1234");
    assert_true(feed(&p, stream.p, stream.len));
    stream.len = 0;
    ws_parser_set_max(&p, 2);
    frame(true, WS_CONT, "5678");
    frame(true, WS_TEXT, "ab");
    assert_true(feed(&p, stream.p, stream.len));
    stream.len = 0;
    ws_parser_set_max(&p, LIMIT);
    frame(true, WS_TEXT, "long enough now");
    frame(false, WS_TEXT, "half");
    assert_true(feed(&p, stream.p, stream.len));
    stream.len = 0;
    ws_parser_set_max(&p, 1);
    frame(true, WS_CONT, " and half");
    frame(true, WS_TEXT, "xy");
    assert_false(feed(&p, stream.p, stream.len));
    stream.len = 0;
    assert_int_equal(buf_putc(&events, '\0'), 0);
    assert_string_equal(events.p, "message text 8 12345678\nmessage text 2 ab\n"
                                  "message text 15 long enough now\nmessage text 13 half and half\n"
                                  "fail 1009\n");
    ws_parser_fini(&p);
}

/* After a failure nothing is parsed any more. */
static void stays_failed(void **state) {
    (void)state;
    struct ws_parser p;
    struct ws_msg m;
    ws_parser_init(&p, LIMIT);
    char bad[] = "\x83\x80mask";
    assert_int_equal(ws_feed(&p, bad, 6, &m), 6);
    assert_int_equal(m.kind, WS_FAIL);
    frame(true, WS_TEXT, "x");
    assert_int_equal(ws_feed(&p, stream.p, stream.len, &m), stream.len);
    assert_int_equal(m.kind, WS_NONE);
    assert_int_equal(p.msg.cap, 0);
    stream.len = 0;
    ws_parser_fini(&p);
}

/* A declared length takes no memory; an unfragmented frame in one piece is not copied. */
static void memory_use(void **state) {
    (void)state;
    struct ws_parser p;
    struct ws_msg m;
    ws_parser_init(&p, 64 << 20);
    char head[] = "\x82\xFF\0\0\0\0\x03\xFF\xFF\xFFmaskpayload";
    assert_int_equal(ws_feed(&p, head, sizeof head - 1, &m), sizeof head - 1);
    assert_int_equal(m.kind, WS_NONE);
    assert_true(p.msg.cap < LIMIT);
    ws_parser_fini(&p);

    ws_parser_init(&p, LIMIT);
    frame(true, WS_TEXT, "in place");
    assert_int_equal(ws_feed(&p, stream.p, stream.len, &m), stream.len);
    assert_ptr_equal(m.data, stream.p + 6);
    assert_null(p.msg.p);
    stream.len = 0;
    ws_parser_fini(&p);
}

/* What a large message took is given back with the next one. */
static void memory_given_back(void **state) {
    (void)state;
    struct ws_parser p;
    struct ws_msg m;
    const size_t n = 200000;
    char *text = malloc(n);
    assert_non_null(text);
    memset(text, 'g', n);
    ws_parser_init(&p, n);
    frame_raw(0x82, text, n);
    assert_int_equal(ws_feed(&p, stream.p, n / 2, &m), n / 2);
    assert_int_equal(m.kind, WS_NONE);
    size_t rest = stream.len - n / 2;
    assert_int_equal(ws_feed(&p, stream.p + n / 2, rest, &m), rest);
    assert_int_equal(m.kind, WS_MESSAGE);
    assert_int_equal(m.n, n);
    assert_memory_equal(m.data, text, n);
    char next[] = "\x89";
    assert_int_equal(ws_feed(&p, next, 1, &m), 1);
    assert_int_equal(p.msg.cap, 0);
    stream.len = 0;
    ws_parser_fini(&p);
    free(text);
}

/* Long payloads at every alignment, so that whole words and rests are unmasked alike. */
static void unmasking(void **state) {
    (void)state;
    char text[200];
    for (size_t n = 0; n < sizeof text; n++) {
        for (size_t i = 0; i < n; i++)
            text[i] = (char)(i * 31 + n);
        frame_raw(0x82, text, n);
        for (size_t cut = 0; cut < 9 && cut < stream.len; cut++) {
            struct ws_parser p;
            struct ws_msg m = {.kind = WS_NONE};
            char *copy = guard_copy(&memory, stream.p, stream.len);
            size_t at = stream.len - cut * (n / 9);
            ws_parser_init(&p, LIMIT);
            assert_int_equal(ws_feed(&p, copy, at, &m), at);
            if (at < stream.len)
                assert_int_equal(ws_feed(&p, copy + at, stream.len - at, &m), stream.len - at);
            assert_int_equal(m.kind, WS_MESSAGE);
            assert_int_equal(m.n, n);
            assert_memory_equal(m.data, text, n);
            ws_parser_fini(&p);
        }
        stream.len = 0;
    }
}

/* What the header writer writes, the parser understands (after a mask is added). */
static void headers(void **state) {
    (void)state;
    static const struct {
        size_t n;
        const char *head;
        size_t len;
    } cases[] = {
        {0, "\x81\x00", 2},
        {125, "\x81\x7D", 2},
        {126, "\x81\x7E\x00\x7E", 4},
        {65535, "\x81\x7E\xFF\xFF", 4},
        {65536, "\x81\x7F\x00\x00\x00\x00\x00\x01\x00\x00", 10},
        {0x1234567, "\x81\x7F\x00\x00\x00\x00\x01\x23\x45\x67", 10},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char head[WS_HEADER_MAX];
        assert_int_equal(ws_header_len(cases[i].n), cases[i].len);
        assert_int_equal(ws_header(head, WS_TEXT, true, cases[i].n), cases[i].len);
        assert_memory_equal(head, cases[i].head, cases[i].len);
    }
    char head[WS_HEADER_MAX];
    assert_int_equal(ws_header(head, WS_BINARY, false, 1), 2);
    assert_memory_equal(head, "\x02\x01", 2);
    assert_int_equal(ws_header(head, WS_CONT, true, 1), 2);
    assert_memory_equal(head, "\x80\x01", 2);
    assert_int_equal(ws_header(head, WS_PONG, true, 0), 2);
    assert_memory_equal(head, "\x8A\x00", 2);
}

/* Feeds `head` bytes of a frame of n bytes; reads the rest into the message, `step` at a time. */
static struct ws_msg read_direct(struct ws_parser *p, char *wire, size_t n, size_t head,
                                 size_t step) {
    struct ws_msg m = {.kind = WS_NONE};
    size_t at = 0, room;
    while (at < n && m.kind == WS_NONE) {
        char *dst = ws_room(p, &room);
        size_t take = MIN(dst != NULL ? MIN(room, step) : MAX(head, (size_t)1), n - at);
        if (dst == NULL) {
            at += ws_feed(p, wire + at, take, &m);
        } else {
            assert_true(room <= WS_ROOM_MAX);
            memcpy(dst, wire + at, take);
            ws_filled(p, take, &m);
            at += take;
        }
    }
    assert_int_equal(at, n);
    return m;
}

/* A large payload read in place is the same as one that was fed, whatever the pieces. */
static void direct(void **state) {
    (void)state;
    enum { HEAD = 14, N = 300001 };
    static const uint8_t mask[4] = {0x12, 0xF3, 0x77, 0x01};
    static const size_t steps[] = {1, 4099, 65536, N};
    char *text = malloc(N), *wire = malloc(HEAD + N);
    assert_true(text != NULL && wire != NULL);
    for (size_t i = 0; i < N; i++) /* two bytes a character: pieces split them */
        text[i] = i + 1 == N ? 'x' : i % 2 == 0 ? '\xC3' : '\xA9';
    for (size_t k = 0; k < 2 * ARRAY_LEN(steps); k++) {
        bool bad = k % 2 == 1;
        text[N / 2 + 1] = bad ? '\xFF' : text[1 + (N / 2) % 2];
        wire[0] = (char)0x81;
        wire[1] = (char)(0x80 | 127);
        for (size_t i = 0; i < 8; i++)
            wire[2 + i] = (char)((uint64_t)N >> (56 - 8 * i));
        memcpy(wire + 10, mask, 4);
        for (size_t i = 0; i < N; i++)
            wire[HEAD + i] = (char)(text[i] ^ mask[i % 4]);
        struct ws_parser p;
        ws_parser_init(&p, 1u << 20);
        struct ws_msg m = read_direct(&p, wire, HEAD + N, HEAD + k, steps[k / 2]);
        assert_int_equal(m.kind, bad ? WS_FAIL : WS_MESSAGE);
        if (!bad) {
            assert_int_equal(m.n, N);
            assert_memory_equal(m.data, text, N);
        }
        ws_parser_fini(&p);
    }
    free(text);
    free(wire);
}

/* What a message said before a part of it was predecoded; to be freed. */
static char *restored(const struct ws_msg *m, size_t *n) {
    *n = m->n + m->predecoded.n / 3;
    char *text = malloc(*n + 1), *at = text;
    assert_non_null(text);
    assert_true(m->predecoded.n % 3 == 0 && m->predecoded.at + m->predecoded.n <= m->n);
    at = mempcpy(at, m->data, m->predecoded.at);
    at += base64_encode(at, m->data + m->predecoded.at, m->predecoded.n);
    size_t tail = m->predecoded.at + m->predecoded.n;
    memcpy(at, m->data + tail, m->n - tail);
    return text;
}

/* The message of one frame, given in pieces as they come from a socket. */
static void check_decoded(const char *text, size_t n, size_t first, size_t step, bool decodes) {
    frame_raw(0x81, text, n);
    struct ws_parser p;
    ws_parser_init(&p, n);
    struct ws_msg m = read_direct(&p, stream.p, stream.len, first, step);
    assert_int_equal(m.kind, WS_MESSAGE);
    size_t len;
    char *got = restored(&m, &len);
    assert_int_equal(len, n);
    assert_memory_equal(got, text, n);
    assert_int_equal(m.predecoded.n > 0, decodes && base64_avx2_usable());
    free(got);
    ws_parser_fini(&p);
    stream.len = 0;
}

/* Long Base64 at the beginning of a string, whatever is around it and however it is cut. */
static void predecoded(void **state) {
    (void)state;
    enum { N = 200000, FROM = 20000, TO = 190001 };
    char *text = malloc(N);
    assert_non_null(text);
    for (unsigned other = 1; other < 128; other++) {
        if (base64_is_letter((char)other))
            continue;
        for (size_t i = 0; i < N; i++)
            text[i] = (char)(i < FROM || i >= TO ? (int)other : "Az09+/"[i % 6]);
        check_decoded(text, N, 14 + other * 40, 1000 + other * 999, other == '"');
        text[FROM - 1] = '"';
        for (size_t i = 0; i < 5; i++) /* the end at every place of a group, and of a vector */
            check_decoded(text, N - 10000 + other + i, 14 + other * 40 + i, 20000 + other * 499,
                          true);
    }
    free(text);
}

/* Pieces of single bytes are not predecoded; what follows them is, from where the letters begin. */
static void predecoded_late(void **state) {
    (void)state;
    enum { N = 200000 };
    char *text = malloc(N);
    assert_non_null(text);
    for (size_t i = 0; i < N; i++)
        text[i] = i == 5 ? '"' : "Zm9v"[i % 4];
    for (size_t step = 1; step < 70000; step = step * 3 + 1) {
        check_decoded(text, N, 14, step, step >= 2 * WS_DECODE_MIN);
        check_decoded(text, N, 15 + step, 100000, true);
    }
    text[N - 70000] = 'x'; /* a letter changes nothing, anything else ends it */
    check_decoded(text, N, 50, 65536, true);
    text[N - 70000] = '\\';
    check_decoded(text, N, 50, 65536, true);
    text[4] = '\\';
    check_decoded(text, N, 50, 65536, true); /* the reader of the JSON will see */
    text[5] = '\'';
    check_decoded(text, N, 50, 65536, false);
    free(text);
}

/* Over several frames, and up to the maximum: the length counts as it was sent. */
static void predecoded_fragments(void **state) {
    (void)state;
    enum { PART = 70000 };
    char *part = malloc(PART);
    assert_non_null(part);
    for (size_t i = 0; i < PART; i++)
        part[i] = i == 7 ? '"' : "QUJD"[i % 4];
    for (size_t lack = 0; lack < 2; lack++) {
        frame_raw(0x01, part, PART);
        frame_raw(0x89, "ping", 4);
        frame_raw(0x00, part + 8, PART - 8);
        frame_raw(0x80, "==\"}", 4);
        struct ws_parser p;
        ws_parser_init(&p, 2 * PART - 4 - lack);
        struct ws_msg m = {.kind = WS_NONE};
        for (size_t off = 0; off < stream.len && m.kind != WS_MESSAGE && m.kind != WS_FAIL;)
            off += ws_feed(&p, stream.p + off, MIN(stream.len - off, (size_t)50001), &m);
        assert_int_equal(m.kind, lack > 0 ? WS_FAIL : WS_MESSAGE);
        if (lack > 0) {
            assert_int_equal(m.code, 1009);
        } else {
            size_t n;
            char *got = restored(&m, &n);
            assert_int_equal(n, 2 * PART - 4);
            assert_memory_equal(got, part, PART);
            assert_memory_equal(got + PART, part + 8, PART - 8);
            assert_memory_equal(got + n - 4, "==\"}", 4);
            free(got);
        }
        ws_parser_fini(&p);
        stream.len = 0;
    }
    free(part);
}

/* Packed bytes that look like the beginning of a character, before the rest of one. */
static void predecoded_no_text(void **state) {
    (void)state;
    enum { N = 9001 };
    char text[N];
    memset(text, '/', N);
    text[0] = '"';
    text[N - 1] = '\xBC';
    frame_raw(0x01, text, N);
    struct ws_parser p;
    ws_parser_init(&p, N + 1);
    struct ws_msg m;
    assert_int_equal(ws_feed(&p, stream.p, stream.len - 1, &m), stream.len - 1);
    assert_int_equal(p.predecoded.n > 0, base64_avx2_usable());
    assert_int_equal(ws_feed(&p, stream.p + stream.len - 1, 1, &m), 1);
    assert_int_equal(m.kind, WS_NONE);
    stream.len = 0;
    frame_raw(0x80, "x", 1);
    assert_int_equal(ws_feed(&p, stream.p, stream.len, &m), stream.len);
    assert_int_equal(m.kind, WS_FAIL);
    assert_int_equal(m.code, 1007);
    ws_parser_fini(&p);
    stream.len = 0;
}

/* Alone: whole vectors, nothing from the first bad one on, in place and not a byte behind. */
static void unmask_base64(void **state) {
    (void)state;
    static const uint8_t mask[4] = {0x5A, 0x01, 0xFE, 0x80};
    char plain[400], want[300];
    for (size_t i = 0; i < sizeof plain; i++)
        plain[i] = "Zm9vYmFy+/09"[i * 7 % 12];
    for (size_t n = 0; n <= sizeof plain; n++) {
        for (unsigned c = 0; c < 256 && n % 64 == 5; c++) {
            char kept = plain[n / 2];
            plain[n / 2] = (char)c;
            char *text = guard_tail(&memory, n);
            for (size_t i = 0; i < n; i++)
                text[i] = (char)(plain[i] ^ mask[(i + 3) % 4]);
            size_t most = base64_is_letter((char)c) ? n / 64 * 64 : n / 2 / 64 * 64;
            size_t took = ws_mask_undo_base64(text, text, n, mask, 3);
            assert_int_equal(took, base64_avx2_usable() ? most : 0);
            struct err e = ERR_INIT;
            assert_int_equal(base64_decode(want, plain, took, &e), took / 4 * 3);
            assert_memory_equal(text, want, took / 4 * 3);
            plain[n / 2] = kept;
        }
    }
}

/* Each byte alone among letters, at every place of the vectors. */
static void one_among_letters(void **state) {
    (void)state;
    static const uint8_t mask[4] = {0x5A, 0x01, 0xFE, 0x80};
    char plain[200], masked[200], *dst;
    for (unsigned c = 0; c < 256; c++) {
        for (size_t at = 0; at < sizeof plain; at++) {
            memset(plain, 'k', sizeof plain);
            plain[at] = (char)c;
            for (size_t i = 0; i < sizeof plain; i++)
                masked[i] = (char)(plain[i] ^ mask[(i + 3) % 4]);
            dst = guard_tail(&memory, sizeof plain);
            bool all = ws_mask_undo(dst, masked, sizeof plain, mask, 3);
            assert_memory_equal(dst, plain, sizeof plain);
            assert_int_equal(all, base64_is_letter((char)c) && base64_avx2_usable());
        }
    }
}

static void accept_key(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        {"dGhlIHNhbXBsZSBub25jZQ==", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="},
        {"abc", "zwKd5BnoWxQ6GxTxxSmBSHGHX9M="},
        {"", "Kfh9QIsMVZcl6xEPYxPHzW8SZ8w="},
    };
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        char got[28];
        ws_accept(got, str_of(pairs[i][0]));
        assert_memory_equal(got, pairs[i][1], sizeof got);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_accepted),
        cmocka_unit_test(recorded_refused),
        cmocka_unit_test(control_sizes),
        cmocka_unit_test(close_frames),
        cmocka_unit_test(length_forms),
        cmocka_unit_test(mixture),
        cmocka_unit_test(maximum),
        cmocka_unit_test(changed_maximum),
        cmocka_unit_test(stays_failed),
        cmocka_unit_test(memory_use),
        cmocka_unit_test(memory_given_back),
        cmocka_unit_test(unmasking),
        cmocka_unit_test(headers),
        cmocka_unit_test(accept_key),
        cmocka_unit_test(direct),
        cmocka_unit_test(predecoded),
        cmocka_unit_test(predecoded_late),
        cmocka_unit_test(predecoded_fragments),
        cmocka_unit_test(predecoded_no_text),
        cmocka_unit_test(unmask_base64),
        cmocka_unit_test(one_among_letters),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
