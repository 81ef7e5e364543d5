#include "base/hash.h"

#include "base/crypto.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

struct item {
    struct hash_node node;
    char key[24];
    size_t n;
};

static struct str key_of(const struct item *i) {
    return (struct str){i->key, i->n};
}

static void add(struct hash *h, struct item *i) {
    assert_null(hash_find(h, key_of(i)));
    assert_int_equal(hash_add(h, &i->node, key_of(i)), 0);
}

static void starts_empty(void **state) {
    (void)state;
    struct hash h;
    hash_init(&h);
    assert_null(h.buckets);
    assert_null(hash_find(&h, STR_LIT("a")));
    assert_null(hash_find(&h, (struct str){NULL, 0}));
    hash_fini(&h);
}

/* The empty key, and keys that a C string could not tell apart. */
static void keys_are_bytes(void **state) {
    (void)state;
    struct hash h;
    hash_init(&h);
    struct item items[] = {
        {.key = "", .n = 0},     {.key = "\0", .n = 1},   {.key = "a", .n = 1},
        {.key = "a\0b", .n = 3}, {.key = "a\0c", .n = 3}, {.key = "A", .n = 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(items); i++)
        add(&h, &items[i]);
    assert_int_equal(h.count, ARRAY_LEN(items));
    for (size_t i = 0; i < ARRAY_LEN(items); i++)
        assert_ptr_equal(hash_find(&h, key_of(&items[i])), &items[i].node);
    assert_ptr_equal(hash_find(&h, (struct str){NULL, 0}), &items[0].node);
    assert_null(hash_find(&h, (struct str){"a\0", 2}));
    hash_fini(&h);
}

static void grows_and_empties(void **state) {
    (void)state;
    enum { COUNT = 5000 };
    struct hash h;
    hash_init(&h);
    struct item *items = calloc(COUNT, sizeof *items);
    assert_non_null(items);
    for (size_t i = 0; i < COUNT; i++) {
        items[i].n = (size_t)snprintf(items[i].key, sizeof items[i].key, "process-%zu", i);
        add(&h, &items[i]);
        assert_int_equal(h.nbuckets & (h.nbuckets - 1), 0);
    }
    assert_int_equal(h.count, COUNT);
    assert_true(h.nbuckets >= COUNT);
    for (size_t i = 0; i < COUNT; i += 2)
        hash_remove(&h, &items[i].node);
    for (size_t i = 0; i < COUNT; i++) {
        struct hash_node *found = hash_find(&h, key_of(&items[i]));
        assert_ptr_equal(found, i % 2 == 0 ? NULL : &items[i].node);
    }
    for (size_t i = 1; i < COUNT; i += 2)
        hash_remove(&h, &items[i].node);
    assert_int_equal(h.count, 0);
    assert_null(h.buckets); /* an empty table holds no memory */
    add(&h, &items[7]);
    assert_ptr_equal(hash_find(&h, key_of(&items[7])), &items[7].node);
    hash_remove(&h, &items[7].node);
    hash_fini(&h);
    free(items);
}

/* Chosen keys cannot collide in every table. */
static void tables_hash_differently(void **state) {
    (void)state;
    struct hash a, b;
    hash_init(&a);
    hash_init(&b);
    assert_memory_not_equal(a.seed, b.seed, sizeof a.seed);
    struct item x = {.key = "key", .n = 3}, y = x;
    add(&a, &x);
    add(&b, &y);
    assert_true(x.node.hash != y.node.hash);
    hash_fini(&a);
    hash_fini(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(starts_empty),
        cmocka_unit_test(keys_are_bytes),
        cmocka_unit_test(grows_and_empties),
        cmocka_unit_test(tables_hash_differently),
    };
    crypto_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
