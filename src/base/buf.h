#pragma once
/*
 * A growable byte buffer with a hard maximum. All growth goes through buf_reserve(), which checks
 * the maximum and the arithmetic; a failed append leaves the contents as they were.
 */

#include "base/str.h"
#include "base/util.h"

#include <stdint.h>

struct buf {
    char *p;    /* owned; NULL until something is stored */
    size_t len; /* bytes in use */
    size_t cap; /* bytes allocated */
    size_t max; /* cap never exceeds this */
};

/* An empty buffer that may hold at most `max` bytes. Allocates nothing. */
#define BUF_INIT(maximum) ((struct buf){.max = (maximum)})

/* Frees the memory; the buffer stays usable and empty. */
void buf_fini(struct buf *b);
#define _cleanup_buf_ __attribute__((cleanup(buf_fini)))

/* Makes room for n more bytes. 0, -ENOBUFS above the maximum, -ENOMEM. */
MUST_CHECK int buf_reserve(struct buf *b, size_t n);

/* Append; 0 or as buf_reserve(). */
MUST_CHECK int buf_put(struct buf *b, const void *p, size_t n);
MUST_CHECK int buf_putz(struct buf *b, const char *z);
MUST_CHECK int buf_putc(struct buf *b, char c);
MUST_CHECK int buf_putf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Drops the first n bytes (n <= len). */
void buf_consume(struct buf *b, size_t n);

static inline struct str buf_str(const struct buf *b) {
    return (struct str){b->p, b->len};
}
