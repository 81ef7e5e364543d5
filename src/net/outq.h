#pragma once
/*
 * Bytes on their way to a peer: a chain of segments, written out with one writev() for many
 * messages. A message lies in one segment, so it can be built in place. Segments of the usual large
 * size are recycled through a small pool shared by all connections.
 * The queue itself has no maximum: its owner stops producing (conn.h, slow client rule).
 */

#include "base/util.h"

#include <stdint.h>
#include <sys/types.h>

#define OUTQ_SMALL 2048          /* first segment for short messages */
#define OUTQ_LARGE (132 * 1024)  /* holds one full output chunk, encoded */
#define OUTQ_POOLED 4            /* large segments kept by the pool */
#define OUTQ_BLOCK (1400 * 1024) /* holds 1 MiB of a file, encoded */
#define OUTQ_BLOCKS_POOLED 4     /* such segments kept, until outq_pool_trim() */
#define OUTQ_SPARSE 4            /* a segment is nearly empty with less than 1/4 in use */

struct outq_seg {
    struct outq_seg *next;
    size_t cap;
    size_t at, len; /* bytes [at, len) wait */
    char data[];
};

struct outq_pool {
    struct outq_seg *free;
    size_t count;
    struct outq_seg *blocks;
    size_t block_count;
};

void outq_pool_fini(struct outq_pool *p);

/* Gives back the blocks kept; the usual large segments stay. */
void outq_pool_trim(struct outq_pool *p);

/*
 * A segment with room for n bytes that is filled elsewhere, also by another thread, and then given
 * to a queue: data[0..len). NULL when out of memory.
 */
struct outq_seg *outq_seg_new(struct outq_pool *p, size_t n);

/* Gives back a chain that was not queued; NULL is harmless. */
void outq_seg_free(struct outq_pool *p, struct outq_seg *chain);

struct outq {
    struct outq_pool *pool;
    struct outq_seg *head, *tail;
    size_t bytes;     /* not yet written */
    uint64_t written; /* ever */
};

void outq_init(struct outq *q, struct outq_pool *pool);
void outq_fini(struct outq *q);

/* n contiguous bytes to fill at the end of the queue, or NULL; they count after outq_commit(). */
char *outq_reserve(struct outq *q, size_t n);
void outq_commit(struct outq *q, size_t n);

/*
 * Appends a chain of filled segments and owns it from now on. What is in those that are nearly
 * empty is copied, so that few bytes never hold much memory.
 */
void outq_append(struct outq *q, struct outq_seg *chain);

/* Moves everything from `src`, of the same pool, to the end of q. */
void outq_move(struct outq *q, struct outq *src);

/* Writes as much as fd takes. 0 (look at q->bytes), or -errno when the peer is gone. */
MUST_CHECK int outq_flush(struct outq *q, int fd);
