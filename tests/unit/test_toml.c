#include "toml/toml.h"

#include "base/buf.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static void show(struct buf *b, const struct toml_value *v);

static void show_children(struct buf *b, const struct toml_value *v, const char *ends) {
    int r = buf_putc(b, ends[0]);
    toml_for_each(child, v) {
        if (child != v->children.first)
            r |= buf_putc(b, ',');
        if (v->type == TOML_TABLE)
            r |= buf_putf(b, "%s=", child->key.p);
        show(b, child);
    }
    r |= buf_putc(b, ends[1]);
    assert_int_equal(r, 0);
}

/* Writes a value on one line; strings stand between bars. */
static void show(struct buf *b, const struct toml_value *v) {
    int r = 0;
    if (v->type == TOML_TABLE)
        show_children(b, v, "{}");
    else if (v->type == TOML_ARRAY)
        show_children(b, v, "[]");
    else if (v->type == TOML_STRING)
        r = buf_putf(b, "|%.*s|", (int)v->text.n, v->text.p);
    else if (v->type == TOML_INTEGER)
        r = buf_putf(b, "%lld", (long long)v->integer);
    else if (v->type == TOML_FLOAT)
        r = buf_putf(b, "%.17g", v->number);
    else if (v->type == TOML_BOOLEAN)
        r = buf_putz(b, v->boolean ? "yes" : "no");
    else
        r = buf_putf(b, "%d:%s", v->type - TOML_OFFSET_DATETIME, v->text.p);
    assert_int_equal(r, 0);
}

/* The tree of a text, or the error; static. */
static const char *read_text(struct str text) {
    static char shown[4096];
    _cleanup_arena_ struct arena a = ARENA_INIT(TOML_ARENA_MAX);
    _cleanup_err_ struct err e = ERR_INIT;
    _cleanup_buf_ struct buf b = BUF_INIT(1u << 20);
    const struct toml_value *root;
    int r = toml_parse(&a, text, &root, &e);
    if (r == 0)
        show(&b, root);
    else
        assert_null(root);
    snprintf(shown, sizeof shown, "%.*s", r == 0 ? (int)b.len : (int)err_str(&e).n,
             r == 0 ? b.p : err_msg(&e));
    return shown;
}

struct toml_case {
    const char *text, *shown;
};

static void run(const struct toml_case *cases, size_t n) {
    for (size_t i = 0; i < n; i++)
        assert_string_equal(read_text(str_of(cases[i].text)), cases[i].shown);
}

static void values(void **state) {
    static const struct toml_case cases[] = {
        {"", "{}"},
        {"\xEF\xBB\xBF", "{}"},
        {"\xEF\xBB\xBF"
         "a=1",
         "{a=1}"},
        {"a = 1 # c\r\nb = 2", "{a=1,b=2}"},
        {"a=+1_0\nb=-9223372036854775808\nc=0x7FFF_ffff_ffff_ffff\nd=0o17\ne=0b11\nf=-0",
         "{a=10,b=-9223372036854775808,c=9223372036854775807,d=15,e=3,f=0}"},
        {"a=1.5\nb=1e3\nc=1_0.2_5E-0_1\nd=-inf\ne=0e0\nf=5e-324",
         "{a=1.5,b=1000,c=1.0249999999999999,d=-inf,e=0,f=4.9406564584124654e-324}"},
        {"a=[1, 'x', [true,],\n # c\n {b=false, c.d=1}\n,]", "{a=[1,|x|,[yes],{b=no,c={d=1}}]}"},
        {"a=1979-05-27T07:32:00Z\nb=1979-05-27 07:32:00.999-07:00\nc=1979-05-27t07:32:60\n"
         "d=2024-02-29\ne=07:32:00.5",
         "{a=0:1979-05-27T07:32:00Z,b=0:1979-05-27T07:32:00.999-07:00,c=1:1979-05-27T07:32:60,"
         "d=2:2024-02-29,e=3:07:32:00.5}"},
        {"d=2024-02-29 # not a time", "{d=2:2024-02-29}"},
        {"\"a b\"=1\n''=2\n'x\"'.\"\\u00e9\" . c-_9=3", "{a b=1,=2,x\"={\xC3\xA9={c-_9=3}}}"},
        {"1.2=3\ntrue=4", "{1={2=3},true=4}"},
    };
    (void)state;
    run(cases, ARRAY_LEN(cases));
}

