#include "process/variant.h"

#include "base/util.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

static const char *const names[] = {"force", "graceful"};
static const struct variant_set set = {"struct Mode", names, 2};

static const struct row {
    const char *text;
    int index;           /* -EINVAL: refused */
    const char *members; /* what {"n":...} is in the members; NULL: there are none */
    const char *error;
} rows[] = {
    {"\"force\"", 0, NULL, NULL},
    {"\"Force\"", 0, NULL, NULL},
    {"\"graceful\"", 1, NULL, NULL},
    {"\"Graceful\"", 1, NULL, NULL},
    {"{\"type\":\"graceful\",\"n\":\"a\"}", 1, "a", NULL},
    {"{\"type\":\"Graceful\",\"n\":\"a\"}", 1, "a", NULL},
    {"{\"n\":\"a\",\"type\":\"Force\"}", 0, "a", NULL},
    {"{\"graceful\":{\"n\":\"a\"}}", 1, "a", NULL},
    {"{\"Graceful\":{\"n\":\"a\"}}", 1, "a", NULL},
    {"{\"Graceful\":{\"type\":\"force\",\"n\":\"a\"}}", 1, "a", NULL},
    {"{\"Force\":null}", 0, NULL, NULL},
    {"{\"type\":\"force\"}", 0, "", NULL},
    {"\"FORCE\"", -EINVAL, NULL, "unknown variant `FORCE`, expected `force` or `graceful`"},
    {"\"F\"", -EINVAL, NULL, "unknown variant `F`, expected `force` or `graceful`"},
    {"\"Forc\"", -EINVAL, NULL, "unknown variant `Forc`, expected `force` or `graceful`"},
    {"\"\"", -EINVAL, NULL, "unknown variant ``, expected `force` or `graceful`"},
    {"{\"soft\":{}}", -EINVAL, NULL, "unknown variant `soft`, expected `force` or `graceful`"},
    {"{\"Graceful\":5}", -EINVAL, NULL, "invalid type: number, expected struct Mode"},
    {"{}", -EINVAL, NULL, "missing field `type`"},
    {"{\"force\":{},\"graceful\":{}}", -EINVAL, NULL, "missing field `type`"},
    {"{\"type\":5}", -EINVAL, NULL, "invalid type: number, expected string or map"},
    {"5", -EINVAL, NULL, "invalid type: number, expected string or map"},
    {"[]", -EINVAL, NULL, "invalid type: sequence, expected string or map"},
};

static void values_by_table(void **state) {
    (void)state;
    struct json_doc doc;
    json_doc_init(&doc, 1 << 20, 1);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        _cleanup_err_ struct err e = ERR_INIT;
        const struct row *row = &rows[i];
        const struct json_node *members;
        assert_int_equal(json_parse(&doc, row->text, strlen(row->text), &e), 0);
        int r = variant_value(json_root(&doc), &set, &members, &e);
        if (r != row->index)
            fail_msg("%s: %d, %s", row->text, r, err_msg(&e));
        if (row->error != NULL) {
            assert_string_equal(err_msg(&e), row->error);
        } else if (row->members == NULL) {
            assert_null(members);
        } else if (row->members[0] != '\0') {
            assert_true(str_eqz(json_str(json_get(members, "n")), row->members));
        }
    }
    json_doc_fini(&doc);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(values_by_table)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
