#include "base/codec.h"

#include <errno.h>

#define CODEC_NULL UINT32_MAX /* the length of a text that is NULL */

void codec_put(struct codec_writer *w, const void *p, size_t n) {
    if (w->r == 0)
        w->r = buf_put(w->b, p, n);
}

void codec_put_u8(struct codec_writer *w, unsigned v) {
    unsigned char byte = (unsigned char)v;
    codec_put(w, &byte, sizeof byte);
}

void codec_put_u32(struct codec_writer *w, size_t v) {
    uint32_t u = (uint32_t)v;
    if (w->r == 0 && v > UINT32_MAX)
        w->r = -ENOBUFS;
    codec_put(w, &u, sizeof u);
}

void codec_put_u64(struct codec_writer *w, uint64_t v) {
    codec_put(w, &v, sizeof v);
}

void codec_put_block(struct codec_writer *w, struct str s) {
    codec_put_count(w, s.n, CODEC_NULL - 1);
    codec_put(w, s.p, s.n);
}

void codec_put_text(struct codec_writer *w, const char *z) {
    if (z == NULL) {
        codec_put_u32(w, CODEC_NULL);
        return;
    }
    codec_put_block(w, str_of(z));
    codec_put_u8(w, 0);
}

void codec_put_count(struct codec_writer *w, size_t n, size_t max) {
    if (w->r == 0 && n > max)
        w->r = -ENOBUFS;
    codec_put_u32(w, n);
}

int codec_put_end(struct codec_writer *w, size_t max) {
    if (w->r == 0 && w->b->len - w->start > max)
        w->r = -ENOBUFS;
    if (w->r < 0)
        w->b->len = w->start;
    return w->r;
}

static const char *codec_take(struct codec_reader *r, size_t n) {
    const char *p = r->bad ? NULL : str_take(&r->in, n);
    r->bad = p == NULL;
    return p;
}

void codec_get(struct codec_reader *r, void *out, size_t n) {
    const char *p = codec_take(r, n);
    if (p != NULL)
        memcpy(out, p, n);
    else
        memset(out, 0, n);
}

unsigned codec_get_u8(struct codec_reader *r, unsigned max) {
    unsigned char v;
    codec_get(r, &v, sizeof v);
    r->bad |= v > max;
    return r->bad ? 0 : v;
}

uint32_t codec_get_u32(struct codec_reader *r, uint32_t max) {
    uint32_t v;
    codec_get(r, &v, sizeof v);
    r->bad |= v > max;
    return r->bad ? 0 : v;
}

uint64_t codec_get_u64(struct codec_reader *r) {
    uint64_t v;
    codec_get(r, &v, sizeof v);
    return v;
}

struct str codec_get_block(struct codec_reader *r, uint32_t max) {
    uint32_t n = codec_get_u32(r, max);
    const char *p = codec_take(r, n);
    return p == NULL ? (struct str){NULL, 0} : (struct str){p, n};
}

const char *codec_get_text(struct codec_reader *r) {
    uint32_t n = codec_get_u32(r, UINT32_MAX);
    if (n == CODEC_NULL)
        return NULL;
    const char *p = codec_take(r, (size_t)n + 1);
    r->bad |= p == NULL || strnlen(p, (size_t)n + 1) != n;
    return r->bad ? NULL : p;
}

void *codec_get_array(struct codec_reader *r, size_t count, size_t size) {
    void *p = arena_calloc(r->a, count, size);
    r->no_memory |= p == NULL;
    r->bad |= p == NULL;
    return p;
}

int codec_get_end(const struct codec_reader *r) {
    if (r->no_memory)
        return -ENOMEM;
    return r->bad || r->in.n > 0 ? -EINVAL : 0;
}
