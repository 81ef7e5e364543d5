#include "net/http_head.h"
#include "net/ws_open.h"

#include "guard.h"
#include "net/ws.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static const char key[WS_OPEN_KEY + 1] = "dGhlIHNhbXBsZSBub25jZQ==";
#define ACCEPT "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
#define GOOD                                                                                       \
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n"

static struct guard memory;

/* Parses a copy that ends at a guard page; every prefix of a good head needs more. */
static int parse(const char *text, size_t n, struct ws_open_answer *a) {
    return ws_open_answer(guard_copy(&memory, text, n), n, key, a);
}

static void asks(void **state) {
    (void)state;
    _cleanup_buf_ struct buf b = BUF_INIT(4096);
    assert_int_equal(ws_open_request(&b, STR_LIT("h:1"), STR_LIT("/p?q"), STR_LIT("tok"), key), 0);
    assert_int_equal(buf_putc(&b, '\0'), 0);
    assert_string_equal(b.p, "GET /p?q HTTP/1.1\r\nHost: h:1\r\nUpgrade: websocket\r\n"
                             "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                             "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                             "Authorization: Bearer tok\r\n\r\n");
    struct buf small = BUF_INIT(100);
    assert_int_equal(ws_open_request(&small, STR_LIT("h"), STR_LIT("/"), STR_LIT(""), key),
                     -ENOBUFS);
    assert_int_equal(small.len, 0);
    buf_fini(&small);
    char one[WS_OPEN_KEY], two[WS_OPEN_KEY];
    ws_open_key(one);
    ws_open_key(two);
    assert_memory_not_equal(one, two, sizeof one);
}

static void opens(void **state) {
    (void)state;
    static const char text[] = GOOD "x: \r\n" ACCEPT "\r\n\x81\x00";
    const size_t head = sizeof text - 1 - 2;
    struct ws_open_answer a;
    for (size_t n = 0; n < head; n++)
        assert_int_equal(parse(text, n, &a), 0);
    assert_int_equal(parse(text, head, &a), head);
    assert_int_equal(parse(text, head + 2, &a), head);
    assert_int_equal(a.status, 101);
}

static void refuses(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int status;
    } bad[] = {
        {"HTTP/1.0 101 x\r\n", 0},
        {"HTTP/1.1 10\r\n", 0},
        {"HTTP/1.1 1000 x\r\n", 0},
        {"HTTP/1.1 099 x\r\n", 0},
        {"SSH-2.0-x\r\n", 0},
        {"\r\n", 0},
        {"\n", 0},
        {"HTTP/1.1 101 x\n", 0},
        {"HTTP/1.1 401 Unauthorized\r\nUpgrade: x\r\n\r\n", 401},
        {"HTTP/1.1 200\r\n\r\n", 200},
        {GOOD "\r\n", 101},
        {GOOD ACCEPT ACCEPT "\r\n", 101},
        {GOOD "Sec-WebSocket-Accept: x\r\n", 101},
        {GOOD "Upgrade: websocket\r\n", 101},
        {GOOD "Sec-WebSocket-Extensions: \r\n", 101},
        {GOOD "Sec-WebSocket-Protocol: a\r\n", 101},
        {GOOD ": x\r\n", 101},
        {GOOD " folded\r\n", 101},
        {GOOD "a b: c\r\n", 101},
        {GOOD "a: b\x7f\r\n", 101},
        {GOOD "a: b\rc\r\n", 101},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct ws_open_answer a;
        assert_int_equal(parse(bad[i].text, strlen(bad[i].text), &a), -EPROTO);
        assert_int_equal(a.status, bad[i].status);
        assert_non_null(a.why);
    }
}

