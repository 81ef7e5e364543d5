#include "process/retention.h"

#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SHARES 8
#define ITEMS 32

struct world {
    struct retention r;
    struct retention_share share[SHARES];
    struct retention_item item[ITEMS];
};

static void world_init(struct world *w, size_t max, size_t shares) {
    *w = (struct world){0};
    retention_init(&w->r, max);
    for (size_t i = 0; i < shares; i++)
        assert_int_equal(retention_join(&w->r, &w->share[i]), 0);
    for (size_t i = 0; i < ITEMS; i++)
        list_init(&w->item[i].node);
}

static void world_fini(struct world *w, size_t shares) {
    for (size_t i = 0; i < ITEMS; i++)
        retention_drop(&w->r, &w->item[i]);
    assert_int_equal(w->r.bytes, 0);
    assert_int_equal(w->r.holders, 0);
    for (size_t i = 0; i < shares; i++)
        retention_leave(&w->r);
    retention_fini(&w->r);
}

/* One item: "A10s" is share A, 10 bytes, seen; "B5u" is unseen. Victims are numbers of items. */
struct row {
    const char *what;
    size_t max;
    const char *items;
    const char *victims;
};

static const struct row rows[] = {
    {"within the maximum nothing goes", 100, "A50s A50u", ""},
    {"one share alone: the oldest goes", 100, "A40s A40s A40s", "0"},
    {"one share alone: seen goes before unseen", 100, "A40u A40s A40s", "1"},
    {"one share alone: unseen goes when nothing else is left", 100, "A60u A60u A60u", "0 1"},
    {"a large item may have to go itself", 100, "A120u", "0"},
    {"the share that holds most loses", 100, "A10s B50s B50s", "1"},
    {"the share that holds most loses, not the one that came last", 100, "B50s B50s A10s", "0"},
    {"also when its items are unseen and the other's seen, within the guarantee", 100,
     "A20s B50u B50u", "1"},
    {"beyond the guarantee seen goes before unseen", 100, "A30s B50u B40u", "0"},
    {"seen items go down to the guarantee and not below", 100, "A20s A20s B60u B60u", "0 2"},
    {"of seen items, those of the largest share", 100, "A30s B30s B10u C40s", "1"},
    {"equal shares: the older item", 100, "A40s B40s C40s", "0"},
    {"equal shares: not the newest", 100, "C40u B40u A40u", "0"},
    {"many small shares keep what they have beside a large one", 100,
     "A5u B5u C5u D5u E5s F5s G50s G50s", "6"},
    {"a share that holds nothing does not count", 100, "A30s A30s A30s A30s B0s", "0"},
    {"no room at all", 0, "A1u B1s", "1 0"},
};

static size_t add_items(struct world *w, const char *text) {
    size_t n = 0, size;
    char share, kind;
    for (int used; sscanf(text, " %c%zu%c%n", &share, &size, &kind, &used) == 3; text += used)
        retention_keep(&w->r, &w->share[share - 'A'], &w->item[n++], size,
                       kind == 's' ? RETENTION_SEEN : RETENTION_UNSEEN);
    return n;
}

static void victims_by_table(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct world w;
        char got[64] = "";
        world_init(&w, rows[i].max, SHARES);
        add_items(&w, rows[i].items);
        for (struct retention_item *v; (v = retention_victim(&w.r)) != NULL;) {
            size_t at = strlen(got);
            snprintf(got + at, sizeof got - at, "%s%td", at ? " " : "", v - w.item);
            retention_drop(&w.r, v);
        }
        if (strcmp(got, rows[i].victims) != 0)
            fail_msg("%s: victims \"%s\", not \"%s\"", rows[i].what, got, rows[i].victims);
        world_fini(&w, SHARES);
    }
}

static void kind_can_change(void **state) {
    (void)state;
    struct world w;
    world_init(&w, 100, 2);
    add_items(&w, "A60u B60u");
    retention_set_kind(&w.r, &w.item[1], RETENTION_SEEN);
    assert_ptr_equal(retention_victim(&w.r), &w.item[1]);
    retention_set_kind(&w.r, &w.item[1], RETENTION_UNSEEN);
    retention_set_kind(&w.r, &w.item[0], RETENTION_SEEN);
    assert_ptr_equal(retention_victim(&w.r), &w.item[0]);
    retention_drop(&w.r, &w.item[0]);
    retention_drop(&w.r, &w.item[0]);
    retention_set_kind(&w.r, &w.item[0], RETENTION_UNSEEN);
    assert_int_equal(w.r.bytes, 60);
    world_fini(&w, 2);
}

/* The choice as the header words it, by looking at everything. */
static const struct retention_item *choose(const struct retention *r, struct retention_share *s,
                                           size_t n) {
    for (int kind = 0; kind < RETENTION_KINDS; kind++) {
        const struct retention_share *best = NULL;
        for (size_t i = 0; i < n; i++) {
            if (list_empty(&s[i].items[kind]) || s[i].bytes <= retention_guarantee(r))
                continue;
            if (best == NULL || s[i].bytes > best->bytes ||
                (s[i].bytes == best->bytes &&
                 list_entry(s[i].items[kind].next, struct retention_item, node)->age <
                     list_entry(best->items[kind].next, struct retention_item, node)->age))
                best = &s[i];
        }
        if (best != NULL)
            return list_entry(best->items[kind].next, struct retention_item, node);
    }
    return NULL;
}

#define MANY_SHARES 300
#define MANY_ITEMS 3000

/* The bound holds after each step, and a share within the guarantee loses nothing. */
static void random_steps_agree_with_the_rule(void **state) {
    (void)state;
    static struct retention_share shares[MANY_SHARES];
    static struct retention_item items[MANY_ITEMS];
    struct retention r;
    unsigned seed = 7, dropped = 0;
    retention_init(&r, 5000);
    for (size_t i = 0; i < MANY_SHARES; i++)
        assert_int_equal(retention_join(&r, &shares[i]), 0);
    for (size_t i = 0; i < MANY_ITEMS; i++) {
        list_init(&items[i].node);
        items[i].share = NULL;
    }
    for (int step = 0; step < 30000; step++) {
        struct retention_item *it = &items[(unsigned)rand_r(&seed) % MANY_ITEMS];
        unsigned what = (unsigned)rand_r(&seed) % 4;
        if (what == 0) {
            retention_drop(&r, it);
        } else if (what == 1) {
            retention_set_kind(&r, it, (enum retention_kind)((unsigned)rand_r(&seed) % 2));
        } else if (it->share == NULL) {
            size_t pick = (unsigned)rand_r(&seed) % (what == 2 ? 5 : MANY_SHARES);
            retention_keep(&r, &shares[pick], it, (unsigned)rand_r(&seed) % 60,
                           (enum retention_kind)((unsigned)rand_r(&seed) % 2));
        }
        for (struct retention_item *v; (v = retention_victim(&r)) != NULL; dropped++) {
            assert_true(v->share->bytes > retention_guarantee(&r));
            assert_ptr_equal(v, choose(&r, shares, MANY_SHARES));
            retention_drop(&r, v);
        }
        assert_true(r.bytes <= r.max);
    }
    assert_true(dropped > 1000);
    retention_fini(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(victims_by_table),
        cmocka_unit_test(kind_can_change),
        cmocka_unit_test(random_steps_agree_with_the_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
