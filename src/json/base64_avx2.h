#pragma once
/* The vector halves of base64. They stop early by design; the caller does the rest. */

#include <stddef.h>

#if defined(__x86_64__)
/* Whether the other two may be called on this machine. */
static inline int base64_avx2_usable(void) {
    return __builtin_cpu_supports("avx2");
}

/* Encodes a multiple of 3 bytes and leaves at most 31; returns the bytes consumed. */
size_t base64_avx2_encode(char *dst, const unsigned char *src, size_t n);

/*
 * Decodes a multiple of 4 characters, up to the first vector with a byte outside the alphabet or to
 * less than 76 from the end; returns the characters consumed. dst may be src. At dst it may write
 * what decoding all n characters takes, but no more.
 */
size_t base64_avx2_decode(unsigned char *dst, const char *src, size_t n);
#endif
