#include "client/fsanswer.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define TEXT_MAX 65536

/* An answer; the text is writable. */
struct answer {
    char text[TEXT_MAX];
    struct json_doc doc;
};

static const struct json_node *read_answer(struct answer *a, const char *text) {
    struct err e = ERR_INIT;
    snprintf(a->text, sizeof(a->text), "%s", text);
    json_doc_init(&a->doc, TEXT_MAX, 1);
    assert_int_equal(json_parse(&a->doc, a->text, strlen(a->text), &e), 0);
    return json_root(&a->doc);
}

#define WITH(a, text) read_answer(&(a), text)
#define OK(call) assert_int_equal(call, 0)
#define BAD(call) assert_int_equal(call, -EPROTO)

static void stats(void **state) {
    (void)state;
    static struct answer a;
    struct fsanswer_stat s;
    OK(fsanswer_stat(WITH(a, "{\"isDirectory\":false,\"isFile\":true,\"isSymlink\":true,\"size\":7,"
                             "\"createdAtMs\":1,\"modifiedAtMs\":-2,\"mode\":420}"),
                     &s));
    assert_int_equal(s.kind, FSANSWER_FILE);
    assert_true(s.is_link && s.has_mode && s.mode == 0644 && s.bytes == 7);
    assert_true(s.created_ms == 1 && s.modified_ms == -2);
    json_doc_fini(&a.doc);
    /* The interface of April. */
    OK(fsanswer_stat(WITH(a, "{\"isDirectory\":true,\"isFile\":false,\"modifiedAtMs\":3}"), &s));
    assert_true(s.kind == FSANSWER_DIRECTORY && !s.has_mode && !s.is_link);
    json_doc_fini(&a.doc);
    static const char *const bad[] = {
        "{}",
        "null",
        "[]",
        "{\"isDirectory\":0,\"isFile\":false,\"modifiedAtMs\":3}",
        "{\"isDirectory\":true,\"isFile\":false,\"modifiedAtMs\":1.5}",
        "{\"isDirectory\":true,\"isFile\":false,\"modifiedAtMs\":1,\"size\":-1}",
        "{\"isDirectory\":true,\"isFile\":false,\"modifiedAtMs\":1,\"mode\":4096}",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        BAD(fsanswer_stat(WITH(a, bad[i]), &s));
        json_doc_fini(&a.doc);
    }
    BAD(fsanswer_stat(NULL, &s));
}

static void blocks(void **state) {
    (void)state;
    static struct answer a;
    struct str data;
    bool eof;
    OK(fsanswer_block(WITH(a, "{\"chunk\":\"YWJj\",\"eof\":false}"), 3, &data, &eof));
    assert_true(str_eqz(data, "abc") && !eof);
    json_doc_fini(&a.doc);
    OK(fsanswer_block(WITH(a, "{\"chunk\":\"\",\"eof\":true}"), 3, &data, &eof));
    assert_true(data.n == 0 && eof);
    json_doc_fini(&a.doc);
    static const char *const bad[] = {
        "{\"chunk\":\"YWJjZA==\",\"eof\":false}", /* more than was asked for */
        "{\"chunk\":\"YWI=\",\"eof\":false}",     /* less, and not the end */
        "{\"chunk\":\"\",\"eof\":false}",
        "{\"chunk\":\"YW\",\"eof\":true}",
        "{\"chunk\":\"YWJj\"}",
        "{\"eof\":true}",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        BAD(fsanswer_block(WITH(a, bad[i]), 3, &data, &eof));
        json_doc_fini(&a.doc);
    }
}

struct seen {
    char text[1024];
};

static int see(void *user, const struct fsanswer_item *i) {
    struct seen *s = user;
    size_t n = strlen(s->text);
    snprintf(s->text + n, sizeof(s->text) - n, "%s %d%s%s%s%s;", i->name, (int)i->kind,
             i->target ? ">" : "", i->target ? i->target : "", i->message ? "!" : "",
             i->message ? i->message : "");
    return 0;
}

static void walks(void **state) {
    (void)state;
    static struct answer a;
    struct seen s = {""};
    bool truncated;
    OK(fsanswer_walk(
        WITH(a, "{\"entries\":[{\"path\":\"file:///r/d\",\"kind\":\"directory\"},"
                "{\"path\":\"file:///r/d/f%FF\",\"kind\":\"file\"},"
                "{\"path\":\"file:///r/l\",\"kind\":\"symlink\",\"target\":\"?\","
                "\"targetBase64\":\"Li4v/w==\"},{\"path\":\"file:///r/m\",\"kind\":\"symlink\"},"
                "{\"path\":\"file:///r/o\",\"kind\":\"door\"}],"
                "\"errors\":[{\"path\":\"file:///r\",\"message\":\"no\"},"
                "{\"path\":\"file:///r/x\",\"message\":\"never\"}],\"truncated\":true}"),
        "/r", see, &s, &truncated));
    assert_true(truncated);
    assert_string_equal(s.text, "d 2;d/f\xff 1;l 3>../\xff;m 3;o 0; 0!no;x 0!never;");
    json_doc_fini(&a.doc);
    s.text[0] = '\0';
    OK(fsanswer_walk(WITH(a, "{\"entries\":[{\"path\":\"/a\",\"kind\":\"file\"}],\"errors\":[],"
                             "\"truncated\":false}"),
                     "/", see, &s, &truncated));
    assert_string_equal(s.text, "a 1;");
    json_doc_fini(&a.doc);
}

