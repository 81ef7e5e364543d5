/* The output of a command on its way into a result. */
#include "mcp/mcp_output.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

/* The text after adding `s` in pieces of `piece` bytes. */
static char *text_of(const char *s, size_t n, size_t limit, bool first_only, size_t piece,
                     uint64_t *omitted) {
    struct mcp_output o;
    struct buf b = BUF_INIT(4u << 20);
    mcp_output_init(&o, limit, first_only);
    for (size_t i = 0; i < n; i += piece)
        mcp_output_add(&o, s + i, MIN(piece, n - i));
    assert_int_equal(o.total, n);
    assert_int_equal(mcp_output_text(&o, &b, omitted), 0);
    assert_int_equal(buf_putc(&b, '\0'), 0);
    assert_true(o.head.cap + o.tail_cap <= MAX(2 * limit, (size_t)128));
    mcp_output_fini(&o);
    return b.p;
}

static void pieces_do_not_matter(void **state) {
    (void)state;
    char s[300];
    for (int i = 0; i < 300; i++)
        s[i] = (char)(i % 10 == 9 ? '\n' : 'a' + i % 26);
    for (size_t n = 0; n <= sizeof s; n += 7) {
        uint64_t expected, omitted;
        _cleanup_free_ char *whole = text_of(s, n, 100, false, MAX(n, (size_t)1), &expected);
        for (size_t piece = 1; piece < 60; piece++) {
            _cleanup_free_ char *t = text_of(s, n, 100, false, piece, &omitted);
            assert_string_equal(t, whole);
            assert_int_equal(omitted, expected);
        }
        assert_int_equal(expected > 0, n > 100);
    }
}

static void cuts(void **state) {
    (void)state;
    static const struct {
        const char *in;
        size_t limit;
        const char *out;
    } cases[] = {
        {"abc", 3, "abc"},
        {"abcd", 2, "a\n[\xE2\x80\xA6 2 bytes omitted \xE2\x80\xA6]\nd"},
        {"aaaaaaa\nbbbbbb\nccccccc", 16,
         "aaaaaaa\n[\xE2\x80\xA6 7 bytes omitted \xE2\x80\xA6]\nccccccc"},
        {"x\xE2\x82\xAC"
         "12345\xE2\x82\xAC"
         "y",
         6, "x\n[\xE2\x80\xA6 11 bytes omitted \xE2\x80\xA6]\ny"},
        {"\xE2\x82\xAC", 2, "[\xE2\x80\xA6 3 bytes omitted \xE2\x80\xA6]\n"},
        {"a\xff"
         "b",
         8,
         "a\xEF\xBF\xBD"
         "b"},
        {"\xE2\x82", 8, "\xEF\xBF\xBD"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint64_t omitted;
        _cleanup_free_ char *t =
            text_of(cases[i].in, strlen(cases[i].in), cases[i].limit, false, 1, &omitted);
        assert_string_equal(t, cases[i].out);
    }
}

static void the_first_bytes_alone(void **state) {
    (void)state;
    uint64_t omitted;
    struct mcp_output o;
    mcp_output_init(&o, 4, true);
    mcp_output_add(&o, "abcdefgh", 8);
    assert_true(str_eqz(buf_str(&o.head), "abcd"));
    assert_int_equal(o.tail_cap, 0);
    mcp_output_fini(&o);
    _cleanup_free_ char *t = text_of("abcdef", 6, 4, true, 1, &omitted);
    assert_memory_equal(t, "abcd\n", 5); /* and what was omitted */
    assert_int_equal(omitted, 2);
}

static void last_lines(void **state) {
    (void)state;
    static const struct {
        const char *in, *line;
    } cases[] = {
        {"", NULL},
        {"\n \n", NULL},
        {"one", "one"},
        {"one\n", "one"},
        {"one\ntwo\n  \n", "two"},
        {"a\nbbbbbbbbbbbbbbbbbbbb\n", "bbbbbbbbbbbbbbbbbbbb"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct mcp_output o;
        _cleanup_buf_ struct buf b = BUF_INIT(1024);
        mcp_output_init(&o, 40, false);
        mcp_output_add(&o, cases[i].in, strlen(cases[i].in));
        assert_int_equal(mcp_output_last_line(&o, &b), cases[i].line != NULL);
        if (cases[i].line != NULL)
            assert_true(str_eqz(buf_str(&b), cases[i].line));
        mcp_output_fini(&o);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_do_not_matter), cmocka_unit_test(cuts),
        cmocka_unit_test(the_first_bytes_alone), cmocka_unit_test(last_lines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
