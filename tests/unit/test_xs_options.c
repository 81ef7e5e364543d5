#include "client/client_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static void keeps_values(void **state) {
    (void)state;
    struct xs_options *o = xs_options_new();
    assert_non_null(o);
    assert_false(xs_options_has(o, XS_OPT_URL));
    assert_int_equal(xs_options_str(o, XS_OPT_URL, "ws://a"), 0);
    assert_int_equal(xs_options_str(o, XS_OPT_URL, "ws://b"), 0);
    assert_int_equal(xs_options_num(o, XS_OPT_ROWS, 65535), 0);
    char word[16];
    for (int i = 0; i < 40; i++) {
        snprintf(word, sizeof word, "%d", i);
        assert_int_equal(xs_options_add(o, XS_OPT_ARGV, word), 0);
    }
    struct xs_options *copy = xs_options_copy(o);
    xs_options_free(o);
    size_t n = 0;
    const char *const *list = xs_options_list(copy, XS_OPT_ARGV, &n);
    assert_int_equal(n, 40);
    assert_string_equal(list[39], "39");
    assert_null(list[40]);
    assert_string_equal(xs_options_get(copy, XS_OPT_URL, "x"), "ws://b");
    assert_int_equal(xs_options_get_num(copy, XS_OPT_ROWS, 1), 65535);
    assert_int_equal(xs_options_get_num(copy, XS_OPT_COLS, 7), 7);
    assert_string_equal(xs_options_get(NULL, XS_OPT_URL, "x"), "x");
    assert_null(xs_options_list(NULL, XS_OPT_ARGV, &n)[0]);
    assert_int_equal(xs_options_add(copy, XS_OPT_ARGV, NULL), 0);
    assert_int_equal(xs_options_str(copy, XS_OPT_URL, NULL), 0);
    assert_false(xs_options_has(copy, XS_OPT_ARGV));
    assert_false(xs_options_has(copy, XS_OPT_URL));
    xs_options_free(copy);
}

static void refuses(void **state) {
    (void)state;
    struct xs_options *o = xs_options_new();
    assert_int_equal(xs_options_str(o, "nosuch", "x"), XS_EINVAL);
    assert_string_equal(xs_error_text(xs_options_error(o)), "unknown option nosuch");
    assert_int_equal(xs_options_str(o, NULL, "x"), XS_EINVAL);
    assert_int_equal(xs_options_num(o, XS_OPT_ROWS, 0), XS_EINVAL);
    assert_int_equal(xs_options_num(o, XS_OPT_CONNECT_MS, INT64_MAX), XS_EINVAL);
    assert_int_equal(xs_options_num(o, XS_OPT_URL, 1), XS_EINVAL);
    assert_int_equal(xs_options_add(o, XS_OPT_URL, "x"), XS_EINVAL);
    assert_string_equal(xs_error_text(xs_options_error(o)), "option url is a text");
    xs_options_free(o);
}

static void names_every_error(void **state) {
    (void)state;
    assert_string_equal(xs_error_name(0), "no error");
    for (int i = XS_ELOCAL; i <= XS_EINVAL; i++)
        assert_string_not_equal(xs_error_name(i), "unknown error");
    assert_string_equal(xs_error_name(XS_ELOCAL - 1), "unknown error");
    assert_string_equal(xs_error_name(1), "no error");
    assert_string_equal(xs_error_name(INT32_MIN), "unknown error");
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    assert_int_equal(xs_error_sys(&e, XS_ELOCAL, 2, "file %s\n", "x"), XS_ELOCAL);
    assert_string_equal(xs_error_text(&e), "file x : No such file or directory");
    assert_int_equal(e.os, 2);
    assert_int_equal(xs_error_set(&e, XS_EINVAL, "again: %s", xs_error_text(&e)), XS_EINVAL);
    assert_string_equal(xs_error_text(&e), "again: file x : No such file or directory");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_values),
        cmocka_unit_test(refuses),
        cmocka_unit_test(names_every_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
