#pragma once
/*
 * What has changed lately: sessions and processes in the order of their last change, for those who
 * watch all of them. Each change gets the next revision. An observer that has seen everything up to
 * a revision asks for the rows after it, and for the rows that are gone.
 *
 * Revisions begin at the time of the start, so that those of an earlier server are too old, and
 * stay below 2^53. Maxima: LEDGER_GONE_MAX rows that are gone, LEDGER_GONE_BYTES of their ids.
 */

#include "base/list.h"
#include "base/str.h"

#include <stdint.h>

#define LEDGER_GONE_MAX 4096
#define LEDGER_GONE_BYTES (1u << 20)

enum ledger_kind { LEDGER_SESSION, LEDGER_PROCESS };

/* Embedded in what it stands for. */
struct ledger_row {
    struct list node;
    enum ledger_kind kind;
    uint64_t revision; /* 0: never touched */
};

/* A row that is gone. */
struct ledger_gone {
    struct list node;
    uint64_t revision;
    size_t n;
    char ids[]; /* JSON text */
};

struct ledger {
    bool on;           /* else nothing is noted */
    uint64_t revision; /* of the last change */
    uint64_t first;    /* who has seen less must look at everything */
    struct list rows;  /* struct ledger_row, the one that changed last at the end */
    struct list gone;  /* struct ledger_gone, likewise; owned */
    size_t gone_count, gone_bytes;
};

/* Nothing is noted until ledger_begin(). */
void ledger_init(struct ledger *l);
void ledger_fini(struct ledger *l);

/* Notes changes from now on; `start_ms` is the time in Unix milliseconds. */
void ledger_begin(struct ledger *l, uint64_t start_ms);

/* Before ledger_touch(). */
void ledger_row_init(struct ledger_row *row, enum ledger_kind kind);

/* A row is new or has changed. */
static inline void ledger_touch(struct ledger *l, struct ledger_row *row) {
    if (!l->on)
        return;
    row->revision = ++l->revision;
    list_remove(&row->node);
    list_append(&l->rows, &row->node);
}

/*
 * A row goes; `a` and `b` together are the JSON text that names it. Without memory for it every
 * observer must look at everything again.
 */
void ledger_remove(struct ledger *l, struct ledger_row *row, struct str a, struct str b);

/* Whether an observer that has seen `after` must look at everything. */
bool ledger_is_old(const struct ledger *l, uint64_t after);

/* The first row after that revision, or &l->rows. Takes as many steps as there are such rows. */
struct list *ledger_rows_after(const struct ledger *l, uint64_t after);

/* The first gone row after that revision, or &l->gone; likewise. */
struct list *ledger_gone_after(const struct ledger *l, uint64_t after);
