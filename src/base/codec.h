#pragma once
/*
 * The binary form of values that cross between the server, a launcher and a file helper: processes
 * of one build on one host. Numbers have 8, 32 or 64 bits in the host's byte order; a block is its
 * length (32 bits) and its bytes; a text is a block with a NUL behind it, which the length does not
 * count, so that a decoded text points into the bytes it came from.
 *
 * Both directions remember the first failure and ignore all that follows: ask once, at the end.
 */

#include "base/arena.h"
#include "base/buf.h"

/* -- writing -- */

struct codec_writer {
    struct buf *b; /* borrowed */
    size_t start;  /* its length before */
    int r;         /* 0 or the first failure */
};

#define CODEC_WRITER(buffer) ((struct codec_writer){.b = (buffer), .start = (buffer)->len})

void codec_put(struct codec_writer *w, const void *p, size_t n);
void codec_put_u8(struct codec_writer *w, unsigned v);
void codec_put_u32(struct codec_writer *w, size_t v);
void codec_put_u64(struct codec_writer *w, uint64_t v);
void codec_put_block(struct codec_writer *w, struct str s);
void codec_put_text(struct codec_writer *w, const char *z); /* or NULL */

/* Writes a count; more than `max` fail with -ENOBUFS. */
void codec_put_count(struct codec_writer *w, size_t n, size_t max);

/* 0; -ENOBUFS for more than `max` bytes or a number that does not fit; or as buf_reserve(). After a
 * failure the buffer is as it was. */
MUST_CHECK int codec_put_end(struct codec_writer *w, size_t max);

/* -- reading -- */

struct codec_reader {
    struct str in;   /* the bytes left */
    struct arena *a; /* for codec_get_array() */
    bool bad;        /* something did not fit: all else reads as zero or NULL */
    bool no_memory;
};

#define CODEC_READER(bytes, max, arena)                                                            \
    ((struct codec_reader){.in = (bytes), .a = (arena), .bad = (bytes).n > (max)})

void codec_get(struct codec_reader *r, void *out, size_t n);

/* A number that is at most `max`. */
unsigned codec_get_u8(struct codec_reader *r, unsigned max);
uint32_t codec_get_u32(struct codec_reader *r, uint32_t max);
uint64_t codec_get_u64(struct codec_reader *r);

/* Borrowed from the bytes. A text is NULL if it was written so, and after a misfit. */
struct str codec_get_block(struct codec_reader *r, uint32_t max);
const char *codec_get_text(struct codec_reader *r);

/* A zeroed array; NULL without memory. */
void *codec_get_array(struct codec_reader *r, size_t count, size_t size);

/* 0; -ENOMEM; -EINVAL if something did not fit or bytes are left. */
MUST_CHECK int codec_get_end(const struct codec_reader *r);
