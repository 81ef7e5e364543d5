#pragma once
/*
 * The retained output of one process: the newest whole chunks of all streams, in the order of their
 * sequence numbers. Bytes live in one ring that doubles up to the cap, so a quiet process costs
 * little; chunk records live in a second ring.
 * Maxima: `cap` bytes (at least OUTLOG_CAP_MIN) and OUTLOG_CHUNKS_MAX records of 24 bytes.
 */

#include "base/str.h"
#include "base/util.h"

#include <stdbool.h>
#include <stdint.h>

#define OUTLOG_CHUNK_MAX 65536 /* bytes of one chunk */
#define OUTLOG_CAP_MIN OUTLOG_CHUNK_MAX
#define OUTLOG_CHUNKS_MAX 50000 /* chunks kept */

enum outlog_stream { OUTLOG_STDOUT, OUTLOG_STDERR, OUTLOG_PTY };
#define OUTLOG_STREAMS 3

struct outlog;
struct outlog_chunk;

/* A chunk is about to be evicted; outlog_bytes() still works on it. */
typedef void outlog_evict_fn(struct outlog *l, const struct outlog_chunk *c);

struct outlog_chunk {
    uint64_t seq;
    uint64_t pos; /* absolute position of its first byte in the stream of all bytes ever stored */
    uint32_t len;
    enum outlog_stream stream;
};

struct outlog {
    size_t cap;  /* most bytes retained */
    char *bytes; /* ring of bytes_cap bytes; owned */
    size_t bytes_cap;
    uint64_t head, tail;         /* absolute positions: retained bytes are [head, tail) */
    struct outlog_chunk *chunks; /* ring of chunks_cap records; owned */
    size_t chunks_cap;
    size_t first, count;                 /* index of the oldest record, number of records */
    size_t stream_bytes[OUTLOG_STREAMS]; /* retained, by stream */
    outlog_evict_fn *evict;              /* hears of evictions; NULL = nobody */
};

/* An empty log that retains at most `cap` bytes. Allocates nothing. */
void outlog_init(struct outlog *l, size_t cap);

/* Drops everything and frees the memory; the log can still take chunks. */
void outlog_fini(struct outlog *l);

/*
 * Appends a chunk (0 < n <= OUTLOG_CHUNK_MAX); evicts the oldest ones as needed. 0 or -ENOMEM: the
 * chunk is not retained, the log stays consistent.
 */
MUST_CHECK int outlog_append(struct outlog *l, uint64_t seq, enum outlog_stream stream,
                             const char *data, size_t n);

/* Frees unused ring space; for a process that writes no more. */
void outlog_shrink(struct outlog *l);

/* Memory held. */
static inline size_t outlog_memory(const struct outlog *l) {
    return l->bytes_cap + l->chunks_cap * sizeof *l->chunks;
}

/* Index (from 0, oldest) of the first chunk with seq > after; == count when there is none. */
size_t outlog_find(const struct outlog *l, uint64_t after);

/*
 * Whether one more chunk, of any size, could evict a chunk with seq > after: these chunks have
 * reached `cap` less OUTLOG_CHUNK_MAX, or OUTLOG_CHUNKS_MAX in number. False if there is none.
 */
bool outlog_is_full_after(const struct outlog *l, uint64_t after);

/* The i-th retained chunk, i < count. */
const struct outlog_chunk *outlog_at(const struct outlog *l, size_t i);

/* Its bytes: up to two slices (the ring may wrap); the second is empty when it does not. */
void outlog_bytes(const struct outlog *l, const struct outlog_chunk *c, struct str out[2]);
