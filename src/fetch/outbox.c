#include "fetch/outbox.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define OUTBOX_COPY 2047     /* bytes */
#define OUTBOX_SLOT_MIN 4096 /* bytes that are worth a slot */

static void outbox_put(struct outbox *o, int r) {
    o->failed |= r < 0;
    o->tail = SIZE_MAX;
}

/* Hands the slot that is being filled to the server. Other frames follow it. */
static void outbox_close(struct outbox *o) {
    if (o->filled == 0)
        return;
    outbox_put(o, http_wire_put_count(&o->b, HTTP_WIRE_SLOT, o->slot_id, o->filled));
    o->filled = 0;
    http_slots_pass(&o->slots);
}

int outbox_taken(struct outbox *o, struct str payload) {
    size_t n;
    if (http_wire_get_count(payload, o->slots.used, &n) < 0)
        return -EPROTO;
    o->slots.used -= (unsigned)n;
    return 0;
}

void outbox_hello(struct outbox *o, struct str version) {
    outbox_put(o, http_wire_put_hello(&o->b, version));
}

void outbox_headers(struct outbox *o, uint32_t id, const struct http_wire_headers *h) {
    outbox_close(o);
    outbox_put(o, http_wire_put_headers(&o->b, id, h));
}

void outbox_end(struct outbox *o, uint32_t id, const char *reason) {
    outbox_close(o);
    outbox_put(
        o, http_wire_put_end(&o->b, id, &(struct http_wire_end){reason != NULL, str_of(reason)}));
}

/* Copies in pieces for which no memmove() takes `rep movsb`. On some processors that is fifteen
 * times slower where the target lies a few bytes behind the source, modulo 4096. (The compiler
 * makes an instruction of that kind of a memcpy() whose length it can bound.) */
static void outbox_copy(char *dst, struct str bytes) {
    while (bytes.n > 0) {
        size_t n = MIN(bytes.n, (size_t)OUTBOX_COPY);
        memmove(dst, bytes.p, n);
        dst += n;
        bytes.p += n;
        bytes.n -= n;
    }
}

/* Puts as much into a slot as it has room for. Says how much that was: 0 if no slot is open, and
 * none is to be had or worth it. */
static size_t outbox_fill(struct outbox *o, uint32_t id, struct str bytes) {
    if (o->slot_id != id)
        outbox_close(o);
    if (o->filled == 0 && (o->slots.used == HTTP_SLOTS || bytes.n < OUTBOX_SLOT_MIN))
        return 0;
    size_t n = MIN(bytes.n, HTTP_SLOTS_EACH - o->filled);
    outbox_copy(http_slots_at(&o->slots) + o->filled, (struct str){bytes.p, n});
    o->filled += n;
    o->slot_id = id;
    if (o->filled == HTTP_SLOTS_EACH) {
        outbox_close(o);
        (void)!outbox_flush(o); /* while it is in the cache; faults show later */
    }
    return n;
}

/* Puts as much into a frame, the last one or a new one, as it has room for. */
static size_t outbox_append(struct outbox *o, uint32_t id, struct str bytes) {
    if (o->tail == SIZE_MAX || o->tail_id != id ||
        o->b.len - o->tail == HTTP_WIRE_HEAD + HTTP_WIRE_DATA_MAX) {
        size_t start = o->b.len;
        outbox_put(o, http_wire_put_bytes(&o->b, HTTP_WIRE_DATA, id, (struct str){NULL, 0}));
        o->tail = start;
        o->tail_id = id;
    }
    size_t payload = o->b.len - o->tail - HTTP_WIRE_HEAD;
    size_t n = MIN(bytes.n, HTTP_WIRE_DATA_MAX - payload);
    o->failed |= o->failed || buf_reserve(&o->b, n) < 0;
    if (o->failed)
        return 0;
    outbox_copy(o->b.p + o->b.len, (struct str){bytes.p, n});
    o->b.len += n;
    http_wire_put_head(o->b.p + o->tail, HTTP_WIRE_DATA, id, payload + n);
    return n;
}

void outbox_data(struct outbox *o, uint32_t id, struct str bytes) {
    while (bytes.n > 0 && !o->failed) {
        size_t n = outbox_fill(o, id, bytes);
        if (n == 0)
            n = outbox_append(o, id, bytes);
        bytes.p += n;
        bytes.n -= n;
    }
    if (outbox_pending(o) >= HTTP_WIRE_DATA_MAX)
        (void)!outbox_flush(o);
}

int outbox_flush(struct outbox *o) {
    outbox_close(o);
    while (outbox_pending(o) > 0) {
        ssize_t n = send(o->fd, o->b.p + o->at, outbox_pending(o), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? 0 : -errno;
        o->at += (size_t)n;
        o->tail = SIZE_MAX;
    }
    o->b.len = o->at = 0;
    o->tail = SIZE_MAX;
    return 0;
}
