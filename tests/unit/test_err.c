#include "base/err.h"

#include "base/utf8.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void sets_and_replaces(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    assert_int_equal(e.code, 0);
    assert_int_equal(err_set(&e, ERR_NOT_FOUND, "no %s %d", "thing", 7), -EINVAL);
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_string_equal(err_msg(&e), "no thing 7");
    assert_int_equal(err_set(&e, ERR_INTERNAL, "other"), -EINVAL);
    assert_int_equal(e.code, ERR_INTERNAL);
    assert_string_equal(err_msg(&e), "other");
    err_fini(&e);
    assert_int_equal(e.code, 0);
    assert_null(e.msg);
}

/* The new message may quote the old one. */
static void wraps_its_own_message(void **state) {
    (void)state;
    _cleanup_err_ struct err e = ERR_INIT;
    err_set(&e, ERR_INTERNAL, "inner");
    err_set(&e, ERR_INTERNAL, "outer: %s", err_msg(&e));
    assert_string_equal(err_msg(&e), "outer: inner");
}

static void message_is_never_null(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    assert_non_null(err_msg(&e));
    err_fini(&e);
}

static void cuts_between_characters(void **state) {
    (void)state;
    static char text[2 * ERR_MSG_MAX];
    for (size_t shift = 0; shift < 4; shift++) {
        memset(text, 'x', shift);
        for (size_t i = shift; i + 4 < sizeof text; i += 4)
            memcpy(text + i, "\xF0\x9F\x98\x80", 5);
        _cleanup_err_ struct err e = ERR_INIT;
        err_set(&e, ERR_INTERNAL, "%s", text);
        size_t n = strlen(err_msg(&e));
        assert_true(n <= ERR_MSG_MAX && n > ERR_MSG_MAX - 4);
        assert_true(utf8_valid(err_msg(&e), n));
    }
}

static void keeps_the_longest_allowed(void **state) {
    (void)state;
    static char text[ERR_MSG_MAX + 1];
    memset(text, 'x', ERR_MSG_MAX);
    _cleanup_err_ struct err e = ERR_INIT;
    err_set(&e, ERR_INTERNAL, "%s", text);
    assert_string_equal(err_msg(&e), text);
    err_set(&e, ERR_INTERNAL, "%sy", text);
    assert_string_equal(err_msg(&e), text);
}

static void os_errors(void **state) {
    (void)state;
    _cleanup_err_ struct err e = ERR_INIT;
    assert_int_equal(err_os(&e, ERR_NOT_FOUND, ENOENT), -ENOENT);
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_string_equal(err_msg(&e), "No such file or directory (os error 2)");
    assert_int_equal(err_os(&e, ERR_INTERNAL, EACCES), -EACCES);
    assert_string_equal(err_msg(&e), "Permission denied (os error 13)");
}

/* Where the protocol's texts and those of the C library part. */
static void os_texts_of_the_protocol(void **state) {
    (void)state;
    assert_string_equal(err_os_text(ENAMETOOLONG), "Filename too long");
    assert_string_equal(err_os_text(ELOOP), "Symbolic link loop");
    assert_string_equal(err_os_text(EADDRINUSE), "Address in use");
    assert_string_equal(err_os_text(ENOTDIR), "Not a directory");
    assert_string_equal(err_os_text(ENOTEMPTY), "Directory not empty");
    assert_string_equal(err_os_text(100000), "No error information");
}

static void keeps_its_subject(void **state) {
    (void)state;
    _cleanup_err_ struct err e = ERR_INIT, to = ERR_INIT;
    assert_int_equal(err_about(&e, ERR_INTERNAL, "no ", STR_LIT("a\0b"), " here"), -EINVAL);
    assert_true(str_eq(err_subject(&e), STR_LIT("a\0b")));
    err_set(&to, ERR_INVALID_PARAMS, "other");
    assert_int_equal(err_subject(&to).n, 0);
    assert_int_equal(err_move(&to, &e), -EINVAL);
    assert_int_equal(to.code, ERR_INTERNAL);
    assert_true(str_eq(err_subject(&to), STR_LIT("a\0b")));
    assert_int_equal(e.code, 0);
    assert_null(e.msg);
    /* A subject that the message cannot hold is cut with it. */
    static char large[2 * ERR_MSG_MAX];
    memset(large, 'x', sizeof large);
    err_about(&to, ERR_INTERNAL, "'", (struct str){large, sizeof large}, "'");
    assert_int_equal(err_subject(&to).n, ERR_MSG_MAX - 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_and_replaces),         cmocka_unit_test(wraps_its_own_message),
        cmocka_unit_test(message_is_never_null),     cmocka_unit_test(cuts_between_characters),
        cmocka_unit_test(keeps_the_longest_allowed), cmocka_unit_test(os_errors),
        cmocka_unit_test(os_texts_of_the_protocol),  cmocka_unit_test(keeps_its_subject),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
