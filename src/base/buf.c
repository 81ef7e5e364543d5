#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#define BUF_FIRST 256

void buf_fini(struct buf *b) {
    free(b->p);
    b->p = NULL;
    b->len = b->cap = 0;
}

int buf_reserve(struct buf *b, size_t n) {
    size_t need;
    if (__builtin_add_overflow(b->len, n, &need) || need > b->max)
        return -ENOBUFS;
    if (need <= b->cap)
        return 0;
    size_t cap = b->cap ? b->cap : BUF_FIRST;
    while (cap < need)
        cap = cap > b->max / 2 ? b->max : cap * 2;
    if (cap > b->max)
        cap = b->max;
    char *p = realloc(b->p, cap);
    if (p == NULL)
        return -ENOMEM;
    b->p = p;
    b->cap = cap;
    return 0;
}

int buf_put(struct buf *b, const void *p, size_t n) {
    int r = buf_reserve(b, n);
    if (r < 0 || n == 0)
        return r;
    memcpy(b->p + b->len, p, n);
    b->len += n;
    return 0;
}

int buf_putz(struct buf *b, const char *z) {
    return buf_put(b, z, strlen(z));
}

int buf_putc(struct buf *b, char c) {
    return buf_put(b, &c, 1);
}

int buf_putf(struct buf *b, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    char small[512];
    int n = vsnprintf(small, sizeof small, fmt, ap);
    va_end(ap);
    if (n < 0)
        return -EINVAL;
    if ((size_t)n < sizeof small)
        return buf_put(b, small, (size_t)n);
    int r = buf_reserve(b, (size_t)n + 1);
    if (r < 0)
        return r;
    va_start(ap, fmt);
    vsnprintf(b->p + b->len, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->len += (size_t)n;
    return 0;
}

void buf_consume(struct buf *b, size_t n) {
    b->len -= n;
    if (b->len > 0)
        memmove(b->p, b->p + n, b->len);
}
