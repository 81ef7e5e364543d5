#pragma once
/* RFC 4648 base64, standard alphabet with padding; and the URL-safe form without padding. */

#include "base/err.h"
#include "base/str.h"

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

/* Encodes n bytes to dst (room for base64_encoded_len(n)), no NUL; the characters written. */
size_t base64_encode(char *dst, const void *src, size_t n);

/*
 * Strict decoding: padding required, trailing bits zero, no white space. dst needs
 * base64_decoded_max(n) bytes, or it is src itself (decoding in place). Returns the bytes written,
 * behind which nothing is touched, or -EINVAL with ERR_INVALID_PARAMS and the protocol's text:
 * "Invalid symbol B, offset O." (value and offset of the first byte outside the alphabet),
 * "Invalid padding", "Invalid last symbol B, offset O." (non-zero trailing bits), "Invalid input
 * length: N". What dst holds after an error is not defined.
 */
ssize_t base64_decode(void *dst, const char *src, size_t n, struct err *e);

/*
 * What base64_decode() would return, and the same errors, without decoding. `known`, which may be
 * empty, is not looked at: a part of the text, or more, that is all of the alphabet.
 */
ssize_t base64_check(struct str text, struct str known, struct err *e);

/* URL-safe alphabet, no padding, trailing bits zero; dst as above. Bytes written or -EINVAL. */
ssize_t base64url_decode(void *dst, const char *src, size_t n);
