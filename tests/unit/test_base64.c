#include "json/base64.h"

#include "guard.h"
#include "json/base64_avx2.h"

#include <errno.h>
#include <setjmp.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static struct guard in, out;
static uint32_t random_state = 1;

static unsigned char random_byte(void) {
    random_state = random_state * 1664525 + 1013904223;
    return (unsigned char)(random_state >> 24);
}

/* The result does not depend on how many characters were decoded before. */
static void rest_agrees(const char *s, size_t n, ssize_t want, const char *bytes,
                        const struct err *why) {
    size_t letters = 0;
    while (letters < n && base64_is_letter(s[letters]))
        letters++;
    for (size_t i = 0; i < 4; i++) {
        size_t groups = i == 0 ? 0 : i == 1 ? letters / 4 : random_byte() % (letters / 4 + 1);
        size_t before = groups * 3;
        char *text = guard_tail(&in, n - groups);
        struct err e = ERR_INIT;
        assert_int_equal(base64_decode(text, s, groups * 4, &e), before);
        if (n > groups * 4)
            memcpy(text + before, s + groups * 4, n - groups * 4);
        ssize_t r =
            base64_decode_rest(text + before, text + before, n - groups * 4, groups * 4, &e);
        assert_int_equal(r < 0 ? r : (ssize_t)before + r, want);
        if (want < 0)
            assert_string_equal(err_msg(&e), err_msg(why));
        else
            assert_memory_equal(text, bytes, (size_t)want);
        err_fini(&e);
    }
}

/* Decodes into other memory and in place, not a byte behind the result; all must agree. */
static ssize_t decode(const char *s, size_t n, void *dst, struct err *e) {
    char *p = guard_tail(&out, base64_decoded_max(n));
    ssize_t r = base64_decode(p, guard_copy(&in, s, n), n, e);
    if (r > 0)
        memcpy(dst, p, (size_t)r);
    if (r >= 0)
        assert_int_equal(base64_decode(guard_tail(&out, (size_t)r), s, n, e), r);
    _cleanup_err_ struct err again = ERR_INIT;
    char *same = guard_copy(&in, s, n);
    assert_int_equal(base64_decode(same, same, n, &again), r);
    if (r >= 0)
        assert_memory_equal(same, dst, (size_t)r);
    else
        assert_string_equal(err_msg(&again), err_msg(e));
    rest_agrees(s, n, r, dst, e);
    return r;
}

#if defined(__x86_64__)
typedef size_t vector_decoder(unsigned char *dst, const char *src, size_t n);

/* A vector decoder alone: all but the end, and nothing behind a bad byte. */
static void check_vector(vector_decoder *decoder, size_t rest) {
    unsigned char data[600], *dst;
    char text[800];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = random_byte();
    for (size_t n = 128; n <= sizeof text; n += 4) {
        assert_int_equal(base64_encode(text, data, n / 4 * 3), n);
        dst = (unsigned char *)guard_tail(&out, n / 4 * 3);
        size_t done = decoder(dst, guard_copy(&in, text, n), n);
        assert_true(done % 4 == 0 && done <= n && n - done < rest);
        assert_memory_equal(dst, data, done / 4 * 3);
        size_t bad = (n * 7) % (n - 4);
        text[bad] = (char)(random_byte() | 0x80);
        done = decoder(dst, guard_copy(&in, text, n), n);
        assert_true(done <= bad);
        assert_memory_equal(dst, data, done / 4 * 3);
    }
}

static void vectors(void **state) {
    (void)state;
    if (base64_avx2_usable())
        check_vector(base64_avx2_decode, 76);
}
#else
static void vectors(void **state) {
    (void)state;
    assert_false(base64_avx2_usable());
}
#endif

static void reject(const char *s, size_t n, const char *message) {
    char dst[1024];
    _cleanup_err_ struct err e = ERR_INIT;
    assert_int_equal(decode(s, n, dst, &e), -EINVAL);
    assert_int_equal(e.code, ERR_INVALID_PARAMS);
    assert_string_equal(err_msg(&e), message);
}

