#include "net/spare.h"

static void spare_on_timer(struct loop_timer *t) {
    buf_fini(&container_of(t, struct spare, timer)->buf);
}

void spare_init(struct spare *s, struct loop *loop) {
    *s = (struct spare){.loop = loop, .timer.fn = spare_on_timer};
}

void spare_fini(struct spare *s) {
    loop_timer_del(s->loop, &s->timer);
    buf_fini(&s->buf);
}

void spare_give(struct spare *s, struct buf *b) {
    bool keep = s->buf.p == NULL && b->cap >= SPARE_MIN && b->cap <= SPARE_MAX;
    if (keep && loop_timer_set(s->loop, &s->timer, SPARE_MS * LOOP_MS) == 0) {
        s->buf = *b;
        *b = BUF_INIT(b->max);
    }
    buf_fini(b);
}

void spare_lend(struct spare *s, struct buf *b) {
    if (s->buf.p == NULL || b->cap >= s->buf.cap || s->buf.cap > b->max)
        return;
    struct buf small = *b;
    *b = s->buf;
    b->max = small.max;
    b->len = small.len;
    if (small.len > 0)
        memcpy(b->p, small.p, small.len);
    s->buf = (struct buf){0};
    buf_fini(&small);
}
