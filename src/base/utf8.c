#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>

__attribute__((target("avx2"))) static size_t utf8_ascii_avx2(const char *p, size_t n) {
    size_t i = 0;
    for (; n - i >= 64; i += 64) {
        __m256i a = _mm256_loadu_si256((const __m256i *)(const void *)(p + i));
        __m256i b = _mm256_loadu_si256((const __m256i *)(const void *)(p + i + 32));
        if (_mm256_movemask_epi8(_mm256_or_si256(a, b)) != 0)
            break;
    }
    return i;
}

/* How many bytes from p on are known to be ASCII; a lower bound, in whole vectors. */
static size_t utf8_ascii(const char *p, size_t n) {
    size_t i = n >= 128 && __builtin_cpu_supports("avx2") ? utf8_ascii_avx2(p, n) : 0;
    for (; n - i >= 16; i += 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(p + i));
        int mask = _mm_movemask_epi8(v);
        if (mask != 0)
            return i + (size_t)__builtin_ctz((unsigned)mask);
    }
    return i;
}
#else
static size_t utf8_ascii(const char *p, size_t n) {
    size_t i = 0;
    for (; n - i >= 16; i += 16) {
        uint64_t w[2];
        memcpy(w, p + i, sizeof w);
        if (((w[0] | w[1]) & UINT64_C(0x8080808080808080)) != 0)
            break;
    }
    return i;
}
#endif

static bool utf8_cont(unsigned char c) {
    return (c & 0xC0) == 0x80;
}

/* Length of the multi-byte sequence at s (n bytes left, s[0] >= 0x80), or 0 if it is not valid. */
static size_t utf8_sequence(const unsigned char *s, size_t n) {
    unsigned char c = s[0];
    if (c < 0xC2 || n < 2)
        return 0;
    if (c < 0xE0)
        return utf8_cont(s[1]) ? 2 : 0;
    if (n < 3)
        return 0;
    if (c < 0xF0) {
        unsigned char lo = c == 0xE0 ? 0xA0 : 0x80, hi = c == 0xED ? 0x9F : 0xBF;
        return s[1] >= lo && s[1] <= hi && utf8_cont(s[2]) ? 3 : 0;
    }
    if (n < 4 || c > 0xF4)
        return 0;
    unsigned char lo = c == 0xF0 ? 0x90 : 0x80, hi = c == 0xF4 ? 0x8F : 0xBF;
    return s[1] >= lo && s[1] <= hi && utf8_cont(s[2]) && utf8_cont(s[3]) ? 4 : 0;
}

bool utf8_valid(const char *p, size_t n) {
    const unsigned char *s = (const unsigned char *)p;
    size_t i = 0;
    while (i < n) {
        if (s[i] < 0x80) {
            size_t run = utf8_ascii(p + i, n - i);
            i += run > 0 ? run : 1;
            continue;
        }
        size_t len = utf8_sequence(s + i, n - i);
        if (len == 0)
            return false;
        i += len;
    }
    return true;
}

size_t utf8_encode(char *dst, unsigned c) {
    if (c < 0x80) {
        dst[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        dst[0] = (char)(0xC0 | c >> 6);
        dst[1] = (char)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c < 0x10000) {
        dst[0] = (char)(0xE0 | c >> 12);
        dst[1] = (char)(0x80 | (c >> 6 & 0x3F));
        dst[2] = (char)(0x80 | (c & 0x3F));
        return 3;
    }
    dst[0] = (char)(0xF0 | c >> 18);
    dst[1] = (char)(0x80 | (c >> 12 & 0x3F));
    dst[2] = (char)(0x80 | (c >> 6 & 0x3F));
    dst[3] = (char)(0x80 | (c & 0x3F));
    return 4;
}
