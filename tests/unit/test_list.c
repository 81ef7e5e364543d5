#include "base/list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

struct item {
    int number;
    struct list link;
};

static struct item *item_of(struct list *l) {
    return list_entry(l, struct item, link);
}

/* The numbers in order, as decimal digits of one number. */
static int digits(struct list *head) {
    int all = 0;
    list_for_each(it, head) all = all * 10 + item_of(it)->number;
    return all;
}

static void empty_list(void **state) {
    (void)state;
    struct list head;
    list_init(&head);
    assert_true(list_empty(&head));
    assert_null(list_first(&head));
    assert_int_equal(digits(&head), 0);
    list_remove(&head);
    assert_true(list_empty(&head));
}

static void order(void **state) {
    (void)state;
    struct list head;
    struct item a = {.number = 1}, b = {.number = 2}, c = {.number = 3};
    list_init(&head);
    list_append(&head, &a.link);
    list_append(&head, &c.link);
    list_insert_before(&c.link, &b.link);
    assert_int_equal(digits(&head), 123);
    assert_ptr_equal(item_of(list_first(&head)), &a);
    assert_ptr_equal(head.prev, &c.link);
    list_remove(&b.link);
    assert_int_equal(digits(&head), 13);
    assert_true(list_empty(&b.link));
    list_remove(&b.link);
    assert_int_equal(digits(&head), 13);
    list_append(&head, &b.link);
    assert_int_equal(digits(&head), 132);
}

static void removal_while_walking(void **state) {
    (void)state;
    struct list head;
    struct item items[9];
    list_init(&head);
    for (int i = 0; i < 9; i++) {
        items[i].number = i + 1;
        list_append(&head, &items[i].link);
    }
    list_for_each(it, &head) {
        if (item_of(it)->number % 2 == 0)
            list_remove(it);
    }
    assert_int_equal(digits(&head), 13579);
    list_for_each(it, &head) list_remove(it);
    assert_true(list_empty(&head));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_list),
        cmocka_unit_test(order),
        cmocka_unit_test(removal_while_walking),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
