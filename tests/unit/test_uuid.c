#include "base/uuid.h"

#include "base/crypto.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static const char canonical[] = "0123abcd-4567-89ef-abcd-0123456789ab";

static void random_ones(void **state) {
    (void)state;
    char a[UUID_LEN + 1], b[UUID_LEN + 1], again[UUID_LEN + 1];
    uuid_random(a);
    uuid_random(b);
    assert_int_equal(strlen(a), UUID_LEN);
    assert_string_not_equal(a, b);
    assert_int_equal(a[14], '4');           /* version */
    assert_non_null(strchr("89ab", a[19])); /* variant */
    for (const char *p = a; *p != '\0'; p++)
        assert_true(*p == '-' || isdigit((unsigned char)*p) || (*p >= 'a' && *p <= 'f'));
    assert_true(uuid_parse(str_of(a), again));
    assert_string_equal(a, again);
}

static void accepted_forms(void **state) {
    (void)state;
    static const char *const forms[] = {
        "0123abcd-4567-89ef-abcd-0123456789ab",   "0123ABCD-4567-89EF-ABCD-0123456789AB",
        "0123abcd456789efabcd0123456789ab",       "0123ABCD456789EFABCD0123456789AB",
        "{0123abcd-4567-89ef-abcd-0123456789ab}", "urn:uuid:0123abcd-4567-89ef-abcd-0123456789AB",
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char out[UUID_LEN + 1];
        assert_true(uuid_parse(str_of(forms[i]), out));
        assert_string_equal(out, canonical);
    }
}

static void refused_forms(void **state) {
    (void)state;
    static const char *const forms[] = {
        "",
        "0123abcd",
        "0123abcd-4567-89ef-abcd-0123456789a",
        "0123abcd-4567-89ef-abcd-0123456789abc",
        "0123abcd-4567-89ef-abcd-0123456789ag",
        "0123abcd4567-89ef-abcd-0123456789abc",
        "0123abcd_4567_89ef_abcd_0123456789ab",
        "0123abcd-456789ef--abcd-0123456789ab",
        "{0123abcd-4567-89ef-abcd-0123456789ab",
        "0123abcd-4567-89ef-abcd-0123456789ab}",
        "{0123abcd456789efabcd0123456789ab}",
        "(0123abcd-4567-89ef-abcd-0123456789ab)",
        "URN:UUID:0123abcd-4567-89ef-abcd-0123456789ab",
        "urn:uuid:",
        "urn:uuid:{0123abcd-4567-89ef-abcd-0123456789ab}",
        " 0123abcd-4567-89ef-abcd-0123456789ab",
        "0123abcd-4567-89ef-abcd-0123456789ab\n",
        "{}",
        "------------------------------------",
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char out[UUID_LEN + 1];
        if (uuid_parse(str_of(forms[i]), out))
            fail_msg("accepted: %s", forms[i]);
    }
    char out[UUID_LEN + 1];
    assert_false(uuid_parse((struct str){NULL, 0}, out));
    assert_false(uuid_parse((struct str){"0123abcd-4567-89ef\0abcd-0123456789ab", UUID_LEN}, out));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_ones),
        cmocka_unit_test(accepted_forms),
        cmocka_unit_test(refused_forms),
    };
    crypto_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
