#include "base/buf.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

static void starts_empty(void **state) {
    (void)state;
    struct buf b = BUF_INIT(10);
    assert_null(b.p);
    assert_int_equal(buf_str(&b).n, 0);
    assert_int_equal(buf_put(&b, NULL, 0), 0);
    assert_int_equal(b.len, 0);
    buf_fini(&b);
}

static void appends(void **state) {
    (void)state;
    _cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
    assert_int_equal(buf_put(&b, "ab\0c", 4), 0);
    assert_int_equal(buf_putz(&b, "de"), 0);
    assert_int_equal(buf_putc(&b, 'f'), 0);
    assert_int_equal(buf_putf(&b, "%d-%s", 42, "x"), 0);
    assert_int_equal(b.len, 11);
    assert_memory_equal(b.p, "ab\0cdef42-x", 11);
}

/* Longer than what buf_putf() formats on its stack. */
static void formats_long_text(void **state) {
    (void)state;
    for (int width = 505; width < 520; width++) {
        _cleanup_buf_ struct buf b = BUF_INIT(4096);
        assert_int_equal(buf_putf(&b, "<%*d>", width, 7), 0);
        assert_int_equal(b.len, width + 2);
        assert_int_equal(b.p[0], '<');
        assert_memory_equal(b.p + b.len - 3, " 7>", 3);
    }
}

static void stops_at_the_maximum(void **state) {
    (void)state;
    _cleanup_buf_ struct buf b = BUF_INIT(1000);
    char block[100] = {0};
    for (int i = 0; i < 10; i++)
        assert_int_equal(buf_put(&b, block, sizeof block), 0);
    assert_int_equal(b.len, 1000);
    assert_true(b.cap <= b.max);
    assert_int_equal(buf_putc(&b, 'x'), -ENOBUFS);
    assert_int_equal(buf_putf(&b, "%d", 1), -ENOBUFS);
    assert_int_equal(buf_reserve(&b, SIZE_MAX), -ENOBUFS);
    assert_int_equal(buf_reserve(&b, 0), 0);
    assert_int_equal(b.len, 1000);
}

static void small_maximum(void **state) {
    (void)state;
    _cleanup_buf_ struct buf b = BUF_INIT(3);
    assert_int_equal(buf_putz(&b, "abc"), 0);
    assert_int_equal(b.cap, 3);
    assert_int_equal(buf_putc(&b, 'd'), -ENOBUFS);
    assert_memory_equal(b.p, "abc", 3);
}

/* A failed append leaves the contents alone, also when it only fails at the terminator. */
static void failed_format_changes_nothing(void **state) {
    (void)state;
    _cleanup_buf_ struct buf b = BUF_INIT(600);
    assert_int_equal(buf_putz(&b, "keep"), 0);
    assert_int_equal(buf_putf(&b, "%*d", 2000, 1), -ENOBUFS);
    assert_int_equal(b.len, 4);
    assert_memory_equal(b.p, "keep", 4);
}

static void consumes_from_the_front(void **state) {
    (void)state;
    _cleanup_buf_ struct buf b = BUF_INIT(100);
    assert_int_equal(buf_putz(&b, "hello world"), 0);
    buf_consume(&b, 0);
    assert_int_equal(b.len, 11);
    buf_consume(&b, 6);
    assert_true(str_eqz(buf_str(&b), "world"));
    buf_consume(&b, 5);
    assert_int_equal(b.len, 0);
    assert_int_equal(buf_putz(&b, "again"), 0);
    assert_true(str_eqz(buf_str(&b), "again"));
}

static void usable_after_fini(void **state) {
    (void)state;
    struct buf b = BUF_INIT(100);
    assert_int_equal(buf_putz(&b, "x"), 0);
    buf_fini(&b);
    assert_null(b.p);
    assert_int_equal(b.cap, 0);
    assert_int_equal(buf_putz(&b, "yz"), 0);
    assert_true(str_eqz(buf_str(&b), "yz"));
    buf_fini(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(starts_empty),
        cmocka_unit_test(appends),
        cmocka_unit_test(formats_long_text),
        cmocka_unit_test(stops_at_the_maximum),
        cmocka_unit_test(small_maximum),
        cmocka_unit_test(failed_format_changes_nothing),
        cmocka_unit_test(consumes_from_the_front),
        cmocka_unit_test(usable_after_fini),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
