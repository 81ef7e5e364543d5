#include "net/sendq.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/uio.h>

#define SENDQ_IOVS 32

static void sendq_seg_list_free(struct sendq_seg *s) {
    while (s != NULL) {
        struct sendq_seg *next = s->next;
        free(s);
        s = next;
    }
}

void sendq_pool_trim(struct sendq_pool *p) {
    sendq_seg_list_free(steal_ptr(&p->blocks));
    p->block_count = 0;
}

void sendq_pool_fini(struct sendq_pool *p) {
    sendq_pool_trim(p);
    sendq_seg_list_free(steal_ptr(&p->free));
    p->count = 0;
}

/* Takes the first of a list of free segments, or NULL. */
static struct sendq_seg *sendq_pop(struct sendq_seg **list, size_t *count) {
    struct sendq_seg *s = *list;
    if (s != NULL) {
        *list = s->next;
        --*count;
    }
    return s;
}

static size_t sendq_seg_cap(size_t n) {
    if (n <= SENDQ_SMALL)
        return SENDQ_SMALL;
    if (n <= SENDQ_LARGE)
        return SENDQ_LARGE;
    return n;
}

/* A pooled segment of that size, or a new one. NULL when out of memory. */
static struct sendq_seg *sendq_seg_make(size_t cap, struct sendq_seg **list, size_t *count) {
    struct sendq_seg *s = sendq_pop(list, count);
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
static struct sendq_seg *sendq_seg_plain(struct sendq_pool *p, size_t n) {
    struct sendq_seg *none = NULL;
    size_t cap = sendq_seg_cap(n), zero = 0;
    return cap == SENDQ_LARGE ? sendq_seg_make(cap, &p->free, &p->count)
                              : sendq_seg_make(cap, &none, &zero);
}

struct sendq_seg *sendq_seg_new(struct sendq_pool *p, size_t n) {
    if (n > SENDQ_BLOCK / 2 && n <= SENDQ_BLOCK)
        return sendq_seg_make(SENDQ_BLOCK, &p->blocks, &p->block_count);
    return sendq_seg_plain(p, n);
}

static void sendq_push(struct sendq_seg **list, size_t *count, struct sendq_seg *s) {
    s->next = *list;
    *list = s;
    ++*count;
}

static void sendq_seg_drop(struct sendq_pool *p, struct sendq_seg *s) {
    if (s->cap == SENDQ_LARGE && p->count < SENDQ_POOLED)
        sendq_push(&p->free, &p->count, s);
    else if (s->cap == SENDQ_BLOCK && p->block_count < SENDQ_BLOCKS_POOLED)
        sendq_push(&p->blocks, &p->block_count, s);
    else
        free(s);
}

void sendq_seg_free(struct sendq_pool *p, struct sendq_seg *chain) {
    while (chain != NULL) {
        struct sendq_seg *next = chain->next;
        sendq_seg_drop(p, chain);
        chain = next;
    }
}

void sendq_init(struct sendq *q, struct sendq_pool *pool) {
    *q = (struct sendq){.pool = pool};
}

void sendq_fini(struct sendq *q) {
    sendq_seg_free(q->pool, steal_ptr(&q->head));
    q->tail = NULL;
    q->bytes = 0;
}

/* Links a chain to the end. */
static void sendq_link(struct sendq *q, struct sendq_seg *chain) {
    if (q->tail == NULL)
        q->head = chain;
    else
        q->tail->next = chain;
    for (; chain != NULL; chain = chain->next) {
        q->bytes += chain->len - chain->at;
        q->tail = chain;
    }
}

char *sendq_reserve(struct sendq *q, size_t n) {
    struct sendq_seg *t = q->tail;
    if (t == NULL || t->cap - t->len < n) {
        struct sendq_seg *s = sendq_seg_plain(q->pool, n);
        if (s == NULL)
            return NULL;
        sendq_link(q, s);
        t = s;
    }
    return t->data + t->len;
}

void sendq_commit(struct sendq *q, size_t n) {
    q->tail->len += n;
    q->bytes += n;
}

/* Copies a nearly empty segment to the end and frees it; false: it has to be linked. */
static bool sendq_copy(struct sendq *q, struct sendq_seg *s) {
    size_t n = s->len - s->at;
    char *p = n > 0 && n <= s->cap / SENDQ_SPARSE ? sendq_reserve(q, n) : NULL;
    if (n > 0 && p == NULL)
        return false;
    if (n > 0) {
        memcpy(p, s->data + s->at, n);
        sendq_commit(q, n);
    }
    sendq_seg_drop(q->pool, s);
    return true;
}

void sendq_append(struct sendq *q, struct sendq_seg *chain) {
    while (chain != NULL) {
        struct sendq_seg *s = chain;
        chain = steal_ptr(&s->next);
        if (!sendq_copy(q, s))
            sendq_link(q, s);
    }
}

void sendq_move(struct sendq *q, struct sendq *src) {
    sendq_link(q, steal_ptr(&src->head));
    src->tail = NULL;
    src->bytes = 0;
}

static void sendq_consume(struct sendq *q, size_t n) {
    q->bytes -= n;
    q->written += n;
    while (q->head != NULL) {
        struct sendq_seg *s = q->head;
        size_t take = MIN(n, s->len - s->at);
        s->at += take;
        n -= take;
        if (s->at < s->len)
            return;
        q->head = s->next;
        if (q->head == NULL)
            q->tail = NULL;
        sendq_seg_drop(q->pool, s);
    }
}

int sendq_flush(struct sendq *q, int fd) {
    while (q->bytes > 0) {
        struct iovec iov[SENDQ_IOVS];
        int n = 0;
        for (struct sendq_seg *s = q->head; s != NULL && n < SENDQ_IOVS; s = s->next)
            iov[n++] = (struct iovec){s->data + s->at, s->len - s->at};
        ssize_t w = writev(fd, iov, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0)
            return errno == EAGAIN ? 0 : -errno;
        sendq_consume(q, (size_t)w);
    }
    return 0;
}
