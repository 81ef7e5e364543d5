#include "net/outq.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/uio.h>

#define OUTQ_IOVS 32

static void outq_seg_list_free(struct outq_seg *s) {
    while (s != NULL) {
        struct outq_seg *next = s->next;
        free(s);
        s = next;
    }
}

void outq_pool_trim(struct outq_pool *p) {
    outq_seg_list_free(steal_ptr(&p->blocks));
    p->block_count = 0;
}

void outq_pool_fini(struct outq_pool *p) {
    outq_pool_trim(p);
    outq_seg_list_free(steal_ptr(&p->free));
    p->count = 0;
}

/* The first of a list of free segments, or NULL. */
static struct outq_seg *outq_pop(struct outq_seg **list, size_t *count) {
    struct outq_seg *s = *list;
    if (s != NULL) {
        *list = s->next;
        --*count;
    }
    return s;
}

static size_t outq_seg_cap(size_t n) {
    if (n <= OUTQ_SMALL)
        return OUTQ_SMALL;
    if (n <= OUTQ_LARGE)
        return OUTQ_LARGE;
    return n;
}

/* A segment of that size, from the list of those kept or fresh. NULL when out of memory. */
static struct outq_seg *outq_seg_make(size_t cap, struct outq_seg **list, size_t *count) {
    struct outq_seg *s = outq_pop(list, count);
    if (s == NULL)
        s = malloc(sizeof *s + cap);
    if (s == NULL)
        return NULL;
    s->next = NULL;
    s->cap = cap;
    s->at = s->len = 0;
    return s;
}

/* A segment for messages. */
static struct outq_seg *outq_seg_plain(struct outq_pool *p, size_t n) {
    struct outq_seg *none = NULL;
    size_t cap = outq_seg_cap(n), zero = 0;
    return cap == OUTQ_LARGE ? outq_seg_make(cap, &p->free, &p->count)
                             : outq_seg_make(cap, &none, &zero);
}

struct outq_seg *outq_seg_new(struct outq_pool *p, size_t n) {
    if (n > OUTQ_BLOCK / 2 && n <= OUTQ_BLOCK)
        return outq_seg_make(OUTQ_BLOCK, &p->blocks, &p->block_count);
    return outq_seg_plain(p, n);
}

static void outq_push(struct outq_seg **list, size_t *count, struct outq_seg *s) {
    s->next = *list;
    *list = s;
    ++*count;
}

static void outq_seg_drop(struct outq_pool *p, struct outq_seg *s) {
    if (s->cap == OUTQ_LARGE && p->count < OUTQ_POOLED)
        outq_push(&p->free, &p->count, s);
    else if (s->cap == OUTQ_BLOCK && p->block_count < OUTQ_BLOCKS_POOLED)
        outq_push(&p->blocks, &p->block_count, s);
    else
        free(s);
}

void outq_seg_free(struct outq_pool *p, struct outq_seg *chain) {
    while (chain != NULL) {
        struct outq_seg *next = chain->next;
        outq_seg_drop(p, chain);
        chain = next;
    }
}

void outq_init(struct outq *q, struct outq_pool *pool) {
    *q = (struct outq){.pool = pool};
}

void outq_fini(struct outq *q) {
    outq_seg_free(q->pool, steal_ptr(&q->head));
    q->tail = NULL;
    q->bytes = 0;
}

/* Puts a chain at the end as it is. */
static void outq_link(struct outq *q, struct outq_seg *chain) {
    if (q->tail == NULL)
        q->head = chain;
    else
        q->tail->next = chain;
    for (; chain != NULL; chain = chain->next) {
        q->bytes += chain->len - chain->at;
        q->tail = chain;
    }
}

char *outq_reserve(struct outq *q, size_t n) {
    struct outq_seg *t = q->tail;
    if (t == NULL || t->cap - t->len < n) {
        struct outq_seg *s = outq_seg_plain(q->pool, n);
        if (s == NULL)
            return NULL;
        outq_link(q, s);
        t = s;
    }
    return t->data + t->len;
}

void outq_commit(struct outq *q, size_t n) {
    q->tail->len += n;
    q->bytes += n;
}

/* Whether the bytes of a segment were copied to the end instead. */
static bool outq_copy(struct outq *q, struct outq_seg *s) {
    size_t n = s->len - s->at;
    char *p = n > 0 && n <= s->cap / OUTQ_SPARSE ? outq_reserve(q, n) : NULL;
    if (n > 0 && p == NULL)
        return false;
    if (n > 0) {
        memcpy(p, s->data + s->at, n);
        outq_commit(q, n);
    }
    outq_seg_drop(q->pool, s);
    return true;
}

void outq_append(struct outq *q, struct outq_seg *chain) {
    while (chain != NULL) {
        struct outq_seg *s = chain;
        chain = steal_ptr(&s->next);
        if (!outq_copy(q, s))
            outq_link(q, s);
    }
}

void outq_move(struct outq *q, struct outq *src) {
    outq_link(q, steal_ptr(&src->head));
    src->tail = NULL;
    src->bytes = 0;
}

static void outq_consume(struct outq *q, size_t n) {
    q->bytes -= n;
    q->written += n;
    while (q->head != NULL) {
        struct outq_seg *s = q->head;
        size_t take = MIN(n, s->len - s->at);
        s->at += take;
        n -= take;
        if (s->at < s->len)
            return;
        q->head = s->next;
        if (q->head == NULL)
            q->tail = NULL;
        outq_seg_drop(q->pool, s);
    }
}

int outq_flush(struct outq *q, int fd) {
    while (q->bytes > 0) {
        struct iovec iov[OUTQ_IOVS];
        int n = 0;
        for (struct outq_seg *s = q->head; s != NULL && n < OUTQ_IOVS; s = s->next)
            iov[n++] = (struct iovec){s->data + s->at, s->len - s->at};
        ssize_t w = writev(fd, iov, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0)
            return errno == EAGAIN ? 0 : -errno;
        outq_consume(q, (size_t)w);
    }
    return 0;
}
