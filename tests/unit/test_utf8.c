#include "base/utf8.h"

#include "base/util.h"
#include "guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

static struct guard guard;

static bool valid(const void *p, size_t n) {
    return utf8_valid(guard_copy(&guard, p, n), n);
}

/* Decodes one code point the slow way: by its definition, then refusing what must not be. */
static bool slow_valid(const unsigned char *s, size_t n) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    for (size_t i = 0; i < n;) {
        if (s[i] == 0xFF)
            return false;
        size_t ones = s[i] < 0x80 ? 0 : (size_t)__builtin_clz((unsigned)(unsigned char)~s[i]) - 24;
        size_t len = ones == 0 ? 1 : ones;
        if (ones == 1 || ones > 4 || n - i < len)
            return false;
        uint32_t c = ones == 0 ? s[i] : s[i] & (0x7Fu >> ones);
        for (size_t k = 1; k < len; k++) {
            if (s[i + k] >> 6 != 2)
                return false;
            c = c << 6 | (s[i + k] & 0x3F);
        }
        if ((ones > 0 && c < least[len]) || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
            return false;
        i += len;
    }
    return true;
}

static void empty_is_valid(void **state) {
    (void)state;
    assert_true(utf8_valid(NULL, 0));
    assert_true(valid("", 0));
}

static void every_code_point(void **state) {
    (void)state;
    for (unsigned c = 0; c <= 0x10FFFF; c++) {
        char s[4];
        size_t n = utf8_encode(s, c);
        assert_int_equal(n, c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4);
        bool surrogate = c >= 0xD800 && c < 0xE000;
        assert_int_equal(valid(s, n), !surrogate);
        assert_int_equal(slow_valid((unsigned char *)s, n), !surrogate);
    }
}

/* Every lead byte with every second byte, and edge values for the third and fourth. */
static void every_start(void **state) {
    (void)state;
    static const unsigned char edges[] = {0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F,
                                          0xA0, 0xBF, 0xC0, 0xED, 0xFF};
    for (unsigned lead = 0; lead < 256 * 256; lead++) {
        for (size_t i = 0; i < sizeof edges; i++) {
            for (size_t k = 0; k < sizeof edges; k++) {
                unsigned char s[4] = {(unsigned char)(lead >> 8), (unsigned char)lead, edges[i],
                                      edges[k]};
                for (size_t n = i + k == 0 ? 1 : 3; n <= 4; n++)
                    assert_int_equal(utf8_valid((char *)s, n), slow_valid(s, n));
            }
        }
    }
}

static uint32_t random_state = 1;

static uint32_t random_below(uint32_t limit) {
    random_state = random_state * 1664525 + 1013904223;
    return (uint32_t)(((uint64_t)random_state * limit) >> 32);
}

/* Long texts of all kinds of sequences, most with a byte or two spoilt. */
static void long_texts(void **state) {
    (void)state;
    static const unsigned edges[] = {0x7F,   0x80,   0x7FF,  0x800,   0xFFF,   0x1000,
                                     0xD7FF, 0xE000, 0xFFFF, 0x10000, 0xFFFFF, 0x10FFFF};
    static const unsigned char bytes[] = {0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF,
                                          0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xED, 0xEF, 0xF0,
                                          0xF1, 0xF3, 0xF4, 0xF5, 0xF8, 0xFF};
    unsigned right = 0, wrong = 0;
    for (int round = 0; round < 200000; round++) {
        char s[300];
        size_t n = 0, want = 60 + random_below(200);
        uint32_t ascii = random_below(10); /* how many tenths of it */
        while (n < want) {
            bool plain = random_below(10) < ascii;
            n += utf8_encode(s + n, plain ? 'x' : edges[random_below(sizeof edges / 4)]);
        }
        for (uint32_t spoil = random_below(3); spoil > 0; spoil--)
            s[random_below((uint32_t)n)] = (char)bytes[random_below(sizeof bytes)];
        n -= random_below(3);
        bool expected = slow_valid((unsigned char *)s, n);
        assert_int_equal(valid(s, n), expected);
        expected ? right++ : wrong++;
    }
    assert_true(right > 1000 && wrong > 1000);
}

