#include "proxy/proxy_body.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

/* Feeds it in pieces of `step`; the bytes that belong to the body, or -1. */
static long body(bool chunked, uint64_t length, const char *text, size_t step, bool *done) {
    struct proxy_body b;
    size_t n = strlen(text), at = 0;
    proxy_body_init(&b, chunked, length);
    while (at < n && !b.done) {
        struct str piece = {text + at, MIN(step, n - at)};
        ssize_t r = proxy_body_feed(&b, piece);
        if (r < 0)
            return -1;
        at += (size_t)r;
        if ((size_t)r < piece.n)
            assert_true(b.done);
    }
    *done = b.done;
    return (long)at;
}

static void test_bodies(void **state) {
    (void)state;
    static const struct {
        const char *text;
        long n; /* without the rest; -1: refused */
        bool done;
    } rows[] = {
        {"0\r\n\r\nGET / HTTP/1.1\r\n", 5, true},
        {"3\r\nabc\r\n0\r\n\r\nrest", 13, true},
        {"A;x=y\r\n0123456789\r\n0\r\nt: u\r\n\r\nrest", 30, true},
        {"3\r\nab", 5, false},
        {"3\nabc\r\n0\r\n\r\n", -1, false},
        {"3\r\nabcX0\r\n\r\n", -1, false},
        {"3\r\nabc\n0\r\n\r\n", -1, false},
        {"\r\n", -1, false},
        {"g\r\n", -1, false},
        {"-1\r\n", -1, false},
        {"0x3\r\nabc\r\n", -1, false},
        {" 3\r\nabc\r\n", -1, false},
        {"3 \r\nabc\r\n", -1, false},
        {"3\r\rabc\r\n", -1, false},
        {"fffffffffffffffff\r\n", -1, false},
        {"0\r\nt: u\nX\r\n\r\n", -1, false},
        {"0\r\n\rX", -1, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        for (size_t step = 1; step < 40; step++) {
            bool done = false;
            long n = body(true, 0, rows[i].text, step, &done);
            if (n != rows[i].n || (n >= 0 && done != rows[i].done))
                fail_msg("row %zu, step %zu: %ld", i, step, n);
        }
    }
    bool done = false;
    assert_int_equal(body(false, 3, "abcdef", 2, &done), 3);
    assert_true(done);
    struct proxy_body none;
    proxy_body_init(&none, false, 0);
    assert_true(none.done);
}

static void test_long_lines(void **state) {
    (void)state;
    char text[12000];
    bool done = false;
    memset(text, 'x', sizeof text);
    memcpy(text, "3;", 2);
    text[sizeof text - 1] = '\0';
    assert_int_equal(body(true, 0, text, 100, &done), -1);
    memcpy(text, "0\r\n", 3);
    assert_int_equal(body(true, 0, text, 100, &done), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_long_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
