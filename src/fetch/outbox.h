#pragma once
/*
 * Frames on their way to the server, and slots that it has not read. While it does not read, they
 * fill up: transfers then pause (outbox_is_full()). What they may still add is one DATA frame,
 * their header fields and their end, so OUTBOX_MAX is never reached.
 */

#include "http/http_slots.h"
#include "http/http_wire.h"

#include <stdbool.h>

#define OUTBOX_FULL (512u << 10) /* bytes at which transfers pause */
#define OUTBOX_MAX (512u << 20)  /* bytes: OUTBOX_FULL and the heads of all transfers */

struct outbox {
    int fd; /* the non-blocking socket to the server; borrowed */
    struct buf b;
    size_t at;   /* bytes of it that were sent */
    size_t tail; /* in b: the last frame, if it is DATA and may grow; else SIZE_MAX */
    uint32_t tail_id;
    struct http_slots slots;
    size_t filled; /* bytes in the slot that is being filled */
    uint32_t slot_id;
    bool failed; /* out of memory: the stream is broken */
};

#define OUTBOX_INIT(sock)                                                                          \
    ((struct outbox){.fd = (sock), .b = BUF_INIT(OUTBOX_MAX), .tail = SIZE_MAX})

static inline size_t outbox_pending(const struct outbox *o) {
    return o->b.len - o->at;
}
static inline bool outbox_is_full(const struct outbox *o) {
    return outbox_pending(o) >= OUTBOX_FULL || o->slots.used == HTTP_SLOTS;
}

void outbox_hello(struct outbox *o, struct str version);
void outbox_headers(struct outbox *o, uint32_t id, const struct http_wire_headers *h);
/* Bytes of one request that follow each other share frames or slots. Sends when one is full. */
void outbox_data(struct outbox *o, uint32_t id, struct str bytes);
/* `reason` NULL: it went well. */
void outbox_end(struct outbox *o, uint32_t id, const char *reason);

/* The server has read slots. 0 or -EPROTO. */
MUST_CHECK int outbox_taken(struct outbox *o, struct str payload);

/* Sends what the socket takes. 0 or -errno. */
MUST_CHECK int outbox_flush(struct outbox *o);
