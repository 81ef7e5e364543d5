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

#define SENDQ_SMALL 2048          /* first segment for short messages */
#define SENDQ_LARGE (132 * 1024)  /* holds one full output chunk, encoded */
#define SENDQ_POOLED 4            /* large segments in the pool */
#define SENDQ_BLOCK (1400 * 1024) /* holds 1 MiB of a file, encoded */
#define SENDQ_BLOCKS_POOLED 4     /* such segments in the pool, until sendq_pool_trim() */
#define SENDQ_SPARSE 4            /* a segment with less than 1/4 in use is nearly empty */

struct sendq_seg {
    struct sendq_seg *next;
    size_t cap;
    size_t at, len; /* bytes [at, len) wait */
    char data[];
};

struct sendq_pool {
    struct sendq_seg *free;
    size_t count;
    struct sendq_seg *blocks;
    size_t block_count;
};

void sendq_pool_fini(struct sendq_pool *p);

/* Frees the pooled blocks; large segments stay. */
void sendq_pool_trim(struct sendq_pool *p);

/*
 * A segment with room for n bytes. The caller owns it, fills data[0..len) in any thread, and gives
 * it to a queue. NULL when out of memory.
 */
struct sendq_seg *sendq_seg_new(struct sendq_pool *p, size_t n);

/* Frees a chain that was not queued; accepts NULL. */
void sendq_seg_free(struct sendq_pool *p, struct sendq_seg *chain);

struct sendq {
    struct sendq_pool *pool;
    struct sendq_seg *head, *tail;
    size_t bytes;     /* not yet written */
    uint64_t written; /* ever */
};

void sendq_init(struct sendq *q, struct sendq_pool *pool);
void sendq_fini(struct sendq *q);

/* Reserves n contiguous bytes at the end of the queue, to fill and commit. NULL: out of memory. */
char *sendq_reserve(struct sendq *q, size_t n);
void sendq_commit(struct sendq *q, size_t n);

/*
 * Appends a chain of filled segments and owns it from now on. Copies the bytes of segments that are
 * nearly empty, so that few bytes never use much memory.
 */
void sendq_append(struct sendq *q, struct sendq_seg *chain);

/* Moves everything from `src`, of the same pool, to the end of q. */
void sendq_move(struct sendq *q, struct sendq *src);

/* Writes as much as fd takes; q->bytes are left. 0, or -errno when the peer is gone. */
MUST_CHECK int sendq_flush(struct sendq *q, int fd);
