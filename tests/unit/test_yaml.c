/* YAML: trees, limits, and the types of values. */
#include "yaml/yaml.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static struct arena arena = ARENA_INIT(YAML_ARENA_MAX);

static const struct yaml_node *parsed(const char *text) {
    const struct yaml_node *root;
    arena_fini(&arena);
    arena = ARENA_INIT(YAML_ARENA_MAX);
    assert_int_equal(yaml_parse(&arena, str_of(text), &root), 0);
    return root;
}

static void refused(const char *text) {
    const struct yaml_node *root;
    arena_fini(&arena);
    arena = ARENA_INIT(YAML_ARENA_MAX);
    assert_int_equal(yaml_parse(&arena, str_of(text), &root), -EINVAL);
    assert_null(root);
}

static const struct yaml_node *value(const char *text) {
    const struct yaml_node *v;
    assert_int_equal(yaml_get(parsed(text), "k", &v), 0);
    return v;
}

static void documents(void **state) {
    (void)state;
    assert_null(parsed(""));
    assert_null(parsed("# nothing\n"));
    assert_int_equal(parsed("a")->type, YAML_SCALAR);
    assert_int_equal(parsed("[a]")->type, YAML_SEQUENCE);
    assert_int_equal(parsed("a: b\n...\n")->type, YAML_MAPPING);
    refused("a: b\n---\nc: d\n");
    refused("a: [");
    refused("a: *b");
    refused("\xff");
    refused("a\x01");
}

static void texts(void **state) {
    (void)state;
    static const struct {
        const char *in, *out; /* NULL: no value */
    } cases[] = {{"k: a", "a"},          {"k: 'a b'", "a b"}, {"k: 5", "5"},  {"k: \"\\x41\"", "A"},
                 {"k: |\n a\n", "a\n"},  {"k: !t a", "a"},    {"k: ~", NULL}, {"k: null", NULL},
                 {"k: 'null'", "null"},  {"k:", NULL},        {"k: ''", ""},  {"j: 1", NULL},
                 {"j: &x a\nk: *x", "a"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct str s;
        assert_int_equal(yaml_text(value(cases[i].in), &s), 0);
        if (cases[i].out == NULL)
            assert_null(s.p);
        else
            assert_true(str_eqz(s, cases[i].out));
    }
    struct str s;
    assert_int_equal(yaml_text(value("k: [a]"), &s), -EINVAL);
    assert_int_equal(yaml_text(value("k: {a: b}"), &s), -EINVAL);
}

static void booleans(void **state) {
    (void)state;
    int b;
    assert_int_equal(yaml_bool(value("k: true"), &b), 0);
    assert_int_equal(b, 1);
    assert_int_equal(yaml_bool(value("k: FALSE"), &b), 0);
    assert_int_equal(b, 0);
    assert_int_equal(yaml_bool(value("k:"), &b), 0);
    assert_int_equal(b, -1);
    static const char *const bad[] = {"k: yes", "k: 'true'", "k: 1", "k: []", "k: tRue"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(yaml_bool(value(bad[i]), &b), -EINVAL);
}

static void integers(void **state) {
    (void)state;
    static const struct {
        const char *in;
        int64_t out;
    } cases[] = {{"k: 0", 0},
                 {"k: 80", 80},
                 {"k: +80", 80},
                 {"k: 0x50", 80},
                 {"k: 0o17", 15},
                 {"k: 0b11", 3},
                 {"k: 65535", 65535},
                 {"k: ~", -1},
                 {"k: 65536", -2},
                 {"k: -1", -2},
                 {"k: '80'", -2},
                 {"k: 8.0", -2},
                 {"k: 010", -2},
                 {"k: 0x", -2},
                 {"k: 1_0", -2},
                 {"k: +", -2},
                 {"k: 0b12", -2},
                 {"k: [80]", -2},
                 {"k: 99999999999999999999999", -2}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int64_t n = -2;
        int r = yaml_uint(value(cases[i].in), UINT16_MAX, &n);
        assert_int_equal(r, cases[i].out == -2 ? -EINVAL : 0);
        if (r == 0)
            assert_int_equal(n, cases[i].out);
    }
}

static void members(void **state) {
    (void)state;
    const struct yaml_node *v;
    assert_int_equal(yaml_get(parsed("k: 1\nk: 2"), "k", &v), -EINVAL);
    assert_int_equal(yaml_get(parsed("j: 1\nj: 2\nk: 3"), "k", &v), 0);
    assert_int_equal(yaml_get(parsed("[a]: 1"), "k", &v), -EINVAL);
    assert_int_equal(yaml_get(parsed("[k]"), "k", &v), -EINVAL);
    assert_int_equal(yaml_get(value("k:"), "x", &v), 0);
    assert_null(v);
    assert_int_equal(yaml_get(NULL, "x", &v), 0);
}

/* A tree that contains itself is no trouble to whoever walks a known depth. */
static void circles(void **state) {
    (void)state;
    const struct yaml_node *root = parsed("&a {k: *a}"), *v = root;
    for (int i = 0; i < 1000; i++)
        assert_int_equal(yaml_get(v, "k", &v), 0);
    assert_ptr_equal(v, root);
}

static void repeat(char *dst, const char *what, size_t count) {
    for (size_t i = 0; i < count; i++)
        dst = stpcpy(dst, what);
}

static void limits(void **state) {
    (void)state;
    static char text[YAML_TEXT_MAX + 16];
    repeat(text, "[", YAML_DEPTH_MAX);
    repeat(text + YAML_DEPTH_MAX, "]", YAML_DEPTH_MAX);
    assert_non_null(parsed(text));
    repeat(text, "[", YAML_DEPTH_MAX + 2);
    repeat(text + YAML_DEPTH_MAX + 2, "]", YAML_DEPTH_MAX + 2);
    refused(text);
    repeat(text, "- a\n", YAML_NODES_MAX - 1);
    assert_non_null(parsed(text));
    repeat(text, "- a\n", YAML_NODES_MAX);
    refused(text);
    repeat(text, "[", YAML_TEXT_MAX);
    refused(text);
    repeat(text, "a", YAML_TEXT_MAX + 1);
    refused(text);
}

static int end(void **state) {
    (void)state;
    arena_fini(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents), cmocka_unit_test(texts),   cmocka_unit_test(booleans),
        cmocka_unit_test(integers),  cmocka_unit_test(members), cmocka_unit_test(circles),
        cmocka_unit_test(limits),
    };
    return cmocka_run_group_tests(tests, NULL, end);
}