static void strings(void **state) {
    static const struct toml_case cases[] = {
        {"a=\"\\b\\t\\n\\f\\r\\\"\\\\\\u00E9\\U0001F600\"",
         "{a=|\b\t\n\f\r\"\\\xC3\xA9\xF0\x9F\x98\x80|}"},
        {"a='\\n'", "{a=|\\n|}"},
        {"a=\"\"\"\r\nx\r\ny \\  \r\n\r\n  z\"\"\"", "{a=|x\ny z|}"},
        {"a=\"\"\"\"\"x\"\"\"\"\"", "{a=|\"\"x\"\"|}"},
        {"a='''''x'''''", "{a=|''x''|}"},
        {"a=\"\"\"\"\"\"", "{a=||}"},
        {"a=\"\"\"\\\"\"\"\"", "{a=|\"|}"},
        {"a=\"\"\"\"\"\"\"\"\"", "line 1, column 11: expected the end of the line, not `\"`"},
        {"a=\"x", "line 1, column 3: the string is not closed"},
        {"a=\"x\\", "line 1, column 3: the string is not closed"},
        {"a='''\nx''", "line 1, column 3: the string is not closed"},
        {"a=\"\x01\"", "line 1, column 4: control character U+0001 in a string"},
        {"a='''x\ry'''", "line 1, column 7: control character U+000D in a string"},
        {"a=\"\x7F\"", "line 1, column 4: control character U+007F in a string"},
        {"a=\"\\e\"", "line 1, column 4: unknown escape in a string"},
        {"a=\"\\x41\"", "line 1, column 4: unknown escape in a string"},
        {"a=\"\"\"\\ x\"\"\"", "line 1, column 6: unknown escape in a string"},
        {"a=\"\\u12\"", "line 1, column 4: \\u needs 4 hexadecimal digits"},
        {"a=\"\\U0000\"", "line 1, column 4: \\U needs 8 hexadecimal digits"},
        {"a=\"\\uD800\"", "line 1, column 4: U+D800 is not a Unicode scalar value"},
        {"a=\"\\U00110000\"", "line 1, column 4: U+110000 is not a Unicode scalar value"},
        {"a=\"\\\nb\"", "line 1, column 4: unknown escape in a string"},
        {"\"\"\"a\"\"\"=1", "line 1, column 3: expected `=`, not `\"`"},
    };
    (void)state;
    run(cases, ARRAY_LEN(cases));
}

static void tables(void **state) {
    static const struct toml_case cases[] = {
        {"[a.b.c]\n[a]\nx=1\n[a.b]\ny=2", "{a={b={c={},y=2},x=1}}"},
        {"[[a]]\nb=1\n[[a]]\n[a.c]\nd=2\n[[a.e]]\n[[a.e]]", "{a=[{b=1},{c={d=2},e=[{},{}]}]}"},
        {"a.b=1\na.c=2\n[a.d]\ne=3", "{a={b=1,c=2,d={e=3}}}"},
        {"[a.b.c]\n[a]\nb.d=1", "{a={b={c={},d=1}}}"},
        {"[ a . 'b' ] # c", "{a={b={}}}"},
        {"a=1\na=2", "line 2, column 1: cannot define `a`, which line 1 defines as an integer"},
        {"a=1\n'a'=2", "line 2, column 1: cannot define `a`, which line 1 defines as an integer"},
        {"[a]\n\n[a]", "line 3, column 2: cannot define `a`, which line 1 defines as a table"},
        {"a=1\na.b=2",
         "line 2, column 1: a dotted key cannot add to `a`, which line 1 defines as an integer"},
        {"a={}\na.b=2",
         "line 2, column 1: a dotted key cannot add to `a`, which line 1 defines as a table"},
        {"a={}\n[a.b]",
         "line 2, column 2: a header cannot add to `a`, which line 1 defines as a table"},
        {"a={b.c=1, b={}}",
         "line 1, column 11: cannot define `b`, which line 1 defines as a table"},
        {"a={b={}, b.c=1}",
         "line 1, column 10: a dotted key cannot add to `b`, which line 1 defines as a table"},
        {"a=[]\n[[a]]", "line 2, column 3: cannot append to `a`, which line 1 defines as an array"},
        {"a=[{}]\n[a.b]",
         "line 2, column 2: a header cannot add to `a`, which line 1 defines as an array"},
        {"[[a]]\n[a]", "line 2, column 2: cannot define `a`, which line 1 defines as an array"},
        {"[a.b]\n[[a]]", "line 2, column 3: cannot append to `a`, which line 1 defines as a table"},
        {"[[a.b]]\n[a]\nb.c=1",
         "line 3, column 1: a dotted key cannot add to `b`, which line 1 defines as an array"},
        {"[a]\nb.c=1\n[a.b]",
         "line 3, column 4: cannot define `b`, which line 2 defines as a table"},
        {"[a.b]\n[a]\nb=1", "line 3, column 1: cannot define `b`, which line 1 defines as a table"},
        {"[a.b.c]\n[a]\nb.d=1\n[a.b]",
         "line 4, column 4: cannot define `b`, which line 1 defines as a table"},
        {"[a.b.c]\n[a]\nb.c.d=1",
         "line 3, column 3: a dotted key cannot add to `c`, which line 1 defines as a table"},
    };
    (void)state;
    run(cases, ARRAY_LEN(cases));
}

