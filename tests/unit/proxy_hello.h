#pragma once
/* Builds first messages of TLS clients. */

#include "base/buf.h"

#include <assert.h>

static inline void hello_put(struct buf *b, const void *p, size_t n) {
    int r = buf_put(b, p, n);
    assert(r == 0);
    (void)r;
}

static inline void hello_number(struct buf *b, size_t n, unsigned width) {
    for (unsigned i = width; i-- > 0;) {
        char c = (char)(n >> 8 * i);
        hello_put(b, &c, 1);
    }
}

/* Appends a hello whose extension of names has these bytes (n 0: none), in records of `record`. */
static inline void hello_build(struct buf *out, struct str names, size_t record) {
    static const char zero[32];
    struct buf body = BUF_INIT(65536), message = BUF_INIT(65536);
    hello_put(&body, "\3\3", 2);
    hello_put(&body, zero, 32);
    hello_put(&body, "\0\0\2\x13\1\1\0", 7);
    size_t n = names.n > 0 ? names.n + 4 : 0;
    hello_number(&body, n + 5, 2);
    hello_put(&body, "\0\x2b\0\1\0", 5);
    if (names.n > 0) {
        hello_put(&body, "\0\0", 2);
        hello_number(&body, names.n, 2);
        hello_put(&body, names.p, names.n);
    }
    hello_put(&message, "\1", 1);
    hello_number(&message, body.len, 3);
    hello_put(&message, body.p, body.len);
    for (size_t at = 0; at < message.len; at += record) {
        size_t k = MIN(record, message.len - at);
        hello_put(out, "\x16\3\1", 3);
        hello_number(out, k, 2);
        hello_put(out, message.p + at, k);
    }
    buf_fini(&body);
    buf_fini(&message);
}

/* The bytes of the extension for one name. */
static inline void hello_name(struct buf *b, const char *name) {
    size_t n = strlen(name);
    hello_number(b, n + 3, 2);
    hello_put(b, "\0", 1);
    hello_number(b, n, 2);
    hello_put(b, name, n);
}
