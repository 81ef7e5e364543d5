#include "json/base64_avx512.h"

#if defined(__x86_64__)
#define X 0x80

const unsigned char base64_avx512_table[128] = {
    X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,
    X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  X,  62,
    X,  X,  X,  63, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, X,  X,  X,  X,  X,  X,  X,  0,
    1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22,
    23, 24, 25, X,  X,  X,  X,  X,  X,  26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38,
    39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, X,  X,  X,  X,  X,
};

/* Where the three bytes of each group are, once its values were joined. */
static const unsigned char base64_avx512_order[64] = {
    2,  1,  0,  6,  5,  4,  10, 9,  8,  14, 13, 12, 18, 17, 16, 22, 21, 20, 26, 25, 24, 30, 29, 28,
    34, 33, 32, 38, 37, 36, 42, 41, 40, 46, 45, 44, 50, 49, 48, 54, 53, 52, 58, 57, 56, 62, 61, 60,
};

BASE64_AVX512 size_t base64_avx512_decode_masked(char *dst, const char *src, size_t n,
                                                 uint32_t key) {
    const __m512i order = _mm512_loadu_si512(base64_avx512_order);
    const __m512i m = _mm512_set1_epi32((int)key);
    size_t i = 0;
    for (; n - i >= 64; i += 64, dst += 48) {
        __m512i c = _mm512_xor_si512(_mm512_loadu_si512(src + i), m);
        __m512i v = base64_avx512_values(c);
        if (_mm512_movepi8_mask(_mm512_or_si512(v, c)) != 0)
            break;
        v = _mm512_maddubs_epi16(v, _mm512_set1_epi32(0x01400140));
        v = _mm512_madd_epi16(v, _mm512_set1_epi32(0x00011000));
        _mm512_storeu_si512(dst, _mm512_permutexvar_epi8(order, v));
    }
    return i;
}

/* 24 characters beyond make room for the 16 bytes that the last store writes too many. */
size_t base64_avx512_decode(unsigned char *dst, const char *src, size_t n) {
    return n < 64 + 24 ? 0 : base64_avx512_decode_masked((char *)dst, src, n - 24, 0);
}
#endif
