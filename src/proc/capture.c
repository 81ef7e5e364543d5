#include "proc/capture.h"

#include <errno.h>

void capture_init(struct capture *c, size_t half) {
    *c = (struct capture){.half = half, .head = BUF_INIT(half)};
}

void capture_fini(struct capture *c) {
    buf_fini(&c->head);
    free(c->tail);
    c->tail = NULL;
    c->tail_at = c->tail_len = 0;
}

int capture_add(struct capture *c, const char *data, size_t n) {
    /* Once the head misses bytes it is final, also after a failed allocation. */
    bool open = c->total == c->head.len;
    c->total += n;
    return open ? buf_put(&c->head, data, MIN(n, c->half - c->head.len)) : 0;
}

static void capture_tail_put(struct capture *c, const char *data, size_t n) {
    if (n >= c->half) {
        data += n - c->half;
        n = c->half;
    }
    size_t end = (c->tail_at + c->tail_len) % c->half;
    size_t run = MIN(n, c->half - end);
    memcpy(c->tail + end, data, run);
    memcpy(c->tail, data + run, n - run);
    c->tail_len += n;
    if (c->tail_len > c->half) {
        c->tail_at = (c->tail_at + c->tail_len - c->half) % c->half;
        c->tail_len = c->half;
    }
}

int capture_evicted(struct capture *c, const struct str gone[2], size_t left) {
    if (left >= c->half) {
        c->tail_len = 0; /* the outlog alone holds the whole tail */
        return 0;
    }
    if (c->tail == NULL && (c->tail = malloc(c->half)) == NULL)
        return -ENOMEM;
    for (int i = 0; i < 2; i++) {
        if (gone[i].n > 0)
            capture_tail_put(c, gone[i].p, gone[i].n);
    }
    return 0;
}

void capture_shrink(struct capture *c) {
    if (c->tail_len == 0) {
        free(c->tail);
        c->tail = NULL;
    }
    if (c->head.len == 0) {
        buf_fini(&c->head);
    } else if (c->head.len < c->head.cap) {
        char *p = realloc(c->head.p, c->head.len);
        if (p != NULL) {
            c->head.p = p;
            c->head.cap = c->head.len;
        }
    }
}

struct capture_view capture_measure(const struct capture *c, const struct outlog *log,
                                    enum outlog_stream stream, size_t max) {
    struct capture_view v = {.total = c->total};
    if (c->total <= c->head.len && c->total <= max) {
        v.head = c->head.len;
        return v;
    }
    v.head = MIN(c->head.len, max / 2);
    uint64_t rest = c->total - v.head;
    size_t held = MIN(c->half, c->tail_len + log->stream_bytes[stream]); /* less when dropped */
    v.tail = (size_t)MIN(rest, (uint64_t)MIN(held, max - v.head));
    v.omitted = rest - v.tail;
    return v;
}

/* Appends a slice without its first `skip` bytes; reduces `skip` by the bytes left out. */
static int capture_put_slice(struct buf *b, struct str s, uint64_t *skip) {
    size_t drop = (size_t)MIN(*skip, (uint64_t)s.n);
    *skip -= drop;
    return s.n > drop ? buf_put(b, s.p + drop, s.n - drop) : 0;
}

int capture_put(const struct capture *c, const struct capture_view *v, const struct outlog *log,
                enum outlog_stream stream, struct buf *b) {
    int r = v->head > 0 ? buf_put(b, c->head.p, v->head) : 0;
    /* The newest bytes are the tail ring, then this stream's chunks of the outlog. */
    uint64_t have = c->tail_len + log->stream_bytes[stream];
    uint64_t skip = have > v->tail ? have - v->tail : 0;
    if (v->tail == 0)
        return r;
    if (c->tail_len > 0) {
        size_t run = MIN(c->tail_len, c->half - c->tail_at);
        if (r == 0)
            r = capture_put_slice(b, (struct str){c->tail + c->tail_at, run}, &skip);
        if (r == 0)
            r = capture_put_slice(b, (struct str){c->tail, c->tail_len - run}, &skip);
    }
    for (size_t i = 0; r == 0 && i < log->count; i++) {
        const struct outlog_chunk *chunk = outlog_at(log, i);
        struct str s[2];
        if (chunk->stream != stream)
            continue;
        outlog_bytes(log, chunk, s);
        r = capture_put_slice(b, s[0], &skip);
        if (r == 0)
            r = capture_put_slice(b, s[1], &skip);
    }
    return r;
}
