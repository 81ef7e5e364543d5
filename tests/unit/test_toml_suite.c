/*
 * The cases of toml-test, which Debian's golang-github-burntsushi-toml-dev carries: each valid text
 * has the values of its JSON file, each invalid one is refused. One test per case. Skipped if the
 * package is missing.
 */
#include "toml/toml.h"

#include "base/buf.h"
#include "json/json.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#define SUITE "/usr/share/gocode/src/github.com/BurntSushi/toml/internal/toml-test/tests"
#define CASES_MAX 4096
#define SKIPPED 77

/* Version 1.2.0 of the suite has 100 valid and 234 invalid cases: fewer would be a wrong search. */
#define VALID_MIN 100
#define INVALID_MIN 234

/* Valid cases of TOML 1.1. TOML 1.0 demands that they are refused. */
static const char *const newer[] = {
    "valid/string/escape-esc.toml", /* the escape \e */
};

static struct CMUnitTest tests[CASES_MAX];
static size_t test_count, valid_count, invalid_count;

static void read_file(const char *path, struct buf *b) {
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    for (ssize_t n = 1; n > 0; b->len += (size_t)n) {
        assert_int_equal(buf_reserve(b, 65536), 0);
        n = read(fd, b->p + b->len, 65536);
        assert_true(n >= 0);
    }
}

/* A date or time without zeros at the end of the fraction. */
static void shorten(char dst[64], struct str time) {
    assert_true(time.n < 64);
    memcpy(dst, time.p, time.n);
    dst[time.n] = '\0';
    char *point = strchr(dst, '.');
    if (point == NULL)
        return;
    char *end = point + 1 + strspn(point + 1, "0123456789"), *cut = end;
    while (cut[-1] == '0')
        cut--;
    if (cut[-1] == '.')
        cut--;
    memmove(cut, end, strlen(end) + 1);
}

static void compare_time(const struct toml_value *v, const char *type, struct str value) {
    static const struct {
        const char *name;
        enum toml_type type;
    } kinds[] = {{"datetime", TOML_OFFSET_DATETIME},
                 {"datetime-local", TOML_LOCAL_DATETIME},
                 {"date-local", TOML_LOCAL_DATE},
                 {"time-local", TOML_LOCAL_TIME}};
    char ours[64], theirs[64];
    size_t i = 0;
    while (i < ARRAY_LEN(kinds) && strcmp(kinds[i].name, type) != 0)
        i++;
    assert_true(i < ARRAY_LEN(kinds));
    assert_int_equal(v->type, kinds[i].type);
    shorten(ours, v->text);
    shorten(theirs, value);
    assert_string_equal(ours, theirs);
}

static void compare_scalar(const struct toml_value *v, struct str tag, struct str value) {
    _cleanup_free_ char *type = str_dup(tag), *text = str_dup(value);
    if (strcmp(type, "string") == 0) {
        assert_int_equal(v->type, TOML_STRING);
        assert_true(str_eq(v->text, value));
        assert_int_equal(v->text.p[v->text.n], '\0');
    } else if (strcmp(type, "integer") == 0) {
        assert_int_equal(v->type, TOML_INTEGER);
        assert_true(v->integer == strtoll(text, NULL, 10));
    } else if (strcmp(type, "float") == 0) {
        double expected = strtod(text, NULL);
        assert_int_equal(v->type, TOML_FLOAT);
        assert_true(isnan(expected) ? isnan(v->number) : v->number == expected);
    } else if (strcmp(type, "bool") == 0) {
        assert_int_equal(v->type, TOML_BOOLEAN);
        assert_string_equal(v->boolean ? "true" : "false", text);
    } else {
        compare_time(v, type, value);
    }
}

