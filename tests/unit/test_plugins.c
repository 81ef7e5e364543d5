/* Which version of a plugin is the higher one. */
#include "environment/plugins.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static void ordered(const char *a, const char *b) {
    assert_true(plugins_version_less(str_of(a), str_of(b)));
    assert_false(plugins_version_less(str_of(b), str_of(a)));
}

static void semantic(void **state) {
    (void)state;
    /* The example of the specification, and numbers that no type holds. */
    static const char *const rising[] = {"1.0.0-1",
                                         "1.0.0-alpha",
                                         "1.0.0-alpha.1",
                                         "1.0.0-alpha.9",
                                         "1.0.0-alpha.10",
                                         "1.0.0-alpha.beta",
                                         "1.0.0-beta",
                                         "1.0.0-beta.2",
                                         "1.0.0-beta.11",
                                         "1.0.0-rc.1",
                                         "1.0.0",
                                         "1.0.0+a",
                                         "1.0.0+b",
                                         "1.0.1",
                                         "1.2.0",
                                         "1.10.0",
                                         "9.0.0",
                                         "10.0.0",
                                         "9999999999999999999.0.0"};
    for (size_t i = 0; i < ARRAY_LEN(rising); i++) {
        assert_false(plugins_version_less(str_of(rising[i]), str_of(rising[i])));
        for (size_t k = i + 1; k < ARRAY_LEN(rising); k++)
            ordered(rising[i], rising[k]);
    }
}

/* Anything else is compared as text. */
static void textual(void **state) {
    (void)state;
    ordered("1", "2.0");
    ordered("10", "9");
    ordered("1.0.0", "v1.0.0");
    ordered("01.0.0", "1.0.0");
    ordered("1.0.0-", "1.0.0-a");
    ordered("1.0.0", "1.0.0.0");
    ordered("1.0.0+", "1.0.0+a");
    ordered("1.0.0-01", "1.0.0-1");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(semantic), cmocka_unit_test(textual)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
