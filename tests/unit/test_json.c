#include "json/json.h"

#include "base/buf.h"
#include "guard.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#define TEXT_MAX ((size_t)1 << 22)

static struct guard guard;
static struct json_doc doc;

static int parse(const char *text, size_t n, struct err *e) {
    return json_parse(&doc, guard_copy(&guard, text, n), n, e);
}

/* Parses what must be accepted and returns its root. */
static const struct json_node *accept(const char *text, size_t n) {
    _cleanup_err_ struct err e = ERR_INIT;
    int r = parse(text, n, &e);
    if (r < 0)
        fail_msg("%.100s: %s", text, err_msg(&e));
    assert_int_equal(e.code, 0);
    return json_root(&doc);
}

static const struct json_node *accept_z(const char *text) {
    return accept(text, strlen(text));
}

static void reject(const char *text, size_t n, const char *message) {
    _cleanup_err_ struct err e = ERR_INIT;
    int r = parse(text, n, &e);
    if (r == 0)
        fail_msg("accepted: %.100s", text);
    assert_int_equal(r, -EINVAL);
    assert_int_equal(e.code, ERR_INVALID_REQUEST);
    if (message != NULL)
        assert_string_equal(err_msg(&e), message);
    assert_int_equal(doc.len, 0);
}

static void scalars(void **state) {
    (void)state;
    assert_int_equal(accept_z("null")->type, JSON_NULL);
    assert_int_equal(accept_z("true")->type, JSON_TRUE);
    assert_int_equal(accept_z("false")->type, JSON_FALSE);
    assert_int_equal(accept_z(" \t\r\n0 \t\r\n")->type, JSON_NUMBER);
    assert_int_equal(accept_z("\"\"")->type, JSON_STRING);
    assert_int_equal(json_str(accept_z("\"\"")).n, 0);
    assert_int_equal(accept_z("[]")->type, JSON_ARRAY);
    assert_int_equal(accept_z("{}")->type, JSON_OBJECT);
}

static void tree(void **state) {
    (void)state;
    const struct json_node *root =
        accept_z("{ \"a\" : [ 1 , [ ] , { } ] , \"b\\n\" : { \"c\" : true } , \"\" : null }");
    assert_int_equal(root->count, 3);
    assert_int_equal(root->skip, doc.len);
    const struct json_node *a = json_get(root, "a");
    assert_int_equal(a->count, 3);
    assert_int_equal(a->skip, 4);
    assert_true(str_eqz(json_str(a + 1), "1"));
    assert_int_equal(a[2].type, JSON_ARRAY);
    assert_int_equal(a[2].count, 0);
    assert_int_equal(a[3].type, JSON_OBJECT);
    const struct json_node *b = json_get(root, "b\n");
    assert_ptr_equal(json_next(a), b - 1);
    assert_int_equal(json_get(b, "c")->type, JSON_TRUE);
    assert_int_equal(json_get(root, "")->type, JSON_NULL);
    assert_null(json_get(root, "c"));
    assert_null(json_get(b, ""));
}

static void walks(void **state) {
    (void)state;
    const struct json_node *root = accept_z("[[1,2],3,{\"x\":[4],\"y\":5,\"z\":{}},\"6\"]");
    unsigned elements = 0, members = 0;
    json_for_each(v, root) {
        elements++;
        if (v->type != JSON_OBJECT)
            continue;
        json_for_each_member(k, v) {
            assert_int_equal(k->type, JSON_STRING);
            assert_int_equal(k->n, 1);
            assert_int_equal(k->p[0], 'x' + (char)members);
            members++;
        }
    }
    assert_int_equal(elements, root->count);
    assert_int_equal(elements, 4);
    assert_int_equal(members, 3);
}

