#pragma once
/* RFC 4648 base64, standard alphabet with padding; and the URL-safe form without padding. */

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Bytes that encoding n bytes takes (padding included). n must be below SIZE_MAX / 2. */
static inline size_t base64_encoded_len(size_t n) {
    return (n + 2) / 3 * 4;
}

/* An upper bound for the bytes that decoding n characters gives. */
static inline size_t base64_decoded_max(size_t n) {
    return n / 4 * 3 + 3;
}

/* Whether c is one of the 64 characters. */
static inline bool base64_is_letter(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '/';
}

/* Encodes n bytes to dst (room for base64_encoded_len(n)), no NUL; the characters written. */
size_t base64_encode(char *dst, const void *src, size_t n);

/*
 * Strict decoding: padding required, trailing bits zero, no white space. dst needs
 * base64_decoded_max(n) bytes, or it is src itself (decoding in place). Returns the bytes written
 * (it writes nothing behind them), or -EINVAL with ERR_INVALID_PARAMS and the protocol's text:
 * "Invalid symbol B, offset O." (value and offset of the first byte outside the alphabet),
 * "Invalid padding", "Invalid last symbol B, offset O." (non-zero trailing bits), "Invalid input
 * length: N". After an error the content of dst is undefined.
 */
ssize_t base64_decode(void *dst, const char *src, size_t n, struct err *e);

/*
 * Like base64_decode(), for the rest of a text whose first `before` characters (a multiple of 4)
 * were decoded earlier: offsets in errors count them.
 */
ssize_t base64_decode_rest(void *dst, const char *src, size_t n, size_t before, struct err *e);

/* URL-safe alphabet, no padding, trailing bits zero; dst as above. Bytes written or -EINVAL. */
ssize_t base64_url_decode(void *dst, const char *src, size_t n);
