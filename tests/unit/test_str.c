#include "base/editdist.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

static void equality(void **state) {
    (void)state;
    struct str none = {NULL, 0};
    assert_true(str_eq(none, STR_LIT("")));
    assert_true(str_eq(str_of(NULL), none));
    assert_true(str_eqz(STR_LIT("abc"), "abc"));
    assert_false(str_eqz(STR_LIT("abc"), "abd"));
    assert_false(str_eqz(STR_LIT("abc"), "ab"));
    assert_false(str_eqz(STR_LIT("ab"), "abc"));
    assert_true(str_eq(STR_LIT("a\0b"), STR_LIT("a\0b")));
    assert_false(str_eq(STR_LIT("a\0b"), STR_LIT("a\0c")));
    assert_false(str_eqz(STR_LIT("a\0b"), "a"));
}

static void equality_without_case(void **state) {
    (void)state;
    assert_true(str_ieqz(STR_LIT("WebSocket"), "websocket"));
    assert_true(str_ieqz((struct str){NULL, 0}, ""));
    assert_false(str_ieqz(STR_LIT("websockets"), "websocket"));
    assert_false(str_ieqz(STR_LIT("websocke"), "websocket"));
    assert_false(str_ieqz(STR_LIT("websocke["), "websocke{"));
}

static void nul_bytes(void **state) {
    (void)state;
    assert_true(str_has_nul(STR_LIT("a\0b")));
    assert_true(str_has_nul(STR_LIT("\0")));
    assert_false(str_has_nul(STR_LIT("ab")));
    assert_false(str_has_nul((struct str){NULL, 0}));
}

static void trimming(void **state) {
    (void)state;
    assert_true(str_eqz(str_trim(STR_LIT(" \t\r\n\v\fab c\f\v\n\r\t ")), "ab c"));
    assert_true(str_eqz(str_trim(STR_LIT("abc")), "abc"));
    assert_int_equal(str_trim(STR_LIT(" \n ")).n, 0);
    assert_int_equal(str_trim((struct str){NULL, 0}).n, 0);
    /* NUL is not a blank, although it ends the list of blanks. */
    assert_int_equal(str_trim(STR_LIT("\0a\0")).n, 3);
}

static void lines(void **state) {
    (void)state;
    struct str rest = STR_LIT("GET\r\n\n\r\nend"), line;
    assert_true(str_take_line(&rest, &line));
    assert_true(str_eqz(line, "GET"));
    assert_true(str_take_line(&rest, &line));
    assert_int_equal(line.n, 0);
    assert_true(str_take_line(&rest, &line));
    assert_int_equal(line.n, 0);
    assert_false(str_take_line(&rest, &line));
    assert_true(str_eqz(rest, "end"));
    rest = (struct str){NULL, 0};
    assert_false(str_take_line(&rest, &line));
}

static void distances(void **state) {
    (void)state;
    assert_int_equal(editdist(STR_LIT("listen"), STR_LIT("listen")), 0);
    assert_int_equal(editdist(STR_LIT("listn"), STR_LIT("listen")), 1);
    assert_int_equal(editdist(STR_LIT("lisnet"), STR_LIT("listen")), 2);
    assert_int_equal(editdist(STR_LIT(""), STR_LIT("abc")), 3);
    char text[EDITDIST_MAX + 1];
    memset(text, 'a', sizeof text);
    assert_int_equal(editdist((struct str){text, EDITDIST_MAX}, STR_LIT("a")), EDITDIST_MAX - 1);
    assert_int_equal(editdist((struct str){text, sizeof text}, (struct str){text, sizeof text}),
                     EDITDIST_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equality),  cmocka_unit_test(equality_without_case),
        cmocka_unit_test(nul_bytes), cmocka_unit_test(trimming),
        cmocka_unit_test(lines),     cmocka_unit_test(distances),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
