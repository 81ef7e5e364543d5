#include "base/unicase.h"

#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static const struct row {
    uint32_t from, to;
} rows[] = {
    {'A', 'a'},         {'Z', 'z'},         {'@', '@'},           {'[', '['},
    {0xC9, 0xE9},       {0xD7, 0xD7},       {0x130, 0x130},       {0x1C4, 0x1C6},
    {0x1C5, 0x1C6},     {0x1E9E, 0xDF},     {0x3A3, 0x3C3},       {0x3C2, 0x3C2},
    {0x212A, 'k'},      {0x10A0, 0x2D00},   {0x13A0, 0xAB70},     {0x1C90, 0x10D0},
    {0xA7CE, 0xA7CF},   {0xA7DC, 0x19B},    {0x100, 0x101},       {0x101, 0x101},
    {0x10400, 0x10428}, {0x10D50, 0x10D70}, {0x16EB8, 0x16ED3},   {0x16EB9, 0x16EB9},
    {0x1E921, 0x1E943}, {0x1E922, 0x1E922}, {0x10FFFF, 0x10FFFF}, {0x110080, 0x110080},
};

static void lower_case_by_table(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(unicase_lower(rows[i].from), rows[i].to);
}

/* A lower-case form is its own; the count of the others is that of Unicode 17. */
static void every_code_point(void **state) {
    (void)state;
    size_t changed = 0;
    for (uint32_t c = 0; c <= 0x10FFFF; c++) {
        uint32_t lower = unicase_lower(c);
        changed += lower != c;
        assert_int_equal(unicase_lower(lower), lower);
    }
    assert_int_equal(changed, 26 + 1406 + 27 + 28);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lower_case_by_table),
        cmocka_unit_test(every_code_point),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