static void walks_that_leave(void **state) {
    (void)state;
    static struct answer a;
    static const char *const paths[] = {
        "file:///r",
        "file:///rx/a",
        "file:///etc/passwd",
        "file:///r/../etc/x",
        "file:///r/%2e%2e/x",
        "file:///r/..%2Fx",
        "file:///",
        "/r/../x",
        "r/x",
        "file://other/r/x",
        "http://h/r/x",
        "file:///%00/bad/path/L3IvLi4veA",
        "file:///r/%00x",
        "",
    };
    struct seen s = {""};
    bool truncated;
    for (size_t i = 0; i < 2 * ARRAY_LEN(paths); i++) {
        char text[512];
        bool root = strcmp(paths[i / 2], "file:///r") == 0;
        snprintf(text, sizeof(text),
                 i % 2 == 0 ? "{\"entries\":[{\"path\":\"%s\",\"kind\":\"file\"}],\"errors\":[],"
                              "\"truncated\":false}"
                            : "{\"entries\":[],\"errors\":[{\"path\":\"%s\",\"message\":\"m\"}],"
                              "\"truncated\":false}",
                 paths[i / 2]);
        int r = fsanswer_walk(WITH(a, text), "/r", see, &s, &truncated);
        assert_int_equal(r, root && i % 2 == 1 ? 0 : -EPROTO);
        json_doc_fini(&a.doc);
    }
    assert_string_equal(s.text, " 0!m;");
}

static void lists(void **state) {
    (void)state;
    static struct answer a;
    struct seen s = {""};
    OK(fsanswer_list(
        WITH(a, "{\"entries\":[{\"fileName\":\"a\",\"isDirectory\":true,\"isFile\":false},"
                "{\"fileName\":\"b\",\"isDirectory\":false,\"isFile\":false}]}"),
        see, &s));
    assert_string_equal(s.text, "a 2;b 0;");
    json_doc_fini(&a.doc);
    static const char *const bad[] = {".", "..", "", "a/b", "\\u0000", "/"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        char text[256];
        snprintf(text, sizeof(text),
                 "{\"entries\":[{\"fileName\":\"%s\",\"isDirectory\":true,\"isFile\":false}]}",
                 bad[i]);
        BAD(fsanswer_list(WITH(a, text), see, &s));
        json_doc_fini(&a.doc);
    }
}

static void targets(void **state) {
    (void)state;
    static struct answer a;
    char *target = NULL;
    OK(fsanswer_target(WITH(a, "{\"target\":\"a\\u00e4\"}"), &target));
    assert_string_equal(target, "a\xc3\xa4");
    free(steal_ptr(&target));
    json_doc_fini(&a.doc);
    static const char *const bad[] = {"{}",
                                      "{\"target\":\"\"}",
                                      "{\"target\":\"a\\u0000\"}",
                                      "{\"target\":1}",
                                      "{\"target\":\"a\",\"targetBase64\":\"\"}",
                                      "{\"targetBase64\":\"AA==\"}"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        BAD(fsanswer_target(WITH(a, bad[i]), &target));
        assert_null(target);
        json_doc_fini(&a.doc);
    }
}

static void changes(void **state) {
    (void)state;
    static struct answer a;
    struct fsanswer_change c;
    OK(fsanswer_change(WITH(a, "{\"watchId\":\"w\",\"changedPaths\":[\"file:///a\"],"
                               "\"overflow\":true}"),
                       &c));
    assert_true(c.overflow && c.paths->count == 1);
    json_doc_fini(&a.doc);
    OK(fsanswer_change(WITH(a, "{\"watchId\":3}"), &c));
    assert_true(!c.overflow && c.paths == NULL);
    json_doc_fini(&a.doc);
    static const char *const bad[] = {"{}", "{\"watchId\":null}",
                                      "{\"watchId\":1,\"changedPaths\":[1]}",
                                      "{\"watchId\":1,\"overflow\":1}"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        BAD(fsanswer_change(WITH(a, bad[i]), &c));
        json_doc_fini(&a.doc);
    }
}

static void numbers(void **state) {
    (void)state;
    assert_int_equal(fsanswer_errno(STR_LIT("No such file (os error 2)")), 2);
    assert_int_equal(fsanswer_errno(STR_LIT("a (os error 2) b (os error 17)")), 17);
    assert_int_equal(fsanswer_errno(STR_LIT("(os error )")), 0);
    assert_int_equal(fsanswer_errno(STR_LIT("(os error 2")), 0);
    assert_int_equal(fsanswer_errno(STR_LIT("(os error 99999999999999)")), 0);
    assert_int_equal(fsanswer_errno(STR_LIT("")), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stats),   cmocka_unit_test(blocks),
        cmocka_unit_test(walks),   cmocka_unit_test(walks_that_leave),
        cmocka_unit_test(lists),   cmocka_unit_test(targets),
        cmocka_unit_test(changes), cmocka_unit_test(numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
