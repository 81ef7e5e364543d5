#include "base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

static bool all_zero(const char *p, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (p[i] != 0)
            return false;
    }
    return true;
}

/* Allocations of many sizes are aligned, zeroed, and do not overlap. */
static void many_sizes(void **state) {
    (void)state;
    _cleanup_arena_ struct arena a = ARENA_INIT(1 << 20);
    char *p[200];
    for (size_t i = 0; i < ARRAY_LEN(p); i++) {
        p[i] = arena_alloc(&a, i * 7);
        assert_non_null(p[i]);
        assert_int_equal((uintptr_t)p[i] % _Alignof(max_align_t), 0);
        assert_true(all_zero(p[i], i * 7));
        memset(p[i], (int)i, i * 7);
    }
    for (size_t i = 0; i < ARRAY_LEN(p); i++) {
        for (size_t k = 0; k < i * 7; k++)
            assert_int_equal((unsigned char)p[i][k], i);
    }
}

static void zeroed_again_after_reset(void **state) {
    (void)state;
    _cleanup_arena_ struct arena a = ARENA_INIT(1 << 20);
    for (int round = 0; round < 3; round++) {
        char *p = arena_alloc(&a, 1000);
        assert_non_null(p);
        assert_true(all_zero(p, 1000));
        memset(p, 0xFF, 1000);
        assert_non_null(arena_alloc(&a, 100000));
        arena_reset(&a);
        assert_true(a.total < 100000);
    }
}

static void stops_at_the_maximum(void **state) {
    (void)state;
    _cleanup_arena_ struct arena a = ARENA_INIT(100000);
    assert_null(arena_alloc(&a, 100001));
    size_t got = 0;
    while (arena_alloc(&a, 1024) != NULL)
        got += 1024;
    assert_true(got > 50000 && got <= 100000);
    assert_true(a.total <= a.max);
    arena_reset(&a);
    assert_non_null(arena_alloc(&a, 1024));
}

static void sizes_that_overflow(void **state) {
    (void)state;
    _cleanup_arena_ struct arena a = ARENA_INIT(SIZE_MAX);
    assert_null(arena_alloc(&a, SIZE_MAX));
    assert_null(arena_calloc(&a, SIZE_MAX / 2, 3));
    assert_null(arena_calloc(&a, (size_t)1 << 33, (size_t)1 << 33));
    char *p = arena_calloc(&a, 10, 10);
    assert_non_null(p);
    assert_true(all_zero(p, 100));
}

static void copies_strings(void **state) {
    (void)state;
    _cleanup_arena_ struct arena a = ARENA_INIT(1 << 20);
    assert_string_equal(arena_strdup(&a, STR_LIT("hello")), "hello");
    assert_string_equal(arena_strdup(&a, (struct str){NULL, 0}), "");
    assert_string_equal(arena_strdup(&a, (struct str){"hello", 3}), "hel");
}

static void usable_after_fini(void **state) {
    (void)state;
    struct arena a = ARENA_INIT(1 << 20);
    assert_non_null(arena_alloc(&a, 10));
    arena_fini(&a);
    assert_int_equal(a.total, 0);
    assert_non_null(arena_alloc(&a, 10));
    arena_fini(&a);
    arena_fini(&a);
    assert_null(a.head);
}

static void grows_arrays(void **state) {
    (void)state;
    _cleanup_arena_ struct arena a = ARENA_INIT(16384);
    int *list = NULL;
    size_t cap = 0;
    for (int i = 0; i < 100; i++) {
        list = arena_grow(&a, list, (size_t)i, &cap, 4, sizeof *list);
        assert_non_null(list);
        list[i] = i;
    }
    assert_int_equal(cap, 128);
    for (int i = 0; i < 100; i++)
        assert_int_equal(list[i], i);
    a.max = a.total;
    assert_null(arena_grow(&a, list, 128, &cap, 4, 4096));
    assert_int_equal(cap, 128);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_arrays),
        cmocka_unit_test(many_sizes),
        cmocka_unit_test(zeroed_again_after_reset),
        cmocka_unit_test(stops_at_the_maximum),
        cmocka_unit_test(sizes_that_overflow),
        cmocka_unit_test(copies_strings),
        cmocka_unit_test(usable_after_fini),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
