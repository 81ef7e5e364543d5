#include "starlark/star_int.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static struct arena arena = {.max = 64u << 20};

/* The number in a text of digits, with a sign. */
static struct star_int number(const char *text) {
    struct star_int i;
    bool negative = text[0] == '-';
    assert_int_equal(star_int_parse(&arena, str_of(text + negative), 10, &i), 0);
    if (negative)
        assert_int_equal(star_int_sub(&arena, star_int_of(0), i, &i), 0);
    return i;
}

static void check(struct star_int i, const char *text) {
    _cleanup_buf_ struct buf b = BUF_INIT(1u << 20);
    assert_int_equal(star_int_put(&b, i, 10), 0);
    assert_int_equal(buf_putc(&b, '\0'), 0);
    assert_string_equal(b.p, text);
}

static void test_large_numbers(void **state) {
    (void)state;
    struct star_int i, q, r, big = number("123456789012345678901234567890");
    check(big, "123456789012345678901234567890");
    assert_int_equal(star_int_mul(&arena, big, big, &i), 0);
    check(i, "15241578753238836750495351562536198787501905199875019052100");
    assert_int_equal(star_int_divmod(&arena, i, number("-987654321987654321"), &q, &r), 0);
    check(q, "-15432098472029322506753953188079157138082");
    assert_int_equal(star_int_mul(&arena, q, number("-987654321987654321"), &q), 0);
    assert_int_equal(star_int_add(&arena, q, r, &q), 0);
    assert_int_equal(star_int_compare(q, i), 0);
    assert_int_equal(star_int_sub(&arena, number("9223372036854775807"), number("-1"), &i), 0);
    check(i, "9223372036854775808");
    assert_int_equal(star_int_sub(&arena, i, star_int_of(1), &i), 0);
    assert_null(i.big); /* what fits is kept small */
    assert_int_equal(
        star_int_divmod(&arena, number("-9223372036854775808"), star_int_of(-1), &i, NULL), 0);
    check(i, "9223372036854775808");
}

static void test_limits(void **state) {
    (void)state;
    struct star_int i;
    assert_int_equal(star_int_divmod(&arena, star_int_of(1), star_int_of(0), &i, NULL), -EDOM);
    assert_int_equal(star_int_shift(&arena, star_int_of(1), star_int_of(-1), true, &i), -EDOM);
    assert_int_equal(star_int_shift(&arena, star_int_of(1), star_int_of(1 << 30), true, &i),
                     -EOVERFLOW);
    assert_int_equal(
        star_int_shift(&arena, star_int_of(-5), number("99999999999999999999"), false, &i), 0);
    check(i, "-1");
    assert_int_equal(star_int_parse(&arena, STR_LIT("12x"), 10, &i), -EINVAL);
    assert_int_equal(star_int_parse(&arena, STR_LIT(""), 10, &i), -EINVAL);
}

__extension__ typedef __int128 wide_int;

/* A number of up to 60 bits, or one near an edge. */
static int64_t pick(uint64_t *seed) {
    static const int64_t edges[] = {0, 1, -1, 2, -2, INT32_MAX, INT32_MIN, 1ll << 32, -(1ll << 32)};
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    uint64_t v = *seed >> 4;
    if (v % 4 == 0)
        return edges[v / 4 % ARRAY_LEN(edges)];
    return (int64_t)(v >> (v % 59)) * (*seed & 8 ? -1 : 1);
}

static struct star_int wide(wide_int v) {
    struct star_int high, low, out;
    uint64_t m = (uint64_t)v;
    assert_int_equal(
        star_int_shift(&arena, star_int_of((int64_t)(v >> 64)), star_int_of(64), true, &high), 0);
    assert_int_equal(
        star_int_shift(&arena, star_int_of((int64_t)(m >> 1)), star_int_of(1), true, &low), 0);
    assert_int_equal(star_int_add(&arena, low, star_int_of((int64_t)(m & 1)), &low), 0);
    assert_int_equal(star_int_add(&arena, high, low, &out), 0);
    return out;
}

static wide_int floor_div(wide_int x, wide_int y) {
    wide_int q = x / y;
    return q - (x % y != 0 && (x < 0) != (y < 0));
}

static void test_against_128_bits(void **state) {
    (void)state;
    uint64_t seed = 1;
    for (int n = 0; n < 20000; n++) {
        wide_int x = (wide_int)pick(&seed) * pick(&seed), y = pick(&seed);
        struct star_int bx = wide(x), by = wide(y), out, rest;
        assert_int_equal(star_int_add(&arena, bx, by, &out), 0);
        assert_int_equal(star_int_compare(out, wide(x + y)), 0);
        assert_int_equal(star_int_bits(&arena, '&', bx, by, &out), 0);
        assert_int_equal(star_int_compare(out, wide(x & y)), 0);
        assert_int_equal(star_int_bits(&arena, '|', bx, by, &out), 0);
        assert_int_equal(star_int_compare(out, wide(x | y)), 0);
        assert_int_equal(star_int_bits(&arena, '^', bx, by, &out), 0);
        assert_int_equal(star_int_compare(out, wide(x ^ y)), 0);
        assert_int_equal(star_int_shift(&arena, bx, star_int_of(n % 130), false, &out), 0);
        assert_int_equal(star_int_compare(out, wide(n % 130 > 126 ? x >> 126 : x >> n % 130)), 0);
        assert_int_equal(star_int_compare(bx, by), (x > y) - (x < y));
        if (y != 0) {
            assert_int_equal(star_int_divmod(&arena, bx, by, &out, &rest), 0);
            assert_int_equal(star_int_compare(out, wide(floor_div(x, y))), 0);
            assert_int_equal(star_int_compare(rest, wide(x - floor_div(x, y) * y)), 0);
        }
        arena_reset(&arena);
    }
    arena_fini(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_large_numbers),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_against_128_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
