#include "ops/audit_tail.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void put(struct audit_tail *t, size_t n) {
    char *line = malloc(n);
    assert_non_null(line);
    memset(line, 'x', n);
    audit_tail_put(t, (struct str){line, n});
    free(line);
}

static int told;

static void tell(void *owner) {
    assert_ptr_equal(owner, &told);
    told++;
}

static void lines_have_numbers(void **state) {
    (void)state;
    struct audit_tail t;
    audit_tail_init(&t);
    t.news = tell;
    t.owner = &told;
    audit_tail_put(&t, STR_LIT("one"));
    audit_tail_put(&t, STR_LIT("two"));
    assert_int_equal(told, 2);
    assert_true(str_eqz(audit_tail_get(&t, 1), "one"));
    assert_true(str_eqz(audit_tail_get(&t, 2), "two"));
    assert_null(audit_tail_get(&t, 0).p);
    assert_null(audit_tail_get(&t, 3).p);
    assert_null(audit_tail_get(&t, UINT64_MAX).p);
    audit_tail_fini(&t);
}

static void old_lines_go(void **state) {
    (void)state;
    struct audit_tail t;
    audit_tail_init(&t);
    for (size_t i = 0; i < AUDIT_TAIL_LINES + 5; i++)
        put(&t, 3);
    assert_int_equal(t.first, 6);
    assert_int_equal(t.next, AUDIT_TAIL_LINES + 6);
    assert_int_equal(t.bytes, 3 * AUDIT_TAIL_LINES);
    assert_null(audit_tail_get(&t, 5).p);
    assert_int_equal(audit_tail_get(&t, 6).n, 3);
    audit_tail_fini(&t);
    assert_int_equal(t.bytes, 0);
}

static void bytes_have_a_maximum(void **state) {
    (void)state;
    struct audit_tail t;
    audit_tail_init(&t);
    for (size_t i = 0; i < 10; i++)
        put(&t, AUDIT_TAIL_BYTES / 4);
    assert_int_equal(t.next - t.first, 4);
    assert_int_equal(t.bytes, AUDIT_TAIL_BYTES);
    put(&t, 1);
    assert_int_equal(t.next - t.first, 4);
    put(&t, AUDIT_TAIL_BYTES);
    assert_int_equal(t.next - t.first, 1);
    put(&t, AUDIT_TAIL_BYTES + 1); /* it counts, but is not kept, nor anything before it */
    assert_int_equal(t.next - t.first, 0);
    assert_int_equal(t.next, 14);
    put(&t, 1);
    assert_int_equal(audit_tail_get(&t, 14).n, 1);
    audit_tail_fini(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_have_numbers),
        cmocka_unit_test(old_lines_go),
        cmocka_unit_test(bytes_have_a_maximum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
