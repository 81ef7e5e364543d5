#include "client/headtail.h"

#include "base/util.h"

#include <errno.h>
#include <string.h>

#define HEADTAIL_FIRST 4096 /* bytes of the first allocation */

void headtail_init(struct headtail *h, size_t max) {
    *h = (struct headtail){.head_max = max / 2, .tail_max = max / 2};
}

void headtail_fini(struct headtail *h) {
    free(h->head);
    free(h->tail);
    headtail_init(h, 0);
}

/* Makes room for `need` <= max bytes, in powers of two. */
static int headtail_grow(char **p, size_t *cap, size_t need, size_t max) {
    if (need <= *cap)
        return 0;
    size_t want = MAX(*cap, (size_t)HEADTAIL_FIRST);
    while (want < need)
        want *= 2;
    want = MIN(want, max);
    char *grown = realloc(*p, want);
    if (grown == NULL)
        return -ENOMEM;
    *p = grown;
    *cap = want;
    return 0;
}

/* Writes n <= tail_max bytes at tail_at, around the end of the ring. */
static void headtail_ring(struct headtail *h, const char *p, size_t n) {
    size_t first = MIN(n, h->tail_max - h->tail_at);
    memcpy(h->tail + h->tail_at, p, first);
    memcpy(h->tail, p + first, n - first);
    h->tail_at = (h->tail_at + n) % h->tail_max;
    h->tail_len = MIN(h->tail_len + n, h->tail_max);
}

int headtail_put(struct headtail *h, const void *data, size_t n) {
    const char *p = data;
    size_t first = MIN(n, h->head_max - h->head_len);
    size_t rest = n - first, kept = MIN(rest, h->tail_max);
    if (headtail_grow(&h->head, &h->head_cap, h->head_len + first, h->head_max) < 0 ||
        headtail_grow(&h->tail, &h->tail_cap, MIN(h->tail_len + kept, h->tail_max), h->tail_max) <
            0)
        return -ENOMEM;
    if (first > 0)
        memcpy(h->head + h->head_len, p, first);
    h->head_len += first;
    if (kept > 0)
        headtail_ring(h, p + n - kept, kept);
    h->total += n;
    return 0;
}

size_t headtail_len(const struct headtail *h) {
    return h->head_len + h->tail_len;
}

void headtail_copy(const struct headtail *h, char *dst) {
    if (h->head_len > 0)
        memcpy(dst, h->head, h->head_len);
    if (h->tail_len == 0)
        return;
    dst += h->head_len;
    size_t start = h->tail_len < h->tail_max ? 0 : h->tail_at;
    memcpy(dst, h->tail + start, h->tail_len - start);
    memcpy(dst + (h->tail_len - start), h->tail, start);
}
