#include "net/sha1.h"

#include "guard.h"
#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static void hex(const uint8_t digest[20], char out[41]) {
    for (size_t i = 0; i < 20; i++)
        snprintf(out + 2 * i, 3, "%02x", digest[i]);
}

/* Vectors of FIPS 180 and RFC 3174. */
static void known_values(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        {"", "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
        {"a", "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"},
        {"abc", "a9993e364706816aba3e25717850c26c9cd0d89d"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "84983e441c3bd26ebaae4aa1f95129e5e54670f1"},
        {"The quick brown fox jumps over the lazy dog", "2fd4e1c67a2d28fced849ee1bb76e7391b93eb12"},
    };
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        uint8_t digest[20];
        char text[41];
        sha1(pairs[i][0], strlen(pairs[i][0]), digest);
        hex(digest, text);
        assert_string_equal(text, pairs[i][1]);
    }
}

static void million(void **state) {
    (void)state;
    struct sha1_state s;
    char block[1000], text[41];
    uint8_t digest[20];
    memset(block, 'a', sizeof block);
    sha1_init(&s);
    for (int i = 0; i < 1000; i++)
        sha1_update(&s, block, sizeof block);
    sha1_final(&s, digest);
    hex(digest, text);
    assert_string_equal(text, "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

/* Every length around the block and padding borders, in one piece and in two. */
static void pieces(void **state) {
    (void)state;
    struct guard g = guard_new(256);
    for (size_t n = 0; n <= 200; n++) {
        char *p = guard_tail(&g, n);
        for (size_t i = 0; i < n; i++)
            p[i] = (char)(i * 7 + n);
        uint8_t whole[20], split[20];
        sha1(p, n, whole);
        for (size_t at = 0; at <= n; at += 1 + n / 13) {
            struct sha1_state s;
            sha1_init(&s);
            sha1_update(&s, p, at);
            sha1_update(&s, p + at, n - at);
            sha1_final(&s, split);
            assert_memory_equal(whole, split, sizeof whole);
        }
    }
    guard_free(&g);
}

/* Padding of 55, 56, 63 and 64 bytes, from an independent implementation. */
static void borders(void **state) {
    (void)state;
    static const struct {
        size_t n;
        const char *digest;
    } cases[] = {
        {55, "cef734ba81a024479e09eb5a75b6ddae62e6abf1"},
        {56, "901305367c259952f4e7af8323f480d59f81335b"},
        {63, "0ddc4e0cccd9a12850deb5abb0853a4425559fec"},
        {64, "bb2fa3ee7afb9f54c6dfb5d021f14b1ffe40c163"},
        {65, "78c741ddc482e4cdf8c474a0876347a0905b6233"},
        {119, "4300320394f7ee239bcdce7d3b8bcee173a0cd5c"},
        {120, "ceb2821639c4b6dcb10bce0e522ca2e608ce056d"},
        {128, "150fa3fbdc899bd0b8f95a9fb6027f564d953762"},
    };
    char data[128];
    memset(data, 'x', sizeof data);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint8_t digest[20];
        char text[41];
        sha1(data, cases[i].n, digest);
        hex(digest, text);
        assert_string_equal(text, cases[i].digest);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_values),
        cmocka_unit_test(million),
        cmocka_unit_test(pieces),
        cmocka_unit_test(borders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
