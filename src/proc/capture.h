#pragma once
/*
 * Head and tail of one output stream, for process/snapshot: the first and the last bytes, however
 * much lies between and whatever the other streams do.
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
    uint64_t total;  /* bytes the stream ever had */
    struct buf head; /* its first bytes */
    char *tail;      /* ring of `half` bytes, owned; NULL while not needed */
    size_t tail_at;  /* index of the oldest byte */
    size_t tail_len;
};

void capture_init(struct capture *c, size_t half);
void capture_fini(struct capture *c);

/* Bytes arrived. 0 or -ENOMEM (the head then stays short; counts stay right). */
MUST_CHECK int capture_add(struct capture *c, const char *data, size_t n);

/* The outlog lets go of `gone` (two slices), and still has `left` bytes of this stream. */
MUST_CHECK int capture_evicted(struct capture *c, const struct str gone[2], size_t left);

/* Gives back what a stream that has ended does not need. */
void capture_shrink(struct capture *c);

/* Memory held. */
static inline size_t capture_memory(const struct capture *c) {
    return c->head.cap + (c->tail ? c->half : 0);
}

/* What a snapshot limited to `max` bytes shows: `head` first bytes and `tail` last ones. */
struct capture_view {
    size_t head, tail;
    uint64_t omitted, total;
};

/* `log` and `stream` say where the newest bytes are. */
struct capture_view capture_measure(const struct capture *c, const struct outlog *log,
                                    enum outlog_stream stream, size_t max);

/* Appends the bytes of a view. */
MUST_CHECK int capture_put(const struct capture *c, const struct capture_view *v,
                           const struct outlog *log, enum outlog_stream stream, struct buf *b);