static void numbers(void **state) {
    (void)state;
    static const char *const good[] = {"0",
                                       "-0",
                                       "1",
                                       "-1",
                                       "10",
                                       "1.0",
                                       "-1.5",
                                       "0.0",
                                       "1e1",
                                       "1E+1",
                                       "1e-1",
                                       "0e0",
                                       "1e00",
                                       "1.50e9",
                                       "-0.0E-0",
                                       "1e400",
                                       "123456789012345678901"};
    static const char *const bad[] = {
        "-",   "01",  "-01", "00",       "1.",        ".5",  "+1",          "1e",
        "1e+", "1E-", "0x1", "1.e1",     "1.5.",      "--1", "1-",          "1e1.5",
        "-a",  "1a",  "NaN", "Infinity", "-Infinity", "1_0", "\xEF\xBC\x91"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        const struct json_node *v = accept_z(good[i]);
        assert_int_equal(v->type, JSON_NUMBER);
        assert_true(str_eqz(json_str(v), good[i]));
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        reject(bad[i], strlen(bad[i]), NULL);
}

static void refused_syntax(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",
        " ",
        "[",
        "]",
        "{",
        "}",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "[1 2]",
        "[1,,2]",
        "[1}",
        "{]",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":1",
        "{\"a\":1,",
        "{\"a\":1,}",
        "{,}",
        "{\"a\"}",
        "{\"a\" 1}",
        "{\"a\":,}",
        "{a:1}",
        "{1:1}",
        "{null:1}",
        "{\"a\":1 \"b\":2}",
        "{\"a\":1]",
        "[1]]",
        "{}{}",
        "1 2",
        "nul",
        "nulll",
        "True",
        "tru",
        "falsy",
        "n",
        "//x\n1",
        "/*x*/1",
        "1//x",
        "'a'",
        "\xEF\xBB\xBF{}",
        "\f1",
        "\v1",
        "\xC2\xA0[]",
        "[\"a\",\n",
        "\"",
        "\"a",
        "\"\\",
        "\"\\\"",
        "\"a\nb\"",
        "\"a\tb\"",
        "\"\\x41\"",
        "\"\\'\"",
        "\"\\U0041\"",
        "\"\\u\"",
        "\"\\u004\"",
        "\"\\u00g0\"",
        "\"\\u 041\"",
        "\"\\u+041\"",
        "\"\\u00\"",
        "\"\\u:000\"",
        "\"\\u@000\"",
        "\"\\u`000\"",
        "\"\\u004",
        "\"\\ud8",
        "\"\\ud800\\",
        "\"\\ud800\\u",
        "\"\\ud800\\udc0",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        reject(bad[i], strlen(bad[i]), NULL);
    reject("1\0", 2, NULL);
    reject("\"a\0b\"", 5, NULL);
    reject("[1\0]", 4, NULL);
}

static void reasons(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "EOF while parsing a value at line 1 column 0"},
        {" ", "EOF while parsing a value at line 1 column 1"},
        {"[1,\n2 3]", "expected `,` or `]` at line 2 column 3"},
        {"{\"a\":1\n\n x", "expected `,` or `}` at line 3 column 2"},
        {"{\"a\" 1}", "expected `:` at line 1 column 6"},
        {"{1:2}", "key must be a string at line 1 column 2"},
        {"{\"a\":x}", "expected value at line 1 column 6"},
        {"[1", "EOF while parsing a list at line 1 column 2"},
        {"{\"a\"", "EOF while parsing an object at line 1 column 4"},
        {"\"ab", "EOF while parsing a string at line 1 column 3"},
        {"\"\\ud800\"", "lone surrogate in \\u escape at line 1 column 4"},
        {"  1 x", "trailing characters at line 1 column 5"},
        {"01", "invalid number at line 1 column 2"},
        {"{\"a\":1,\"a\":2}", "duplicate JSON object key `a` at line 1 column 10"},
        {"{\"x\":{\"\\u0061\":1,\n\"a\":2}}", "duplicate JSON object key `a` at line 2 column 3"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        reject(cases[i].text, strlen(cases[i].text), cases[i].message);
}

static void escapes(void **state) {
    (void)state;
    static const struct {
        const char *text;
        struct str value;
    } cases[] = {
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", STR_LIT("\"\\/\b\f\n\r\t")},
        {"\"\\u0000\"", STR_LIT("\0")},
        {"\"\\u0041\\u00e9\\u00E9\"", STR_LIT("A\xC3\xA9\xC3\xA9")},
        {"\"\\u20ac\\uFFFF\\ud7ff\\ue000\"",
         STR_LIT("\xE2\x82\xAC\xEF\xBF\xBF\xED\x9F\xBF\xEE\x80\x80")},
        {"\"\\ud83d\\ude00\"", STR_LIT("\xF0\x9F\x98\x80")},
        {"\"\\uD800\\uDC00\\udbff\\udfff\"", STR_LIT("\xF0\x90\x80\x80\xF4\x8F\xBF\xBF")},
        {"\"\xC3\xA9\\n\xC3\xA9\x7F\"", STR_LIT("\xC3\xA9\n\xC3\xA9\x7F")},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct str v = json_str(accept_z(cases[i].text));
        assert_int_equal(v.n, cases[i].value.n);
        assert_memory_equal(v.p, cases[i].value.p, v.n);
    }
}

