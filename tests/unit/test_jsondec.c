#include "json/jsondec.h"

#include "base/utf8.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

struct inner {
    struct str name;
    bool has_level;
    uint64_t level;
};

struct outer {
    struct str id;
    bool flag;
    uint64_t big, size;
    uint16_t port;
    const struct json_node *any, *seq, *strs, *map, *strmap;
    struct inner inner;
    bool has_big, has_any, has_inner;
};

static const struct jsondec_field inner_fields[] = {
    {"name", JSONDEC_STR, JSONDEC_REQUIRED, offsetof(struct inner, name), JSONDEC_NO_PRESENT, NULL,
     NULL, NULL},
    {"level", JSONDEC_U64, 0, offsetof(struct inner, level), offsetof(struct inner, has_level),
     NULL, "a level", NULL},
};
static const struct jsondec_struct inner_struct = {"Inner", inner_fields, ARRAY_LEN(inner_fields)};

#define FIELD(kind, flags, member)                                                                 \
    { #member, kind, flags, offsetof(struct outer, member), JSONDEC_NO_PRESENT, NULL, NULL, NULL }

static const struct jsondec_field outer_fields[] = {
    FIELD(JSONDEC_STR, JSONDEC_REQUIRED, id),
    FIELD(JSONDEC_BOOL, JSONDEC_REQUIRED, flag),
    {"big", JSONDEC_U64, JSONDEC_NULLABLE, offsetof(struct outer, big),
     offsetof(struct outer, has_big), NULL, NULL, NULL},
    FIELD(JSONDEC_USIZE, 0, size),
    FIELD(JSONDEC_U16, 0, port),
    {"any", JSONDEC_NODE, 0, offsetof(struct outer, any), offsetof(struct outer, has_any), NULL,
     NULL, NULL},
    FIELD(JSONDEC_SEQ, 0, seq),
    FIELD(JSONDEC_STRS, 0, strs),
    FIELD(JSONDEC_MAP, JSONDEC_NULLABLE, map),
    FIELD(JSONDEC_STRMAP, 0, strmap),
    {"inner", JSONDEC_STRUCT, JSONDEC_NULLABLE, offsetof(struct outer, inner),
     offsetof(struct outer, has_inner), &inner_struct, NULL, NULL},
};
static const struct jsondec_struct outer_struct = {"Outer", outer_fields, ARRAY_LEN(outer_fields)};

static struct json_doc doc;

static const struct json_node *parse(const char *text) {
    _cleanup_err_ struct err e = ERR_INIT;
    if (json_parse(&doc, text, strlen(text), &e) < 0)
        fail_msg("%s: %s", text, err_msg(&e));
    return json_root(&doc);
}

static struct outer decoded(const char *text) {
    struct outer o = {.size = 77};
    _cleanup_err_ struct err e = ERR_INIT;
    if (jsondec(&outer_struct, parse(text), &o, &e) < 0)
        fail_msg("%s: %s", text, err_msg(&e));
    assert_int_equal(e.code, 0);
    return o;
}

static void refused(const char *text, const char *message) {
    struct outer o = {0};
    _cleanup_err_ struct err e = ERR_INIT;
    assert_int_equal(jsondec(&outer_struct, parse(text), &o, &e), -EINVAL);
    assert_int_equal(e.code, ERR_INVALID_PARAMS);
    assert_string_equal(err_msg(&e), message);
}

static void least(void **state) {
    (void)state;
    struct outer o = decoded("{\"flag\":true,\"id\":\"x\\n\"}");
    assert_true(str_eqz(o.id, "x\n"));
    assert_true(o.flag);
    assert_int_equal(o.size, 77);
    assert_false(o.has_big || o.has_any || o.has_inner);
    assert_null(o.map);
}

static void everything(void **state) {
    (void)state;
    struct outer o = decoded(
        "{\"id\":\"\",\"flag\":false,\"big\":18446744073709551615,\"size\":-0,\"port\":65535,"
        "\"any\":null,\"seq\":[1,[]],\"strs\":[\"a\",\"b\"],\"map\":{\"k\":1},"
        "\"strmap\":{\"k\":\"v\"},\"inner\":{\"x\":[],\"level\":9,\"name\":\"n\"},\"Id\":5}");
    assert_int_equal(o.id.n, 0);
    assert_true(o.has_big && o.big == UINT64_MAX);
    assert_int_equal(o.size, 0);
    assert_int_equal(o.port, 65535);
    assert_true(o.has_any);
    assert_int_equal(o.any->type, JSON_NULL);
    assert_int_equal(o.seq->count, 2);
    assert_int_equal(o.strs->count, 2);
    assert_int_equal(json_get(o.map, "k")->type, JSON_NUMBER);
    assert_true(str_eqz(json_str(json_get(o.strmap, "k")), "v"));
    assert_true(o.has_inner && o.inner.has_level);
    assert_true(str_eqz(o.inner.name, "n") && o.inner.level == 9);
}

static void null_where_allowed(void **state) {
    (void)state;
    struct outer o =
        decoded("{\"id\":\"i\",\"flag\":true,\"big\":null,\"map\":null,\"inner\":null}");
    assert_false(o.has_big || o.has_inner);
    assert_null(o.map);
    refused("{\"id\":null}", "invalid type: null, expected a string");
    refused("{\"flag\":null}", "invalid type: null, expected a boolean");
    refused("{\"size\":null}", "invalid type: null, expected usize");
    refused("{\"seq\":null}", "invalid type: null, expected a sequence");
    refused("{\"strmap\":null}", "invalid type: null, expected a map");
}

static void wrong_types(void **state) {
    (void)state;
    refused("{\"id\":1}", "invalid type: number, expected a string");
    refused("{\"id\":false}", "invalid type: boolean `false`, expected a string");
    refused("{\"id\":{}}", "invalid type: map, expected a string");
    refused("{\"id\":[\"x\"]}", "invalid type: sequence, expected a string");
    refused("{\"flag\":\"yes\"}", "invalid type: string \"yes\", expected a boolean");
    refused("{\"flag\":1}", "invalid type: number, expected a boolean");
    refused("{\"big\":\"0\"}", "invalid type: string \"0\", expected u64");
    refused("{\"big\":true}", "invalid type: boolean `true`, expected u64");
    refused("{\"size\":{}}", "invalid type: map, expected usize");
    refused("{\"port\":[]}", "invalid type: sequence, expected u16");
    refused("{\"seq\":{}}", "invalid type: map, expected a sequence");
    refused("{\"strs\":\"x\"}", "invalid type: string \"x\", expected a sequence");
    refused("{\"strs\":[\"a\",1]}", "invalid type: number, expected a string");
    refused("{\"strs\":[[\"a\"]]}", "invalid type: sequence, expected a string");
    refused("{\"map\":[]}", "invalid type: sequence, expected a map");
    refused("{\"strmap\":{\"a\":\"b\",\"c\":null}}", "invalid type: null, expected a string");
    refused("{\"strmap\":{\"a\":{\"b\":\"c\"}}}", "invalid type: map, expected a string");
    refused("{\"inner\":1}", "invalid type: number, expected struct Inner");
    refused("{\"inner\":{\"level\":\"x\"}}", "invalid type: string \"x\", expected a level");
}

static void numbers_out_of_range(void **state) {
    (void)state;
    static const char *const bad[] = {
        "{\"big\":-1}",   "{\"big\":1.0}",    "{\"big\":1e3}",
        "{\"size\":1.5}", "{\"port\":65536}", "{\"big\":18446744073709551616}",
        "{\"port\":-1}",  "{\"big\":1e400}",  "{\"inner\":{\"level\":-5}}",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        refused(bad[i], "invalid number");
}

/* The first misfit in document order wins over missing fields; those come in table order. */
static void order_of_errors(void **state) {
    (void)state;
    refused("{}", "missing field `id`");
    refused("{\"id\":\"x\"}", "missing field `flag`");
    refused("{\"flag\":true}", "missing field `id`");
    refused("{\"size\":\"a\",\"big\":\"b\"}", "invalid type: string \"a\", expected usize");
    refused("{\"big\":\"b\",\"size\":\"a\"}", "invalid type: string \"b\", expected u64");
    refused("{\"inner\":{},\"id\":1}", "missing field `name`");
}

/* Names must match whole, case and all. */
static void similar_names(void **state) {
    (void)state;
    refused("{\"i\":\"a\",\"idx\":\"a\",\"ID\":\"a\",\"id\\u0000\":\"a\",\"\":\"a\",\"flag\":true}",
            "missing field `id`");
}

static void not_an_object(void **state) {
    (void)state;
    refused("null", "invalid type: null, expected struct Outer");
    refused("[]", "invalid type: sequence, expected struct Outer");
    refused("\"x\"", "invalid type: string \"x\", expected struct Outer");
    refused("true", "invalid type: boolean `true`, expected struct Outer");
    struct outer o = {0};
    _cleanup_err_ struct err e = ERR_INIT;
    assert_int_equal(jsondec(&outer_struct, NULL, &o, &e), -EINVAL);
    assert_string_equal(err_msg(&e), "invalid type: null, expected struct Outer");
}

/* As the reference prints them. */
static void quoted_strings(void **state) {
    (void)state;
    refused("{\"big\":\"x\\\"y\\\\c\\nd\\te\\u0001\\u007f\\u00e9\\u200b\\u0301\\ud83d\\ude00'"
            "\\u0000\\r\\u001b\\ufeff\\u00a0\\u00ad\\ue000\\u0085\"}",
            "invalid type: string \"x\\\"y\\\\c\\nd\\te\\u{1}\\u{7f}\xC3\xA9\\u{200b}\\u{301}"
            "\xF0\x9F\x98\x80'\\0\\r\\u{1b}\\u{feff}\\u{a0}\\u{ad}\\u{e000}\\u{85}\", "
            "expected u64");
    refused("{\"big\":\"\\u2029\\u3000\\ufffd\\uffff\\udbff\\udfff\\u4e2d\"}",
            "invalid type: string \"\\u{2029}\\u{3000}\xEF\xBF\xBD\\u{ffff}\\u{10ffff}"
            "\xE4\xB8\xAD\", expected u64");
}

/* A string of any size gives a bounded, valid message that still says what was expected. */
static void long_strings(void **state) {
    (void)state;
    static const char *const units[] = {
        "x", "\\n", "\\u0001", "\xC3\xA9", "\xF0\x9F\x98\x80", "\\udbff\\udfff"};
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        static char text[200000];
        size_t n = (size_t)sprintf(text, "{\"big\":\"");
        for (int k = 0; k < 12000; k++)
            n += (size_t)sprintf(text + n, "%s", units[i]);
        sprintf(text + n, "\"}");
        struct outer o = {0};
        _cleanup_err_ struct err e = ERR_INIT;
        assert_int_equal(jsondec(&outer_struct, parse(text), &o, &e), -EINVAL);
        const char *msg = err_msg(&e), tail[] = "...\", expected u64";
        assert_true(strlen(msg) <= ERR_MSG_MAX && strlen(msg) > ERR_MSG_MAX / 2);
        assert_true(utf8_valid(msg, strlen(msg)));
        assert_string_equal(msg + strlen(msg) - strlen(tail), tail);
        static const char *const variants[] = {"a"};
        assert_int_equal(jsondec_variant(parse(text) + 2, variants, 1, &e), -EINVAL);
        assert_true(utf8_valid(err_msg(&e), strlen(err_msg(&e))));
        assert_non_null(strstr(err_msg(&e), "`, expected `a`"));
    }
}

static void unit(void **state) {
    (void)state;
    _cleanup_err_ struct err e = ERR_INIT;
    assert_int_equal(jsondec_unit(NULL, &e), 0);
    assert_int_equal(jsondec_unit(parse("null"), &e), 0);
    assert_int_equal(jsondec_unit(parse("{}"), &e), 0);
    assert_int_equal(e.code, 0);
    static const char *const bad[][2] = {
        {"{\"a\":1}", "invalid type: map, expected unit"},
        {"[]", "invalid type: sequence, expected unit"},
        {"1", "invalid type: number, expected unit"},
        {"\"\"", "invalid type: string \"\", expected unit"},
        {"false", "invalid type: boolean `false`, expected unit"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(jsondec_unit(parse(bad[i][0]), &e), -EINVAL);
        assert_int_equal(e.code, ERR_INVALID_PARAMS);
        assert_string_equal(err_msg(&e), bad[i][1]);
    }
}

static void variants(void **state) {
    (void)state;
    static const char *const names[] = {"core", "all", "none"};
    static const struct {
        const char *text;
        size_t count;
        int want;
        const char *message;
    } cases[] = {
        {"\"core\"", 3, 0, ""},
        {"\"none\"", 3, 2, ""},
        {"\"none\"", 2, -EINVAL, "unknown variant `none`, expected `core` or `all`"},
        {"\"none\"", 1, -EINVAL, "unknown variant `none`, expected `core`"},
        {"\"x`\\n\"", 3, -EINVAL, "unknown variant `x`\n`, expected one of `core`, `all`, `none`"},
        {"\"\"", 1, -EINVAL, "unknown variant ``, expected `core`"},
        {"1", 3, -EINVAL, "invalid type: number, expected string or map"},
        {"null", 3, -EINVAL, "invalid type: null, expected string or map"},
        {"[\"core\"]", 3, -EINVAL, "invalid type: sequence, expected string or map"},
        {"{}", 3, -EINVAL, "invalid value: map, expected map with a single key"},
        {"{\"a\":1,\"b\":2}", 3, -EINVAL, "invalid value: map, expected map with a single key"},
        {"{\"bogus\":null}", 1, -EINVAL, "unknown variant `bogus`, expected `core`"},
        {"{\"core\":null}", 3, -EINVAL, "invalid type: map, expected a string"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        _cleanup_err_ struct err e = ERR_INIT;
        int r = jsondec_variant(parse(cases[i].text), names, cases[i].count, &e);
        assert_int_equal(r, cases[i].want);
        assert_int_equal(e.code, r < 0 ? ERR_INVALID_PARAMS : 0);
        if (r < 0)
            assert_string_equal(err_msg(&e), cases[i].message);
    }
}

/* -- checks of the owner -- */

static int no_slash(const struct json_node *v, struct err *e) {
    if (memchr(v->p, '/', v->n) == NULL)
        return 0;
    return err_about(e, ERR_INVALID_PARAMS, "slash in ", json_str(v), "");
}

struct checked {
    struct str path, name;
    bool flag;
    struct checked_part {
        struct str path;
    } part;
};

static const struct jsondec_field part_fields[] = {
    {.name = "path", .kind = JSONDEC_STR, .present = JSONDEC_NO_PRESENT, .check = no_slash}};
static const struct jsondec_struct part_struct = {"Part", part_fields, 1};
static const struct jsondec_field checked_fields[] = {
    {.name = "path",
     .kind = JSONDEC_STR,
     .flags = JSONDEC_NULLABLE,
     .offset = offsetof(struct checked, path),
     .present = JSONDEC_NO_PRESENT,
     .check = no_slash},
    {.name = "name",
     .kind = JSONDEC_STR,
     .flags = JSONDEC_REQUIRED,
     .offset = offsetof(struct checked, name),
     .present = JSONDEC_NO_PRESENT},
    {.name = "flag",
     .kind = JSONDEC_BOOL,
     .offset = offsetof(struct checked, flag),
     .present = JSONDEC_NO_PRESENT},
    {.name = "part",
     .kind = JSONDEC_STRUCT,
     .offset = offsetof(struct checked, part),
     .present = JSONDEC_NO_PRESENT,
     .sub = &part_struct},
};
static const struct jsondec_struct checked_struct = {"Checked", checked_fields, 4};

/* The first fault in the text is the error, in whatever order they are found; a missing field
 * comes last. */
static void first_fault_is_reported(void **state) {
    static const struct {
        const char *text, *error;
    } rows[] = {
        {"{\"name\":\"n\",\"path\":\"a/b\"}", NULL}, /* the owner checks that itself */
        {"{\"path\":\"a/b\"}", "slash in a/b"},
        {"{\"path\":\"ab\"}", "missing field `name`"},
        {"{\"path\":null}", "missing field `name`"},
        {"{\"path\":\"a/b\",\"flag\":5}", "slash in a/b"},
        {"{\"flag\":5,\"path\":\"a/b\"}", "invalid type: number, expected a boolean"},
        {"{\"part\":{\"path\":\"c/d\"}}", "slash in c/d"},
        {"{\"part\":{\"path\":\"c/d\"},\"path\":\"a/b\"}", "slash in c/d"},
        {"{\"path\":\"a\\u0000/\"}", "slash in a"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        _cleanup_err_ struct err e = ERR_INIT;
        struct checked out = {0};
        int r = jsondec(&checked_struct, parse(rows[i].text), &out, &e);
        assert_int_equal(r, rows[i].error ? -EINVAL : 0);
        if (rows[i].error != NULL)
            assert_string_equal(err_msg(&e), rows[i].error);
    }
}

int main(void) {
    json_doc_init(&doc, 1 << 20, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(least),
        cmocka_unit_test(everything),
        cmocka_unit_test(null_where_allowed),
        cmocka_unit_test(wrong_types),
        cmocka_unit_test(numbers_out_of_range),
        cmocka_unit_test(order_of_errors),
        cmocka_unit_test(similar_names),
        cmocka_unit_test(not_an_object),
        cmocka_unit_test(quoted_strings),
        cmocka_unit_test(long_strings),
        cmocka_unit_test(unit),
        cmocka_unit_test(variants),
        cmocka_unit_test(first_fault_is_reported),
    };
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    json_doc_fini(&doc);
    return r;
}
