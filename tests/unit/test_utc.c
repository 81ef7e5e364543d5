#include "base/utc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void check(int64_t t) {
    struct tm tm;
    time_t seconds = (time_t)t;
    assert_non_null(gmtime_r(&seconds, &tm));
    struct utc u = utc_of(t);
    assert_int_equal(u.year, tm.tm_year + 1900);
    assert_int_equal(u.month, tm.tm_mon + 1);
    assert_int_equal(u.day, tm.tm_mday);
    assert_int_equal(u.hour, tm.tm_hour);
    assert_int_equal(u.minute, tm.tm_min);
    assert_int_equal(u.second, tm.tm_sec);
    assert_int_equal(u.weekday, tm.tm_wday);
}

/* Every day of 800 years around 1970, at a second that differs from day to day. */
static void test_days(void **state) {
    (void)state;
    for (int64_t day = -146097; day <= 146097; day++)
        check(day * 86400 + (day * 7919 % 86400 + 86400) % 86400);
}

static void test_seconds(void **state) {
    (void)state;
    for (int64_t t = -90000; t <= 90000; t++)
        check(t);
    check(INT32_MAX);
    check((int64_t)INT32_MAX + 1);
    check(253402300799); /* the last of 9999 */
}

static void test_text(void **state) {
    (void)state;
    char text[UTC_TEXT_LEN + 1];
    utc_text(text, &(struct timespec){0, 999999});
    assert_string_equal(text, "1970-01-01T00:00:00.000Z");
    utc_text(text, &(struct timespec){951868799, 123456789});
    assert_string_equal(text, "2000-02-29T23:59:59.123Z");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_days),
        cmocka_unit_test(test_seconds),
        cmocka_unit_test(test_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
