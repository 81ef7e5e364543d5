#pragma once
/* A whole message that came over a connection, and what is known of it already. */

#include "base/buf.h"
#include "net/ws.h"

struct conn_message {
    char *p; /* writable */
    size_t n;
    bool utf8;             /* valid UTF-8, but for what is packed */
    struct ws_part packed; /* Base64 that is decoded already; then there is `memory` */
    struct buf *memory;    /* in which it lies, if conn_message_owns(); or NULL */
};

/* Its length as it was sent. */
static inline size_t conn_message_sent(const struct conn_message *m) {
    return m->n + m->packed.n / 3;
}

/*
 * Whether the message has memory of its own, of at most twice its size as it was sent (it may have
 * been that of a larger one, net/bufcache.h), and that was not taken yet.
 */
bool conn_message_owns(const struct conn_message *m);

/* Takes it, so that the message outlasts its handling. It goes back by bufcache_give(). */
struct buf conn_message_take(const struct conn_message *m);

/* Makes it the text that was sent, for whoever cannot do with packed Base64. 0 or -ENOMEM. */
MUST_CHECK int conn_message_unpack(struct conn_message *m);
