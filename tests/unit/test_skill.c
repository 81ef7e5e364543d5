/* What a skill says of itself: front matter, its repair, metadata. */
#include "environment/skill.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static struct arena arena = ARENA_INIT(SKILL_ARENA_MAX);

/* "NAME|DESCRIPTION|SHORT" of a text, or "-"; static. */
static const char *front(const char *text) {
    static char out[4096];
    struct skill_front f;
    arena_fini(&arena);
    arena = ARENA_INIT(SKILL_ARENA_MAX);
    if (skill_read_front(&arena, str_of(text), STR_LIT("fallback"), &f) < 0)
        return "-";
    snprintf(out, sizeof out, "%.*s|%.*s|%.*s", (int)f.name.n, f.name.p, (int)f.description.n,
             f.description.p, (int)f.short_description.n,
             f.short_description.p != NULL ? f.short_description.p : "");
    return out;
}

/* The same of the lines between the marks. */
static const char *lines(const char *text) {
    char whole[4096];
    snprintf(whole, sizeof whole, "---\n%s\n---\nbody\n", text);
    return front(whole);
}

static void frames(void **state) {
    (void)state;
    assert_string_equal(front("---\nname: a\ndescription: d\n---\n"), "a|d|");
    assert_string_equal(front(" --- \r\nname: a\r\ndescription: d\r\n---\r\n"), "a|d|");
    static const char *const none[] = {"",
                                       "---",
                                       "---\n---\n",
                                       "---\ndescription: d\n",
                                       "\n---\ndescription: d\n---\n",
                                       "---\nname: a\n---\n",
                                       "----\ndescription: d\n---\n"};
    for (size_t i = 0; i < ARRAY_LEN(none); i++)
        assert_string_equal(front(none[i]), "-");
}

static void values(void **state) {
    (void)state;
    assert_string_equal(lines("description: d"), "fallback|d|");
    assert_string_equal(lines("name: '  a\tb '\ndescription: |\n one\n\n two"), "a b|one two|");
    assert_string_equal(lines("name: 5\ndescription: true"), "5|true|");
    assert_string_equal(lines("name: a\ndescription: d\nmetadata:\n  short-description: s  s"),
                        "a|d|s s");
    assert_string_equal(lines("name: a\ndescription: d\nmetadata:"), "a|d|");
    assert_string_equal(lines("name: \xc2\xa0 a \xe3\x80\x80\ndescription: d"), "a|d|");
    static const char *const bad[] = {"name: [a]\ndescription: d",
                                      "name: a\ndescription: ''",
                                      "name: a\nname: b\ndescription: d",
                                      "- a",
                                      "text",
                                      "name: a\ndescription: d\nmetadata: x",
                                      "name: a\ndescription: 'open"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_string_equal(lines(bad[i]), "-");
}

static void name_lengths(void **state) {
    (void)state;
    char text[512] = "name: ", *end = text + strlen(text);
    for (int i = 0; i < SKILL_NAME_MAX; i++)
        end = stpcpy(end, "\xc3\xa9");
    strcpy(end, "\ndescription: d");
    assert_string_not_equal(lines(text), "-");
    strcpy(end, "x\ndescription: d");
    assert_string_equal(lines(text), "-");
}

/* Prose that is no YAML counts as quoted, and nothing else does. */
static void repairs(void **state) {
    (void)state;
    assert_string_equal(lines("name: a\ndescription: Build: AWS: ECS"), "a|Build: AWS: ECS|");
    assert_string_equal(lines("name: a\ndescription: it's: so # not"), "a|it's: so|");
    assert_string_equal(lines("name: a\ndescription: @at"), "a|@at|");
    assert_string_equal(lines("name: a\ndescription: [x] y"), "a|[x] y|");
    assert_string_equal(lines("name: a\ndescription: d\nhint: <x: y>\nk: |\n  q: r: s"), "a|d|");
    assert_string_equal(lines(" name: a\n description: d: e"), "a|d: e|");
    assert_string_equal(lines("name: a\ndescription: 'x': y"), "-");
    assert_string_equal(lines("name: a\ndescription: d\nx: y: z\nq: 'open"), "-");
}

/* The metadata as JSON; static. */
static const char *metadata(const char *yaml) {
    static char out[4096];
    struct buf b = BUF_INIT(sizeof out);
    arena_fini(&arena);
    arena = ARENA_INIT(SKILL_ARENA_MAX);
    assert_int_equal(skill_put_metadata(&arena, str_of(yaml), &b), 0);
    snprintf(out, sizeof out, "%.*s", (int)b.len, b.p);
    buf_fini(&b);
    return out;
}

#define NONE "\"dependencies\":null,\"policy\":null"

static void policies(void **state) {
    (void)state;
    assert_string_equal(metadata(NULL), NONE);
    assert_string_equal(metadata(""), NONE);
    assert_string_equal(metadata("policy:"), NONE);
    assert_string_equal(metadata("policy: {}"), "\"dependencies\":null,\"policy\":{"
                                                "\"allowImplicitInvocation\":null,"
                                                "\"products\":[]}");
    assert_string_equal(metadata("policy: {allow_implicit_invocation: False, products: [CODEX]}"),
                        "\"dependencies\":null,\"policy\":{\"allowImplicitInvocation\":false,"
                        "\"products\":[\"codex\"]}");
    static const char *const bad[] = {"policy: x",
                                      "policy: {products: [other]}",
                                      "policy: {products: codex}",
                                      "policy: {allow_implicit_invocation: no}",
                                      "policy: {}\npolicy: {}",
                                      "policy: {}\ninterface: {display_name: []}",
                                      "policy: {}\ndependencies: []",
                                      "[",
                                      "5"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_string_equal(metadata(bad[i]), NONE);
}

static void dependencies(void **state) {
    (void)state;
    assert_string_equal(metadata("dependencies: {tools: [{type: a, value: ' b  c ', url: ''}, "
                                 "{value: c}]}"),
                        "\"dependencies\":{\"tools\":[{\"type\":\"a\",\"value\":\"b c\","
                        "\"description\":null,\"transport\":null,\"command\":null,\"url\":null,"
                        "\"oauthCallbackPort\":null}]},\"policy\":null");
    assert_non_null(strstr(metadata("dependencies: {tools: [{type: a, value: b, oauth: "
                                    "{callback_port: 0x50}}]}"),
                           "\"oauthCallbackPort\":80"));
    static const char *const none[] = {
        "dependencies: {tools: []}",
        "dependencies: {tools: [{type: a}]}",
        "dependencies: {tools: x}",
        "dependencies: {tools: [x]}",
        "dependencies: {tools: [{type: a, value: b, oauth: {callbackPort: 65536}}]}",
        "dependencies: {tools: [{type: a, value: b, oauth: {callbackPort: 1, callback_port: 1}}]}"};
    for (size_t i = 0; i < ARRAY_LEN(none); i++)
        assert_string_equal(metadata(none[i]), NONE);
}

static int end(void **state) {
    (void)state;
    arena_fini(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames),  cmocka_unit_test(values),   cmocka_unit_test(name_lengths),
        cmocka_unit_test(repairs), cmocka_unit_test(policies), cmocka_unit_test(dependencies),
    };
    return cmocka_run_group_tests(tests, NULL, end);
}
