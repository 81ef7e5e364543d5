#include "process/retention.h"

#include <errno.h>
#include <stdlib.h>

#define RETENTION_SHARES_FIRST 16

void retention_init(struct retention *r, size_t max) {
    *r = (struct retention){.max = max};
}

void retention_fini(struct retention *r) {
    for (int kind = 0; kind < RETENTION_KINDS; kind++)
        free(r->heap[kind]);
}

/* -- heaps -- */

static uint64_t retention_oldest(const struct retention_share *s, enum retention_kind kind) {
    return list_entry(list_first(&s->items[kind]), struct retention_item, node)->age;
}

/* Whether `a` loses before `b`. */
static bool retention_before(const struct retention_share *a, const struct retention_share *b,
                             enum retention_kind kind) {
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes;
    return retention_oldest(a, kind) < retention_oldest(b, kind);
}

static void retention_put(struct retention *r, enum retention_kind kind, size_t place,
                          struct retention_share *s) {
    r->heap[kind][place - 1] = s;
    s->place[kind] = place;
}

static struct retention_share *retention_at(const struct retention *r, enum retention_kind kind,
                                            size_t place) {
    return r->heap[kind][place - 1];
}

/* Moves a share whose key has changed to its place. */
static void retention_sift(struct retention *r, enum retention_kind kind, size_t place) {
    struct retention_share *s = retention_at(r, kind, place);
    for (size_t up; (up = place / 2) > 0 && retention_before(s, retention_at(r, kind, up), kind);
         place = up)
        retention_put(r, kind, place, retention_at(r, kind, up));
    for (size_t down; (down = place * 2) <= r->count[kind]; place = down) {
        if (down < r->count[kind] &&
            retention_before(retention_at(r, kind, down + 1), retention_at(r, kind, down), kind))
            down++;
        if (!retention_before(retention_at(r, kind, down), s, kind))
            break;
        retention_put(r, kind, place, retention_at(r, kind, down));
    }
    retention_put(r, kind, place, s);
}

/* Takes the share at `place` out; the last one of the heap fills the hole. */
static void retention_pluck(struct retention *r, enum retention_kind kind, size_t place) {
    struct retention_share *last = retention_at(r, kind, r->count[kind]);
    retention_at(r, kind, place)->place[kind] = 0;
    if (place == r->count[kind]--)
        return;
    retention_put(r, kind, place, last);
    retention_sift(r, kind, place);
}

/* Puts a share right in both heaps after a change of its items. */
static void retention_update(struct retention *r, struct retention_share *s) {
    for (enum retention_kind kind = 0; kind < RETENTION_KINDS; kind++) {
        bool holds = !list_empty(&s->items[kind]);
        if (!holds && s->place[kind] != 0) {
            retention_pluck(r, kind, s->place[kind]);
        } else if (holds) {
            if (s->place[kind] == 0)
                retention_put(r, kind, ++r->count[kind], s);
            retention_sift(r, kind, s->place[kind]);
        }
    }
}

/* -- shares -- */

int retention_join(struct retention *r, struct retention_share *share) {
    if (r->shares == r->cap) {
        size_t cap = r->cap ? r->cap * 2 : RETENTION_SHARES_FIRST;
        for (int kind = 0; kind < RETENTION_KINDS; kind++) {
            struct retention_share **heap = reallocarray(r->heap[kind], cap, sizeof *heap);
            if (heap == NULL)
                return -ENOMEM;
            r->heap[kind] = heap;
        }
        r->cap = cap;
    }
    r->shares++;
    *share = (struct retention_share){.bytes = 0};
    for (int kind = 0; kind < RETENTION_KINDS; kind++)
        list_init(&share->items[kind]);
    return 0;
}

void retention_leave(struct retention *r) {
    r->shares--;
}

/* -- items -- */

void retention_keep(struct retention *r, struct retention_share *share, struct retention_item *item,
                    size_t size, enum retention_kind kind) {
    item->share = share;
    item->size = size;
    item->kind = kind;
    item->age = ++r->last_age;
    list_append(&share->items[kind], &item->node);
    if (share->bytes == 0 && size > 0)
        r->holders++;
    share->bytes += size;
    r->bytes += size;
    retention_update(r, share);
}

void retention_drop(struct retention *r, struct retention_item *item) {
    struct retention_share *share = item->share;
    if (share == NULL)
        return;
    item->share = NULL;
    list_remove(&item->node);
    share->bytes -= item->size;
    r->bytes -= item->size;
    if (share->bytes == 0 && item->size > 0)
        r->holders--;
    retention_update(r, share);
}

void retention_set_kind(struct retention *r, struct retention_item *item,
                        enum retention_kind kind) {
    if (item->share == NULL || item->kind == kind)
        return;
    list_remove(&item->node);
    item->kind = kind;
    list_append(&item->share->items[kind], &item->node);
    retention_update(r, item->share);
}

size_t retention_guarantee(const struct retention *r) {
    return r->max / 2 / MAX(r->holders, (size_t)1);
}

struct retention_item *retention_victim(const struct retention *r) {
    if (r->bytes <= r->max)
        return NULL;
    /* The largest of all shares holds more than the guarantee, so one of the heaps has a victim. */
    for (enum retention_kind kind = 0; kind < RETENTION_KINDS; kind++) {
        const struct retention_share *s = r->count[kind] > 0 ? retention_at(r, kind, 1) : NULL;
        if (s != NULL && s->bytes > retention_guarantee(r))
            return list_entry(list_first(&s->items[kind]), struct retention_item, node);
    }
    return NULL;
}
