#include "client/evqueue.h"

#include "json/base64.h"

#include <errno.h>
#include <stdlib.h>

#define EVQUEUE_TEXT_MAX ((EVQUEUE_CHUNK_MAX + 2) / 3 * 4)

static struct evqueue_event *evqueue_event_of(struct list *node) {
    return list_entry(node, struct evqueue_event, node);
}

void evqueue_init(struct evqueue *q, uint64_t after, size_t window) {
    *q = (struct evqueue){.window = window, .last = after, .handed = after, .seen = after};
    list_init(&q->ready);
    list_init(&q->early);
}

static void evqueue_drop_early(struct evqueue *q) {
    list_for_each(it, &q->early) {
        list_remove(it);
        free(evqueue_event_of(it));
    }
    q->early_cost = q->early_count = 0;
}

void evqueue_fini(struct evqueue *q) {
    list_for_each(it, &q->ready) {
        list_remove(it);
        free(evqueue_event_of(it));
    }
    q->ready_cost = 0;
    evqueue_drop_early(q);
}

bool evqueue_is_full(const struct evqueue *q) {
    return q->ready_cost >= q->window;
}

bool evqueue_wants_page(const struct evqueue *q) {
    return q->behind && !q->closed_queued && !q->exit_held && q->ready_cost <= q->window / 2;
}

/* An event that is no output. */
static struct evqueue_event *evqueue_mark_new(enum evqueue_type type, uint64_t seq, uint64_t to) {
    struct evqueue_event *e = malloc(sizeof(*e));
    if (e != NULL)
        *e = (struct evqueue_event){.type = type, .seq = seq, .to = to, .cost = sizeof(*e)};
    return e;
}

/* Decodes a chunk. 0, -ENOMEM, -EPROTO. */
static int evqueue_chunk_new(const struct evqueue_chunk *c, struct evqueue_event **out) {
    size_t max = base64_decoded_max(c->base64.n);
    struct evqueue_event *e = malloc(sizeof(*e) + max);
    if (e == NULL)
        return -ENOMEM;
    _cleanup_err_ struct err why = ERR_INIT;
    ssize_t n = base64_decode(e->data, c->base64.p, c->base64.n, &why);
    if (n < 0 || (size_t)n > EVQUEUE_CHUNK_MAX) {
        free(e);
        return -EPROTO;
    }
    *e = (struct evqueue_event){.type = EVQUEUE_OUTPUT,
                                .stream = c->stream,
                                .seq = c->seq,
                                .to = c->seq,
                                .n = (size_t)n,
                                .cost = sizeof(*e) + max};
    *out = e;
    return 0;
}

/* Its turn has come. */
static void evqueue_append(struct evqueue *q, struct evqueue_event *e) {
    list_append(&q->ready, &e->node);
    q->ready_cost += e->cost;
    q->last = e->to;
    if (q->seen < q->last)
        q->seen = q->last;
    if (e->type == EVQUEUE_EXITED)
        q->exit_queued = true;
    if (e->type == EVQUEUE_CLOSED)
        q->closed_queued = true;
}

static int evqueue_append_mark(struct evqueue *q, enum evqueue_type type, uint64_t seq,
                               uint64_t to) {
    struct evqueue_event *e = evqueue_mark_new(type, seq, to);
    if (e == NULL)
        return -ENOMEM;
    evqueue_append(q, e);
    return 0;
}

/* A GAP up to `to`. It joins one that is handed out right before it: a server that tells nothing
 * but losses takes no memory. */
static int evqueue_append_gap(struct evqueue *q, uint64_t to) {
    uint64_t from = q->last + 1;
    struct evqueue_event *e = list_empty(&q->ready) ? NULL : evqueue_event_of(q->ready.prev);
    int r = 0;
    if (e != NULL && e->type == EVQUEUE_GAP) {
        e->to = q->last = to;
        q->seen = MAX(q->seen, to);
    } else {
        r = evqueue_append_mark(q, EVQUEUE_GAP, from, to);
    }
    if (r == 0)
        q->gaps += to - from + 1;
    return r;
}

