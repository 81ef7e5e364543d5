#include "client/exec_delta.h"

#include "base/buf.h"
#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static char delta[EXEC_DELTA_MAX];

static void code_points_stay_whole(void **state) {
    (void)state;
    static const char euro[] = "x\xE2\x82\xAC\xF0\x9F\x98\x80\xC3\xA9";
    _cleanup_buf_ struct buf in = BUF_INIT(1 << 20);
    _cleanup_buf_ struct buf got = BUF_INIT(1 << 20);
    while (in.len < 100000)
        assert_int_equal(buf_putz(&in, euro), 0);
    for (size_t step = 1; step < 30000; step = step * 3 + 1) {
        struct exec_delta d = {0};
        got.len = 0;
        for (size_t at = 0; at < in.len; at += step) {
            struct str piece = {in.p + at, MIN(step, in.len - at)};
            size_t n;
            while ((n = exec_delta_next(&d, &piece, false, delta)) > 0) {
                assert_true(n <= EXEC_DELTA_MAX);
                assert_true(utf8_valid(delta, n));
                assert_int_equal(buf_put(&got, delta, n), 0);
            }
            assert_int_equal(piece.n, 0);
            if (d.count == EXEC_DELTA_COUNT)
                break;
        }
        if (d.count < EXEC_DELTA_COUNT) {
            assert_int_equal(got.len, in.len);
            assert_int_equal(d.held_n, 0);
        }
        assert_memory_equal(got.p, in.p, got.len);
    }
}

static void the_end_brings_what_is_left(void **state) {
    (void)state;
    struct exec_delta d = {0};
    struct str in = STR_LIT("a\xE2\x82");
    assert_int_equal(exec_delta_next(&d, &in, false, delta), 1);
    assert_int_equal(exec_delta_next(&d, &in, false, delta), 0);
    assert_int_equal(d.held_n, 2);
    assert_int_equal(exec_delta_next(&d, &in, true, delta), 2);
    assert_memory_equal(delta, "\xE2\x82", 2);
    assert_int_equal(exec_delta_next(&d, &in, true, delta), 0);
}

static void broken_bytes_pass(void **state) {
    (void)state;
    struct exec_delta d = {0};
    struct str in = STR_LIT("\xFF\x80\x80\x80\x80\xC3(\xED\xA0");
    assert_int_equal(exec_delta_next(&d, &in, false, delta), 9);
    assert_memory_equal(delta, "\xFF\x80\x80\x80\x80\xC3(\xED\xA0", 9);
}

static void their_number_is_bounded(void **state) {
    (void)state;
    struct exec_delta d = {0};
    for (unsigned i = 0; i < EXEC_DELTA_COUNT + 5; i++) {
        struct str in = STR_LIT("x");
        assert_int_equal(exec_delta_next(&d, &in, false, delta), i < EXEC_DELTA_COUNT);
        assert_int_equal(in.n, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(code_points_stay_whole),
        cmocka_unit_test(the_end_brings_what_is_left),
        cmocka_unit_test(broken_bytes_pass),
        cmocka_unit_test(their_number_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