static void refusals(void **state) {
    static const struct toml_case cases[] = {
        {"a", "line 1, column 2: expected `=`, not the end of the file"},
        {"a\n", "line 1, column 2: expected `=`, not the end of the line"},
        {"= 1", "line 1, column 1: expected a key, not `=`"},
        {"\xC3\xA9=1", "line 1, column 1: expected a key, not `\xC3\xA9`"},
        {"a.=1", "line 1, column 3: expected a key, not `=`"},
        {"\n\n a = ", "line 3, column 6: expected a value, not the end of the file"},
        {"a=1 b=2", "line 1, column 5: expected the end of the line, not `b`"},
        {"a='\xC3\xA9' \x01",
         "line 1, column 7: expected the end of the line, not control character U+0001"},
        {"a=1\rb=2",
         "line 1, column 4: expected the end of the line, not control character U+000D"},
        {"# \x7F", "line 1, column 3: control character U+007F in a comment"},
        {"# \r", "line 1, column 3: control character U+000D in a comment"},
        {"a=\"\xFF\"", "line 1, column 4: the text is not valid UTF-8"},
        {"a=1\nb='\xED\xA0\x80'", "line 2, column 4: the text is not valid UTF-8"},
        {"a=1\n\xEF\xBB\xBF"
         "b=2",
         "line 2, column 1: expected a key, not `\xEF\xBB\xBF`"},
        {"a=[1 2]", "line 1, column 6: expected `,` or `]`, not `2`"},
        {"a=[1,,2]", "line 1, column 6: expected a value, not `,`"},
        {"a=[\n", "line 2, column 1: expected a value, not the end of the file"},
        {"a={b=1,}", "line 1, column 8: expected a key, not `}`"},
        {"a={b=1\n}", "line 1, column 7: expected `,` or `}`, not the end of the line"},
        {"a={\n}", "line 1, column 4: expected a key, not the end of the line"},
        {"[a", "line 1, column 3: expected `]`, not the end of the file"},
        {"[]", "line 1, column 2: expected a key, not `]`"},
        {"[[a]", "line 1, column 5: expected `]]`, not the end of the file"},
        {"[ [a]]", "line 1, column 3: expected a key, not `[`"},
        {"[[a] ]", "line 1, column 5: expected `]]`, not ` `"},
        {"a=yes", "line 1, column 3: `yes` is not a valid value; strings need quotes"},
        {"a=9223372036854775808", "line 1, column 3: `9223372036854775808` does not fit 64 bits"},
        {"a=-9223372036854775809", "line 1, column 3: `-9223372036854775809` does not fit 64 bits"},
        {"a=0x8000000000000000", "line 1, column 3: `0x8000000000000000` does not fit 64 bits"},
        {"a=01", "line 1, column 3: `01` has leading zeros"},
        {"a=1e999", "line 1, column 3: `1e999` is too large for a float"},
        {"a=2023-02-29", "line 1, column 3: `2023-02-29` is not a valid date"},
        {"a=1900-02-29", "line 1, column 3: `1900-02-29` is not a valid date"},
        {"a=24:00:00", "line 1, column 3: `24:00:00` is not a valid time"},
        {"a=2024-01-01 10:00", "line 1, column 3: `2024-01-01 10:00` is not a valid date and time"},
        {"a=2024-01-01T10:00:00+24:00",
         "line 1, column 3: `2024-01-01T10:00:00+24:00` has no valid offset from UTC"},
        {"a=2024-01-01T10:00:00Zx",
         "line 1, column 3: `2024-01-01T10:00:00Zx` has no valid offset from UTC"},
    };
    static const char *const numbers[] = {
        "1__0", "_1",   "1_",       "0x",    "0x_1",        "0X1",       "+0x1", "0o8",  "0b2",
        "1.",   ".1",   "1.e1",     "1e",    "1e+",         "1e1.0",     "1_.0", "1._0", "01.0",
        "-01",  "+-1",  "infinity", "Inf",   "nann",        "1e_1",      "0xg",  "-",    "+",
        "00",   "True", "1:2",      "0_0.0", "12345-01-01", "1979-5-27", "0e_0",
    };
    (void)state;
    run(cases, ARRAY_LEN(cases));
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        char text[64];
        snprintf(text, sizeof text, "a=%s", numbers[i]);
        assert_non_null(strstr(read_text(str_of(text)), "line 1, column 3: `"));
    }
}