static int evqueue_append_chunk(struct evqueue *q, const struct evqueue_chunk *c) {
    struct evqueue_event *e = NULL;
    int r = evqueue_chunk_new(c, &e);
    if (r == 0)
        evqueue_append(q, e);
    return r;
}

static void evqueue_take_early(struct evqueue *q, struct evqueue_event *e) {
    list_remove(&e->node);
    q->early_cost -= e->cost;
    q->early_count--;
}

/* The early event whose turn has come, or NULL. Forgets those that came by another way. */
static struct evqueue_event *evqueue_early_next(struct evqueue *q) {
    for (;;) {
        struct list *first = list_first(&q->early);
        if (first == NULL)
            return NULL;
        struct evqueue_event *e = evqueue_event_of(first);
        if (e->seq > q->last)
            return e->seq == q->last + 1 ? e : NULL;
        evqueue_take_early(q, e);
        free(e);
    }
}

int evqueue_absorb(struct evqueue *q) {
    while (!q->closed_queued) {
        int r = 0;
        struct evqueue_event *e = evqueue_early_next(q);
        if (e != NULL && evqueue_is_full(q)) {
            evqueue_drop_early(q);
            q->behind = true;
            return 0;
        }
        if (e != NULL) {
            evqueue_take_early(q, e);
            evqueue_append(q, e);
        } else if (q->exit_seq == q->last + 1 && !q->exit_queued) {
            if (q->exit_held)
                return 0;
            r = evqueue_append_mark(q, EVQUEUE_EXITED, q->exit_seq, q->exit_seq);
        } else if (q->closed_seq == q->last + 1) {
            if (!q->exit_queued) /* its number was lost with output */
                r = evqueue_append_mark(q, EVQUEUE_EXITED, q->last, q->last);
            if (r == 0)
                r = evqueue_append_mark(q, EVQUEUE_CLOSED, q->closed_seq, q->closed_seq);
        } else {
            break;
        }
        if (r < 0)
            return r;
    }
    if (q->last >= q->seen && !q->cut)
        q->behind = false;
    return 0;
}

/* Sorts an event in behind a hole, or leaves it to process/read. */
static int evqueue_sort_in(struct evqueue *q, const struct evqueue_chunk *c) {
    if (q->behind)
        return 1;
    struct list *pos = q->early.prev;
    while (pos != &q->early && evqueue_event_of(pos)->seq > c->seq)
        pos = pos->prev;
    if (pos != &q->early && evqueue_event_of(pos)->seq == c->seq)
        return 0;
    if (q->early_count == EVQUEUE_EARLY_COUNT ||
        q->early_cost + c->base64.n / 4 * 3 > EVQUEUE_EARLY_BYTES) {
        q->behind = true;
        return 1;
    }
    struct evqueue_event *e = NULL;
    int r = evqueue_chunk_new(c, &e);
    if (r < 0)
        return r;
    list_insert_before(pos->next, &e->node);
    q->early_cost += e->cost;
    q->early_count++;
    return 1;
}

int evqueue_output(struct evqueue *q, const struct evqueue_chunk *c) {
    if (c->seq == 0 || c->seq == UINT64_MAX || c->base64.n > EVQUEUE_TEXT_MAX)
        return -EPROTO;
    if (q->closed_seq != 0 && c->seq >= q->closed_seq)
        return -EPROTO;
    if (c->seq <= q->last || c->seq == q->exit_seq)
        return 0;
    if (q->seen < c->seq)
        q->seen = c->seq;
    if (c->seq != q->last + 1)
        return evqueue_sort_in(q, c);
    if (evqueue_is_full(q)) {
        q->behind = true;
        return 1;
    }
    int r = evqueue_append_chunk(q, c);
    if (r == 0)
        r = evqueue_absorb(q);
    return r < 0 ? r : 1;
}

