#include "net/spare.h"

static void spare_drop(struct spare *s) {
    for (size_t i = 0; i < SPARE_COUNT; i++)
        buf_fini(&s->kept[i]);
}

static void spare_on_timer(struct loop_timer *t) {
    spare_drop(container_of(t, struct spare, timer));
}

void spare_init(struct spare *s, struct loop *loop) {
    *s = (struct spare){.loop = loop, .timer.fn = spare_on_timer};
}

void spare_fini(struct spare *s) {
    loop_timer_del(s->loop, &s->timer);
    spare_drop(s);
}

/* The one with the least memory, none of it perhaps; or with the most. */
static struct buf *spare_find(struct spare *s, bool most) {
    struct buf *found = &s->kept[0];
    for (size_t i = 1; i < SPARE_COUNT; i++) {
        if (most ? s->kept[i].cap > found->cap : s->kept[i].cap < found->cap)
            found = &s->kept[i];
    }
    return found;
}

void spare_give(struct spare *s, struct buf *b) {
    struct buf *place = spare_find(s, false);
    bool keep = place->p == NULL && b->cap >= SPARE_MIN && b->cap <= SPARE_MAX;
    if (keep && loop_timer_set(s->loop, &s->timer, SPARE_MS * LOOP_MS) == 0) {
        *place = *b;
        *b = BUF_INIT(b->max);
    }
    buf_fini(b);
}

void spare_lend(struct spare *s, struct buf *b) {
    struct buf *kept = spare_find(s, true);
    if (kept->p == NULL || b->cap >= kept->cap || kept->cap > b->max)
        return;
    struct buf small = *b;
    *b = *kept;
    b->max = small.max;
    b->len = small.len;
    if (small.len > 0)
        memcpy(b->p, small.p, small.len);
    *kept = (struct buf){0};
    buf_fini(&small);
}