static void nul_bytes(void **state) {
    (void)state;
    assert_string_equal(read_text(STR_LIT("a=1\0")),
                        "line 1, column 4: expected the end of the line, not control character "
                        "U+0000");
    assert_string_equal(read_text(STR_LIT("a=\"\\\0\"")),
                        "line 1, column 4: unknown escape in a string");
    assert_string_equal(read_text(STR_LIT("a=0\0")),
                        "line 1, column 4: expected the end of the line, not control character "
                        "U+0000");
}

static void repeat(struct buf *b, const char *part, size_t n) {
    for (size_t i = 0; i < n; i++)
        assert_int_equal(buf_putz(b, part), 0);
}

static void limit_of_depth(void **state) {
    static const struct {
        const char *begin, *open, *end;
    } forms[] = {{"a=", "[", ""}, {"a=", "{a=", "1"}, {"", "a.", "a=1"}, {"[", "a.", "a]"}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        _cleanup_buf_ struct buf b = BUF_INIT(4u << 20);
        repeat(&b, forms[i].begin, 1);
        repeat(&b, forms[i].open, 200000);
        repeat(&b, forms[i].end, 1);
        assert_non_null(strstr(read_text(buf_str(&b)), "more than 80 tables and arrays"));
    }
    _cleanup_buf_ struct buf b = BUF_INIT(4u << 20);
    repeat(&b, "a=", 1);
    repeat(&b, "[", TOML_DEPTH_MAX - 1);
    repeat(&b, "1", 1);
    assert_non_null(strstr(read_text(buf_str(&b)), "expected `,` or `]`"));
    repeat(&b, "]", TOML_DEPTH_MAX - 1);
    assert_null(strstr(read_text(buf_str(&b)), "line"));
}

static void limit_of_values(void **state) {
    _cleanup_buf_ struct buf b = BUF_INIT(4u << 20);
    (void)state;
    repeat(&b, "a=[", 1);
    repeat(&b, "1,", TOML_VALUES_MAX - 1);
    size_t len = b.len;
    repeat(&b, "]", 1);
    assert_null(strstr(read_text(buf_str(&b)), "line"));
    b.len = len;
    repeat(&b, "1]", 1);
    assert_non_null(strstr(read_text(buf_str(&b)), "more than 65536 values"));
}

static void limit_of_text(void **state) {
    _cleanup_buf_ struct buf b = BUF_INIT(4u << 20);
    (void)state;
    repeat(&b, "#", TOML_TEXT_MAX);
    assert_string_equal(read_text(buf_str(&b)), "{}");
    repeat(&b, "#", 1);
    assert_string_equal(read_text(buf_str(&b)), "the text is longer than 1048576 bytes");
}

/* As many members as the limits allow, each with a copied key and a float, fit TOML_ARENA_MAX. */
static void limit_of_memory(void **state) {
    _cleanup_buf_ struct buf b = BUF_INIT(4u << 20);
    _cleanup_arena_ struct arena small = ARENA_INIT(1u << 16);
    _cleanup_err_ struct err e = ERR_INIT;
    const struct toml_value *root;
    (void)state;
    for (unsigned i = 0; i < TOML_VALUES_MAX; i++)
        assert_int_equal(buf_putf(&b, "'%x'=1.5e0\n", i), 0);
    assert_true(b.len <= TOML_TEXT_MAX);
    assert_null(strstr(read_text(buf_str(&b)), "memory"));
    assert_int_equal(toml_parse(&small, buf_str(&b), &root, &e), -ENOMEM);
    assert_null(root);
    assert_string_equal(err_msg(&e), "the text needs too much memory");
}

