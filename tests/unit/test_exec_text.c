#include "client/exec_text.h"

#include "base/utf8.h"
#include "client/exec_buffer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define TEXT_MAX (16 << 20)
#define BAD "\xEF\xBF\xBD"

static struct exec_buffer output;
static struct buf raw, text;

static void put(const char *p, size_t n) {
    assert_int_equal(exec_buffer_put(&output, p, n), 0);
}

static void put_seq(unsigned last) {
    char line[16];
    for (unsigned i = 1; i <= last; i++)
        put(line, (size_t)snprintf(line, sizeof(line), "%u\n", i));
}

static void forget(void) {
    exec_buffer_fini(&output);
    exec_buffer_init(&output, EXEC_BUFFER_HALF);
    buf_fini(&raw);
    buf_fini(&text);
    raw = text = BUF_INIT(TEXT_MAX);
}

static const char *shown(uint64_t max_tokens) {
    struct exec_text t = {.max_tokens = max_tokens, .omitted = output.omitted};
    t.bytes = exec_buffer_total(&output);
    raw.len = text.len = 0;
    assert_int_equal(exec_buffer_flatten(&output, true, &raw), 0);
    t.raw = buf_str(&raw);
    assert_int_equal(exec_text_output(&t, &text), 0);
    assert_true(utf8_valid(text.p, text.len));
    assert_int_equal(buf_putc(&text, '\0'), 0);
    return text.p;
}

/* The expected texts of this file were recorded from the reference's client. */
static void short_output_is_whole(void **state) {
    (void)state;
    forget();
    assert_string_equal(shown(10), "");
    put("0000000000000000000000000000000000000007", 40);
    assert_string_equal(shown(10), "0000000000000000000000000000000000000007");
}

static void the_middle_is_cut(void **state) {
    (void)state;
    forget();
    put("00000000000000000000000000000000000000007", 41);
    assert_string_equal(shown(10), "Warning: truncated output (original token count: 11)\n"
                                   "Total output lines: 1\n\n"
                                   "00000000000000000000…1 tokens truncated…00000000000000000007");
    forget();
    put_seq(30000);
    assert_string_equal(shown(1), "Warning: truncated output (original token count: 42224)\n"
                                  "Total output lines: 30000\n\n"
                                  "1\n…42223 tokens truncated…0\n");
    assert_string_equal(shown(0), "Warning: truncated output (original token count: 42224)\n"
                                  "Total output lines: 30000\n\n"
                                  "…42224 tokens truncated…");
}

static void the_budget_has_a_ceiling(void **state) {
    (void)state;
    forget();
    put_seq(30000);
    size_t size = strlen(shown(EXEC_TEXT_TOKENS));
    assert_int_equal(strlen(shown(UINT64_MAX)), size);
    assert_int_equal(size,
                     40000 + strlen("Warning: truncated output (original token count: 42224)\n"
                                    "Total output lines: 30000\n\n…32224 tokens truncated…"));
}

static void lines_are_counted(void **state) {
    (void)state;
    forget();
    put("a\r\nb\r\n\nc", 8);
    for (int i = 0; i < 99; i++)
        put("0", 1);
    put("1", 1);
    assert_string_equal(shown(8), "Warning: truncated output (original token count: 27)\n"
                                  "Total output lines: 4\n\n"
                                  "a\r\nb\r\n\nc00000000…19 tokens truncated…0000000000000001");
}

static void code_points_are_not_cut(void **state) {
    (void)state;
    forget();
    for (int i = 0; i < 10; i++)
        put("€é😀x", 10);
    assert_string_equal(shown(11), "Warning: truncated output (original token count: 25)\n"
                                   "Total output lines: 1\n\n"
                                   "€é😀x€é😀x…14 tokens truncated…x€é😀x€é😀x");
}

static void broken_bytes_are_replaced(void **state) {
    (void)state;
    static const char bytes[] = "a\xFF"
                                "b\xE2\x82\xED\xA0\x80 \xF0\x80\x80\x80 \xC3(";
    forget();
    put(bytes, sizeof(bytes) - 1);
    assert_string_equal(shown(100), "a" BAD "b" BAD BAD BAD BAD " " BAD BAD BAD BAD " " BAD "(");
    forget();
    for (int i = 0; i < 12; i++)
        put("a\xFF\xFE"
            "b",
            4);
    assert_string_equal(shown(9), "Warning: truncated output (original token count: 24)\n"
                                  "Total output lines: 1\n\n"
                                  "a" BAD BAD "ba" BAD BAD "ba…15 tokens truncated…ba" BAD BAD
                                  "ba" BAD BAD "b");
}

