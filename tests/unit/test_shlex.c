#include "rules/shlex.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

/* Words are shown with a bar between them; NULL: an error. */
static const struct {
    const char *text, *words, *joined;
} cases[] = {
    {"a b", "a|b", "a b"},
    {"  a\t\nb ", "a|b", "a b"},
    {"a 'b c' \"d e\"", "a|b c|d e", "a 'b c' 'd e'"},
    {"a\\ b", "a b", "'a b'"},
    {"'' \"\"", "|", "'' ''"},
    {"\"it's\"", "it's", "\"it's\""},
    {"\"a\\\"b\\$c\\d\"", "a\"b$c\\d", "'a\"b$c\\d'"},
    {"a #b", "a", "a"},
    {"a#b", "a#b", "'a#b'"},
    {"#x\ny", "y", "y"},
    {"a $HOME && b", "a|$HOME|&&|b", "a '$HOME' '&&' b"},
    {"a\\\nb", "ab", "ab"},
    {"'a$'\"'\"", "a$'", "'a$'\"'\""},
    {"", "", ""},
    {"'a", NULL, NULL},
    {"\"a", NULL, NULL},
    {"a\\", NULL, NULL},
};

static void split_and_join(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        _cleanup_arena_ struct arena a = ARENA_INIT(1u << 20);
        _cleanup_buf_ struct buf shown = BUF_INIT(4096), joined = BUF_INIT(4096);
        struct shlex_words words, again;
        int r = shlex_split(str_of(cases[i].text), &a, &words);
        assert_int_equal(r, cases[i].words == NULL ? -EINVAL : 0);
        if (r < 0)
            continue;
        for (size_t k = 0; k < words.n; k++) {
            assert_int_equal(k > 0 ? buf_putc(&shown, '|') : 0, 0);
            assert_int_equal(buf_put(&shown, words.list[k].p, words.list[k].n), 0);
        }
        assert_true(str_eqz(buf_str(&shown), cases[i].words));
        assert_int_equal(shlex_join(&joined, words.list, words.n), 0);
        assert_true(str_eqz(buf_str(&joined), cases[i].joined));
        assert_int_equal(shlex_split(buf_str(&joined), &a, &again), 0);
        assert_int_equal(again.n, words.n);
        for (size_t k = 0; k < words.n; k++)
            assert_true(str_eq(words.list[k], again.list[k]));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(split_and_join)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