static void lone_surrogates(void **state) {
    (void)state;
    static const char *const bad[] = {
        "\"\\ud800\"",        "\"\\udc00\"",        "\"\\ud800x\"",       "\"\\ud800\\n\"",
        "\"\\ud800\\u0041\"", "\"\\ud800\\ud800\"", "\"\\udc00\\ud800\"", "\"\\udfff\"",
        "\"\\ud800\\ue000\"", "{\"\\ud800\":1}",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        reject(bad[i], strlen(bad[i]), NULL);
}

/* Every byte below 0x20 ends a string with an error, no other byte does, at any offset. */
static void special_bytes_at_every_offset(void **state) {
    (void)state;
    char text[180];
    for (size_t len = 0; len + 2 <= sizeof text; len += len < 40 ? 1 : 7) {
        memset(text, 'x', sizeof text);
        text[0] = text[len + 1] = '"';
        assert_int_equal(accept(text, len + 2)->n, len);
        for (size_t at = 1; at <= len; at++) {
            static const char special[] = {0, 1, 0x1F, '\n', '"', '\\'};
            for (size_t i = 0; i < sizeof special; i++) {
                text[at] = special[i];
                reject(text, len + 2, NULL);
            }
            static const char plain[] = {0x20, '!', '#', '[', ']', 0x7F};
            for (size_t i = 0; i < sizeof plain; i++) {
                text[at] = plain[i];
                assert_memory_equal(accept(text, len + 2)->p, text + 1, len);
            }
            text[at] = 'x';
        }
    }
}

/* Escapes at every place of a long string, decoded into the arena. */
static void escapes_at_every_offset(void **state) {
    (void)state;
    char text[200], want[200];
    for (size_t len = 2; len <= 150; len += len < 40 ? 1 : 11) {
        for (size_t at = 0; at + 2 <= len; at++) {
            memset(text, 'x', sizeof text);
            memset(want, 'x', sizeof want);
            text[0] = text[len + 1] = '"';
            text[1 + at] = '\\';
            text[2 + at] = want[at] = '"';
            const struct json_node *v = accept(text, len + 2);
            assert_int_equal(v->n, len - 1);
            assert_memory_equal(v->p, want, len - 1);
        }
    }
}

/* Texts whose every string has to be decoded still fit the arena made for their length. */
static void arena_suffices(void **state) {
    (void)state;
    static const size_t lengths[] = {2, 3, 15, 100, 1023, 4090, 4094, 4097, 8190, 100000, 1000000};
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        _cleanup_buf_ struct buf b = BUF_INIT(TEXT_MAX);
        assert_int_equal(buf_putz(&b, "[0"), 0);
        for (size_t values = 0; values + 2 < JSON_MAX_VALUES; values++) {
            if (b.len + lengths[i] + 4 > TEXT_MAX)
                break;
            assert_int_equal(buf_putf(&b, ",\"\\n%0*d\"", (int)lengths[i] - 2 + 1, 7), 0);
        }
        assert_int_equal(buf_putc(&b, ']'), 0);
        struct json_doc d;
        json_doc_init(&d, b.len, 1);
        _cleanup_err_ struct err e = ERR_INIT;
        assert_int_equal(json_parse(&d, b.p, b.len, &e), 0);
        json_for_each(v, json_root(&d)) {
            if (v->type == JSON_STRING)
                assert_true(v->n == lengths[i] && v->p[0] == '\n' && v->p[v->n - 1] == '7');
        }
        json_doc_fini(&d);
    }
}

/* An arena bounded too tightly gives -ENOMEM, not a crash. */
static void arena_exhausted(void **state) {
    (void)state;
    _cleanup_buf_ struct buf b = BUF_INIT(TEXT_MAX);
    assert_int_equal(buf_putf(&b, "\"\\n%*d\"", 1000000, 7), 0);
    struct json_doc d;
    json_doc_init(&d, 1000, 1);
    _cleanup_err_ struct err e = ERR_INIT;
    assert_int_equal(json_parse(&d, b.p, b.len, &e), -ENOMEM);
    assert_int_equal(json_parse(&d, "[\"\\n\"]", 6, &e), 0);
    json_doc_fini(&d);
}

