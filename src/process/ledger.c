#include "process/ledger.h"

#include "base/util.h"

#define LEDGER_PER_MS 1000 /* revisions of a millisecond of the start; 2^53 lasts till 2255 */

void ledger_init(struct ledger *l) {
    *l = (struct ledger){.on = false};
    list_init(&l->rows);
    list_init(&l->gone);
}

static void ledger_forget(struct ledger *l) {
    struct ledger_gone *g = list_entry(list_first(&l->gone), struct ledger_gone, node);
    l->first = g->revision;
    l->gone_count--;
    l->gone_bytes -= g->n;
    list_remove(&g->node);
    free(g);
}

void ledger_fini(struct ledger *l) {
    while (!list_empty(&l->gone))
        ledger_forget(l);
    l->on = false;
}

void ledger_begin(struct ledger *l, uint64_t start_ms) {
    l->on = true;
    l->revision = l->first = start_ms * LEDGER_PER_MS;
}

void ledger_row_init(struct ledger_row *row, enum ledger_kind kind) {
    *row = (struct ledger_row){.kind = kind};
    list_init(&row->node);
}

void ledger_remove(struct ledger *l, struct ledger_row *row, struct str a, struct str b) {
    list_remove(&row->node);
    if (!l->on || row->revision == 0)
        return;
    row->revision = 0;
    uint64_t revision = ++l->revision;
    struct ledger_gone *g = malloc(sizeof *g + a.n + b.n);
    if (g == NULL) {
        l->first = revision;
        return;
    }
    *g = (struct ledger_gone){.revision = revision, .n = a.n + b.n};
    char *at = mempcpy(g->ids, a.p, a.n);
    if (b.n > 0)
        memcpy(at, b.p, b.n);
    list_append(&l->gone, &g->node);
    l->gone_count++;
    l->gone_bytes += g->n;
    while (l->gone_count > LEDGER_GONE_MAX || l->gone_bytes > LEDGER_GONE_BYTES)
        ledger_forget(l);
}

bool ledger_is_old(const struct ledger *l, uint64_t after) {
    return after < l->first || after > l->revision;
}

struct list *ledger_rows_after(const struct ledger *l, uint64_t after) {
    const struct list *n = l->rows.prev;
    while (n != &l->rows && list_entry(n, struct ledger_row, node)->revision > after)
        n = n->prev;
    return n->next;
}

struct list *ledger_gone_after(const struct ledger *l, uint64_t after) {
    const struct list *n = l->gone.prev;
    while (n != &l->gone && list_entry(n, struct ledger_gone, node)->revision > after)
        n = n->prev;
    return n->next;
}
