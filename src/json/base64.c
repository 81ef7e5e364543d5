#include "json/base64.h"

#include "json/base64_avx2.h"

#include "base/util.h"

#include <errno.h>
#include <stdbool.h>

/* X(c) for the 64 characters in order of value. */
#define BASE64_ALPHABET(X)                                                                         \
    X('A'), X('B'), X('C'), X('D'), X('E'), X('F'), X('G'), X('H'), X('I'), X('J'), X('K'),        \
        X('L'), X('M'), X('N'), X('O'), X('P'), X('Q'), X('R'), X('S'), X('T'), X('U'), X('V'),    \
        X('W'), X('X'), X('Y'), X('Z'), X('a'), X('b'), X('c'), X('d'), X('e'), X('f'), X('g'),    \
        X('h'), X('i'), X('j'), X('k'), X('l'), X('m'), X('n'), X('o'), X('p'), X('q'), X('r'),    \
        X('s'), X('t'), X('u'), X('v'), X('w'), X('x'), X('y'), X('z'), X('0'), X('1'), X('2'),    \
        X('3'), X('4'), X('5'), X('6'), X('7'), X('8'), X('9'), X('+'), X('/')

#define BASE64_ROW(c)                                                                              \
    c, 'A', c, 'B', c, 'C', c, 'D', c, 'E', c, 'F', c, 'G', c, 'H', c, 'I', c, 'J', c, 'K', c,     \
        'L', c, 'M', c, 'N', c, 'O', c, 'P', c, 'Q', c, 'R', c, 'S', c, 'T', c, 'U', c, 'V', c,    \
        'W', c, 'X', c, 'Y', c, 'Z', c, 'a', c, 'b', c, 'c', c, 'd', c, 'e', c, 'f', c, 'g', c,    \
        'h', c, 'i', c, 'j', c, 'k', c, 'l', c, 'm', c, 'n', c, 'o', c, 'p', c, 'q', c, 'r', c,    \
        's', c, 't', c, 'u', c, 'v', c, 'w', c, 'x', c, 'y', c, 'z', c, '0', c, '1', c, '2', c,    \
        '3', c, '4', c, '5', c, '6', c, '7', c, '8', c, '9', c, '+', c, '/'

/* The two characters of every 12-bit value. */
static const char base64_pairs[2 * 4096] = {BASE64_ALPHABET(BASE64_ROW)};

#define BASE64_BAD UINT32_C(0x80000000)

#define BASE64_VALUE(c)                                                                            \
    ((c) >= 'A' && (c) <= 'Z'   ? (c) - 'A'                                                        \
     : (c) >= 'a' && (c) <= 'z' ? (c) - 'a' + 26                                                   \
     : (c) >= '0' && (c) <= '9' ? (c) - '0' + 52                                                   \
     : (c) == '+'               ? 62                                                               \
     : (c) == '/'               ? 63                                                               \
                                : -1)
#define BASE64_1(c, s) BASE64_VALUE(c) < 0 ? BASE64_BAD : (uint32_t)BASE64_VALUE(c) << (s)
#define BASE64_4(c, s)                                                                             \
    BASE64_1(c, s), BASE64_1((c) + 1, s), BASE64_1((c) + 2, s), BASE64_1((c) + 3, s)
#define BASE64_16(c, s)                                                                            \
    BASE64_4(c, s), BASE64_4((c) + 4, s), BASE64_4((c) + 8, s), BASE64_4((c) + 12, s)
#define BASE64_64(c, s)                                                                            \
    BASE64_16(c, s), BASE64_16((c) + 16, s), BASE64_16((c) + 32, s), BASE64_16((c) + 48, s)
#define BASE64_256(s) BASE64_64(0, s), BASE64_64(64, s), BASE64_64(128, s), BASE64_64(192, s)

/* Values by place in a group of four, already shifted; BASE64_BAD outside the alphabet. */
static const uint32_t base64_values[4][256] = {
    {BASE64_256(18)}, {BASE64_256(12)}, {BASE64_256(6)}, {BASE64_256(0)}};

static inline void base64_encode_group(char *dst, const unsigned char *p) {
    memcpy(dst, &base64_pairs[2 * (p[0] << 4 | p[1] >> 4)], 2);
    memcpy(dst + 2, &base64_pairs[2 * ((p[1] & 15) << 8 | p[2])], 2);
}

size_t base64_encode(char *dst, const void *src, size_t n) {
    const unsigned char *p = src;
    char *out = dst;
    size_t i = 0;
#if defined(__x86_64__)
    if (n >= 32 && base64_avx2_usable()) {
        i = base64_avx2_encode(dst, p, n);
        out += i / 3 * 4;
    }
#endif
    for (; n - i >= 3; i += 3, out += 4)
        base64_encode_group(out, p + i);
    if (n > i) {
        /* planted: wrong-base64 */
        const unsigned char last[3] = {p[i], n - i > 1 ? p[i + 1] : 0, 0};
        base64_encode_group(out, last);
        out[3] = '=';
        if (n - i == 1)
            out[2] = '=';
        out += 4;
    }
    return (size_t)(out - dst);
}

static inline uint32_t base64_value(char c) {
    return base64_values[3][(unsigned char)c];
}