/* A sequence at every offset of a long run of ASCII, whole, cut and broken. */
static void at_every_offset(void **state) {
    (void)state;
    char s[200];
    for (size_t at = 0; at + 4 <= sizeof s; at++) {
        for (size_t n = at + 4; n <= sizeof s; n += 13) {
            memset(s, 'x', sizeof s);
            memcpy(s + at, "\xF0\x9F\x98\x80", 4);
            assert_true(valid(s, n));
            assert_false(valid(s, at + 3));
            s[at + 1] = 'x';
            assert_false(valid(s, n));
            memcpy(s + at, "x\x80xx", 4);
            assert_false(valid(s, n));
        }
    }
}

static void cut_keeps_sequences_whole(void **state) {
    (void)state;
    const char *s = "a\xC3\xA9\xF0\x9F\x98\x80z"; /* 1, 2, 4 and 1 bytes */
    static const size_t want[] = {0, 1, 1, 3, 3, 3, 3, 7, 8, 8};
    for (size_t max = 0; max < sizeof want / sizeof want[0]; max++)
        assert_int_equal(utf8_cut(s, 8, max), want[max]);
    assert_int_equal(utf8_cut("", 0, 0), 0);
}

static void mend_replaces_single_bytes(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"", ""},      {"a\xC3\xA9z", "a\xC3\xA9z"}, {"a\xFF\xC3\xA9\xFE", "a?\xC3\xA9?"},
        {"\xC3", "?"}, {"\xF0\x9F\x98", "???"},      {"\xED\xA0\x80x", "???x"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char s[16];
        strcpy(s, cases[i][0]);
        utf8_mend(s, strlen(s));
        assert_string_equal(s, cases[i][1]);
    }
}

static void decodes_one_character(void **state) {
    static const struct {
        const char *text;
        size_t n, len;
        uint32_t c;
    } rows[] = {
        {"a", 1, 1, 'a'},
        {"\0", 1, 1, 0},
        {"\xC3\xA9x", 3, 2, 0xE9},
        {"\xE2\x84\xAA", 3, 3, 0x212A},
        {"\xF0\x90\x90\x80", 4, 4, 0x10400},
        {"\xC3", 1, 1, 0x1100C3},
        {"\xC3x", 2, 1, 0x1100C3},
        {"\x80", 1, 1, 0x110080},
        {"\xED\xA0\x80", 3, 1, 0x1100ED},
        {"\xFF\xFF\xFF\xFF", 4, 1, 0x1100FF},
        {"\xC0\x80", 2, 1, 0x1100C0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint32_t c;
        assert_int_equal(utf8_decode(rows[i].text, rows[i].n, &c), rows[i].len);
        assert_int_equal(c, rows[i].c);
    }
}

static void faults(void **state) {
    static const struct {
        const char *text;
        size_t at, bytes;
    } cases[] = {
        {"", 0, 0},
        {"abc", 3, 0},
        {"\xC3\xA9", 2, 0},
        {"a\xFFz", 1, 1},
        {"a\x80", 1, 1},
        {"\xC3", 0, 0},
        {"\xC3(", 0, 1},
        {"\xE2\x82", 0, 0},
        {"\xE2\x82(", 0, 2},
        {"\xE0\x80x", 0, 1},
        {"\xED\xA0\x80", 0, 1},
        {"\xF0\x9F\x98", 0, 0},
        {"x\xF0\x9F\x98!", 1, 3},
        {"\xF5\x80", 0, 1},
        {"\xC0\xAF", 0, 1},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        size_t bytes = 9, n = strlen(cases[i].text);
        assert_int_equal(utf8_fault(cases[i].text, n, &bytes), cases[i].at);
        assert_int_equal(bytes, cases[i].bytes);
    }
}

int main(void) {
    guard = guard_new(4096);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults),
        cmocka_unit_test(decodes_one_character),
        cmocka_unit_test(empty_is_valid),
        cmocka_unit_test(every_code_point),
        cmocka_unit_test(every_start),
        cmocka_unit_test(at_every_offset),
        cmocka_unit_test(long_texts),
        cmocka_unit_test(cut_keeps_sequences_whole),
        cmocka_unit_test(mend_replaces_single_bytes),
    };
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    guard_free(&guard);
    return r;
}
