#pragma once
/* Vector routines of base64. They stop early; the caller does the rest. */

#include "base/cpu.h"

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>

#define BASE64_AVX2 __attribute__((target("avx2")))

/* 16 bytes, repeated in both halves. */
#define BASE64_LANES(...) _mm256_setr_epi8(__VA_ARGS__, __VA_ARGS__)

/*
 * Leaves a bit in every byte that is outside the alphabet: the low half of a character selects the
 * set of high halves it must not have, the high half its own bit in that set.
 */
BASE64_AVX2 static inline __m256i base64_avx2_refuse(__m256i c) {
    const __m256i refused = BASE64_LANES(0x15, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11,
                                         0x13, 0x1A, 0x1B, 0x1B, 0x1B, 0x1A);
    const __m256i own = BASE64_LANES(0x10, 0x10, 0x01, 0x02, 0x04, 0x08, 0x04, 0x08, 0x10, 0x10,
                                     0x10, 0x10, 0x10, 0x10, 0x10, 0x10);
    const __m256i low_mask = _mm256_set1_epi8(0x0F);
    __m256i high = _mm256_and_si256(_mm256_srli_epi32(c, 4), low_mask);
    __m256i low = _mm256_and_si256(c, low_mask);
    return _mm256_and_si256(_mm256_shuffle_epi8(refused, low), _mm256_shuffle_epi8(own, high));
}

/* Whether the processor has AVX2; only then the functions below may be called. */
static inline int base64_avx2_usable(void) {
    return cpu_has_avx2();
}

/* Encodes a multiple of 3 bytes and leaves at most 31; returns the bytes consumed. */
size_t base64_avx2_encode(char *dst, const unsigned char *src, size_t n);

/*
 * Decodes a multiple of 4 characters, up to the first vector with a byte outside the alphabet or to
 * less than 76 from the end; returns the characters consumed. dst may be src. It writes no more
 * bytes than decoding all n characters does.
 */
size_t base64_avx2_decode(unsigned char *dst, const char *src, size_t n);

/*
 * Like base64_avx2_decode(), for characters to XOR with `key`, four at a time; it leaves only the
 * last ones that make no vector of 64. dst may be src, or a place before it. It may write as many
 * bytes as it takes characters.
 */
size_t base64_avx2_decode_masked(char *dst, const char *src, size_t n, uint32_t key);
#else
static inline int base64_avx2_usable(void) {
    return 0;
}
#endif
