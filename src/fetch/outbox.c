#include "fetch/outbox.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define OUTBOX_COPY 2047 /* bytes */

static void outbox_put(struct outbox *o, int r) {
    o->failed |= r < 0;
    o->tail = SIZE_MAX;
}

void outbox_hello(struct outbox *o, struct str version) {
    outbox_put(o, http_wire_put_hello(&o->b, version));
}

void outbox_headers(struct outbox *o, uint32_t id, const struct http_wire_headers *h) {
    outbox_put(o, http_wire_put_headers(&o->b, id, h));
}

void outbox_end(struct outbox *o, uint32_t id, const char *reason) {
    outbox_put(
        o, http_wire_put_end(&o->b, id, &(struct http_wire_end){reason != NULL, str_of(reason)}));
}

/* Copies in pieces for which no memmove() takes `rep movsb`. On some processors that is fifteen
 * times slower where the target lies a few bytes behind the source, modulo 4096. (The compiler
 * makes an instruction of that kind of a memcpy() whose length it can bound.) */
static int outbox_copy(struct outbox *o, struct str bytes) {
    int r = buf_reserve(&o->b, bytes.n);
    while (r == 0 && bytes.n > 0) {
        size_t n = MIN(bytes.n, (size_t)OUTBOX_COPY);
        memmove(o->b.p + o->b.len, bytes.p, n);
        o->b.len += n;
        bytes.p += n;
        bytes.n -= n;
    }
    return r;
}

/* Appends as much to the last frame as it has room for, and says how much that was. */
static size_t outbox_extend(struct outbox *o, struct str bytes) {
    size_t payload = o->b.len - o->tail - HTTP_WIRE_HEAD;
    size_t n = MIN(bytes.n, HTTP_WIRE_DATA_MAX - payload);
    o->failed |= outbox_copy(o, (struct str){bytes.p, n}) < 0;
    http_wire_put_head(o->b.p + o->tail, HTTP_WIRE_DATA, o->tail_id, payload + n);
    return n;
}

void outbox_data(struct outbox *o, uint32_t id, struct str bytes) {
    while (bytes.n > 0 && !o->failed) {
        if (o->tail == SIZE_MAX || o->tail_id != id) {
            size_t start = o->b.len;
            outbox_put(o, http_wire_put_bytes(&o->b, HTTP_WIRE_DATA, id, (struct str){NULL, 0}));
            o->tail = start;
            o->tail_id = id;
            continue;
        }
        size_t n = outbox_extend(o, bytes);
        bytes.p += n;
        bytes.n -= n;
        if (n == 0)
            o->tail = SIZE_MAX;
    }
    if (outbox_pending(o) >= HTTP_WIRE_DATA_MAX) /* while it is in the cache; faults show later */
        (void)!outbox_flush(o);
}

int outbox_flush(struct outbox *o) {
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
