/* Decisions by rules, layers and heuristics. */
#include "rules/decide.h"
#include "rules/decide_danger.h"
#include "rules/decide_script.h"
#include "rules/shlex.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <cmocka.h>

static char place[] = "/tmp/test-decide-XXXXXX";

static const char *path_of(const char *name) {
    static char path[4][256];
    static unsigned next;
    char *p = path[next++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", place, name);
    return p;
}

static void write_file(const char *name, const char *text) {
    FILE *f = fopen(path_of(name), "we");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static int set_up(void **state) {
    (void)state;
    assert_non_null(mkdtemp(place));
    assert_int_equal(mkdir(path_of("system"), 0700), 0);
    assert_int_equal(mkdir(path_of("system/rules"), 0700), 0);
    assert_int_equal(mkdir(path_of("user"), 0700), 0);
    return mkdir(path_of("user/rules"), 0700);
}

static int clear(void **state) {
    (void)state;
    char command[300];
    snprintf(command, sizeof command, "rm -rf %s/*/rules/* %s/*/*.toml", place, place);
    return system(command);
}

static int tear_down(void **state) {
    (void)state;
    char command[300];
    snprintf(command, sizeof command, "rm -rf %s", place);
    return system(command);
}

static struct decide_options options(void) {
    static char system_dir[256], user_dir[256];
    snprintf(system_dir, sizeof system_dir, "%s/system", place);
    snprintf(user_dir, sizeof user_dir, "%s/user", place);
    return (struct decide_options){
        .system_dir = system_dir, .user_dir = user_dir, .home = "/home/x"};
}

static struct decide *load(const struct decide_options *o) {
    _cleanup_err_ struct err e = ERR_INIT;
    struct decide *d = NULL;
    if (decide_new(&d, o, &e) < 0)
        fail_msg("%s", err_msg(&e));
    return d;
}

/* The verdict on a command line as text: "Run", "Deny: REASON", "Ask Escalate", ... */
static const char *verdict(const struct decide *d, const char *line, const char *resolved) {
    static char out[512];
    _cleanup_arena_ struct arena a = ARENA_INIT(1u << 20);
    struct shlex_words words;
    struct decide_verdict v;
    static const char *const names[] = {"Run", "Escalate", "Deny", "Ask"};
    assert_int_equal(shlex_split(str_of(line), &a, &words), 0);
    struct decide_name list[2] = {{words.list[0], words.list + 1, words.n - 1, false},
                                  {str_of(resolved), words.list + 1, words.n - 1, false}};
    struct decide_query q = {list, resolved != NULL ? 2 : 1, resolved != NULL ? 1 : 0, "/work"};
    assert_int_equal(decide_query(d, &q, &a, &v), 0);
    int n = snprintf(out, sizeof out, "%s", names[v.action]);
    if (v.action == DECIDE_ASK)
        snprintf(out + n, sizeof out - (size_t)n, " %s", names[v.accepted]);
    else if (v.action == DECIDE_DENY)
        snprintf(out + n, sizeof out - (size_t)n, ": %.*s", (int)v.reason.n, v.reason.p);
    return out;
}

static void rules_decide(void **state) {
    (void)state;
    write_file("user/rules/a.rules",
               "prefix_rule(pattern=[\"git\"])\n"
               "prefix_rule(pattern=[\"git\", \"push\"], decision=\"prompt\")\n"
               "prefix_rule(pattern=[\"id\"], decision=\"forbidden\", justification=\"why\")\n"
               "prefix_rule(pattern=[\"who\"], decision=\"forbidden\")\n"
               "prefix_rule(pattern=[\"/opt/x\"])\n"
               "host_executable(name=\"hg\", paths=[\"/usr/bin/hg\"])\n"
               "prefix_rule(pattern=[\"hg\"])\n");
    struct decide_options o = options();
    struct decide *d = load(&o);
    assert_string_equal(verdict(d, "/usr/bin/git status", NULL), "Escalate");
    assert_string_equal(verdict(d, "/usr/bin/git push", NULL), "Ask Escalate");
    assert_string_equal(verdict(d, "/usr/bin/id", NULL), "Deny: why");
    assert_string_equal(verdict(d, "/usr/bin/who", NULL), "Deny: Execution forbidden by policy");
    assert_string_equal(verdict(d, "/bin/ls", NULL), "Run");
    assert_string_equal(verdict(d, "/opt/x", NULL), "Escalate");
    assert_string_equal(verdict(d, "/usr/bin/hg", NULL), "Escalate");
    assert_string_equal(verdict(d, "/evil/hg", NULL), "Run");
    assert_true(decide_restricts(d));
    decide_free(d);
    o.whole_paths = true;
    d = load(&o);
    assert_string_equal(verdict(d, "/usr/bin/git status", NULL), "Run");
    assert_string_equal(verdict(d, "/opt/x", NULL), "Escalate");
    decide_free(d);
    o.whole_paths = false;
    o.compat = true;
    d = load(&o);
    assert_string_equal(verdict(d, "/usr/bin/id", NULL), "Deny: Execution forbidden by policy");
    assert_string_equal(verdict(d, "/opt/x", NULL), "Run");
    decide_free(d);
}

static void both_names_count(void **state) {
    (void)state;
    write_file("user/rules/a.rules", "prefix_rule(pattern=[\"git\"])\n"
                                     "prefix_rule(pattern=[\"id\"], decision=\"forbidden\")\n"
                                     "prefix_rule(pattern=[\"ask\"], decision=\"prompt\")\n");
    struct decide_options o = options();
    struct decide *d = load(&o);
    assert_string_equal(verdict(d, "/x/git", "/x/evil"), "Run");
    assert_string_equal(verdict(d, "/x/link", "/usr/bin/git"), "Escalate");
    assert_string_equal(verdict(d, "/x/git", "/usr/bin/id"), "Deny: Execution forbidden by policy");
    assert_string_equal(verdict(d, "/x/id", "/usr/bin/git"), "Deny: Execution forbidden by policy");
    assert_string_equal(verdict(d, "/x/ask", "/x/evil"), "Ask Run");
    assert_string_equal(verdict(d, "/x/ask", "/usr/bin/git"), "Ask Escalate");
    assert_string_equal(verdict(d, "memfd:git", NULL), "Deny: Execution forbidden by policy");
    decide_free(d);
}

static void layers_add_up(void **state) {
    (void)state;
    write_file("system/rules/z.rules", "prefix_rule(pattern=[\"a\"], decision=\"prompt\")\n");
    write_file("user/rules/a.rules",
               "prefix_rule(pattern=[\"a\"])\nprefix_rule(pattern=[\"b\"])\n");
    write_file("user/rules/ignored.RULES", "syntax error");
    assert_int_equal(symlink("/nonexistent", path_of("user/rules/link.rules")), 0);
    write_file("system/requirements.toml",
               "[[rules.prefix_rules]]\npattern = [{token = \"b\"}, {any_of = [\"x\", \"y\"]}]\n"
               "decision = \"forbidden\"\njustification = \"by \\\"order\\\"\"\n");
    struct decide_options o = options();
    struct decide *d = load(&o);
    assert_string_equal(verdict(d, "/a", NULL), "Ask Escalate");
    assert_string_equal(verdict(d, "/b x", NULL), "Deny: by \"order\"");
    assert_string_equal(verdict(d, "/b z", NULL), "Escalate");
    decide_free(d);
}

static void changes_are_seen(void **state) {
    (void)state;
    struct decide_options o = options();
    struct decide *d = load(&o);
    assert_false(decide_refresh(d));
    assert_string_equal(verdict(d, "/a", NULL), "Run");
    write_file("user/rules/new.rules", "prefix_rule(pattern=[\"a\"])\n");
    assert_true(decide_refresh(d));
    assert_false(decide_refresh(d));
    assert_string_equal(verdict(d, "/a", NULL), "Escalate");
    write_file("user/rules/new.rules", "prefix_rule(\n");
    assert_true(decide_refresh(d));
    assert_non_null(decide_broken(d));
    assert_non_null(strstr(verdict(d, "/bin/true", NULL), "new.rules"));
    assert_int_equal(unlink(path_of("user/rules/new.rules")), 0);
    assert_true(decide_refresh(d));
    assert_null(decide_broken(d));
    assert_string_equal(verdict(d, "/bin/true", NULL), "Run");
    decide_free(d);
}

static void bad_files_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *file, *text, *error;
    } cases[] = {
        {"user/rules/a.rules", "x(", "failed to parse rules file "},
        {"user/rules/a.rules", "\xff", "stream did not contain valid UTF-8"},
        {"user/config.toml", "x = [", "config.toml: line 1, column 6"},
        {"system/config.toml", "x", "config.toml: line 1"},
        {"system/requirements.toml", "= 1", "Error parsing requirements file "},
        {"system/requirements.toml", "rules = 1", "must be an array"},
        {"system/requirements.toml", "rules.prefix_rules = [{pattern=[{token=\"a\"}]}]",
         "index 0 is missing a decision"},
        {"system/requirements.toml", "rules.prefix_rules = [{pattern=[],decision=\"prompt\"}]",
         "empty pattern"},
        {"system/requirements.toml",
         "rules.prefix_rules = [{pattern=[{token=\" \"}],decision=\"prompt\"}]", "blank token"},
        {"system/requirements.toml",
         "rules.prefix_rules = [{pattern=[{any_of=[]}],decision=\"prompt\"}]", "any_of"},
        {"system/requirements.toml",
         "rules.prefix_rules = [{pattern=[{token=\"a\",any_of=[\"b\"]}],decision=\"prompt\"}]",
         "exactly one"},
        {"system/requirements.toml",
         "rules.prefix_rules = [{pattern=[{token=\"a\"}],decision=\"allow\"}]", "'allow'"},
    };
    struct decide_options o = options();
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        _cleanup_err_ struct err e = ERR_INIT;
        struct decide *d = NULL;
        clear(NULL);
        write_file(cases[i].file, cases[i].text);
        assert_int_equal(decide_new(&d, &o, &e), -EINVAL);
        if (strstr(err_msg(&e), cases[i].error) == NULL)
            fail_msg("%s: %s", cases[i].error, err_msg(&e));
    }
}

