#include "fetch/outbox.h"

#include <errno.h>
#include <sys/socket.h>

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

/* Appends to the last frame. False: it has no room. */
static bool outbox_extend(struct outbox *o, struct str bytes) {
    size_t payload = o->b.len - o->tail - HTTP_WIRE_HEAD;
    if (payload + bytes.n > HTTP_WIRE_DATA_MAX)
        return false;
    o->failed |= buf_put(&o->b, bytes.p, bytes.n) < 0;
    http_wire_put_head(o->b.p + o->tail, HTTP_WIRE_DATA, o->tail_id, payload + bytes.n);
    return true;
}

void outbox_data(struct outbox *o, uint32_t id, struct str bytes) {
    while (bytes.n > 0) {
        struct str part = {bytes.p, MIN(bytes.n, (size_t)HTTP_WIRE_DATA_MAX)};
        bytes.p += part.n;
        bytes.n -= part.n;
        if (o->tail != SIZE_MAX && o->tail_id == id && outbox_extend(o, part))
            continue;
        size_t start = o->b.len;
        outbox_put(o, http_wire_put_bytes(&o->b, HTTP_WIRE_DATA, id, part));
        o->tail = start;
        o->tail_id = id;
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
