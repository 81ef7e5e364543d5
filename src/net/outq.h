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

#define OUTQ_SMALL 2048         /* first segment for short messages */
#define OUTQ_LARGE (132 * 1024) /* holds one full output chunk, encoded */
#define OUTQ_POOLED 4           /* large segments kept by the pool */

struct outq_seg;

struct outq_pool {
    struct outq_seg *free;
    size_t count;
};

void outq_pool_fini(struct outq_pool *p);

struct outq {
    struct outq_pool *pool;
    struct outq_seg *head, *tail;
    size_t bytes; /* not yet written */
};

void outq_init(struct outq *q, struct outq_pool *pool);
void outq_fini(struct outq *q);

/* n contiguous bytes to fill at the end of the queue, or NULL; they count after outq_commit(). */
char *outq_reserve(struct outq *q, size_t n);
void outq_commit(struct outq *q, size_t n);

/* Writes as much as fd takes. 0 (look at q->bytes), or -errno when the peer is gone. */
MUST_CHECK int outq_flush(struct outq *q, int fd);
