#include "net/sha1.h"

#include "base/util.h"

#include <string.h>

static uint32_t sha1_rotl(uint32_t v, unsigned n) {
    return v << n | v >> (32 - n);
}

static uint32_t sha1_load(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void sha1_store(uint8_t *p, uint32_t v) {
    p[0] = (uint8_t)(v >> 24);
    p[1] = (uint8_t)(v >> 16);
    p[2] = (uint8_t)(v >> 8);
    p[3] = (uint8_t)v;
}

/* The round function of FIPS 180-4 section 4.1.1 with its constant. */
static uint32_t sha1_f(unsigned t, uint32_t b, uint32_t c, uint32_t d) {
    if (t < 20)
        return ((b & c) | (~b & d)) + 0x5A827999;
    if (t < 40)
        return (b ^ c ^ d) + 0x6ED9EBA1;
    if (t < 60)
        return ((b & c) | (b & d) | (c & d)) + 0x8F1BBCDC;
    return (b ^ c ^ d) + 0xCA62C1D6;
}

static void sha1_block(uint32_t h[5], const uint8_t *p) {
    uint32_t w[80];
    for (unsigned t = 0; t < 16; t++)
        w[t] = sha1_load(p + (size_t)4 * t);
    for (unsigned t = 16; t < 80; t++)
        w[t] = sha1_rotl(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
    uint32_t a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
    for (unsigned t = 0; t < 80; t++) {
        uint32_t next = sha1_rotl(a, 5) + sha1_f(t, b, c, d) + e + w[t];
        e = d;
        d = c;
        c = sha1_rotl(b, 30);
        b = a;
        a = next;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
    h[4] += e;
}

void sha1_init(struct sha1_state *s) {
    *s = (struct sha1_state){
        .h = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0},
    };
}

void sha1_update(struct sha1_state *s, const void *data, size_t n) {
    const uint8_t *p = data;
    while (n > 0) {
        size_t used = (size_t)(s->total % sizeof s->block);
        size_t take = MIN(n, sizeof s->block - used);
        memcpy(s->block + used, p, take);
        s->total += take;
        p += take;
        n -= take;
        if (used + take == sizeof s->block)
            sha1_block(s->h, s->block);
    }
}

void sha1_final(struct sha1_state *s, uint8_t out[20]) {
    static const uint8_t pad[64] = {0x80};
    uint64_t bits = s->total * 8;
    size_t used = (size_t)(s->total % sizeof s->block);
    sha1_update(s, pad, used < 56 ? 56 - used : 120 - used);
    uint8_t length[8];
    sha1_store(length, (uint32_t)(bits >> 32));
    sha1_store(length + 4, (uint32_t)bits);
    sha1_update(s, length, sizeof length);
    for (size_t i = 0; i < 5; i++)
        sha1_store(out + 4 * i, s->h[i]);
}

void sha1(const void *data, size_t n, uint8_t out[20]) {
    struct sha1_state s;
    sha1_init(&s);
    sha1_update(&s, data, n);
    sha1_final(&s, out);
}
