#include "base/utf8.h"

#include "base/cpu.h"

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))

/* 16 bytes, repeated in both halves. */
#define UTF8_LANES(...) _mm256_setr_epi8(__VA_ARGS__, __VA_ARGS__)

/* Faults of two bytes in a row, a bit each. One table per half byte lists the faults that this half
 * allows; a fault exists if all three agree. */
enum {
    SHORT = 1,    /* lead byte, then no continuation */
    LONG = 2,     /* ASCII, then a continuation */
    OVER3 = 4,    /* E0, then 80 to 9F */
    LARGE = 8,    /* F4 or more, then 90 to BF */
    SURR = 16,    /* ED, then A0 to BF */
    OVER2 = 32,   /* C0 or C1, then a continuation */
    OVER4 = 64,   /* F0 or more than F4, then 80 to 8F */
    CONTS = -128, /* two continuations: right only as third or fourth byte */
    ANY = SHORT | LONG | CONTS,
    PAST = ANY | LARGE | OVER4,
    CONT = LONG | OVER2 | CONTS,
};

/* `in` shifted n bytes up; the last bytes of `before` fill the gap. */
#define UTF8_SHIFT(in, before, n)                                                                  \
    _mm256_alignr_epi8(in, _mm256_permute2x128_si256(before, in, 0x21), 16 - (n))

AVX2 static inline __m256i utf8_nibble(__m256i table, __m256i v) {
    return _mm256_shuffle_epi8(table, _mm256_and_si256(v, _mm256_set1_epi8(0x0F)));
}

/* Non-zero where the 32 bytes are wrong; `before` are the 32 in front of them. */
AVX2 static inline __m256i utf8_faults(__m256i in, __m256i before) {
    const __m256i first_high =
        UTF8_LANES(LONG, LONG, LONG, LONG, LONG, LONG, LONG, LONG, CONTS, CONTS, CONTS, CONTS,
                   SHORT | OVER2, SHORT, SHORT | OVER3 | SURR, SHORT | LARGE | OVER4);
    const __m256i first_low =
        UTF8_LANES(ANY | OVER3 | OVER2 | OVER4, ANY | OVER2, ANY, ANY, ANY | LARGE, PAST, PAST,
                   PAST, PAST, PAST, PAST, PAST, PAST, PAST | SURR, PAST, PAST);
    const __m256i second_high = UTF8_LANES(
        SHORT, SHORT, SHORT, SHORT, SHORT, SHORT, SHORT, SHORT, CONT | OVER3 | OVER4,
        CONT | OVER3 | LARGE, CONT | SURR | LARGE, CONT | SURR | LARGE, SHORT, SHORT, SHORT, SHORT);
    __m256i first = UTF8_SHIFT(in, before, 1);
    __m256i pair = _mm256_and_si256(utf8_nibble(first_high, _mm256_srli_epi16(first, 4)),
                                    utf8_nibble(first_low, first));
    pair = _mm256_and_si256(pair, utf8_nibble(second_high, _mm256_srli_epi16(in, 4)));
    /* Bit 7 where a lead byte two or three places in front asks for a continuation. */
    __m256i third = _mm256_subs_epu8(UTF8_SHIFT(in, before, 2), _mm256_set1_epi8(0xE0 - 0x80));
    __m256i fourth = _mm256_subs_epu8(UTF8_SHIFT(in, before, 3), _mm256_set1_epi8(0xF0 - 0x80));
    __m256i wanted = _mm256_and_si256(_mm256_or_si256(third, fourth), _mm256_set1_epi8(-128));
    return _mm256_xor_si256(pair, wanted);
}

/*
 * Checks whole blocks of 64 bytes. False at a fault; else *done is where to continue, the start of
 * a sequence. After a block of ASCII the next begins afresh, so nothing may be unfinished before
 * it.
 */
AVX2 static bool utf8_avx2(const char *p, size_t n, size_t *done) {
    __m256i before = _mm256_setzero_si256(), faults = before;
    size_t i = 0;
    for (; n - i >= 64; i += 64) {
        __m256i a = _mm256_loadu_si256((const __m256i *)(const void *)(p + i));
        __m256i b = _mm256_loadu_si256((const __m256i *)(const void *)(p + i + 32));
        if (_mm256_movemask_epi8(_mm256_or_si256(a, b)) == 0) {
            const __m256i last = _mm256_setr_epi8(
                -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
                -1, -1, -1, -1, -1, -1, -1, -1, (char)0xEF, (char)0xDF, (char)0xBF);
            faults = _mm256_or_si256(faults, _mm256_subs_epu8(before, last));
        } else {
            faults = _mm256_or_si256(faults, utf8_faults(a, before));
            faults = _mm256_or_si256(faults, utf8_faults(b, a));
        }
        before = b;
    }
    if (!_mm256_testz_si256(faults, faults))
        return false;
    size_t back = i;
    while (back > 0 && i - back < 3 && (p[back - 1] & 0xC0) == 0x80)
        back--;
    *done = back > 0 && (unsigned char)p[back - 1] >= 0xC0 ? back - 1 : i;
    return true;
}

/* A lower bound of the ASCII bytes at p. */
static size_t utf8_ascii(const char *p, size_t n) {
    size_t i = 0;
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
#if defined(__x86_64__)
    if (n >= 64 && cpu_has_avx2() && !utf8_avx2(p, n, &i))
        return false;
#endif
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

void utf8_mend(char *p, size_t n) {
    if (utf8_valid(p, n))
        return;
    for (size_t i = 0, len; i < n; i += len) {
        len = (unsigned char)p[i] < 0x80 ? 1 : utf8_sequence((const unsigned char *)p + i, n - i);
        if (len == 0) {
            p[i] = '?';
            len = 1;
        }
    }
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

size_t utf8_decode(const char *p, size_t n, uint32_t *c) {
    unsigned char first = (unsigned char)p[0];
    size_t len = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (len > 1 && (len > n || !utf8_valid(p, len))) {
        *c = 0x110000u + first;
        return 1;
    }
    uint32_t value = len == 1 ? first : first & (0x7Fu >> len);
    for (size_t i = 1; i < len; i++)
        value = value << 6 | ((unsigned char)p[i] & 0x3Fu);
    *c = value;
    return len;
}

/* The bytes at s that begin a sequence which n bytes do not hold or end wrongly; at least 1. */
static size_t utf8_prefix(const unsigned char *s, size_t n) {
    unsigned char c = s[0];
    if (c < 0xC2 || c > 0xF4)
        return 1;
    unsigned char lo = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80;
    unsigned char hi = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;
    size_t want = c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4, have = 1;
    if (have < n && s[1] >= lo && s[1] <= hi)
        have++;
    while (have >= 2 && have < want && have < n && utf8_cont(s[have]))
        have++;
    return have;
}

size_t utf8_fault(const char *p, size_t n, size_t *bytes) {
    const unsigned char *s = (const unsigned char *)p;
    *bytes = 0;
    for (size_t i = 0; i < n;) {
        size_t len = s[i] < 0x80 ? 1 : utf8_sequence(s + i, n - i);
        if (len == 0) {
            size_t have = utf8_prefix(s + i, n - i);
            bool lead = s[i] >= 0xC2 && s[i] <= 0xF4;
            *bytes = lead && have == n - i ? 0 : have;
            return i;
        }
        i += len;
    }
    return n;
}
