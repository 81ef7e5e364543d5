#include "rules/execpolicy.h"

#include "rules/shlex.h"
#include "starlark/star.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

/* What a policy says of a command, as JSON; or the error. */
static const char *decide(const char *rules, const char *command, bool resolve) {
    static char shown[65536];
    static const struct execpolicy_place place = {"/work", "/home/user"};
    _cleanup_arena_ struct arena a = ARENA_INIT(1u << 20);
    _cleanup_buf_ struct buf b = BUF_INIT(sizeof shown - 1);
    struct shlex_words words;
    struct execpolicy_matches m;
    struct execpolicy *p = execpolicy_new();
    assert_int_equal(shlex_split(str_of(command), &a, &words), 0);
    int r = execpolicy_add(p, "x.rules", str_of(rules), &b);
    if (r == 0) {
        struct execpolicy_words c = {words.list, words.n};
        assert_int_equal(execpolicy_check(p, &c, resolve ? &place : NULL, &a, &m), 0);
        assert_int_equal(execpolicy_put_json(&b, &c, &m, false), 0);
    }
    execpolicy_free(p);
    snprintf(shown, sizeof shown, "%.*s", (int)b.len, b.p);
    return shown;
}

/* One match as JSON, without its closing braces. */
#define OPEN(prefix, decision)                                                                     \
    "{\"prefixRuleMatch\":{\"matchedPrefix\":[" prefix "],\"decision\":\"" decision "\""
#define MATCH(prefix, decision) OPEN(prefix, decision) "}}"
#define ONE(prefix, decision)                                                                      \
    "{\"matchedRules\":[" MATCH(prefix, decision) "],\"decision\":\"" decision "\"}"
#define NONE "{\"matchedRules\":[]}"

static void decisions(void **state) {
    (void)state;
    static const struct {
        const char *rules, *command, *outcome;
        bool resolve;
    } cases[] = {
        {"prefix_rule(['git', 'status'])", "git status -s", ONE("\"git\",\"status\"", "allow"),
         false},
        {"prefix_rule(['git', 'status'])", "git", NONE, false},
        {"prefix_rule(['git'], 'forbidden')", "Git", NONE, false},
        {"prefix_rule(['git', ['a', 'b']], 'prompt')", "git b", ONE("\"git\",\"b\"", "prompt"),
         false},
        {"[prefix_rule([x]) for x in ['a', 'b']]", "b", ONE("\"b\"", "allow"), false},
        {"prefix_rule(['a'], 'prompt'); prefix_rule(['a', 'b'])", "a b",
         "{\"matchedRules\":[" MATCH("\"a\"", "prompt") "," MATCH(
             "\"a\",\"b\"", "allow") "],\"decision\":\"prompt\"}",
         false},
        {"prefix_rule(['git'])", "/usr/bin/git", NONE, false},
        {"prefix_rule(['git'])", "./bin/../git",
         "{\"matchedRules\":[" OPEN(
             "\"git\"", "allow") ",\"resolvedProgram\":\"/work/git\"}}],\"decision\":\"allow\"}",
         true},
        {"host_executable('git', ['/usr/bin/git'])\nprefix_rule(['git'])", "/tmp/git", NONE, true},
        {"prefix_rule(['a'], justification='why')", "a",
         "{\"matchedRules\":[" OPEN(
             "\"a\"", "allow") ",\"justification\":\"why\"}}],\"decision\":\"allow\"}",
         false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_string_equal(decide(cases[i].rules, cases[i].command, cases[i].resolve),
                            cases[i].outcome);
}

/* The first line of the error. */
static void errors(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"prefix_rule([])", "invalid pattern element: pattern cannot be empty"},
        {"prefix_rule(['a'], match=['b'])", "expected every example to match at least one rule."},
        {"prefix_rule(['a'], not_match=['a x'])", "expected example to not match rule"},
        {"while True: pass", "Parse error: cannot use reserved keyword `while`"},
        {"def f(): return f()\nf()", "Starlark call stack overflow"},
        {"x = 'a' * 100000000", "the evaluation needs more than 64 MiB of memory"},
        {"[0 for i in range(100000) for k in range(100000)]", "the evaluation "},
        {"x = 1\n\ty = 2", "Parse error: tabs are not allowed"},
        {"x = []; x.append(x)\ny = []; y.append(y)\nx == y", "Starlark call stack overflow"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_non_null(strstr(decide(cases[i][0], "a", false), cases[i][1]));
}

/* Nesting is bounded wherever it can come from. */
static void nesting(void **state) {
    (void)state;
    static const char *const openers[] = {"(",     "[",      "-",        "not ",         "a(",
                                          "a[",    "{1:",    "lambda: ", "x if y else ", "f'{",
                                          "1 + (", "a or (", "if x:\n"};
    static char text[200000];
    for (size_t i = 0; i < ARRAY_LEN(openers); i++) {
        size_t n = strlen(openers[i]), count = 5000;
        for (size_t k = 0; k < count; k++)
            memcpy(text + k * n, openers[i], n);
        text[count * n] = '\0';
        assert_non_null(strstr(decide(text, "a", false), "error: "));
    }
    static const char *const chains[] = {"1+", "1 or ", "a.b", "a()", "1 if 1 else "};
    for (size_t i = 0; i < ARRAY_LEN(chains); i++) {
        size_t n = strlen(chains[i]);
        for (size_t k = 0; k < 20000 / n; k++)
            memcpy(text + k * n, chains[i], n);
        text[20000 / n * n] = '1';
        text[20000 / n * n + 1] = '\0';
        assert_non_null(strstr(decide(text, "a", false), "error: "));
    }
}

/* A file of n pieces, the number of each in place of '#'. */
static const char *repeated(const char *head, const char *piece, const char *tail, size_t n) {
    static char text[4u << 20];
    size_t at = (size_t)sprintf(text, "%s", head);
    for (size_t i = 0; i < n; i++) {
        const char *mark = strchr(piece, '#');
        at += (size_t)sprintf(text + at, "%.*s%zu%s", (int)(mark - piece), piece, i, mark + 1);
    }
    sprintf(text + at, "%s", tail);
    return text;
}

/* What is long and not deep costs no more than its steps, and its error has a text. */
static void long_files(void **state) {
    (void)state;
    static const char *const cases[][3] = {
        {"dict(", "a#=1,", ")"}, {"def f(", "a#,", "): pass"},
        {"", "a#=1\n", ""},      {"def f(**k): pass\nf(", "a#=1,", ")"},
        {"x = [", "a#,", "]"},   {"prefix_rule(['a", "#", "'], 'no')"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *text = repeated(cases[i][0], cases[i][1], cases[i][2], 60000);
        const char *shown = decide(text, "a", false);
        assert_true(strstr(shown, "error: ") != NULL || strcmp(shown, NONE) == 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decisions),
        cmocka_unit_test(errors),
        cmocka_unit_test(nesting),
        cmocka_unit_test(long_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
