#include "net/outq.h"

#include <errno.h>
#include <sys/uio.h>

#define OUTQ_IOVS 32

struct outq_seg {
    struct outq_seg *next;
    size_t cap;
    size_t at, len; /* bytes [at, len) wait */
    char data[];
};

void outq_pool_fini(struct outq_pool *p) {
    while (p->free != NULL) {
        struct outq_seg *s = p->free;
        p->free = s->next;
        free(s);
    }
    p->count = 0;
}

static struct outq_seg *outq_seg_new(struct outq_pool *p, size_t n) {
    size_t cap = n <= OUTQ_SMALL ? OUTQ_SMALL : MAX(n, (size_t)OUTQ_LARGE);
    struct outq_seg *s;
    if (cap == OUTQ_LARGE && p->free != NULL) {
        s = p->free;
        p->free = s->next;
        p->count--;
    } else {
        s = malloc(sizeof *s + cap);
        if (s == NULL)
            return NULL;
    }
    s->next = NULL;
    s->cap = cap;
    s->at = s->len = 0;
    return s;
}

static void outq_seg_free(struct outq_pool *p, struct outq_seg *s) {
    if (s->cap == OUTQ_LARGE && p->count < OUTQ_POOLED) {
        s->next = p->free;
        p->free = s;
        p->count++;
    } else {
        free(s);
    }
}

void outq_init(struct outq *q, struct outq_pool *pool) {
    *q = (struct outq){.pool = pool};
}

void outq_fini(struct outq *q) {
    while (q->head != NULL) {
        struct outq_seg *s = q->head;
        q->head = s->next;
        outq_seg_free(q->pool, s);
    }
    q->tail = NULL;
    q->bytes = 0;
}

char *outq_reserve(struct outq *q, size_t n) {
    struct outq_seg *t = q->tail;
    if (t == NULL || t->cap - t->len < n) {
        struct outq_seg *s = outq_seg_new(q->pool, n);
        if (s == NULL)
            return NULL;
        if (t == NULL)
            q->head = s;
        else
            t->next = s;
        q->tail = t = s;
    }
    return t->data + t->len;
}

void outq_commit(struct outq *q, size_t n) {
    q->tail->len += n;
    q->bytes += n;
}

static void outq_consume(struct outq *q, size_t n) {
    q->bytes -= n;
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
        outq_seg_free(q->pool, s);
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
