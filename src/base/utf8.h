#pragma once
/* UTF-8 validation (RFC 3629: no surrogates, no over-long forms, at most U+10FFFF). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the n bytes at p are valid UTF-8. Runs of ASCII are checked 16 or 32 bytes at a time. */
bool utf8_valid(const char *p, size_t n);

/* Where the first fault of n bytes at p is; n: nowhere. *bytes is the length of the faulty
 * sequence, at most 3, or 0 if the text ends within it. */
size_t utf8_fault(const char *p, size_t n, size_t *bytes);

/* Replaces every byte at p that is not part of valid UTF-8 by '?'. */
void utf8_mend(char *p, size_t n);

/* Appends code point c (<= U+10FFFF) at dst (room for 4 bytes); the number of bytes written. */
size_t utf8_encode(char *dst, unsigned c);

/* Decodes the first code point of n > 0 bytes at p into *c; returns its length. A byte that begins
 * no valid one is taken alone, as 0x110000 or more: no code point. */
size_t utf8_decode(const char *p, size_t n, uint32_t *c);

/* Length of the longest prefix of the valid UTF-8 at p that has at most max bytes and splits no
 * code point. */
static inline size_t utf8_cut(const char *p, size_t n, size_t max) {
    if (n <= max)
        return n;
    while (max > 0 && ((unsigned char)p[max] & 0xC0) == 0x80)
        max--;
    return max;
}