/* -- heuristics -- */

static bool danger(const char *line, bool compat) {
    _cleanup_arena_ struct arena a = ARENA_INIT(1u << 20);
    struct shlex_words words;
    assert_int_equal(shlex_split(str_of(line), &a, &words), 0);
    return decide_danger(words.list, words.n, compat, &a);
}

static void dangers(void **state) {
    (void)state;
    static const struct {
        const char *line;
        bool ours, compat;
    } cases[] = {
        {"rm x", false, false},
        {"rm -rf x", true, true},
        {"rm -f x", true, true},
        {"rm -r -f x", true, false},
        {"rm -fr x", true, false},
        {"rm --force x", true, false},
        {"rm --fo x", true, false},
        {"rm -- -f", false, false},
        {"/bin/rm -rf x", true, false},
        {"git reset", false, true},
        {"git -C /tmp reset", false, true},
        {"git --git-dir=/x reset", false, true},
        {"git checkout reset", false, false},
        {"git branch -vd x", false, true},
        {"git branch x", false, false},
        {"git push --force", false, true},
        {"git push origin +main", false, true},
        {"git push origin main", false, false},
        {"git clean -fdx", false, true},
        {"git clean -n", false, false},
        {"sudo rm -rf x", true, true},
        {"sudo -u root rm -rf x", true, false},
        {"env -i A=b rm -rf x", true, false},
        {"trap 'rm -rf x' EXIT", true, false},
        {"bash -lc 'rm -rf x'", true, true},
        {"bash -c 'ls; git reset'", false, true},
        {"bash -lc 'git reset --hard && ls'", false, true},
        {"bash -c 'rm -rf x | cat'", true, true},
        {"bash -c 'if true; then rm -rf x; fi'", true, false},
        {"bash -c 'echo $(rm -rf x)'", true, false},
        {"sh -c 'echo `rm -rf x`'", true, false},
        {"sh -c 'for i in 1; do rm -f $i; done'", true, false},
        {"sh -c 'f() { rm -f x; }; f'", true, false},
        {"sh -c 'case x in a) rm -f y;; esac'", true, false},
        {"sh -c 'A=1 rm -f x >y'", true, false},
        {"sh -c '>y rm -f x'", true, false},
        {"sh -c 'echo rm -f x'", false, false},
        {"sh -c '# rm -f x'", false, false},
        {"sh -c 'sh -c \"rm -f x\"'", true, false},
        {"sh -ec 'rm -f x'", true, false},
        {"sh x", false, false},
        {"xargs rm -rf", false, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        if (danger(cases[i].line, false) != cases[i].ours)
            fail_msg("ours: %s", cases[i].line);
        if (danger(cases[i].line, true) != cases[i].compat)
            fail_msg("compat: %s", cases[i].line);
    }
}

static void deep_nesting_is_dangerous(void **state) {
    (void)state;
    assert_false(danger("env env env ls", false));
    assert_true(danger("env env env env env env env env env env ls", false));
}

static bool show(void *user, const struct str *words, size_t n) {
    struct buf *b = user;
    int r = b->len > 0 ? buf_putc(b, ';') : 0;
    for (size_t i = 0; i < n; i++)
        r |= buf_putf(b, "%s%.*s", i > 0 ? "|" : "", (int)words[i].n, words[i].p);
    return r == 0;
}

static void scripts(void **state) {
    (void)state;
    static const struct {
        const char *text, *commands;
        enum decide_script_result result;
        bool plain;
    } cases[] = {
        {"a b; c && d || e | f", "a|b;c;d;e;f", DECIDE_SCRIPT_DONE, true},
        {"a 'b c' \"d\"", "a|b c|d", DECIDE_SCRIPT_DONE, true},
        {"a & b", "", DECIDE_SCRIPT_ODD, true},
        {"a > b", "", DECIDE_SCRIPT_ODD, true},
        {"a $x", "", DECIDE_SCRIPT_ODD, true},
        {"(a)", "", DECIDE_SCRIPT_ODD, true},
        {"a & (b; c) & d", "a;b;c;d", DECIDE_SCRIPT_DONE, false},
        {"a \"$(b c)\" d", "b|c;a|$|d", DECIDE_SCRIPT_DONE, false},
        {"a <(b) >c", "b;a", DECIDE_SCRIPT_DONE, false},
        {"a\\ b c\\\n", "a b|c\n", DECIDE_SCRIPT_DONE, false},
        {"a 'b", "a|b", DECIDE_SCRIPT_DONE, false},
        {"", "", DECIDE_SCRIPT_DONE, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        _cleanup_arena_ struct arena a = ARENA_INIT(1u << 20);
        _cleanup_buf_ struct buf b = BUF_INIT(4096);
        enum decide_script_result r =
            decide_script(str_of(cases[i].text), cases[i].plain, &a, show, &b);
        if (r != cases[i].result || !str_eqz(buf_str(&b), cases[i].commands))
            fail_msg("%s: %d %.*s", cases[i].text, r, (int)b.len, b.p);
    }
}

#define TEST(name) cmocka_unit_test_setup(name, clear)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(rules_decide),
        TEST(both_names_count),
        TEST(layers_add_up),
        TEST(changes_are_seen),
        TEST(bad_files_are_refused),
        TEST(dangers),
        TEST(deep_nesting_is_dangerous),
        TEST(scripts),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
