#include "web/web_body.h"

#include "json/base64.h"

#include <errno.h>

#define WEB_BODY_SEGMENT ((size_t)128 << 10) /* bytes of a segment: one of the pool's large ones */

void web_body_init(struct web_body *b, struct sendq_pool *pool) {
    *b = (struct web_body){.pool = pool};
}

void web_body_fini(struct web_body *b) {
    sendq_seg_free(b->pool, steal_ptr(&b->chain));
    b->tail = NULL;
}

/* Room for n encoded bytes at the end of the chain, or less (but for some); NULL without memory. */
static struct sendq_seg *body_room(struct web_body *b, size_t n) {
    if (b->tail != NULL && b->tail->cap - b->tail->len >= 4)
        return b->tail;
    struct sendq_seg *s = sendq_seg_new(b->pool, n > SENDQ_SMALL / 2 ? WEB_BODY_SEGMENT : n);
    if (s == NULL)
        return NULL;
    *(b->tail != NULL ? &b->tail->next : &b->chain) = s;
    b->tail = s;
    return s;
}

/* Encodes bytes whose number is a multiple of three, unless they are the last. */
static int body_encode(struct web_body *b, const char *p, size_t n) {
    while (n > 0) {
        struct sendq_seg *s = body_room(b, base64_encoded_len(n));
        if (s == NULL)
            return -ENOMEM;
        size_t part = MIN(n, (s->cap - s->len) / 4 * 3);
        size_t put = base64_encode(s->data + s->len, p, part);
        s->len += put;
        b->encoded += put;
        p += part;
        n -= part;
    }
    return 0;
}

int web_body_put(struct web_body *b, struct str bytes) {
    b->bytes += bytes.n;
    while (b->carried > 0 && b->carried < 3 && bytes.n > 0) {
        b->carry[b->carried++] = *bytes.p++;
        bytes.n--;
    }
    int r = 0;
    if (b->carried == 3) {
        r = body_encode(b, b->carry, 3);
        b->carried = 0;
    }
    size_t whole = b->carried > 0 ? 0 : bytes.n / 3 * 3;
    if (r == 0)
        r = body_encode(b, bytes.p, whole);
    for (size_t i = whole; i < bytes.n; i++)
        b->carry[b->carried++] = bytes.p[i];
    return r;
}

int web_body_finish(struct web_body *b) {
    size_t n = b->carried;
    b->carried = 0;
    return body_encode(b, b->carry, n);
}

struct sendq_seg *web_body_take(struct web_body *b, size_t n) {
    struct sendq_seg *first = b->chain, *last = first;
    if (first == NULL)
        return NULL;
    for (size_t got = last->len; last->next != NULL && got < n; got += last->len)
        last = last->next;
    b->chain = last->next;
    last->next = NULL;
    if (b->chain == NULL)
        b->tail = NULL;
    return first;
}
