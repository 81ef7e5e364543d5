#pragma once
/*
 * A bounded store that several holders share fairly. It counts bytes and chooses the item to evict;
 * the owner of the item frees the memory behind it. No I/O, no clock.
 *
 * Each session has a share. An item belongs to a share and is `seen` (its client has it) or not.
 * While the total exceeds the maximum, retention_victim() names one item:
 * - a share never loses an item while it holds at most the guarantee: the maximum divided by twice
 *   the number of shares that hold something;
 * - among the other shares seen items go before unseen ones;
 * - among items of one kind the share that holds most loses first, and of equal shares the one with
 *   the older item; a share loses its items in the order in which they became of that kind.
 * One half of the maximum thus isolates every client from the others. The other half goes to
 * clients with unseen items.
 *
 * Maxima: `max` bytes in total. Two heaps of one pointer per share; each call but retention_join()
 * takes O(log shares) steps and cannot fail.
 */

#include "base/list.h"

#include <stddef.h>
#include <stdint.h>

enum retention_kind { RETENTION_SEEN, RETENTION_UNSEEN };
#define RETENTION_KINDS 2

struct retention_share {
    struct list items[RETENTION_KINDS]; /* struct retention_item, in the order they came */
    size_t bytes;
    size_t place[RETENTION_KINDS]; /* in the heap of that kind, from 1; 0 = holds none */
};

struct retention_item {
    struct list node;
    struct retention_share *share; /* borrowed; NULL = not kept */
    enum retention_kind kind;
    size_t size;
    uint64_t age; /* from 1; a lower one was kept earlier */
};

struct retention {
    size_t max;     /* bytes kept at most */
    size_t bytes;   /* kept now */
    size_t shares;  /* that have joined */
    size_t holders; /* shares that hold something */
    uint64_t last_age;
    struct retention_share **heap[RETENTION_KINDS]; /* largest share first; owned */
    size_t count[RETENTION_KINDS];
    size_t cap; /* places of each heap, at least `shares` */
};

void retention_init(struct retention *r, size_t max);
void retention_fini(struct retention *r);

/* A new, empty share. 0 or -ENOMEM. */
MUST_CHECK int retention_join(struct retention *r, struct retention_share *share);

/* An empty share leaves. */
void retention_leave(struct retention *r);

/* Keeps an item of that many bytes. The total may exceed the maximum until victims are dropped. */
void retention_keep(struct retention *r, struct retention_share *share, struct retention_item *item,
                    size_t size, enum retention_kind kind);

/* Drops an item; harmless on one that is not kept. */
void retention_drop(struct retention *r, struct retention_item *item);

/* Changes whether its client has the item; harmless on one that is not kept. */
void retention_set_kind(struct retention *r, struct retention_item *item, enum retention_kind kind);

/* The next item to evict, or NULL while the total is within the maximum. The caller drops it. */
struct retention_item *retention_victim(const struct retention *r);

/* Bytes that a share never loses, given the present holders. */
size_t retention_guarantee(const struct retention *r);
