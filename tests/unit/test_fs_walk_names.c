#include "fs/fs_walk_names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static void add(struct fs_walk_names *l, const char *name, enum walk_kind kind) {
    assert_int_equal(fs_walk_names_add(l, str_of(name), kind), 0);
}

static void check(const struct fs_walk_names *l, size_t i, const char *want) {
    assert_true(i < fs_walk_names_count(l));
    struct str s = fs_walk_names_str(l, fs_walk_names_at(l, i));
    assert_string_equal(s.p, want);
    assert_int_equal(s.n, strlen(want));
}

static void by_bytes(void **state) {
    (void)state;
    static const char *const sorted[] = {
        " ",
        "%",
        ".h",
        "A",
        "Z",
        "a",
        "ab",
        "abcdefg",
        "abcdefgh",
        "abcdefgh\x01",
        "abcdefgha",
        "abcdefghi",
        "abcdefghia",
        "b",
        "n\x7F",
        "n\xC3\xBC",
        "n\xEF\xBF\xBD",
        "n\xF0\x9F\x98\x80",
    };
    struct fs_walk_names l;
    fs_walk_names_init(&l);
    fs_walk_names_begin(&l, 100);
    for (size_t i = 0; i < ARRAY_LEN(sorted); i++)
        add(&l, sorted[(i * 7) % ARRAY_LEN(sorted)], WALK_FILE);
    fs_walk_names_sort(&l);
    assert_int_equal(fs_walk_names_count(&l), ARRAY_LEN(sorted));
    for (size_t i = 0; i < ARRAY_LEN(sorted); i++) {
        check(&l, i, sorted[i]);
        assert_int_equal(fs_walk_names_at(&l, i)->kind, WALK_FILE);
    }
    fs_walk_names_fini(&l);
}

static void bad_bytes(void **state) {
    (void)state;
    struct fs_walk_names l;
    fs_walk_names_init(&l);
    fs_walk_names_begin(&l, 100);
    add(&l, "n\xFF", WALK_DIR);
    add(&l, "n\xF0", WALK_FILE);
    add(&l, "na", WALK_DIR);
    fs_walk_names_sort(&l);
    check(&l, 0, "na");
    check(&l, 1, "n\xEF\xBF\xBD");
    check(&l, 2, "n\xEF\xBF\xBD");
    assert_int_equal(fs_walk_names_at(&l, 0)->kind, WALK_DIR);
    assert_int_equal(fs_walk_names_at(&l, 1)->kind, WALK_LOOK);
    assert_int_equal(fs_walk_names_at(&l, 2)->kind, WALK_LOOK);
    fs_walk_names_fini(&l);
}

/* Of `total` names, in an order given by `step`, exactly the first `keep` are left. */
static void check_first(size_t total, size_t step, size_t keep, const char *prefix) {
    struct fs_walk_names l;
    fs_walk_names_init(&l);
    fs_walk_names_begin(&l, keep);
    char name[300];
    for (size_t i = 0; i < total; i++) {
        snprintf(name, sizeof name, "%s%07zu", prefix, i * step % total);
        add(&l, name, WALK_FILE);
    }
    fs_walk_names_sort(&l);
    assert_false(l.cut);
    assert_int_equal(fs_walk_names_count(&l), MIN(keep, total));
    for (size_t i = 0; i < MIN(keep, total); i++) {
        snprintf(name, sizeof name, "%s%07zu", prefix, i);
        check(&l, i, name);
    }
    fs_walk_names_fini(&l);
}

static void keeps_the_first(void **state) {
    (void)state;
    check_first(100000, 1, 11, "f");       /* in order */
    check_first(100000, 99999, 11, "f");   /* backwards */
    check_first(100000, 99999, 5000, "f"); /* each of them comes before those kept so far */
    check_first(100003, 7919, 50001, "f"); /* in no order */
    check_first(10, 3, 11, "f");
    check_first(5000, 7, 1, "f");
}

static void memory_is_bounded(void **state) {
    (void)state;
    char prefix[249];
    memset(prefix, 'p', 248);
    prefix[248] = '\0';
    check_first(120011, 7919, 50001, prefix);
    check_first(120000, 119999, 50001, prefix);
}

/* Names that are too long together are dropped from the end, and that is told. */
static void cuts(void **state) {
    (void)state;
    struct fs_walk_names l;
    fs_walk_names_init(&l);
    fs_walk_names_begin(&l, 50001);
    char name[256];
    memset(name, '\xFF', 255);
    name[255] = '\0';
    for (size_t i = 0; i < 60000; i++) {
        snprintf(name, sizeof name, "%06zu", 59999 - i);
        name[6] = '\xFF';
        assert_int_equal(fs_walk_names_add(&l, (struct str){name, 255}, WALK_FILE), 0);
        assert_true(l.text.cap <= FS_WALK_NAMES_BYTES);
    }
    fs_walk_names_sort(&l);
    assert_true(l.cut);
    size_t n = fs_walk_names_count(&l);
    assert_in_range(n, 1000, 50000);
    for (size_t i = 0; i < n; i++) {
        char want[32];
        snprintf(want, sizeof want, "%06zu", i);
        assert_memory_equal(fs_walk_names_str(&l, fs_walk_names_at(&l, i)).p, want, 6);
    }
    fs_walk_names_begin(&l, 10); /* a new list knows nothing of it */
    add(&l, "z", WALK_FILE);
    fs_walk_names_sort(&l);
    assert_false(l.cut);
    check(&l, 0, "z");
    fs_walk_names_fini(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_bytes),
        cmocka_unit_test(bad_bytes),
        cmocka_unit_test(keeps_the_first),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(cuts),
    };
    return cmocka_run_group_tests_name("fs_walk_names", tests, NULL, NULL);
}
