/* Values as bytes between processes of one build. */
#include "base/codec.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void write_all(struct codec_writer *w) {
    codec_put_u8(w, 7);
    codec_put_u32(w, UINT32_MAX);
    codec_put_u64(w, UINT64_MAX);
    codec_put_block(w, STR_LIT("a\0b"));
    codec_put_text(w, "text");
    codec_put_text(w, "");
    codec_put_text(w, NULL);
    codec_put_count(w, 2, 2);
}

static void test_round_trip(void **state) {
    (void)state;
    _cleanup_buf_ struct buf b = BUF_INIT(4096);
    _cleanup_arena_ struct arena a = ARENA_INIT(4096);
    struct codec_writer w = CODEC_WRITER(&b);
    write_all(&w);
    assert_int_equal(codec_put_end(&w, 4096), 0);
    struct codec_reader r = CODEC_READER(buf_str(&b), 4096, &a);
    assert_int_equal(codec_get_u8(&r, 7), 7);
    assert_int_equal(codec_get_u32(&r, UINT32_MAX), UINT32_MAX);
    assert_true(codec_get_u64(&r) == UINT64_MAX);
    assert_true(str_eq(codec_get_block(&r, 3), STR_LIT("a\0b")));
    assert_string_equal(codec_get_text(&r), "text");
    assert_string_equal(codec_get_text(&r), "");
    assert_null(codec_get_text(&r));
    assert_false(r.bad);
    assert_int_equal(codec_get_end(&r), -EINVAL); /* bytes are left */
    assert_int_equal(codec_get_u32(&r, 2), 2);
    assert_non_null(codec_get_array(&r, 2, 8));
    assert_int_equal(codec_get_end(&r), 0);
}

static void test_misfits(void **state) {
    (void)state;
    static const char cut[] = {4, 0, 0, 0, 'a', 'b', '\0', 'c', 'x'};
    struct codec_reader number = CODEC_READER(STR_LIT("\2\0\0\0"), 16, NULL);
    assert_int_equal(codec_get_u32(&number, 1), 0);
    assert_int_equal(codec_get_end(&number), -EINVAL);
    struct codec_reader text = {.in = {cut, sizeof cut}}; /* with a NUL inside, and none behind */
    assert_null(codec_get_text(&text));
    assert_true(text.bad);
    assert_true(codec_get_u64(&text) == 0);
    struct codec_reader large = CODEC_READER(STR_LIT("\1\1"), 1, NULL);
    assert_int_equal(codec_get_u8(&large, 255), 0);
    assert_int_equal(codec_get_end(&large), -EINVAL);
    _cleanup_arena_ struct arena none = ARENA_INIT(0);
    struct codec_reader memory = {.a = &none};
    assert_null(codec_get_array(&memory, 1, 8));
    assert_int_equal(codec_get_end(&memory), -ENOMEM);
}

/* After a failure the buffer is as it was. */
static void test_bounds(void **state) {
    (void)state;
    _cleanup_buf_ struct buf b = BUF_INIT(4096);
    assert_int_equal(buf_putz(&b, "kept"), 0);
    struct codec_writer w = CODEC_WRITER(&b);
    write_all(&w);
    assert_int_equal(codec_put_end(&w, 8), -ENOBUFS);
    assert_true(str_eqz(buf_str(&b), "kept"));
    w = CODEC_WRITER(&b);
    codec_put_count(&w, 3, 2);
    codec_put_u8(&w, 1);
    assert_int_equal(codec_put_end(&w, 4096), -ENOBUFS);
    assert_true(str_eqz(buf_str(&b), "kept"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_misfits),
        cmocka_unit_test(test_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
