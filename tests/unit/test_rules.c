#include "sandbox/policy/rules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static struct arena arena = ARENA_INIT(16u << 20);
static const struct stat a_dir = {.st_mode = S_IFDIR | 0755, .st_dev = 7, .st_ino = 11};

static struct rules start(bool full_read) {
    return (struct rules){.a = &arena, .full_read = full_read};
}

static void add(struct rules *r, const char *path, enum plan_access access) {
    assert_non_null(rules_add(r, path, access, &a_dir));
}

static void the_longest_path_counts(void **state) {
    (void)state;
    struct rules r = start(true);
    add(&r, "/ws", PLAN_WRITE);
    add(&r, "/ws/a", PLAN_READ);
    add(&r, "/ws/a/b", PLAN_DENY);
    add(&r, "/ws/a/b/c", PLAN_WRITE);
    rules_sort(&r);
    assert_int_equal(rules_region(&r, "/"), RULES_READ);
    assert_int_equal(rules_region(&r, "/ws"), RULES_WRITE);
    assert_int_equal(rules_region(&r, "/ws2"), RULES_READ);
    assert_int_equal(rules_region(&r, "/ws/x/y"), RULES_WRITE);
    assert_int_equal(rules_region(&r, "/ws/a/x"), RULES_READ);
    assert_int_equal(rules_region(&r, "/ws/a/b/x"), RULES_DENY);
    assert_int_equal(rules_region(&r, "/ws/a/b/c/d/e"), RULES_WRITE);
    assert_int_equal(rules_region_above(&r, "/ws"), RULES_READ);
    assert_string_equal(rules_above(&r, "/ws/a/b/c")->path, "/ws/a/b");
    assert_null(rules_above(&r, "/ws"));
    assert_null(rules_above(&r, "/"));
    assert_int_equal(rules_exact(&r, "/ws/a")->ino, 11);
    assert_null(rules_exact(&r, "/ws/"));
}

static void of_one_path_deny_counts_then_write(void **state) {
    (void)state;
    struct rules r = start(false);
    add(&r, "/a", PLAN_READ);
    add(&r, "/a", PLAN_WRITE);
    add(&r, "/b", PLAN_WRITE);
    add(&r, "/b", PLAN_DENY);
    add(&r, "/b", PLAN_READ);
    rules_sort(&r);
    assert_int_equal(r.sorted, 2);
    assert_int_equal(rules_region(&r, "/a"), RULES_WRITE);
    assert_int_equal(rules_region(&r, "/b"), RULES_DENY);
}

static void the_root_has_rules_too(void **state) {
    (void)state;
    struct rules r = start(false);
    assert_int_equal(rules_region(&r, "/x"), RULES_INVISIBLE);
    add(&r, "/", PLAN_WRITE);
    rules_sort(&r);
    assert_int_equal(rules_region(&r, "/x"), RULES_WRITE);
    assert_string_equal(rules_above(&r, "/x")->path, "/");
}

static void what_changes_nothing_is_dropped(void **state) {
    (void)state;
    struct rules r = start(false);
    add(&r, "/hidden", PLAN_DENY);
    add(&r, "/hidden/read", PLAN_READ);
    add(&r, "/hidden/write", PLAN_WRITE);
    add(&r, "/shown", PLAN_READ);
    add(&r, "/shown/deny", PLAN_DENY);
    add(&r, "/shown/deny/read", PLAN_READ);
    add(&r, "/shown/deny/write", PLAN_WRITE);
    add(&r, "/shown/deny/write/read", PLAN_READ);
    rules_sort(&r);
    rules_prune_reads(&r);
    assert_false(rules_exact(&r, "/hidden")->dropped);
    assert_true(rules_exact(&r, "/hidden/read")->dropped);
    assert_false(rules_exact(&r, "/hidden/write")->dropped);
    assert_false(rules_exact(&r, "/shown/deny")->dropped);
    assert_true(rules_exact(&r, "/shown/deny/read")->dropped);
    assert_false(rules_exact(&r, "/shown/deny/write/read")->dropped);
    assert_int_equal(rules_region(&r, "/hidden/read"), RULES_DENY);
    assert_int_equal(rules_region_above(&r, "/hidden/write"), RULES_DENY);
    assert_int_equal(rules_region(&r, "/shown/deny/read"), RULES_DENY);
}

static void there_is_a_maximum(void **state) {
    (void)state;
    struct rules r = start(false);
    for (size_t i = 0; i < RULES_MAX; i++)
        add(&r, "/x", PLAN_READ);
    assert_null(rules_add(&r, "/x", PLAN_READ, &a_dir));
    rules_sort(&r);
    assert_int_equal(r.count, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_path_counts),
        cmocka_unit_test(of_one_path_deny_counts_then_write),
        cmocka_unit_test(the_root_has_rules_too),
        cmocka_unit_test(what_changes_nothing_is_dropped),
        cmocka_unit_test(there_is_a_maximum),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    arena_fini(&arena);
    return failed;
}
