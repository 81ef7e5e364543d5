#include "client/partnote.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct partnote example(void) {
    struct partnote n = {.bytes = 5000000000, .modified_ns = -1500000000};
    partnote_source(STR_LIT("file:///a"), n.source);
    partnote_token(n.token);
    return n;
}

static void round_trip(void **state) {
    (void)state;
    struct partnote n = example(), got;
    for (int i = 0; i < 3; i++) {
        n.has_older = i > 0;
        if (i == 1)
            partnote_token(n.older);
        if (i == 2)
            n.older[0] = '\0';
        _cleanup_buf_ struct buf b = BUF_INIT(PARTNOTE_TEXT_MAX);
        assert_int_equal(partnote_write(&b, &n), 0);
        assert_int_equal(partnote_read(&got, buf_str(&b)), 0);
        assert_true(partnote_matches(&got, &n));
        assert_string_equal(got.token, n.token);
        assert_int_equal(got.has_older, n.has_older);
        assert_string_equal(got.older, n.has_older ? n.older : "");
    }
}

static void matches(void **state) {
    (void)state;
    struct partnote n = example(), other = n;
    partnote_token(other.token);
    assert_true(partnote_matches(&n, &other));
    other.bytes++;
    assert_false(partnote_matches(&n, &other));
    other = n;
    other.modified_ns++;
    assert_false(partnote_matches(&n, &other));
    other = n;
    partnote_source(STR_LIT("file:///b"), other.source);
    assert_false(partnote_matches(&n, &other));
}

#define S64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define NOTE(version, source, size, time, tokens)                                                  \
    "{\"version\":" version ",\"source\":\"" source "\",\"size\":" size ",\"modifiedNs\":" time    \
    ",\"tokens\":" tokens "}"

static void refusals(void **state) {
    (void)state;
    struct partnote got;
    assert_int_equal(partnote_read(&got, str_of(NOTE("1", S64, "1", "2", "[\"\"]"))), 0);
    static const char *const bad[] = {
        "",
        "{}",
        "[]",
        "null",
        "\xff",
        NOTE("2", S64, "1", "2", "[\"\"]"),
        NOTE("1", S64 "0", "1", "2", "[\"\"]"),
        NOTE("1", "", "1", "2", "[\"\"]"),
        NOTE("1", S64, "-1", "2", "[\"\"]"),
        NOTE("1", S64, "1.5", "2", "[\"\"]"),
        NOTE("1", S64, "1", "\"2\"", "[\"\"]"),
        NOTE("1", S64, "1", "2", "\"\""),
        NOTE("1", S64, "1", "2", "[]"),
        NOTE("1", S64, "1", "2", "[\"\",\"\",\"\"]"),
        NOTE("1", S64, "1", "2", "[\"../../etc/pass\"]"),
        NOTE("1", S64, "1", "2", "[\"0123456789abcdeF\"]"),
        NOTE("1", S64, "1", "2", "[\"0123456789abcdef0\"]"),
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(partnote_read(&got, str_of(bad[i])), -EINVAL);
    char large[PARTNOTE_TEXT_MAX + 2];
    memset(large, ' ', sizeof(large));
    assert_int_equal(partnote_read(&got, (struct str){large, sizeof(large)}), -EINVAL);
}

static void names(void **state) {
    (void)state;
    char part[PARTNOTE_NAME_MAX + 1], other[PARTNOTE_NAME_MAX + 1];
    partnote_part_name(STR_LIT("a"), "", part);
    assert_string_equal(part, ".a.xs-part");
    partnote_part_name(STR_LIT("a"), "0123456789abcdef", part);
    assert_string_equal(part, ".a.xs-part-0123456789abcdef");
    partnote_note_name(STR_LIT("a"), part);
    assert_string_equal(part, ".a.xs-part.json");
    char name[PARTNOTE_NAME_MAX + 1];
    for (size_t n = 1; n <= PARTNOTE_NAME_MAX; n++) {
        memset(name, 'x', n);
        name[n] = '\0';
        partnote_part_name((struct str){name, n}, "0123456789abcdef", part);
        assert_true(strlen(part) <= PARTNOTE_NAME_MAX);
        char token[PARTNOTE_TOKEN_LEN + 1];
        assert_true(partnote_part_token((struct str){name, n}, part, token));
        assert_string_equal(token, "0123456789abcdef");
        name[n - 1] = 'y';
        partnote_part_name((struct str){name, n}, "0123456789abcdef", other);
        assert_string_not_equal(part, other);
    }
    static const char *const strangers[] = {
        "",
        "a",
        ".a.xs-part",
        ".a.xs-part.json",
        ".a.xs-part-0123456789abcde",
        ".a.xs-part-0123456789abcdeF",
        ".a.xs-part-0123456789abcdef0",
        ".b.xs-part-0123456789abcdef",
        "a.xs-part-0123456789abcdef",
        "0123456789abcdef",
    };
    for (size_t i = 0; i < ARRAY_LEN(strangers); i++) {
        char token[PARTNOTE_TOKEN_LEN + 1];
        assert_false(partnote_part_token(STR_LIT("a"), strangers[i], token));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(matches),
        cmocka_unit_test(refusals),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