static void bounds_the_head(void **state) {
    (void)state;
    struct ws_open_answer a;
    _cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
    assert_int_equal(buf_putz(&b, GOOD), 0);
    for (int i = 0; i < HTTP_HEAD_FIELDS_MAX; i++)
        assert_int_equal(buf_putz(&b, "a: b\r\n"), 0);
    assert_int_equal(ws_open_answer(b.p, b.len, key, &a), -EPROTO);
    b.len = 0;
    assert_int_equal(buf_putz(&b, GOOD "a: "), 0);
    while (b.len < HTTP_HEAD_MAX - 1)
        assert_int_equal(buf_putc(&b, 'x'), 0);
    assert_int_equal(ws_open_answer(b.p, b.len, key, &a), 0);
    assert_int_equal(buf_putc(&b, 'x'), 0);
    assert_int_equal(ws_open_answer(b.p, b.len, key, &a), -EPROTO);
}

/* -- frames of a server -- */

static struct ws_msg feed(struct ws_parser *p, const char *bytes, size_t n) {
    struct ws_msg m = {.kind = WS_NONE};
    for (size_t at = 0; at < n && m.kind == WS_NONE; at++) {
        char *one = guard_copy(&memory, bytes + at, 1);
        ws_feed(p, one, 1, &m);
    }
    return m;
}

static void takes_unmasked_frames(void **state) {
    (void)state;
    static const char frames[] = "\x01\x02\xc3\xa9\x89\x01p\x80\x01!";
    struct ws_parser p;
    ws_parser_init(&p, 1000);
    ws_parser_set_client(&p);
    struct ws_msg m = feed(&p, frames, 7);
    assert_int_equal(m.kind, WS_GOT_PING);
    m = feed(&p, frames + 7, 3);
    assert_int_equal(m.kind, WS_MESSAGE);
    assert_int_equal(m.n, 3);
    assert_memory_equal(m.data, "\xc3\xa9!", 3);
    char whole[] = "\x81\x7e\x00\x80";
    char text[4 + 128];
    memcpy(text, whole, 4);
    memset(text + 4, 'A', 128);
    assert_int_equal(ws_feed(&p, text, sizeof text, &m), sizeof text);
    assert_int_equal(m.kind, WS_MESSAGE);
    assert_int_equal(m.n, 128);
    assert_int_equal(m.data[127], 'A');
    m = feed(&p, "\x88\x02\x03\xe9", 4);
    assert_int_equal(m.kind, WS_GOT_CLOSE);
    assert_int_equal(m.code, 1001);
    ws_parser_fini(&p);
}

static void refuses_masked_frames(void **state) {
    (void)state;
    struct ws_parser p;
    ws_parser_init(&p, 1000);
    ws_parser_set_client(&p);
    struct ws_msg m = feed(&p, "\x81\x81", 2);
    assert_int_equal(m.kind, WS_FAIL);
    assert_int_equal(m.code, 1002);
    ws_parser_fini(&p);
}

/* What a client writes, a server's parser reads. */
static void writes_masked_headers(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, 125, 126, 65535, 65536, 70000};
    const uint8_t mask[4] = {1, 2, 3, 4};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        char head[WS_HEADER_MAX + 4];
        size_t n = ws_masked_header(head, WS_BINARY, true, sizes[i], mask);
        assert_int_equal(n, ws_header_len(sizes[i]) + 4);
        _cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
        assert_int_equal(buf_put(&b, head, n), 0);
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(buf_putc(&b, (char)('x' ^ mask[k % 4])), 0);
        struct ws_parser p;
        struct ws_msg m;
        ws_parser_init(&p, 1 << 20);
        assert_int_equal(ws_feed(&p, b.p, b.len, &m), b.len);
        assert_int_equal(m.kind, WS_MESSAGE);
        assert_int_equal(m.n, sizes[i]);
        for (size_t k = 0; k < m.n; k++)
            assert_int_equal(m.data[k], 'x');
        ws_parser_fini(&p);
    }
}

int main(void) {
    memory = guard_new(65536);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asks),
        cmocka_unit_test(opens),
        cmocka_unit_test(refuses),
        cmocka_unit_test(bounds_the_head),
        cmocka_unit_test(takes_unmasked_frames),
        cmocka_unit_test(refuses_masked_frames),
        cmocka_unit_test(writes_masked_headers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
