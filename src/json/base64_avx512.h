#pragma once
/* The same as base64_avx2.h, for processors with a table of 128 bytes in their registers. */

#include "base/cpu.h"

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>

#define BASE64_AVX512 __attribute__((target("avx512vbmi,avx512bw")))

/* Whether what follows may be called on this machine. */
static inline int base64_avx512_usable(void) {
    return cpu_has_avx512_vbmi();
}

/* Values of the characters 0 to 127; the top bit outside the alphabet. */
extern const unsigned char base64_avx512_table[128];

/* 64 characters to values. One is outside the alphabet if its top bit, or that of its value, is. */
BASE64_AVX512 static inline __m512i base64_avx512_values(__m512i c) {
    __m512i low = _mm512_loadu_si512(base64_avx512_table);
    __m512i high = _mm512_loadu_si512(base64_avx512_table + 64);
    return _mm512_permutex2var_epi8(low, c, high);
}

/* As base64_avx2_decode(), to less than 88 from the end. */
size_t base64_avx512_decode(unsigned char *dst, const char *src, size_t n);

/* As base64_avx2_decode_masked(). */
size_t base64_avx512_decode_masked(char *dst, const char *src, size_t n, uint32_t key);
#else
static inline int base64_avx512_usable(void) {
    return 0;
}
#endif
