#include "net/ws_mask.h"

#include "json/base64.h"
#include "json/base64_avx2.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))

/* Unmasks whole vectors; returns the bytes done. */
AVX2 static size_t ws_mask_avx2(char *dst, const char *src, size_t n, const uint8_t mask[4],
                                bool *letters) {
    int key;
    memcpy(&key, mask, sizeof key);
    const __m256i m = _mm256_set1_epi32(key);
    __m256i bad = _mm256_setzero_si256();
    size_t i = 0;
    for (; n - i >= 64; i += 64) {
        __m256i a = _mm256_loadu_si256((const __m256i *)(const void *)(src + i));
        __m256i b = _mm256_loadu_si256((const __m256i *)(const void *)(src + i + 32));
        a = _mm256_xor_si256(a, m);
        b = _mm256_xor_si256(b, m);
        _mm256_storeu_si256((__m256i *)(void *)(dst + i), a);
        _mm256_storeu_si256((__m256i *)(void *)(dst + i + 32), b);
        bad = _mm256_or_si256(bad, base64_avx2_refuse(a));
        bad = _mm256_or_si256(bad, base64_avx2_refuse(b));
    }
    *letters = _mm256_testz_si256(bad, bad);
    return i;
}
#endif

/* The mask, rotated to begin at `phase`. */
static void ws_mask_turn(uint8_t rot[8], const uint8_t mask[4], uint64_t phase) {
    for (size_t i = 0; i < 8; i++)
        rot[i] = mask[(phase + i) % 4];
}

bool ws_mask_undo(char *dst, const char *src, size_t n, const uint8_t mask[4], uint64_t phase) {
    uint8_t rot[8];
    ws_mask_turn(rot, mask, phase);
    bool letters = base64_avx2_usable();
    size_t i = 0;
#if defined(__x86_64__)
    if (n >= 64 && letters)
        i = ws_mask_avx2(dst, src, n, rot, &letters);
#endif
    uint64_t m;
    memcpy(&m, rot, sizeof m);
    for (; n - i >= 8; i += 8) {
        uint64_t w;
        memcpy(&w, src + i, sizeof w);
        w ^= m;
        memcpy(dst + i, &w, sizeof w);
        for (size_t k = 0; letters && k < 8; k++)
            letters = base64_is_letter(dst[i + k]);
    }
    for (; i < n; i++) {
        dst[i] = (char)(src[i] ^ rot[i % 4]);
        letters = letters && base64_is_letter(dst[i]);
    }
    return letters;
}

size_t ws_mask_undo_base64(char *dst, const char *src, size_t n, const uint8_t mask[4],
                           uint64_t phase) {
#if defined(__x86_64__)
    uint8_t rot[8];
    uint32_t key;
    ws_mask_turn(rot, mask, phase);
    memcpy(&key, rot, sizeof key);
    if (base64_avx2_usable())
        return base64_avx2_decode_masked(dst, src, n, key);
#else
    (void)dst, (void)src, (void)n, (void)mask, (void)phase;
#endif
    return 0;
}
