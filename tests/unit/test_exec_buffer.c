#include "client/exec_buffer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#define HALF 5000
#define ALL 60000

static char all[ALL];

static void make_all(void) {
    for (size_t i = 0; i < ALL; i++)
        all[i] = (char)('a' + i % 26 + i / 1000 % 7);
}

static void expect_text(const struct exec_buffer *b, const char *text) {
    _cleanup_buf_ struct buf out = BUF_INIT(1 << 20);
    assert_int_equal(exec_buffer_flatten(b, true, &out), 0);
    assert_int_equal(out.len, strlen(text));
    assert_memory_equal(out.p, text, out.len);
}

static void nothing_is_kept_of_nothing(void **state) {
    (void)state;
    struct exec_buffer b;
    exec_buffer_init(&b, HALF);
    assert_int_equal(exec_buffer_put(&b, NULL, 0), 0);
    expect_text(&b, "");
    exec_buffer_fini(&b);
}

static void the_middle_goes(void **state) {
    (void)state;
    struct exec_buffer b;
    exec_buffer_init(&b, 4);
    assert_int_equal(exec_buffer_put(&b, "0123456789", 10), 0);
    expect_text(&b, "0123\n... 2 bytes omitted ...\n6789");
    assert_int_equal(exec_buffer_put(&b, "ab", 2), 0);
    expect_text(&b, "0123\n... 4 bytes omitted ...\n89ab");
    assert_int_equal(exec_buffer_total(&b), 12);
    exec_buffer_fini(&b);
    assert_int_equal(exec_buffer_total(&b), 0);
    assert_int_equal(exec_buffer_put(&b, "01234567", 8), 0);
    expect_text(&b, "01234567");
    exec_buffer_fini(&b);
}

/* Pieces of every size, compared with the definition after each. */
static void head_and_tail_are_exact(void **state) {
    (void)state;
    static const size_t steps[] = {1, 7, 64, 999, 4096, 5000, 5001, 12345, ALL};
    for (size_t s = 0; s < ARRAY_LEN(steps); s++) {
        struct exec_buffer b;
        exec_buffer_init(&b, HALF);
        for (size_t at = 0; at < ALL; at += steps[s]) {
            size_t n = MIN(steps[s], ALL - at), total = at + n;
            assert_int_equal(exec_buffer_put(&b, all + at, n), 0);
            if (steps[s] == 1 && total % 97 != 0 && total != ALL)
                continue;
            _cleanup_buf_ struct buf out = BUF_INIT(1 << 20);
            assert_int_equal(exec_buffer_flatten(&b, false, &out), 0);
            size_t head = MIN(total, (size_t)HALF), tail = MIN(total - head, (size_t)HALF);
            assert_int_equal(out.len, head + tail);
            assert_int_equal(b.omitted, total - head - tail);
            assert_memory_equal(out.p, all, head);
            assert_memory_equal(out.p + head, all + total - tail, tail);
        }
        exec_buffer_fini(&b);
    }
}

int main(void) {
    make_all();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_kept_of_nothing),
        cmocka_unit_test(the_middle_goes),
        cmocka_unit_test(head_and_tail_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
