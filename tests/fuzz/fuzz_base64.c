/*
 * base64, against libsodium in both directions. libsodium takes bytes from 0x80 on for characters
 * of the alphabet, so texts with those are only required to be refused.
 */
#include "json/base64.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool in_alphabet(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '/';
}

/* libsodium's verdict: the bytes written to dst, or -1. */
static ssize_t expected(unsigned char *dst, const char *text, size_t n, int variant) {
    size_t len;
    const char *end;
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)text[i] >= 0x80)
            return -1;
    }
    if (sodium_base642bin(dst, base64_decoded_max(n), text, n, NULL, &len, &end, variant) != 0)
        return -1;
    return end == text + n ? (ssize_t)len : -1;
}

static void check_encode(const uint8_t *data, size_t size) {
    size_t len = base64_encoded_len(size);
    char *text = malloc(len + 1), *want = malloc(len + 1);
    unsigned char *back = malloc(base64_decoded_max(len));
    REQUIRE(text != NULL && want != NULL && back != NULL);
    REQUIRE(base64_encode(text, data, size) == len);
    sodium_bin2base64(want, len + 1, data, size, sodium_base64_VARIANT_ORIGINAL);
    REQUIRE(memcmp(text, want, len) == 0);
    _cleanup_err_ struct err e = ERR_INIT;
    REQUIRE(base64_decode(back, text, len, &e) == (ssize_t)size);
    REQUIRE(size == 0 || memcmp(back, data, size) == 0);
    free(text);
    free(want);
    free(back);
}

/* The message of a refused text names a byte that is there and the first that is wrong. */
static void check_reason(const char *text, size_t n, const char *message) {
    unsigned byte;
    size_t offset;
    if (sscanf(message, "Invalid symbol %u, offset %zu.", &byte, &offset) == 2) {
        REQUIRE(offset < n && (unsigned char)text[offset] == byte && !in_alphabet(text[offset]));
        for (size_t i = 0; i < offset; i++)
            REQUIRE(in_alphabet(text[i]) || (n % 4 == 1 && offset == n - 1));
    } else if (sscanf(message, "Invalid last symbol %u, offset %zu.", &byte, &offset) == 2) {
        REQUIRE(n % 4 == 0 && (unsigned char)text[offset] == byte && text[offset + 1] == '=');
    } else if (sscanf(message, "Invalid input length: %zu", &offset) == 1) {
        REQUIRE(offset == n && n % 4 == 1);
    } else {
        REQUIRE(strcmp(message, "Invalid padding") == 0 && n % 4 != 0);
    }
}

/* With any part of the characters in front decoded before. */
static void check_rest(const char *text, size_t n, ssize_t want, const unsigned char *bytes,
                       const char *message) {
    size_t letters = 0;
    while (letters < n && in_alphabet(text[letters]))
        letters++;
    for (size_t groups = 0; groups <= letters / 4; groups += 1 + groups / 2) {
        size_t before = 3 * groups;
        char *mixed = malloc(n - groups + 1);
        REQUIRE(mixed != NULL);
        _cleanup_err_ struct err e = ERR_INIT;
        REQUIRE(base64_decode(mixed, text, 4 * groups, &e) == (ssize_t)before);
        memcpy(mixed + before, text + 4 * groups, n - 4 * groups);
        ssize_t r =
            base64_decode_rest(mixed + before, mixed + before, n - 4 * groups, 4 * groups, &e);
        REQUIRE((r < 0 ? r : (ssize_t)before + r) == want);
        REQUIRE(want < 0 ? strcmp(err_msg(&e), message) == 0
                         : want == 0 || memcmp(mixed, bytes, (size_t)want) == 0);
        free(mixed);
    }
}

static void check_decode(const char *text, size_t n) {
    unsigned char *dst = malloc(base64_decoded_max(n)), *want = malloc(base64_decoded_max(n));
    char *same = malloc(n + 1);
    REQUIRE(dst != NULL && want != NULL && same != NULL);
    _cleanup_err_ struct err e = ERR_INIT;
    ssize_t r = base64_decode(dst, text, n, &e);
    ssize_t w = expected(want, text, n, sodium_base64_VARIANT_ORIGINAL);
    REQUIRE((r < 0) == (w < 0) && (r < 0 || r == w));
    REQUIRE(r <= 0 || memcmp(dst, want, (size_t)r) == 0);
    if (r < 0)
        check_reason(text, n, err_msg(&e));
    if (n > 0)
        check_rest(text, n, r, dst, r < 0 ? err_msg(&e) : "");
    if (n > 0)
        memcpy(same, text, n);
    REQUIRE(base64_decode(same, same, n, &e) == r);
    REQUIRE(r <= 0 || memcmp(same, want, (size_t)r) == 0);
    r = base64_url_decode(dst, text, n);
    w = expected(want, text, n, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    REQUIRE((r < 0) == (w < 0) && (r < 0 || r == w));
    REQUIRE(r <= 0 || memcmp(dst, want, (size_t)r) == 0);
    free(dst);
    free(want);
    free(same);
}

/* The data repeated reaches the vector code, which short inputs do not. */
static void check_repeated(const uint8_t *data, size_t size) {
    size_t times = 300 / size + 1;
    uint8_t *all = malloc(times * size + 3);
    REQUIRE(all != NULL);
    for (size_t i = 0; i < times; i++)
        memcpy(all + i * size, data, size);
    memcpy(all + times * size, "AA=", 3);
    check_encode(all, times * size);
    check_decode((char *)all, times * size);
    for (size_t tail = 1; tail <= 3; tail++)
        check_decode((char *)all, times * size + tail);
    free(all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    check_encode(data, size);
    check_decode((const char *)data, size);
    if (size > 0 && size < 300)
        check_repeated(data, size);
    return 0;
}