static void omitted_bytes_are_told(void **state) {
    (void)state;
    char x60[61];
    memset(x60, 'x', 60);
    x60[60] = '\0';
    forget();
    for (int i = 0; i < 1 << 20; i++)
        put("x", 1);
    _cleanup_free_ char *expected = NULL;
    assert_true(asprintf(&expected,
                         "Warning: truncated output (original token count: 262144)\n"
                         "Total output lines: 1\n\n%s…262114 tokens truncated…%s",
                         x60, x60) > 0);
    assert_string_equal(shown(30), expected);
    free(expected);
    put("x", 1);
    assert_true(asprintf(&expected,
                         "Warning: truncated output (original token count: 262145)\n"
                         "... 1 bytes omitted ...\n\n%s…262121 tokens truncated…%s",
                         x60, x60) > 0);
    assert_string_equal(shown(30), expected);
    forget();
    put_seq(300000);
    const char *p = shown(60);
    assert_ptr_equal(strstr(p, "Warning: truncated output (original token count: 497224)\n"
                               "... 940319 bytes omitted ...\n\n1\n2\n"),
                     p);
    assert_non_null(strstr(p, "\n43\n…262092 tokens truncated…\n299984\n"));
}

/* Not reachable with the sizes of EXEC_BUFFER_HALF and EXEC_TEXT_TOKENS. */
static void a_short_text_with_a_hole(void **state) {
    (void)state;
    forget();
    struct exec_text t = {.raw = STR_LIT("ab"), .bytes = 9, .omitted = 7, .max_tokens = 10};
    assert_int_equal(exec_text_output(&t, &text), 0);
    assert_int_equal(buf_putc(&text, '\0'), 0);
    assert_string_equal(text.p, "... 7 bytes omitted ...\nab");
    t.raw = STR_LIT("a\n... 7 bytes omitted ...\nb");
    text.len = 0;
    assert_int_equal(exec_text_output(&t, &text), 0);
    assert_int_equal(text.len, t.raw.n);
}

static void results_have_their_lines(void **state) {
    (void)state;
    forget();
    struct exec_text t = {.chunk_id = "1e53ce", .wall_s = 3.17549, .bytes = 41, .exited = true};
    assert_int_equal(exec_text_result(&t, STR_LIT("hi\n"), &text), 0);
    assert_int_equal(buf_putc(&text, '\0'), 0);
    assert_string_equal(text.p, "Chunk ID: 1e53ce\nWall time: 3.1755 seconds\n"
                                "Process exited with code 0\nOriginal token count: 11\n"
                                "Output:\nhi\n");
    t = (struct exec_text){.chunk_id = "000000", .session = 98765};
    text.len = 0;
    assert_int_equal(exec_text_result(&t, STR_LIT(""), &text), 0);
    assert_int_equal(buf_putc(&text, '\0'), 0);
    assert_string_equal(text.p, "Chunk ID: 000000\nWall time: 0.0000 seconds\n"
                                "Process running with session ID 98765\n"
                                "Original token count: 0\nOutput:\n");
}

static int release(void **state) {
    (void)state;
    forget();
    return 0;
}

int main(void) {
    exec_buffer_init(&output, EXEC_BUFFER_HALF);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(short_output_is_whole, release),
        cmocka_unit_test_teardown(the_middle_is_cut, release),
        cmocka_unit_test_teardown(the_budget_has_a_ceiling, release),
        cmocka_unit_test_teardown(lines_are_counted, release),
        cmocka_unit_test_teardown(code_points_are_not_cut, release),
        cmocka_unit_test_teardown(broken_bytes_are_replaced, release),
        cmocka_unit_test_teardown(omitted_bytes_are_told, release),
        cmocka_unit_test_teardown(a_short_text_with_a_hole, release),
        cmocka_unit_test_teardown(results_have_their_lines, release),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
