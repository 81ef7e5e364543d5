#include "net/bufcache.h"

static void bufcache_drop(struct bufcache *s) {
    for (size_t i = 0; i < BUFCACHE_COUNT; i++)
        buf_fini(&s->cached[i]);
}

static void bufcache_on_timer(struct loop_timer *t) {
    bufcache_drop(container_of(t, struct bufcache, timer));
}

void bufcache_init(struct bufcache *s, struct loop *loop) {
    *s = (struct bufcache){.loop = loop, .timer.fn = bufcache_on_timer};
}

void bufcache_fini(struct bufcache *s) {
    loop_timer_del(s->loop, &s->timer);
    bufcache_drop(s);
}

/* The cached buffer with the most memory, or with the least (perhaps none). */
static struct buf *bufcache_find(struct bufcache *s, bool most) {
    struct buf *found = &s->cached[0];
    for (size_t i = 1; i < BUFCACHE_COUNT; i++) {
        if (most ? s->cached[i].cap > found->cap : s->cached[i].cap < found->cap)
            found = &s->cached[i];
    }
    return found;
}

void bufcache_give(struct bufcache *s, struct buf *b) {
    struct buf *place = bufcache_find(s, false);
    bool keep = place->p == NULL && b->cap >= BUFCACHE_MIN && b->cap <= BUFCACHE_MAX;
    if (keep && loop_timer_set(s->loop, &s->timer, BUFCACHE_MS * LOOP_MS) == 0) {
        *place = *b;
        *b = BUF_INIT(b->max);
    }
    buf_fini(b);
}

void bufcache_lend(struct bufcache *s, struct buf *b) {
    struct buf *cached = bufcache_find(s, true);
    if (cached->p == NULL || b->cap >= cached->cap || cached->cap > b->max)
        return;
    struct buf small = *b;
    *b = *cached;
    b->max = small.max;
    b->len = small.len;
    if (small.len > 0)
        memcpy(b->p, small.p, small.len);
    *cached = (struct buf){0};
    buf_fini(&small);
}
