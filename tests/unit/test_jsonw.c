#include "json/jsonw.h"

#include "guard.h"
#include "json/json.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

static struct guard in, out;

/* Writes s by all three calls; they must agree and stay within their memory. */
static void check(struct str s, struct str want) {
    s.p = guard_copy(&in, s.p, s.n);
    assert_int_equal(jsonw_str_len(s), want.n);
    char *dst = guard_tail(&out, want.n);
    assert_int_equal(jsonw_str_to(dst, s), want.n);
    assert_memory_equal(dst, want.p, want.n);
    _cleanup_buf_ struct buf b = BUF_INIT(want.n + 1);
    assert_int_equal(buf_putc(&b, '<'), 0);
    assert_int_equal(jsonw_str(&b, s), 0);
    assert_int_equal(b.len, want.n + 1);
    assert_memory_equal(b.p + 1, want.p, want.n);
}

static void plain_strings(void **state) {
    (void)state;
    check((struct str){NULL, 0}, STR_LIT("\"\""));
    check(STR_LIT("hello"), STR_LIT("\"hello\""));
    check(STR_LIT("\x7F/\xC3\xA9\xF0\x9F\x98\x80"), STR_LIT("\"\x7F/\xC3\xA9\xF0\x9F\x98\x80\""));
}

static void escaped_bytes(void **state) {
    (void)state;
    check(STR_LIT("\"\\"), STR_LIT("\"\\\"\\\\\""));
    check(STR_LIT("\b\t\n\f\r"), STR_LIT("\"\\b\\t\\n\\f\\r\""));
    for (unsigned c = 0; c < 0x20; c++) {
        if (strchr("\b\t\n\f\r", (int)c) != NULL && c != 0)
            continue;
        char byte = (char)c, want[16];
        int n = snprintf(want, sizeof want, "\"\\u%04x\"", c);
        check((struct str){&byte, 1}, (struct str){want, (size_t)n});
    }
}

static void escapes_at_every_offset(void **state) {
    (void)state;
    char s[150], want[160];
    for (size_t len = 1; len <= sizeof s; len += len < 40 ? 1 : 9) {
        for (size_t at = 0; at < len; at++) {
            memset(s, 'x', sizeof s);
            s[at] = 1;
            int n = snprintf(want, sizeof want, "\"%.*s\\u0001%.*s\"", (int)at, s,
                             (int)(len - at - 1), s + at + 1);
            check((struct str){s, len}, (struct str){want, (size_t)n});
        }
    }
}

/* What the writer writes the reader reads back, whatever the bytes. */
static void round_trip(void **state) {
    (void)state;
    struct json_doc doc;
    json_doc_init(&doc, 1 << 20, 1);
    uint32_t random = 1;
    for (size_t n = 0; n < 600; n++) {
        char s[600];
        for (size_t i = 0; i < n; i++) {
            random = random * 1664525 + 1013904223;
            s[i] = (char)(random >> 25); /* ASCII, controls included */
        }
        _cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
        assert_int_equal(jsonw_str(&b, (struct str){s, n}), 0);
        _cleanup_err_ struct err e = ERR_INIT;
        assert_int_equal(json_parse(&doc, b.p, b.len, &e), 0);
        assert_true(str_eq(json_str(json_root(&doc)), (struct str){s, n}));
    }
    json_doc_fini(&doc);
}

static void no_room(void **state) {
    (void)state;
    _cleanup_buf_ struct buf b = BUF_INIT(10);
    assert_int_equal(buf_putz(&b, "keep"), 0);
    assert_int_equal(jsonw_str(&b, STR_LIT("12345")), -ENOBUFS);
    assert_int_equal(jsonw_str(&b, STR_LIT("\x01")), -ENOBUFS);
    assert_true(str_eqz(buf_str(&b), "keep"));
    assert_int_equal(jsonw_str(&b, STR_LIT("12\n")), 0);
    assert_true(str_eqz(buf_str(&b), "keep\"12\\n\""));
}

int main(void) {
    in = guard_new(4096);
    out = guard_new(4096);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_strings),
        cmocka_unit_test(escaped_bytes),
        cmocka_unit_test(escapes_at_every_offset),
        cmocka_unit_test(round_trip),
        cmocka_unit_test(no_room),
    };
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    guard_free(&in);
    guard_free(&out);
    return r;
}