static void compare(const struct toml_value *v, const struct json_node *want) {
    if (want->type == JSON_ARRAY) {
        assert_int_equal(v->type, TOML_ARRAY);
        assert_int_equal(v->count, want->count);
        const struct toml_value *element = v->children.first;
        json_for_each(expected, want) {
            compare(element, expected);
            element = element->next;
        }
        return;
    }
    assert_int_equal(want->type, JSON_OBJECT);
    const struct json_node *type = json_get(want, "type"), *value = json_get(want, "value");
    if (type != NULL && type->type == JSON_STRING) {
        assert_non_null(value);
        compare_scalar(v, json_str(type), json_str(value));
        return;
    }
    assert_int_equal(v->type, TOML_TABLE);
    assert_int_equal(v->count, want->count);
    json_for_each_member(key, want) {
        const struct toml_value *member = v->children.first;
        while (member != NULL && !str_eq(member->key, json_str(key)))
            member = member->next;
        assert_non_null(member);
        compare(member, key + 1);
    }
}

static void is_read(void **state) {
    _cleanup_arena_ struct arena a = ARENA_INIT(TOML_ARENA_MAX);
    _cleanup_err_ struct err e = ERR_INIT;
    _cleanup_buf_ struct buf text = BUF_INIT(1u << 22), json = BUF_INIT(1u << 22);
    const char *path = *state;
    const struct toml_value *root;
    read_file(path, &text);
    int r = toml_parse(&a, buf_str(&text), &root, &e);
    if (r < 0)
        fail_msg("%s: %s", path, err_msg(&e));

    _cleanup_free_ char *expected = NULL;
    assert_true(asprintf(&expected, "%.*s.json", (int)(strlen(path) - 5), path) > 0);
    read_file(expected, &json);
    struct json_doc doc;
    json_doc_init(&doc, json.len, 1);
    assert_int_equal(json_parse(&doc, json.p, json.len, &e), 0);
    compare(root, json_root(&doc));
    json_doc_fini(&doc);
}

static void is_refused(void **state) {
    _cleanup_arena_ struct arena a = ARENA_INIT(TOML_ARENA_MAX);
    _cleanup_err_ struct err e = ERR_INIT;
    _cleanup_buf_ struct buf text = BUF_INIT(1u << 22);
    const struct toml_value *root;
    read_file(*state, &text);
    assert_int_equal(toml_parse(&a, buf_str(&text), &root, &e), -EINVAL);
    assert_null(root);
    assert_int_equal(strncmp(err_msg(&e), "line ", 5), 0);
}

static bool is_newer(const char *name) {
    for (size_t i = 0; i < ARRAY_LEN(newer); i++) {
        if (strcmp(newer[i], name) == 0)
            return true;
    }
    return false;
}

static int collect(const char *path, const struct stat *st, int kind, struct FTW *ftw) {
    (void)st, (void)ftw;
    size_t n = strlen(path);
    if (kind != FTW_F || n < 5 || strcmp(path + n - 5, ".toml") != 0)
        return 0;
    char *copy = strdup(path);
    if (copy == NULL || test_count == CASES_MAX)
        return -1;
    const char *name = copy + strlen(SUITE) + 1;
    bool valid = strncmp(name, "valid/", 6) == 0;
    valid_count += valid;
    invalid_count += !valid;
    tests[test_count++] = (struct CMUnitTest){
        .name = name,
        .test_func = valid && !is_newer(name) ? is_read : is_refused,
        .initial_state = copy,
    };
    return 0;
}

static int by_name(const void *a, const void *b) {
    const struct CMUnitTest *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static void suite_is_complete(void **state) {
    (void)state;
    assert_true(valid_count >= VALID_MIN);
    assert_true(invalid_count >= INVALID_MIN);
}

int main(void) {
    if (access(SUITE, F_OK) < 0)
        return SKIPPED;
    if (nftw(SUITE, collect, 8, FTW_PHYS) != 0)
        return 1;
    qsort(tests, test_count, sizeof tests[0], by_name);
    const struct CMUnitTest first[] = {cmocka_unit_test(suite_is_complete)};
    int failed = cmocka_run_group_tests(first, NULL, NULL);
    failed += _cmocka_run_group_tests("toml-test", tests, test_count, NULL, NULL);
    for (size_t i = 0; i < test_count; i++)
        free(tests[i].initial_state);
    return failed != 0;
}
