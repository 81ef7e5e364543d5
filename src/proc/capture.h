#pragma once
/*
 * The first and the last bytes of one output stream, for process/snapshot. Neither the bytes
 * between nor other streams evict them.
 *
 * The newest bytes of all streams are in the process's outlog anyway. So the tail holds only bytes
 * of this stream that the outlog has evicted, and only while the outlog keeps fewer than `half` of
 * them: a flood on one stream costs no copy beyond its head.
 * Maxima: `half` bytes of head and `half` of tail.
 */

#include "base/buf.h"
#include "proc/outlog.h"

struct capture {
    size_t half;
    uint64_t total;  /* bytes of the stream so far */
    struct buf head; /* its first bytes */
    char *tail;      /* ring of `half` bytes, owned; NULL while not needed */
    size_t tail_at;  /* index of the oldest byte */
    size_t tail_len;
};

void capture_init(struct capture *c, size_t half);
void capture_fini(struct capture *c);

/* Bytes arrived. 0 or -ENOMEM (the head then stays short; counts stay right). */
MUST_CHECK int capture_add(struct capture *c, const char *data, size_t n);

/* The outlog evicts `gone` (two slices) and keeps `left` bytes of this stream. */
MUST_CHECK int capture_evicted(struct capture *c, const struct str gone[2], size_t left);

/* Frees memory that an ended stream does not need. */
void capture_shrink(struct capture *c);

/* Memory held. */
static inline size_t capture_memory(const struct capture *c) {
    return c->head.cap + (c->tail ? c->half : 0);
}

/* The part that a snapshot of at most `max` bytes shows: `head` first bytes, `tail` last ones. */
struct capture_view {
    size_t head, tail;
    uint64_t omitted, total;
};

/* `log` and `stream` hold the newest bytes. */
struct capture_view capture_measure(const struct capture *c, const struct outlog *log,
                                    enum outlog_stream stream, size_t max);

/* Appends the bytes of a view. */
MUST_CHECK int capture_put(const struct capture *c, const struct capture_view *v,
                           const struct outlog *log, enum outlog_stream stream, struct buf *b);
