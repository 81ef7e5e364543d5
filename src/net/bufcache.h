#pragma once
/*
 * Caches the memory of large messages for the next ones: fresh memory costs a page fault for every
 * 4 KiB. At most BUFCACHE_COUNT buffers of at most BUFCACHE_MAX bytes each, until BUFCACHE_MS after
 * the last one came. Two, because one message is received while another is written.
 */

#include "base/buf.h"
#include "loop/loop.h"

#define BUFCACHE_MIN (256u << 10) /* bytes worth caching */
#define BUFCACHE_MAX (16u << 20)
#define BUFCACHE_MS 2000
#define BUFCACHE_COUNT 2

struct bufcache {
    struct loop *loop;
    struct buf cached[BUFCACHE_COUNT];
    struct loop_timer timer;
};

void bufcache_init(struct bufcache *s, struct loop *loop);
void bufcache_fini(struct bufcache *s);

/* Takes the buffer's memory, to cache or to free; the buffer is empty afterwards. */
void bufcache_give(struct bufcache *s, struct buf *b);

/* b holds the beginning of a large message: moves it to cached memory, if that is larger. */
void bufcache_lend(struct bufcache *s, struct buf *b);
