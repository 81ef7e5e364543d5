#pragma once
/*
 * The search shared by reader and writer: the first byte that a JSON string must escape, that is a
 * quote, a backslash or a control character (below 0x20).
 */

#include <stddef.h>
#include <string.h>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

/* Runs above this many bytes are worth a call. */
#define JSON_SCAN_SHORT 64

/* Like json_scan(), for runs that are likely long. */
size_t json_scan_long(const char *p, size_t n);

#if defined(__x86_64__)
/* One bit per special byte among the 16 at p. */
static inline unsigned json_scan_16(const char *p) {
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i quote = _mm_cmpeq_epi8(v, _mm_set1_epi8('"'));
    __m128i slash = _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'));
    __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(v, _mm_set1_epi8(0x1F)), v);
    return (unsigned)_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, slash), control));
}
#endif

/* Offset of the first special byte among the n at p, or n. */
static inline size_t json_scan(const char *p, size_t n) {
#if defined(__x86_64__)
    if (n >= 16) {
        unsigned mask = json_scan_16(p);
        return mask != 0 ? (size_t)__builtin_ctz(mask) : 16 + json_scan_long(p + 16, n - 16);
    }
#endif
    return json_scan_long(p, n);
}

/*
 * Copies the bytes before the first special one among the n at p to dst and returns their number.
 * It may write up to 15 bytes more at dst, but at most n in all.
 */
static inline size_t json_scan_copy(char *dst, const char *p, size_t n) {
    size_t i = 0;
#if defined(__x86_64__)
    for (; i < JSON_SCAN_SHORT && n - i >= 16; i += 16) {
        memcpy(dst + i, p + i, 16);
        unsigned mask = json_scan_16(p + i);
        if (mask != 0)
            return i + (size_t)__builtin_ctz(mask);
    }
#endif
    size_t run = json_scan_long(p + i, n - i);
    memcpy(dst + i, p + i, run);
    return i + run;
}
