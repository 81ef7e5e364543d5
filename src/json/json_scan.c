#include "json/json_scan.h"

#include "base/cpu.h"
#include "base/util.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static bool json_scan_special(char c) {
    return c == '"' || c == '\\' || (unsigned char)c < 0x20;
}

static size_t json_scan_bytes(const char *p, size_t i, size_t n) {
    while (i < n && !json_scan_special(p[i]))
        i++;
    return i;
}

#if defined(__x86_64__)
#include <immintrin.h>

#define JSON_SCAN_AVX2 __attribute__((target("avx2")))

JSON_SCAN_AVX2 static inline __m256i json_scan_match(const char *p) {
    __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)p);
    __m256i quote = _mm256_cmpeq_epi8(v, _mm256_set1_epi8('"'));
    __m256i slash = _mm256_cmpeq_epi8(v, _mm256_set1_epi8('\\'));
    __m256i control = _mm256_cmpeq_epi8(_mm256_min_epu8(v, _mm256_set1_epi8(0x1F)), v);
    return _mm256_or_si256(_mm256_or_si256(quote, slash), control);
}

/* n >= 32. The last vector overlaps bytes that were searched. */
JSON_SCAN_AVX2 static size_t json_scan_avx2(const char *p, size_t n) {
    size_t i = 0;
    for (; n - i >= 128; i += 128) {
        __m256i a = _mm256_or_si256(json_scan_match(p + i), json_scan_match(p + i + 32));
        __m256i b = _mm256_or_si256(json_scan_match(p + i + 64), json_scan_match(p + i + 96));
        if (_mm256_movemask_epi8(_mm256_or_si256(a, b)) != 0)
            break;
    }
    while (i < n) {
        i = MIN(i, n - 32);
        unsigned mask = (unsigned)_mm256_movemask_epi8(json_scan_match(p + i));
        if (mask != 0)
            return i + (size_t)__builtin_ctz(mask);
        i += 32;
    }
    return n;
}

size_t json_scan_long(const char *p, size_t n) {
    if (n >= 32 && cpu_has_avx2())
        return json_scan_avx2(p, n);
    size_t i = 0;
    for (; n - i >= 16; i += 16) {
        unsigned mask = json_scan_16(p + i);
        if (mask != 0)
            return i + (size_t)__builtin_ctz(mask);
    }
    return json_scan_bytes(p, i, n);
}
#else
/* Non-zero when one of the eight bytes is zero. */
static uint64_t json_scan_zero(uint64_t w) {
    return (w - UINT64_C(0x0101010101010101)) & ~w & UINT64_C(0x8080808080808080);
}

size_t json_scan_long(const char *p, size_t n) {
    size_t i = 0;
    for (; n - i >= 8; i += 8) {
        uint64_t w;
        memcpy(&w, p + i, sizeof w);
        uint64_t quote = json_scan_zero(w ^ UINT64_C(0x2222222222222222));
        uint64_t slash = json_scan_zero(w ^ UINT64_C(0x5C5C5C5C5C5C5C5C));
        uint64_t control = json_scan_zero(w & UINT64_C(0xE0E0E0E0E0E0E0E0));
        if ((quote | slash | control) != 0)
            break;
    }
    return json_scan_bytes(p, i, n);
}
#endif