static void floats(void **state) {
    _cleanup_arena_ struct arena a = ARENA_INIT(TOML_ARENA_MAX);
    _cleanup_err_ struct err e = ERR_INIT;
    const struct toml_value *root;
    (void)state;
    assert_int_equal(toml_parse(&a, STR_LIT("a=nan\nb=-nan\nc=-0.0\nd=+inf\ne=0.1"), &root, &e), 0);
    assert_true(isnan(toml_get(root, "a")->number) && !signbit(toml_get(root, "a")->number));
    assert_true(isnan(toml_get(root, "b")->number) && signbit(toml_get(root, "b")->number));
    assert_true(toml_get(root, "c")->number == 0 && signbit(toml_get(root, "c")->number));
    assert_true(isinf(toml_get(root, "d")->number) && !signbit(toml_get(root, "d")->number));
    assert_true(toml_get(root, "e")->number == 0.1);
    assert_null(toml_get(root, "f"));
}

static void typed_reading(void **state) {
    _cleanup_arena_ struct arena a = ARENA_INIT(TOML_ARENA_MAX);
    _cleanup_err_ struct err e = ERR_INIT;
    static const char *const known[] = {"s", "i", "f"}, *const one[] = {"s"};
    const struct toml_value *root;
    struct str text = {0};
    int64_t integer = 0;
    double number = 0;
    bool boolean = false;
    (void)state;
    assert_int_equal(toml_parse(&a, STR_LIT("s='x'\ni=3\n\nf=0.5\nb=true"), &root, &e), 0);
    const struct toml_value *s = toml_get(root, "s"), *i = toml_get(root, "i");
    const struct toml_value *f = toml_get(root, "f"), *b = toml_get(root, "b");
    assert_int_equal(toml_read_string(s, "s", &text, &e), 0);
    assert_true(str_eqz(text, "x"));
    assert_int_equal(toml_read_integer(i, "i", &integer, &e), 0);
    assert_int_equal(integer, 3);
    assert_int_equal(toml_read_number(i, "i", &number, &e), 0);
    assert_true(number == 3);
    assert_int_equal(toml_read_number(f, "f", &number, &e), 0);
    assert_true(number == 0.5);
    assert_int_equal(toml_read_boolean(b, "b", &boolean, &e), 0);
    assert_true(boolean);
    assert_int_equal(toml_read_string(i, "x.i", &text, &e), -EINVAL);
    assert_string_equal(err_msg(&e), "line 2: `x.i` must be a string, not an integer");
    assert_int_equal(toml_read_integer(f, "f", &integer, &e), -EINVAL);
    assert_string_equal(err_msg(&e), "line 4: `f` must be an integer, not a float");
    assert_int_equal(toml_read_number(b, "b", &number, &e), -EINVAL);
    assert_string_equal(err_msg(&e), "line 5: `b` must be a number, not a boolean");
    assert_int_equal(toml_read_boolean(root, "r", &boolean, &e), -EINVAL);
    assert_string_equal(err_msg(&e), "line 1: `r` must be a boolean, not a table");
    assert_int_equal(toml_only(root, known, ARRAY_LEN(known), &e), -EINVAL);
    assert_string_equal(err_msg(&e), "line 5: unknown key `b`, expected one of `s`, `i`, `f`");
    assert_int_equal(toml_only(root, one, 1, &e), -EINVAL);
    assert_string_equal(err_msg(&e), "line 2: unknown key `i`, expected `s`");
}

/* Lines count through strings, arrays and continued lines. */
static void lines_of_values(void **state) {
    _cleanup_arena_ struct arena a = ARENA_INIT(TOML_ARENA_MAX);
    _cleanup_err_ struct err e = ERR_INIT;
    static const char text[] = "a='''\n\n'''\nb=\"\"\"\\\n\n x\r\n\"\"\"\nc=[\n1,\n2]\nd=4\n"
                               "[x.y]\n[x]";
    const struct toml_value *root;
    (void)state;
    assert_int_equal(toml_parse(&a, str_of(text), &root, &e), 0);
    assert_int_equal(toml_get(root, "a")->line, 1);
    assert_int_equal(toml_get(root, "b")->line, 4);
    assert_int_equal(toml_get(root, "c")->line, 8);
    assert_int_equal(toml_get(root, "c")->children.last->line, 10);
    assert_int_equal(toml_get(root, "d")->line, 11);
    assert_int_equal(toml_get(root, "x")->line, 13);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values),          cmocka_unit_test(strings),
        cmocka_unit_test(tables),          cmocka_unit_test(refusals),
        cmocka_unit_test(nul_bytes),       cmocka_unit_test(limit_of_depth),
        cmocka_unit_test(limit_of_values), cmocka_unit_test(limit_of_text),
        cmocka_unit_test(limit_of_memory), cmocka_unit_test(floats),
        cmocka_unit_test(typed_reading),   cmocka_unit_test(lines_of_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