int evqueue_exited(struct evqueue *q, uint64_t seq) {
    if (seq == 0 || seq == UINT64_MAX || (q->closed_seq != 0 && seq >= q->closed_seq))
        return -EPROTO;
    if (q->exit_queued || q->exit_seq != 0)
        return 0;
    if (q->seen < seq)
        q->seen = seq;
    if (seq > q->last) {
        q->exit_seq = seq;
        int r = evqueue_absorb(q);
        return r < 0 ? r : 1;
    }
    /* A page took its number for lost output. The end itself is not lost. */
    struct evqueue_event *e = evqueue_mark_new(EVQUEUE_EXITED, seq, q->last);
    if (e == NULL)
        return -ENOMEM;
    q->exit_seq = seq;
    evqueue_append(q, e);
    return 1;
}

int evqueue_closed(struct evqueue *q, uint64_t seq) {
    if (q->closed_seq != 0)
        return q->closed_seq == seq ? 0 : -EPROTO;
    if (seq == 0 || seq == UINT64_MAX || seq < q->seen || seq <= q->last)
        return -EPROTO;
    q->closed_seq = q->seen = seq;
    int r = evqueue_absorb(q);
    if (!q->closed_queued) /* nothing comes any more: what is missing must be asked for */
        q->behind = true;
    return r < 0 ? r : 1;
}

/* One look at the numbers of a page: what is missing, and which of it can be EXITED. */
struct evqueue_missing {
    uint64_t before; /* the last missing number before the first chunk, or 0 */
    uint64_t nbefore;
    uint64_t later; /* the last missing number behind a chunk, or 0 */
};

/* Whether a notification that arrived before has the number. */
static bool evqueue_is_known(const struct evqueue *q, uint64_t seq) {
    if (seq == q->exit_seq || seq == q->closed_seq)
        return true;
    list_for_each(it, &q->early) {
        if (evqueue_event_of(it)->seq == seq)
            return true;
        if (evqueue_event_of(it)->seq > seq)
            break;
    }
    return false;
}

/* The largest number in (from, to) that is not known, or 0; their count is added to *count. */
static uint64_t evqueue_unknown(const struct evqueue *q, uint64_t from, uint64_t to,
                                uint64_t *count) {
    uint64_t largest = 0, known = 0;
    if (to <= from + 1)
        return 0;
    for (uint64_t s = to - 1; s > from && largest == 0; s--) {
        if (!evqueue_is_known(q, s))
            largest = s;
    }
    if (q->exit_seq > from && q->exit_seq < to)
        known++;
    if (q->closed_seq > from && q->closed_seq < to)
        known++;
    list_for_each(it, &q->early) {
        uint64_t s = evqueue_event_of(it)->seq;
        if (s > from && s < to)
            known++;
    }
    *count += to - from - 1 - known;
    return largest;
}

static struct evqueue_missing evqueue_page_missing(const struct evqueue *q,
                                                   const struct evqueue_page *page) {
    struct evqueue_missing m = {0};
    uint64_t at = q->last, ignored = 0;
    bool first = true;
    for (size_t i = 0; i < page->count; i++) {
        uint64_t seq = page->chunks[i].seq;
        if (seq <= at)
            continue;
        uint64_t missing = evqueue_unknown(q, at, seq, first ? &m.nbefore : &ignored);
        if (missing != 0 && first)
            m.before = missing;
        else if (missing != 0)
            m.later = missing;
        first = false;
        at = seq;
    }
    uint64_t missing = evqueue_unknown(q, at, page->next_seq, first ? &m.nbefore : &ignored);
    if (missing != 0 && first)
        m.before = missing;
    else if (missing != 0)
        m.later = missing;
    return m;
}