static void repeat(struct buf *b, const char *z, size_t times) {
    for (size_t i = 0; i < times; i++)
        assert_int_equal(buf_putz(b, z), 0);
}

static void depth_limit(void **state) {
    (void)state;
    for (size_t depth = JSON_MAX_DEPTH - 1; depth <= JSON_MAX_DEPTH + 1; depth++) {
        _cleanup_buf_ struct buf arrays = BUF_INIT(TEXT_MAX), objects = BUF_INIT(TEXT_MAX);
        repeat(&arrays, "[", depth);
        repeat(&arrays, "]", depth);
        repeat(&objects, "{\"a\":", depth - 1);
        repeat(&objects, "{", 1);
        repeat(&objects, "}", depth);
        if (depth <= JSON_MAX_DEPTH) {
            accept(arrays.p, arrays.len);
            assert_int_equal(doc.len, depth);
            accept(objects.p, objects.len);
            assert_int_equal(doc.len, 2 * depth - 1);
        } else {
            reject(arrays.p, arrays.len, "recursion limit exceeded at line 1 column 128");
            reject(objects.p, objects.len, NULL);
        }
    }
    /* Depth, not the number of containers. */
    _cleanup_buf_ struct buf b = BUF_INIT(TEXT_MAX);
    repeat(&b, "[[]", 1);
    repeat(&b, ",[]", 1000);
    repeat(&b, "]", 1);
    assert_int_equal(accept(b.p, b.len)->count, 1001);
}

static void value_limit(void **state) {
    (void)state;
    _cleanup_buf_ struct buf b = BUF_INIT(TEXT_MAX);
    repeat(&b, "[1", 1);
    repeat(&b, ",1", JSON_MAX_VALUES - 2);
    repeat(&b, "]", 1);
    assert_int_equal(accept(b.p, b.len)->count, JSON_MAX_VALUES - 1);
    b.len--;
    repeat(&b, ",1]", 1);
    reject(b.p, b.len,
           "JSON-RPC message exceeds the limit of 262144 JSON values at line 1 column 524288");
}

/* Keys do not count; as many members as values are allowed fit, and none may repeat. */
static void large_object(void **state) {
    (void)state;
    _cleanup_buf_ struct buf b = BUF_INIT(TEXT_MAX);
    repeat(&b, "{", 1);
    for (unsigned i = 0; i < JSON_MAX_VALUES - 1; i++)
        assert_int_equal(buf_putf(&b, "%s\"%x\":1", i > 0 ? "," : "", i), 0);
    repeat(&b, "}", 1);
    assert_int_equal(accept(b.p, b.len)->count, JSON_MAX_VALUES - 1);
    assert_int_equal(doc.len, 2 * (JSON_MAX_VALUES - 1) + 1);
    memcpy(b.p + 1, "\"1\"", 3); /* was "0"; "1" follows */
    reject(b.p, b.len, "duplicate JSON object key `1` at line 1 column 10");
}

/* The first and the last key equal, for sizes around where the search changes its method. */
static void duplicate_keys_of_any_count(void **state) {
    (void)state;
    for (unsigned count = 1; count <= 70; count++) {
        for (unsigned dup = 0; dup <= count; dup++) {
            _cleanup_buf_ struct buf b = BUF_INIT(TEXT_MAX);
            repeat(&b, "[{", 1);
            for (unsigned i = 0; i < count; i++)
                assert_int_equal(buf_putf(&b, "\"key%u\":{\"a\":[1,{}],\"b\":2},", i), 0);
            assert_int_equal(buf_putf(&b, "\"key%u\":1}]", dup), 0);
            if (dup < count)
                reject(b.p, b.len, NULL);
            else
                assert_int_equal(accept(b.p, b.len)[1].count, count + 1);
        }
    }
}

