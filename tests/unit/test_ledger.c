#include "process/ledger.h"

#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define START 5000u
#define FIRST (UINT64_C(1000) * START)
#define ROWS 6

struct world {
    struct ledger l;
    struct ledger_row row[ROWS];
};

static void begin(struct world *w) {
    ledger_init(&w->l);
    for (size_t i = 0; i < ROWS; i++)
        ledger_row_init(&w->row[i], LEDGER_PROCESS);
    ledger_begin(&w->l, START);
}

/* The rows after a revision as letters, in order. */
static const char *seen(const struct world *w, uint64_t after) {
    static char text[ROWS + 1];
    size_t n = 0;
    for (const struct list *it = ledger_rows_after(&w->l, after); it != &w->l.rows; it = it->next)
        text[n++] = (char)('a' + (list_entry(it, struct ledger_row, node) - w->row));
    text[n] = '\0';
    return text;
}

static const char *gone(const struct world *w, uint64_t after) {
    static char text[256];
    size_t n = 0;
    for (const struct list *it = ledger_gone_after(&w->l, after); it != &w->l.gone; it = it->next) {
        const struct ledger_gone *g = list_entry(it, struct ledger_gone, node);
        n += (size_t)snprintf(text + n, sizeof text - n, "%.*s.", (int)g->n, g->ids);
    }
    text[n] = '\0';
    return text;
}

static void rows_are_in_the_order_of_their_change(void **state) {
    (void)state;
    struct world w;
    begin(&w);
    assert_string_equal(seen(&w, FIRST), "");
    for (size_t i = 0; i < 3; i++)
        ledger_touch(&w.l, &w.row[i]);
    assert_int_equal(w.l.revision, FIRST + 3);
    assert_string_equal(seen(&w, FIRST), "abc");
    assert_string_equal(seen(&w, FIRST + 1), "bc");
    ledger_touch(&w.l, &w.row[0]);
    assert_string_equal(seen(&w, FIRST), "bca");
    assert_string_equal(seen(&w, FIRST + 3), "a");
    assert_string_equal(seen(&w, FIRST + 4), "");
    ledger_touch(&w.l, &w.row[0]);
    assert_string_equal(seen(&w, FIRST + 4), "a");
    ledger_fini(&w.l);
}

static void removals_are_told(void **state) {
    (void)state;
    struct world w;
    begin(&w);
    ledger_touch(&w.l, &w.row[0]);
    ledger_touch(&w.l, &w.row[1]);
    uint64_t before = w.l.revision;
    ledger_remove(&w.l, &w.row[0], STR_LIT("s"), STR_LIT("p"));
    assert_string_equal(gone(&w, before), "sp.");
    assert_string_equal(seen(&w, FIRST), "b");
    ledger_remove(&w.l, &w.row[1], STR_LIT("s"), (struct str){NULL, 0});
    assert_string_equal(gone(&w, before), "sp.s.");
    assert_string_equal(gone(&w, before + 1), "s.");
    assert_string_equal(gone(&w, w.l.revision), "");
    /* One that was never told of needs no word. */
    ledger_remove(&w.l, &w.row[2], STR_LIT("x"), STR_LIT("y"));
    assert_int_equal(w.l.revision, before + 2);
    ledger_fini(&w.l);
}

static void strange_revisions_are_old(void **state) {
    (void)state;
    struct world w;
    begin(&w);
    assert_false(ledger_is_old(&w.l, FIRST));
    ledger_touch(&w.l, &w.row[0]);
    assert_false(ledger_is_old(&w.l, FIRST + 1));
    assert_true(ledger_is_old(&w.l, FIRST + 2)); /* not yet */
    assert_true(ledger_is_old(&w.l, FIRST - 1)); /* of an earlier server */
    assert_true(ledger_is_old(&w.l, 0));
    ledger_fini(&w.l);
}

static void removals_have_a_maximum(void **state) {
    (void)state;
    struct world w;
    begin(&w);
    for (size_t i = 0; i < LEDGER_GONE_MAX + 10; i++) {
        ledger_touch(&w.l, &w.row[0]);
        ledger_remove(&w.l, &w.row[0], STR_LIT("s"), STR_LIT("p"));
    }
    assert_int_equal(w.l.gone_count, LEDGER_GONE_MAX);
    assert_int_equal(w.l.gone_bytes, 2 * LEDGER_GONE_MAX);
    /* The tenth removal, of revision 20, is the last that was forgotten. */
    assert_true(ledger_is_old(&w.l, FIRST + 19));
    assert_false(ledger_is_old(&w.l, FIRST + 20));
    ledger_fini(&w.l);
}

static void their_ids_have_a_maximum(void **state) {
    (void)state;
    struct world w;
    begin(&w);
    const size_t n = LEDGER_GONE_BYTES / 4;
    char *name = malloc(n);
    assert_non_null(name);
    memset(name, 'n', n);
    for (size_t i = 0; i < 6; i++) {
        ledger_touch(&w.l, &w.row[0]);
        ledger_remove(&w.l, &w.row[0], (struct str){name, n}, (struct str){NULL, 0});
    }
    assert_int_equal(w.l.gone_count, 4);
    assert_int_equal(w.l.gone_bytes, LEDGER_GONE_BYTES);
    free(name);
    ledger_fini(&w.l);
}

static void without_observers_nothing_is_noted(void **state) {
    (void)state;
    struct world w;
    ledger_init(&w.l);
    ledger_row_init(&w.row[0], LEDGER_SESSION);
    ledger_touch(&w.l, &w.row[0]);
    assert_true(list_empty(&w.l.rows));
    ledger_remove(&w.l, &w.row[0], STR_LIT("s"), STR_LIT("p"));
    assert_int_equal(w.l.gone_count, 0);
    ledger_fini(&w.l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_in_the_order_of_their_change),
        cmocka_unit_test(removals_are_told),
        cmocka_unit_test(strange_revisions_are_old),
        cmocka_unit_test(removals_have_a_maximum),
        cmocka_unit_test(their_ids_have_a_maximum),
        cmocka_unit_test(without_observers_nothing_is_noted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
