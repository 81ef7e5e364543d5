#include "base/log.h"
#include "net/conn_internal.h"

#include <errno.h>

static uint64_t conn_proof_left(const struct conn *c) {
    uint64_t now = c->host->loop->now;
    return c->proof_due > now ? c->proof_due - now : 0;
}

/* Puts it at the end of its list, with all of its time. */
static void conn_proof_restart(struct conn *c, enum conn_standing standing) {
    bool guest = standing == CONN_GUEST && c->host->auth->mode != AUTH_NONE;
    uint64_t ms = c->state == CONN_OPEN ? c->host->proof_ms : CONN_PROOF_MS;
    c->standing = standing;
    c->proof_due = c->host->loop->now + ms * LOOP_MS;
    /* Without authentication every stranger can become a guest, so only age counts. */
    list_append(guest ? &c->host->guests : &c->host->strangers, &c->unproven);
}

int conn_proof_begin(struct conn *c) {
    conn_proof_restart(c, CONN_STRANGER);
    sock_limit_unsent(c->io.fd, CONN_OUT_EARLY);
    return loop_timer_set(c->host->loop, &c->timer, CONN_HEAD_MS * LOOP_MS);
}

void conn_proof_end(struct conn *c) {
    list_remove(&c->unproven);
}

void conn_proof_serve(struct conn *c) {
    conn_proof_end(c);
    if (c->standing == CONN_STRANGER)
        sock_limit_unsent(c->io.fd, 0);
    c->standing = CONN_SERVED;
}

void conn_proof_served(struct conn *c) {
    if (c->standing != CONN_SERVED)
        return;
    conn_proof_restart(c, CONN_GUEST);
    /* The timer runs already, and moving it takes no memory. */
    (void)!loop_timer_set(c->host->loop, &c->timer, conn_proof_left(c));
}

void conn_proof_over(struct conn *c) {
    if (c->turn_task.queued && c->standing == CONN_GUEST) {
        c->standing = CONN_LATE; /* `initialize` may wait for its turn */
        (void)!loop_timer_set(c->host->loop, &c->timer, CONN_PROOF_LATE_MS * LOOP_MS);
        return;
    }
    log_debug("closing connection %s: %s", c->peer, c->host->proof_late);
    conn_end(c, 1008, c->host->proof_late);
}

bool conn_proof_is_short(const struct conn *c) {
    return c->standing != CONN_SERVED && conn_proof_left(c) < CONN_HEAD_MS * LOOP_MS;
}

void conn_proof_await_head(struct conn *c) {
    uint64_t delay = CONN_BODY_MS * LOOP_MS;
    if (c->sendq.bytes == 0)
        conn_proof_served(c);
    if (c->standing != CONN_SERVED)
        delay = conn_proof_left(c);
    if (c->sendq.bytes == 0)
        delay = MIN(delay, CONN_HEAD_MS * LOOP_MS);
    (void)!loop_timer_set(c->host->loop, &c->timer, delay); /* the timer runs already */
}

void conn_proof_accept(struct conn *c) {
    conn_proof_end(c);
    c->standing = CONN_PROVEN;
    c->msg_max = CONN_MSG_MAX;
    ws_parser_set_max(&c->ws, CONN_MSG_MAX);
    if (!c->stdio)
        (void)!loop_timer_set(c->host->loop, &c->timer, CONN_PING_MS * LOOP_MS);
}

/* -- making room -- */

static void conn_evict(struct conn *c) {
    static const char why[] = "made room for a newer connection";
    log_debug("connection %s makes room", c->peer);
    c->host->ops->turned_away(c, 0, why);
    conn_end(c, 1013, why);
    conn_flush(c);
    conn_drop(c);
}

/* The first of a list goes, unless its unread input changes its standing. */
static void conn_evict_first(const struct list *unproven, bool look) {
    struct list *first = list_first(unproven);
    struct conn *c = list_entry(first, struct conn, unproven);
    if (look)
        conn_read(c);
    if (list_first(unproven) == first)
        conn_evict(c);
}

bool conn_proof_make_room(struct conn_host *h) {
    for (unsigned looks = 0; h->count >= h->max; looks++) {
        if (list_empty(&h->strangers)) /* conn_proof_admit() decides about guests */
            return h->count == h->max && !list_empty(&h->guests);
        conn_evict_first(&h->strangers, looks < CONN_LOOKS);
    }
    return true;
}

bool conn_proof_admit(struct conn *c) {
    struct conn_host *h = c->host;
    for (unsigned looks = 0; c->standing == CONN_STRANGER && h->count > h->max; looks++) {
        if (list_empty(&h->guests))
            return false;
        conn_evict_first(&h->guests, looks < CONN_LOOKS);
    }
    return true;
}