static void known_values(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        {"", ""},
        {"f", "Zg=="},
        {"fo", "Zm8="},
        {"foo", "Zm9v"},
        {"foob", "Zm9vYg=="},
        {"fooba", "Zm9vYmE="},
        {"foobar", "Zm9vYmFy"},
    };
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        char text[16], back[16];
        size_t n = strlen(pairs[i][0]), len = strlen(pairs[i][1]);
        assert_int_equal(base64_encoded_len(n), len);
        assert_int_equal(base64_encode(text, pairs[i][0], n), len);
        assert_memory_equal(text, pairs[i][1], len);
        _cleanup_err_ struct err e = ERR_INIT;
        assert_int_equal(decode(text, len, back, &e), n);
        assert_memory_equal(back, pairs[i][0], n);
    }
}

/* Every length over several vectors, against another implementation. */
static void all_lengths(void **state) {
    (void)state;
    unsigned char data[700], back[700];
    char text[1000], want[1000];
    for (size_t n = 0; n <= sizeof data; n++) {
        for (size_t i = 0; i < n; i++)
            data[i] = random_byte();
        size_t len = base64_encoded_len(n);
        char *dst = guard_tail(&out, len);
        assert_int_equal(base64_encode(dst, guard_copy(&in, data, n), n), len);
        memcpy(text, dst, len);
        sodium_bin2base64(want, sizeof want, data, n, sodium_base64_VARIANT_ORIGINAL);
        assert_memory_equal(text, want, len);
        _cleanup_err_ struct err e = ERR_INIT;
        assert_int_equal(decode(text, len, back, &e), n);
        assert_memory_equal(back, data, n);
    }
}

/* All 24-bit groups, many at a time: every value in every place. */
static void all_groups(void **state) {
    (void)state;
    unsigned char data[3 * 256], back[3 * 256 + 3];
    char text[4 * 256];
    for (uint32_t high = 0; high < 1 << 16; high++) {
        for (uint32_t low = 0; low < 256; low++) {
            data[3 * low] = (unsigned char)(high >> 8);
            data[3 * low + 1] = (unsigned char)high;
            data[3 * low + 2] = (unsigned char)low;
        }
        assert_int_equal(base64_encode(text, data, sizeof data), sizeof text);
        _cleanup_err_ struct err e = ERR_INIT;
        assert_int_equal(base64_decode(back, text, sizeof text, &e), sizeof data);
        assert_memory_equal(back, data, sizeof data);
        assert_int_equal(text[0], alphabet[high >> 10]);
        assert_int_equal(text[3], alphabet[0]);
        assert_int_equal(text[sizeof text - 1], alphabet[63]);
    }
}

/* Each of the 256 bytes at each place of a long text. */
static void every_byte_everywhere(void **state) {
    (void)state;
    char s[300], message[64];
    unsigned char back[300];
    memset(s, 'A', sizeof s);
    for (size_t at = 0; at < sizeof s; at++) {
        for (unsigned c = 0; c < 256; c++) {
            s[at] = (char)c;
            bool good = c != 0 && strchr(alphabet, (int)c) != NULL;
            bool padding = c == '=' && at == sizeof s - 1;
            _cleanup_err_ struct err e = ERR_INIT;
            if (good || padding) {
                assert_int_equal(decode(s, sizeof s, back, &e), 225 - padding);
                continue;
            }
            snprintf(message, sizeof message, "Invalid symbol %u, offset %zu.", c, at);
            reject(s, sizeof s, message);
        }
        s[at] = 'A';
    }
}

