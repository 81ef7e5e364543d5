#pragma once
/*
 * Memory of large messages that were handled, kept for the next ones: fresh memory costs a page
 * fault for every 4 KiB. At most SPARE_COUNT, each of at most SPARE_MAX bytes, until SPARE_MS after
 * the last one came. Two: one message is received while another is written.
 */

#include "base/buf.h"
#include "loop/loop.h"

#define SPARE_MIN (256u << 10) /* bytes worth keeping */
#define SPARE_MAX (16u << 20)
#define SPARE_MS 2000
#define SPARE_COUNT 2

struct spare {
    struct loop *loop;
    struct buf kept[SPARE_COUNT];
    struct loop_timer timer;
};

void spare_init(struct spare *s, struct loop *loop);
void spare_fini(struct spare *s);

/* Takes the buffer's memory, to keep or to free; the buffer is empty afterwards. */
void spare_give(struct spare *s, struct buf *b);

/* Gives b, which holds the beginning of something large, the memory kept, if that is of use. */
void spare_lend(struct spare *s, struct buf *b);
