#include "client/link.h"

/*
 * Silence is explained while something is awaited and we read: after ping_ms a ping, and the
 * connection is lost dead_ms - ping_ms after the first ping that nothing followed. So a connection
 * is never lost without a ping, also if this process was stopped.
 */

static void link_alive_on_timer(struct loop_timer *t);

void link_alive_init(struct link *l) {
    l->alive.fn = link_alive_on_timer;
    l->ping_ms = (uint64_t)xs_options_get_num(l->options, XS_OPT_PING_MS, 5000);
    l->dead_ms = (uint64_t)xs_options_get_num(l->options, XS_OPT_DEAD_MS, 15000);
}

static bool link_alive_counts(const struct link *l) {
    return !l->lines && l->ping_ms > 0 && l->awaited && l->reading && l->state >= LINK_OPEN;
}

/* Sets the timer to the next thing to do. */
static void link_alive_set(struct link *l) {
    uint64_t now = l->loop->now;
    uint64_t next = l->last_ping + loop_ms(l->ping_ms);
    if (l->pinged_at == 0)
        next = l->heard_at + loop_ms(l->ping_ms);
    else
        next = MIN(next, l->pinged_at + loop_ms(l->dead_ms - MIN(l->ping_ms, l->dead_ms)));
    if (loop_timer_set(l->loop, &l->alive, next > now ? next - now : 0) < 0)
        link_break(l, LINK_LOST, XS_ENOMEM, "out of memory");
}

void link_alive_begin(struct link *l) {
    l->heard_at = l->loop->now;
    l->pinged_at = l->last_ping = 0;
    link_alive_check(l);
}

void link_alive_heard(struct link *l) {
    l->heard_at = l->loop->now; /* the timer looks at it when it fires */
    l->pinged_at = 0;
}

void link_alive_check(struct link *l) {
    if (!link_alive_counts(l)) {
        loop_timer_del(l->loop, &l->alive);
        return;
    }
    if (l->alive.pos != 0)
        return;
    /* The clock begins now: what was before nobody waited for. */
    l->heard_at = l->loop->now;
    l->pinged_at = 0;
    link_alive_set(l);
}

static void link_alive_on_timer(struct loop_timer *t) {
    struct link *l = container_of(t, struct link, alive);
    uint64_t now = l->loop->now;
    if (!link_alive_counts(l))
        return;
    uint64_t patience = loop_ms(l->dead_ms - MIN(l->ping_ms, l->dead_ms));
    if (l->pinged_at != 0 && now >= l->pinged_at + patience) {
        link_break(l, LINK_LOST, XS_ELOST, "the connection is dead: nothing came for %llu ms",
                   (unsigned long long)l->dead_ms);
        return;
    }
    uint64_t since = l->pinged_at != 0 ? l->last_ping : l->heard_at;
    if (now >= since + loop_ms(l->ping_ms)) {
        l->last_ping = now;
        l->pinged_at = l->pinged_at != 0 ? l->pinged_at : now;
        l->ping_due = true;
        uint64_t number = l->number;
        link_out_flush(l);
        if (l->number != number || l->state < LINK_OPEN)
            return;
    }
    link_alive_set(l);
}