/* Seen from the reference, byte for byte. */
static void refused_texts(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"!", "Invalid symbol 33, offset 0."},
        {"A", "Invalid input length: 1"},
        {"AA", "Invalid padding"},
        {"AAA", "Invalid padding"},
        {"AAA==", "Invalid symbol 61, offset 3."},
        {"AAAA=", "Invalid symbol 61, offset 4."},
        {"AAAA==", "Invalid symbol 61, offset 4."},
        {"AAAA===", "Invalid symbol 61, offset 4."},
        {"AAAA====", "Invalid symbol 61, offset 4."},
        {"====", "Invalid symbol 61, offset 0."},
        {"=", "Invalid symbol 61, offset 0."},
        {"A===", "Invalid symbol 61, offset 1."},
        {"AA=A", "Invalid symbol 61, offset 2."},
        {"A=AA", "Invalid symbol 61, offset 1."},
        {"AR==", "Invalid last symbol 82, offset 1."},
        {"AAR=", "Invalid last symbol 82, offset 2."},
        {"AR", "Invalid padding"},
        {"AAR", "Invalid padding"},
        {"AA==AAAA", "Invalid symbol 61, offset 2."},
        {"AAAAA", "Invalid input length: 5"},
        {"AAAAAAAAAAAAAAAAAAAAA", "Invalid input length: 21"},
        {"AAAA!", "Invalid symbol 33, offset 4."},
        {"AAAA\n", "Invalid symbol 10, offset 4."},
        {"AAA\n", "Invalid symbol 10, offset 3."},
        {"AA\n=", "Invalid symbol 10, offset 2."},
        {"AA=!", "Invalid symbol 61, offset 2."},
        {"AA!A!", "Invalid symbol 33, offset 4."},
        {"A!", "Invalid symbol 33, offset 1."},
        {"AR=!", "Invalid symbol 61, offset 2."},
        {"\xC3\xA9__", "Invalid symbol 195, offset 0."},
        {"AA-_", "Invalid symbol 45, offset 2."},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        reject(cases[i].text, strlen(cases[i].text), cases[i].message);
}

/* The first of several bad bytes is the one reported, wherever the vectors begin. */
static void first_bad_byte(void **state) {
    (void)state;
    char s[400], message[64];
    for (size_t at = 0; at < sizeof s - 4; at++) {
        memset(s, 'A', sizeof s);
        for (size_t i = at; i < sizeof s; i += 1 + random_byte() % 20)
            s[i] = '*';
        snprintf(message, sizeof message, "Invalid symbol 42, offset %zu.", at);
        reject(s, sizeof s, message);
    }
}

static void url_safe(void **state) {
    (void)state;
    unsigned char data[100], back[103];
    char text[140];
    for (size_t n = 0; n <= sizeof data; n++) {
        for (size_t i = 0; i < n; i++)
            data[i] = random_byte();
        sodium_bin2base64(text, sizeof text, data, n, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
        size_t len = strlen(text);
        assert_int_equal(base64_url_decode(back, guard_copy(&in, text, len), len), n);
        assert_memory_equal(back, data, n);
        char *same = guard_copy(&in, text, len);
        assert_int_equal(base64_url_decode(same, same, len), n);
        assert_memory_equal(same, data, n);
    }
    static const char *const bad[] = {"A",   "AAAAA", "AA==", "AAA=", "AAAA=",  "=",      "AR",
                                      "AAR", "+AAA",  "/AAA", "AA A", "AAAA\n", "A\x80__"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(base64_url_decode(back, bad[i], strlen(bad[i])), -EINVAL);
    assert_int_equal(base64_url_decode(back, "A\0AA", 4), -EINVAL);
    assert_int_equal(base64_url_decode(back, "-_-_", 4), 3);
    assert_memory_equal(back, "\xFB\xFF\xBF", 3);
}

int main(void) {
    in = guard_new(4096);
    out = guard_new(4096);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_values),  cmocka_unit_test(all_lengths),
        cmocka_unit_test(all_groups),    cmocka_unit_test(every_byte_everywhere),
        cmocka_unit_test(refused_texts), cmocka_unit_test(first_bad_byte),
        cmocka_unit_test(url_safe),      cmocka_unit_test(vectors),
    };
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    guard_free(&in);
    guard_free(&out);
    return r;
}