/* Finds the numbers of EXITED and CLOSED, which have no chunk, among the missing ones. */
static void evqueue_infer_end(struct evqueue *q, const struct evqueue_page *page) {
    bool whole = !page->limited || page->count == 0;
    if (page->closed && whole && q->closed_seq == 0 && page->next_seq - 1 > q->last &&
        page->next_seq - 1 >= q->seen)
        q->closed_seq = page->next_seq - 1;
    if (!page->exited || q->exit_queued || q->exit_seq != 0)
        return;
    struct evqueue_missing m = evqueue_page_missing(q, page);
    q->exit_held = q->wants_details;
    /* planted: missed-exit */
    q->exit_seq = m.later;
    if (m.later != 0)
        return;
    if (m.before != 0 && (whole || (page->held && m.nbefore == 1)))
        q->exit_seq = m.before;
    else
        q->exit_held = false;
}

static bool evqueue_waits_for_exit(const struct evqueue *q) {
    return q->exit_held && q->exit_seq == q->last + 1;
}

/* Hands on all numbers below `to`: known ones as they are, the others as one GAP each run. */
static int evqueue_fill(struct evqueue *q, uint64_t to) {
    while (q->last + 1 < to && !q->closed_queued) {
        uint64_t before = q->last;
        int r = evqueue_absorb(q);
        if (r < 0 || q->behind || evqueue_waits_for_exit(q))
            return r;
        if (q->last != before)
            continue;
        uint64_t end = to;
        if (!list_empty(&q->early))
            end = MIN(end, evqueue_event_of(q->early.next)->seq);
        if (q->exit_seq > q->last)
            end = MIN(end, q->exit_seq);
        if (q->closed_seq > q->last)
            end = MIN(end, q->closed_seq);
        r = evqueue_append_gap(q, end - 1);
        if (r < 0)
            return r;
    }
    return 0;
}

static int evqueue_page_check(const struct evqueue *q, const struct evqueue_page *page) {
    uint64_t at = page->after;
    if (q->closed_seq != 0 && page->next_seq > q->closed_seq + 1)
        return -EPROTO;
    for (size_t i = 0; i < page->count; i++) {
        if (page->chunks[i].seq <= at || page->chunks[i].base64.n > EVQUEUE_TEXT_MAX)
            return -EPROTO;
        at = page->chunks[i].seq;
    }
    /* after can be larger than any number: a client may ask so. */
    return page->next_seq <= at ? -EPROTO : 0;
}

int evqueue_page(struct evqueue *q, const struct evqueue_page *page) {
    int r = evqueue_page_check(q, page);
    if (r < 0)
        return r;
    q->behind = false;
    if (!page->limited || page->count == 0)
        q->cut = false;
    if (q->seen < page->next_seq - 1)
        q->seen = page->next_seq - 1;
    evqueue_infer_end(q, page);
    for (size_t i = 0; i < page->count; i++) {
        const struct evqueue_chunk *c = &page->chunks[i];
        if (c->seq <= q->last)
            continue;
        if (q->last + 1 < c->seq && (r = evqueue_fill(q, c->seq)) < 0)
            return r;
        if (q->last >= c->seq)
            continue; /* it was among the early ones */
        if (q->last + 1 != c->seq || evqueue_is_full(q)) {
            q->behind = true; /* full, or EXITED waits: the rest is fetched again */
            return 0;
        }
        r = evqueue_append_chunk(q, c);
        if (r < 0)
            return r;
    }
    r = evqueue_fill(q, page->next_seq);
    if (r == 0)
        r = evqueue_absorb(q);
    if (r == 0)
        q->behind = q->last < q->seen || q->cut;
    return r;
}

void evqueue_cut(struct evqueue *q) {
    q->cut = q->behind = true;
}

void evqueue_asked(struct evqueue *q) {
    q->behind = false;
}

int evqueue_release_exit(struct evqueue *q) {
    q->exit_held = false;
    return evqueue_absorb(q);
}

struct evqueue_event *evqueue_pop(struct evqueue *q) {
    struct list *first = list_first(&q->ready);
    if (first == NULL)
        return NULL;
    struct evqueue_event *e = evqueue_event_of(first);
    list_remove(first);
    q->ready_cost -= e->cost;
    q->handed = e->to;
    return e;
}
