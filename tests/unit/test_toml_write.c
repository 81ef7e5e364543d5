/* Writing TOML: forms as the reference chooses them, and texts that read back as they were. */
#include "toml/toml_write.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#define TEXT_MAX (1u << 16)

/* A text after it was read and written; static. */
static const char *rewrite(const char *text, size_t most) {
    static char out[TEXT_MAX];
    _cleanup_arena_ struct arena a = ARENA_INIT(TOML_ARENA_MAX);
    _cleanup_err_ struct err e = ERR_INIT;
    _cleanup_buf_ struct buf b = BUF_INIT(most);
    const struct toml_value *root;
    assert_int_equal(toml_parse(&a, str_of(text), &root, &e), 0);
    int r = toml_write(&b, root);
    if (r < 0)
        return r == -ENOBUFS ? NULL : "?";
    assert_true(b.len < sizeof out);
    if (b.len > 0)
        memcpy(out, b.p, b.len);
    out[b.len] = '\0';
    return out;
}

struct form {
    const char *text, *written; /* NULL: as the text */
};

static void check(const struct form *forms, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const char *want = forms[i].written != NULL ? forms[i].written : forms[i].text;
        assert_string_equal(rewrite(forms[i].text, TEXT_MAX), want);
        assert_string_equal(rewrite(want, TEXT_MAX), want);
    }
}

static void tables(void **state) {
    static const struct form forms[] = {
        {"", NULL},
        {"[a]\n", NULL},
        {"[a.b.c]\nx = 1\n", NULL},
        {"[a]\n[a.b]\nx=1", "[a.b]\nx = 1\n"},
        {"[a]\nb.c=1\nd=2", "[a]\nd = 2\n\n[a.b]\nc = 1\n"},
        {"a={b={},c=1}\nd=2", "d = 2\n\n[a]\nc = 1\n\n[a.b]\n"},
        {"[[a]]\n\n[[a]]\nx = 1\n\n[[a.b]]\n", NULL},
        {"a=[{x=1},{}]", "[[a]]\nx = 1\n\n[[a]]\n"},
        {"a=[{x={y=1}},2,[],{}]", "a = [{ x = { y = 1 } }, 2, [], {}]\n"},
        {"''=1\n\"a b\"=2\n'x\"'=3\n[\"k\\n\".'\\']\n",
         "\"\" = 1\n\"a b\" = 2\n'x\"' = 3\n\n[\"k\\n\".'\\']\n"},
    };
    (void)state;
    check(forms, ARRAY_LEN(forms));
}

static void strings(void **state) {
    static const struct form forms[] = {
        {"a = \"it's\"\n", NULL},
        {"a = 'C:\\x \"q\"'\n", NULL},
        {"a = \"\"\"\nx\ny\"\"\"\n", NULL},
        {"a = '''\nx\\\ny'''\n", NULL},
        {"a = \"\"\"'\"\"\"\"\n", NULL},
        {"a = '''\\''''\n", NULL},
        {"a = \"\\u0001\\b\\f\\r\\\\\\u007F\"\n", NULL},
        {"a = \"\"\"\n\n'''\"\"\\\"\"\"\\\\\"\"\"\n", NULL},
        {"a = \"\t\"", "a = \"\\t\"\n"},
        {"a = \"'\\\\\\\"'''\"", "a = \"'\\\\\\\"'''\"\n"},
    };
    (void)state;
    check(forms, ARRAY_LEN(forms));
}

static void values(void **state) {
    static const struct form forms[] = {
        {"a = [1, 2.5, true, \"x\", 1979-05-27]\n", NULL},
        {"a=1e100", "a = 1"
                    "00000000000000000000000000000000000000000000000000"
                    "00000000000000000000000000000000000000000000000000.0\n"},
        {"a=5e-7", "a = 0.0000005\n"},
        {"a=[3e0,-0.0,123.456e1,0.1]", "a = [3.0, -0.0, 1234.56, 0.1]\n"},
        {"a=[-nan,inf,-inf]", "a = [nan, inf, -inf]\n"},
        {"a=0xff\nb=-9223372036854775808", "a = 255\nb = -9223372036854775808\n"},
        {"a=07:32:00.1200\nb=07:32:00.000\nc=07:32:00.1234567891",
         "a = 07:32:00.12\nb = 07:32:00\nc = 07:32:00.123456789\n"},
        {"a=1979-05-27 07:32:00-00:00\nb=1979-05-27t07:32:00.50-00:00",
         "a = 1979-05-27T07:32:00+00:00\nb = 1979-05-27T07:32:00.5+00:00\n"},
    };
    (void)state;
    check(forms, ARRAY_LEN(forms));
}

static void no_room(void **state) {
    (void)state;
    const char *text = "a = 'x'\n[b]\n[[c.d]]\nx=[1.5,{y=07:32:00.5}]\n";
    size_t n = strlen(rewrite(text, TEXT_MAX));
    for (size_t most = 0; most < n; most++)
        assert_null(rewrite(text, most));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables),
        cmocka_unit_test(strings),
        cmocka_unit_test(values),
        cmocka_unit_test(no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
