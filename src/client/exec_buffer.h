#pragma once
/*
 * The first and the last bytes of an output. What arrives when the first half is full goes to the
 * second one, which keeps the newest bytes; those between are counted.
 * Maxima: `half` bytes of head and `half` of tail. Both grow on demand.
 */

#include "base/buf.h"

#include <stdint.h>

struct exec_buffer {
    size_t half;
    struct buf head;
    char *tail; /* owned; a ring once it has `half` bytes */
    size_t tail_cap, tail_len;
    size_t tail_at;   /* index of the oldest byte */
    uint64_t omitted; /* bytes between head and tail that are gone */
};

#define EXEC_BUFFER_HALF ((size_t)512 * 1024)

void exec_buffer_init(struct exec_buffer *b, size_t half);

/* Frees the memory; the buffer stays usable and empty. */
void exec_buffer_fini(struct exec_buffer *b);

/* Adds n bytes. 0, or -ENOMEM: some are not kept, but counted as omitted. */
MUST_CHECK int exec_buffer_put(struct exec_buffer *b, const char *p, size_t n);

static inline size_t exec_buffer_kept(const struct exec_buffer *b) {
    return b->head.len + b->tail_len;
}

static inline uint64_t exec_buffer_total(const struct exec_buffer *b) {
    return exec_buffer_kept(b) + b->omitted;
}

/* Appends what is kept: head and tail, with exec_buffer_marker() between if bytes are omitted and
 * `marked`. 0, -ENOMEM or -ENOBUFS. */
MUST_CHECK int exec_buffer_flatten(const struct exec_buffer *b, bool marked, struct buf *out);

/* Writes "... N bytes omitted ..."; its length. */
#define EXEC_BUFFER_MARKER_MAX 64
size_t exec_buffer_marker(char out[EXEC_BUFFER_MARKER_MAX], uint64_t omitted);