/* The 24 bits of four characters, or BASE64_BAD set. */
static inline uint32_t base64_quad(const char *s) {
    const unsigned char *u = (const unsigned char *)s;
    return base64_values[0][u[0]] | base64_values[1][u[1]] | base64_values[2][u[2]] |
           base64_values[3][u[3]];
}

static inline void base64_put(unsigned char *dst, uint32_t bits, size_t n) {
    for (size_t i = 0; i < n; i++)
        dst[i] = (unsigned char)(bits >> (16 - 8 * i));
}

/* Decodes whole groups without padding, up to the first bad one; returns the characters used. */
static size_t base64_decode_body(unsigned char *dst, const char *src, size_t n) {
    size_t i = 0;
#if defined(__x86_64__)
    if (n >= 128 && base64_avx2_usable())
        i = base64_avx2_decode(dst, src, n);
#endif
    for (dst += i / 4 * 3; i < n; i += 4, dst += 3) {
        uint32_t bits = base64_quad(src + i);
        if ((bits & BASE64_BAD) != 0)
            break;
        base64_put(dst, bits, 3);
    }
    return i;
}

/* The rest of a text, of which `before` characters were decoded earlier. */
struct base64_text {
    const char *p;
    size_t n, before;
};

static ssize_t base64_bad_symbol(struct base64_text t, size_t at, struct err *e) {
    return err_set(e, ERR_INVALID_PARAMS, "Invalid symbol %u, offset %zu.",
                   (unsigned)(unsigned char)t.p[at], t.before + at);
}

/* Decodes the last group, from `at` on: one to four characters, padding included. */
static ssize_t base64_decode_last(unsigned char *dst, struct base64_text t, size_t at,
                                  struct err *e) {
    uint32_t bits = 0;
    size_t symbols = 0;
    for (size_t i = at; i < t.n; i++) {
        if (t.p[i] == '=' && i - at >= 2)
            continue;
        if (symbols < i - at)
            return base64_bad_symbol(t, at + symbols, e);
        uint32_t v = base64_value(t.p[i]);
        if (v == BASE64_BAD)
            return base64_bad_symbol(t, i, e);
        bits |= v << (18 - 6 * symbols++);
    }
    if (symbols < 2)
        return err_set(e, ERR_INVALID_PARAMS, "Invalid input length: %zu", t.before + at + symbols);
    if (t.n - at != 4)
        return err_set(e, ERR_INVALID_PARAMS, "Invalid padding");
    if ((bits & (UINT32_C(0xFFFFFF) >> (8 * (symbols - 1)))) != 0) {
        size_t last = at + symbols - 1;
        return err_set(e, ERR_INVALID_PARAMS, "Invalid last symbol %u, offset %zu.",
                       (unsigned)(unsigned char)t.p[last], t.before + last);
    }
    base64_put(dst, bits, symbols - 1);
    return (ssize_t)(symbols - 1);
}

/* The reference reports a single bad byte after whole groups (a newline) before all else. */
static bool base64_ends_badly(struct base64_text t) {
    return t.n % 4 == 1 && t.p[t.n - 1] != '=' && base64_value(t.p[t.n - 1]) == BASE64_BAD;
}

/* Reports the bad byte in the group at `at`. */
static ssize_t base64_bad_group(struct base64_text t, size_t at, struct err *e) {
    while (base64_value(t.p[at]) != BASE64_BAD)
        at++;
    return base64_bad_symbol(t, at, e);
}

ssize_t base64_decode_rest(void *dst, const char *src, size_t n, size_t before, struct err *e) {
    struct base64_text t = {src, n, before};
    if (n == 0)
        return 0;
    if (base64_ends_badly(t))
        return base64_bad_symbol(t, t.n - 1, e);
    size_t body = (t.n - 1) / 4 * 4, done = base64_decode_body(dst, t.p, body);
    if (done < body)
        return base64_bad_group(t, done, e);
    ssize_t r = base64_decode_last((unsigned char *)dst + body / 4 * 3, t, body, e);
    return r < 0 ? r : (ssize_t)(body / 4 * 3) + r;
}

ssize_t base64_decode(void *dst, const char *src, size_t n, struct err *e) {
    return base64_decode_rest(dst, src, n, 0, e);
}

ssize_t base64_url_decode(void *dst, const char *src, size_t n) {
    unsigned char *out = dst;
    uint32_t bits = 0;
    for (size_t i = 0; i < n; i++) {
        char c = src[i];
        uint32_t v = c == '-'               ? 62
                     : c == '_'             ? 63
                     : c == '+' || c == '/' ? BASE64_BAD
                                            : base64_value(c);
        if (v == BASE64_BAD)
            return -EINVAL;
        bits = bits << 6 | v;
        if (i % 4 == 3) {
            base64_put(out, bits & 0xFFFFFF, 3);
            out += 3;
            bits = 0;
        }
    }
    unsigned rest = n % 4;
    if (rest == 0)
        return out - (unsigned char *)dst;
    bits <<= 6 * (4 - rest);
    if (rest == 1 || (bits & (UINT32_C(0xFFFFFF) >> (8 * (rest - 1)))) != 0)
        return -EINVAL;
    base64_put(out, bits, rest - 1);
    return out + rest - 1 - (unsigned char *)dst;
}