static void duplicates_compare_decoded(void **state) {
    (void)state;
    reject("{\"a\\u0000b\":1,\"a\\u0000b\":2}", 28, NULL);
    reject("{\"\":1,\"\":2}", 11, NULL);
    reject("{\"\\/\":1,\"/\":2}", 14, NULL);
    reject("{\"\\ud83d\\ude00\":1,\"\xF0\x9F\x98\x80\":2}", 27, NULL);
    assert_int_equal(accept_z("{\"a\":1,\"A\":2,\"a\\u0000\":3,\"\":4}")->count, 4);
    assert_int_equal(accept_z("[{\"a\":1},{\"a\":{\"a\":1}}]")->count, 2);
}

static void integers(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int ru, ri;
        uint64_t u;
        int64_t i;
    } cases[] = {
        {"0", 0, 0, 0, 0},
        {"-0", 0, 0, 0, 0},
        {"42", 0, 0, 42, 42},
        {"-42", -ERANGE, 0, 0, -42},
        {"9223372036854775807", 0, 0, INT64_MAX, INT64_MAX},
        {"9223372036854775808", 0, -ERANGE, (uint64_t)INT64_MAX + 1, 0},
        {"-9223372036854775808", -ERANGE, 0, 0, INT64_MIN},
        {"-9223372036854775809", -ERANGE, -ERANGE, 0, 0},
        {"18446744073709551615", 0, -ERANGE, UINT64_MAX, 0},
        {"18446744073709551616", -ERANGE, -ERANGE, 0, 0},
        {"99999999999999999999999999999999999999999", -ERANGE, -ERANGE, 0, 0},
        {"36893488147419103232", -ERANGE, -ERANGE, 0, 0},
        {"1.0", -EINVAL, -EINVAL, 0, 0},
        {"1e3", -EINVAL, -EINVAL, 0, 0},
        {"99999999999999999999999999999.5", -EINVAL, -EINVAL, 0, 0},
        {"true", -EINVAL, -EINVAL, 0, 0},
        {"\"1\"", -EINVAL, -EINVAL, 0, 0},
    };
    for (size_t k = 0; k < ARRAY_LEN(cases); k++) {
        const struct json_node *v = accept_z(cases[k].text);
        uint64_t u = 0;
        int64_t i = 0;
        assert_int_equal(json_u64(v, &u), cases[k].ru);
        assert_int_equal(json_i64(v, &i), cases[k].ri);
        assert_true(u == cases[k].u && i == cases[k].i);
    }
}

/* The memory is kept between parses and given back by a trim. */
static void reuse_and_trim(void **state) {
    (void)state;
    _cleanup_buf_ struct buf b = BUF_INIT(TEXT_MAX);
    repeat(&b, "[\"\\n\"", 1);
    repeat(&b, ",\"\\n\"", 10000);
    repeat(&b, "]", 1);
    accept(b.p, b.len);
    size_t cap = doc.cap;
    assert_true(cap > 10000);
    accept_z("[1]");
    assert_int_equal(doc.cap, cap);
    accept(b.p, b.len);
    json_doc_trim(&doc);
    assert_true(doc.cap < 10000);
    assert_true(doc.arena.total < 10000);
    assert_int_equal(accept_z("[1,\"\\n\"]")->count, 2);
    json_doc_trim(&doc);
    json_doc_trim(&doc);
    assert_int_equal(accept_z("[1,2]")->count, 2);
}

int main(void) {
    guard = guard_new(TEXT_MAX);
    json_doc_init(&doc, TEXT_MAX, 0x0123456789ABCDEF);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalars),
        cmocka_unit_test(tree),
        cmocka_unit_test(walks),
        cmocka_unit_test(numbers),
        cmocka_unit_test(refused_syntax),
        cmocka_unit_test(reasons),
        cmocka_unit_test(escapes),
        cmocka_unit_test(lone_surrogates),
        cmocka_unit_test(special_bytes_at_every_offset),
        cmocka_unit_test(escapes_at_every_offset),
        cmocka_unit_test(arena_suffices),
        cmocka_unit_test(arena_exhausted),
        cmocka_unit_test(depth_limit),
        cmocka_unit_test(value_limit),
        cmocka_unit_test(large_object),
        cmocka_unit_test(duplicate_keys_of_any_count),
        cmocka_unit_test(duplicates_compare_decoded),
        cmocka_unit_test(integers),
        cmocka_unit_test(reuse_and_trim),
    };
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    json_doc_fini(&doc);
    guard_free(&guard);
    return r;
}
