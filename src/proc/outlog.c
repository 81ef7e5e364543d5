#include "proc/outlog.h"

#include <errno.h>

#define OUTLOG_BYTES_FIRST 2048
#define OUTLOG_CHUNKS_FIRST 16

void outlog_init(struct outlog *l, size_t cap) {
    *l = (struct outlog){.cap = MAX(cap, (size_t)OUTLOG_CAP_MIN)};
}

void outlog_fini(struct outlog *l) {
    free(l->bytes);
    free(l->chunks);
    l->bytes = NULL;
    l->chunks = NULL;
    l->bytes_cap = l->chunks_cap = l->first = l->count = 0;
    l->head = l->tail;
    memset(l->stream_bytes, 0, sizeof l->stream_bytes);
}

const struct outlog_chunk *outlog_at(const struct outlog *l, size_t i) {
    size_t at = l->first + i;
    return &l->chunks[at < l->chunks_cap ? at : at - l->chunks_cap];
}

static void outlog_evict_one(struct outlog *l) {
    const struct outlog_chunk *c = outlog_at(l, 0);
    l->stream_bytes[c->stream] -= c->len;
    if (l->evict != NULL)
        l->evict(l, c);
    l->head += c->len;
    l->first = l->first + 1 == l->chunks_cap ? 0 : l->first + 1;
    l->count--;
}

/* The slices of ring memory that hold [pos, pos + n). */
static void outlog_slices(const struct outlog *l, uint64_t pos, size_t n, struct str out[2]) {
    size_t at = (size_t)(pos % l->bytes_cap);
    size_t run = MIN(n, l->bytes_cap - at);
    out[0] = (struct str){l->bytes + at, run};
    out[1] = (struct str){l->bytes, n - run};
}

void outlog_bytes(const struct outlog *l, const struct outlog_chunk *c, struct str out[2]) {
    outlog_slices(l, c->pos, c->len, out);
}

/* Moves the retained bytes to a ring of `cap` bytes (enough for them). */
static int outlog_resize_bytes(struct outlog *l, size_t cap) {
    char *fresh = malloc(cap);
    if (fresh == NULL)
        return -ENOMEM;
    uint64_t pos = l->head;
    size_t left = (size_t)(l->tail - l->head);
    while (left > 0) {
        struct str s[2];
        outlog_slices(l, pos, left, s);
        size_t at = (size_t)(pos % cap);
        size_t n = MIN(s[0].n, cap - at);
        memcpy(fresh + at, s[0].p, n);
        pos += n;
        left -= n;
    }
    free(l->bytes);
    l->bytes = fresh;
    l->bytes_cap = cap;
    return 0;
}

static int outlog_resize_chunks(struct outlog *l, size_t cap) {
    struct outlog_chunk *fresh = reallocarray(NULL, cap, sizeof *fresh);
    if (fresh == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < l->count; i++)
        fresh[i] = *outlog_at(l, i);
    free(l->chunks);
    l->chunks = fresh;
    l->chunks_cap = cap;
    l->first = 0;
    return 0;
}

/* Room for one more chunk of n bytes, within the maxima. */
static int outlog_make_room(struct outlog *l, size_t n) {
    while (l->count > 0 && (l->tail - l->head + n > l->cap || l->count >= OUTLOG_CHUNKS_MAX))
        outlog_evict_one(l);
    size_t need = (size_t)(l->tail - l->head) + n;
    if (need > l->bytes_cap) {
        size_t cap = l->bytes_cap ? l->bytes_cap : OUTLOG_BYTES_FIRST;
        while (cap < need)
            cap *= 2;
        int r = outlog_resize_bytes(l, MIN(cap, l->cap));
        if (r < 0)
            return r;
    }
    if (l->count == l->chunks_cap) {
        size_t cap = l->chunks_cap ? l->chunks_cap * 2 : OUTLOG_CHUNKS_FIRST;
        return outlog_resize_chunks(l, MIN(cap, (size_t)OUTLOG_CHUNKS_MAX));
    }
    return 0;
}

int outlog_append(struct outlog *l, uint64_t seq, enum outlog_stream stream, const char *data,
                  size_t n) {
    int r = outlog_make_room(l, n);
    if (r < 0)
        return r;
    size_t at = (size_t)(l->tail % l->bytes_cap);
    size_t run = MIN(n, l->bytes_cap - at);
    memcpy(l->bytes + at, data, run);
    memcpy(l->bytes, data + run, n - run);
    size_t slot = (l->first + l->count) % l->chunks_cap;
    l->chunks[slot] = (struct outlog_chunk){seq, l->tail, (uint32_t)n, stream};
    l->tail += n;
    l->count++;
    l->stream_bytes[stream] += n;
    return 0;
}

void outlog_shrink(struct outlog *l) {
    size_t used = (size_t)(l->tail - l->head);
    if (l->count == 0) {
        outlog_fini(l);
        return;
    }
    /* Failing to shrink is harmless. */
    if (used < l->bytes_cap)
        (void)!outlog_resize_bytes(l, used);
    if (l->count < l->chunks_cap)
        (void)!outlog_resize_chunks(l, l->count);
}

size_t outlog_find(const struct outlog *l, uint64_t after) {
    size_t lo = 0, hi = l->count;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (outlog_at(l, mid)->seq > after)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

bool outlog_is_full_after(const struct outlog *l, uint64_t after) {
    size_t first = outlog_find(l, after);
    if (first == l->count)
        return false;
    uint64_t bytes = l->tail - outlog_at(l, first)->pos;
    return bytes + OUTLOG_CHUNK_MAX >= l->cap || l->count - first >= OUTLOG_CHUNKS_MAX;
}
