#include "json/base64_avx2.h"

#if defined(__x86_64__)
/* 24 bytes at p (28 readable) to 32 characters. */
BASE64_AVX2 static inline __m256i base64_avx2_encode_24(const unsigned char *p) {
    __m128i low = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(p + 12));
    __m256i v = _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
    /* Three bytes a, b, c become the two 16-bit words ab and bc (first byte on top). */
    v = _mm256_shuffle_epi8(v, BASE64_LANES(1, 0, 2, 1, 4, 3, 5, 4, 7, 6, 8, 7, 10, 9, 11, 10));
    /* Multiplications shift each 6-bit field into a byte of its own. */
    __m256i even = _mm256_mulhi_epu16(_mm256_and_si256(v, _mm256_set1_epi32(0x0FC0FC00)),
                                      _mm256_set1_epi32(0x04000040));
    __m256i odd = _mm256_mullo_epi16(_mm256_and_si256(v, _mm256_set1_epi32(0x003F03F0)),
                                     _mm256_set1_epi32(0x01000010));
    __m256i value = _mm256_or_si256(even, odd);
    /* Class of a value: 13 upper case, 0 lower case, 1 to 10 digits, 11 '+', 12 '/'. */
    __m256i class = _mm256_subs_epu8(value, _mm256_set1_epi8(51));
    __m256i upper = _mm256_cmpgt_epi8(_mm256_set1_epi8(26), value);
    class = _mm256_or_si256(class, _mm256_and_si256(upper, _mm256_set1_epi8(13)));
    const __m256i distance =
        BASE64_LANES('a' - 26, '0' - 52, '0' - 52, '0' - 52, '0' - 52, '0' - 52, '0' - 52, '0' - 52,
                     '0' - 52, '0' - 52, '0' - 52, '+' - 62, '/' - 63, 'A', 0, 0);
    return _mm256_add_epi8(value, _mm256_shuffle_epi8(distance, class));
}

BASE64_AVX2 size_t base64_avx2_encode(char *dst, const unsigned char *src, size_t n) {
    size_t i = 0;
    for (; n - i >= 2 * 24 + 4; i += 2 * 24, dst += 64) {
        __m256i a = base64_avx2_encode_24(src + i), b = base64_avx2_encode_24(src + i + 24);
        _mm256_storeu_si256((__m256i *)(void *)dst, a);
        _mm256_storeu_si256((__m256i *)(void *)(dst + 32), b);
    }
    if (n - i >= 24 + 4) {
        _mm256_storeu_si256((__m256i *)(void *)dst, base64_avx2_encode_24(src + i));
        i += 24;
    }
    return i;
}

/* 32 characters of the alphabet to values. */
BASE64_AVX2 static inline __m256i base64_avx2_values(__m256i c) {
    const __m256i distance = BASE64_LANES(0, 63 - '/', 62 - '+', 52 - '0', -'A', -'A', 26 - 'a',
                                          26 - 'a', 0, 0, 0, 0, 0, 0, 0, 0);
    __m256i high = _mm256_and_si256(_mm256_srli_epi32(c, 4), _mm256_set1_epi8(0x0F));
    __m256i slash = _mm256_cmpeq_epi8(c, _mm256_set1_epi8('/'));
    return _mm256_add_epi8(c, _mm256_shuffle_epi8(distance, _mm256_add_epi8(high, slash)));
}

/* 32 values to 24 bytes at dst, where 32 are written. */
BASE64_AVX2 static inline void base64_avx2_store_24(char *dst, __m256i v) {
    v = _mm256_maddubs_epi16(v, _mm256_set1_epi32(0x01400140));
    v = _mm256_madd_epi16(v, _mm256_set1_epi32(0x00011000));
    v = _mm256_shuffle_epi8(v,
                            BASE64_LANES(2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, -1, -1, -1, -1));
    v = _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7));
    _mm256_storeu_si256((__m256i *)(void *)dst, v);
}

BASE64_AVX2 size_t base64_avx2_decode_masked(char *dst, const char *src, size_t n, uint32_t key) {
    const __m256i m = _mm256_set1_epi32((int)key);
    size_t i = 0;
    for (; n - i >= 64; i += 64, dst += 48) {
        __m256i a = _mm256_loadu_si256((const __m256i *)(const void *)(src + i));
        __m256i b = _mm256_loadu_si256((const __m256i *)(const void *)(src + i + 32));
        a = _mm256_xor_si256(a, m);
        b = _mm256_xor_si256(b, m);
        __m256i bad = _mm256_or_si256(base64_avx2_refuse(a), base64_avx2_refuse(b));
        if (!_mm256_testz_si256(bad, bad))
            break;
        base64_avx2_store_24(dst, base64_avx2_values(a));
        base64_avx2_store_24(dst + 24, base64_avx2_values(b));
    }
    return i;
}

/* The last store writes 8 bytes too many; 12 characters left over make room for them. */
size_t base64_avx2_decode(unsigned char *dst, const char *src, size_t n) {
    return n < 64 + 12 ? 0 : base64_avx2_decode_masked((char *)dst, src, n - 12, 0);
}
#endif
