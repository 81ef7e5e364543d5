#include "client/environments.h"

#include "base/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <cmocka.h>

#define ENTRY "[[environments]]\n"
#define URL ENTRY "id='a'\nurl='ws://127.0.0.1:9'\n"
#define PROGRAM ENTRY "id='a'\nprogram='/bin/x'\n"
#define AT(url) ENTRY "id='a'\nurl='" url "'\n"
#define TOKEN(url) AT(url) "auth_bearer_token='t'\n"
#define ID64 "0123456789-ABCDEF_0123456789abcdef0123456789abcdef0123456789abcd"
#define PARSE "failed to parse environment config `/h/F`: "
#define FIELDS                                                                                     \
    "`id`, `skills`, `url`, `auth_bearer_token`, `program`, `args`, `env`, `cwd`, "                \
    "`connect_timeout_sec`, `initialize_timeout_sec`"
#define NOT_SECURE "exec-server WebSocket headers require wss:// or a loopback destination"

/* What a file gives: the error, or the default and the entries. */
static const char *outcome(const char *text) {
    static char shown[8192];
    _cleanup_arena_ struct arena a = ARENA_INIT(TOML_ARENA_MAX);
    _cleanup_err_ struct err e = ERR_INIT;
    _cleanup_buf_ struct buf b = BUF_INIT(sizeof shown);
    struct environments list;
    if (environments_read(str_of(text), "/h/F", &a, &list, &e) < 0) {
        snprintf(shown, sizeof shown, "%s", err_msg(&e));
        return shown;
    }
    int r = buf_putf(&b, "%s", list.default_id != NULL ? list.default_id : "-");
    for (size_t i = 0; i < list.count; i++) {
        const struct environments_entry *entry = &list.entries[i];
        r |= buf_putf(&b, " %s", entry->url != NULL ? entry->url : entry->program);
        for (size_t k = 0; k < entry->arg_count; k++)
            r |= buf_putf(&b, ",%s", entry->args[k]);
        for (size_t k = 0; k < entry->env_count; k++)
            r |= buf_putf(&b, ",%s=%s", entry->env[k].name, entry->env[k].value);
        if (entry->cwd != NULL)
            r |= buf_putf(&b, " in %s", entry->cwd);
        if (entry->token != NULL)
            r |= buf_putf(&b, " token %s", entry->token);
        if (entry->connect_ms != 10000 || entry->initialize_ms != 10000)
            r |= buf_putf(&b, " %u %u", entry->connect_ms, entry->initialize_ms);
    }
    assert_int_equal(r, 0);
    snprintf(shown, sizeof shown, "%.*s", (int)b.len, b.p);
    return shown;
}

struct environments_case {
    const char *text, *outcome;
};

static void run(const struct environments_case *cases, size_t n) {
    for (size_t i = 0; i < n; i++)
        assert_string_equal(outcome(cases[i].text), cases[i].outcome);
}

static void accepted(void **state) {
    static const struct environments_case cases[] = {
        {"", "local"},
        {"include_local=false", "-"},
        {"environments=[]", "local"},
        {URL, "local ws://127.0.0.1:9"},
        {"include_local=false\n" URL, "- ws://127.0.0.1:9"},
        {"default='a'\n" URL, "a ws://127.0.0.1:9"},
        {"default=' a '\n" URL, "a ws://127.0.0.1:9"},
        {"default='None'\n" URL, "- ws://127.0.0.1:9"},
        {"default='local'\n" URL, "local ws://127.0.0.1:9"},
        {"environments=[{id='a',url='wss://x/y?z'}]", "local wss://x/y?z"},
        {AT("ws://x/{a}|^"), "local ws://x/{a}|^"},
        {AT(" ws://u:p@[::1]:9#f "), "local ws://u:p@[::1]:9#f"},
        {ENTRY "id='LOCAL'\nurl='ws://x'", "local ws://x"},
        {ENTRY "id='" ID64 "'\nurl='ws://x'", "local ws://x"},
        {PROGRAM "args=['-a','b']\nenv={A='b',C=''}\ncwd='d'\ninitialize_timeout_sec=0.0001",
         "local /bin/x,-a,b,A=b,C= in /h/d 10000 1"},
        {ENTRY "id='a'\nprogram=' /bin/x '\ncwd=''", "local /bin/x in /h/"},
        {PROGRAM "cwd='/d'", "local /bin/x in /d"},
        {URL "connect_timeout_sec=-0.0\ninitialize_timeout_sec=1e19",
         "local ws://127.0.0.1:9 0 2147483647"},
        {URL "skills={required=['x']}", "local ws://127.0.0.1:9"},
        {TOKEN("ws://127.9.9.9"), "local ws://127.9.9.9 token t"},
        {TOKEN("ws://[::1]:9"), "local ws://[::1]:9 token t"},
        {TOKEN("ws://u@LOCALHOST:9/x"), "local ws://u@LOCALHOST:9/x token t"},
        {TOKEN("wss://example.invalid"), "local wss://example.invalid token t"},
        {URL "auth_bearer_token=''", "local ws://127.0.0.1:9 token "},
    };
    (void)state;
    run(cases, ARRAY_LEN(cases));
}

/* The texts are those of the Codex client. */
static void refused_by_rules(void **state) {
    static const struct environments_case cases[] = {
        {"default='b'\n" URL, "default environment `b` is not configured"},
        {"default='LOCAL'", "default environment `LOCAL` is not configured"},
        {"include_local=false\ndefault='local'", "default environment `local` is not configured"},
        {"default=' '", "default environment id cannot be empty"},
        {ENTRY "id=' '\nurl='ws://x'", "environment id cannot be empty"},
        {ENTRY "id=' a'\nurl='ws://x'",
         "environment id ` a` must not contain surrounding whitespace"},
        {ENTRY "id='a b'\nurl='ws://x'",
         "environment id `a b` must contain only ASCII letters, numbers, '-' or '_'"},
        {ENTRY "id='local'\nurl='ws://x'", "environment id `local` is reserved"},
        {ENTRY "id='None'\nurl='ws://x'", "environment id `None` is reserved"},
        {ENTRY "id='" ID64 " '\nurl='ws://x'",
         "environment id `" ID64 " ` must not contain surrounding whitespace"},
        {ENTRY "id='" ID64 "%'\nurl='ws://x'",
         "environment id `" ID64 "%` cannot be longer than 64 characters"},
        {URL URL, "environment id `a` is duplicated"},
        {"default='b'\n" URL URL, "environment id `a` is duplicated"},
        {ENTRY "id='a'", "environment `a` must set exactly one of url or program"},
        {URL "program=''", "environment `a` must set exactly one of url or program"},
        {URL "args=[]", "environment `a` args, env, and cwd require program"},
        {URL "env={}", "environment `a` args, env, and cwd require program"},
        {ENTRY "id='a'\ncwd='/'", "environment `a` args, env, and cwd require program"},
        {PROGRAM "auth_bearer_token='x'\nconnect_timeout_sec=1",
         "environment `a` auth_bearer_token requires url"},
        {PROGRAM "connect_timeout_sec=1", "environment `a` connect_timeout_sec requires url"},
        {ENTRY "id='a'\nprogram=' '", "environment `a` program cannot be empty"},
        {AT(" "), "environment url cannot be empty"},
        {AT("http://x"), "environment url `http://x` must use ws:// or wss://"},
        {AT("WS://x"), "environment url `WS://x` must use ws:// or wss://"},
        {AT("ws://"), "environment url `ws://` is invalid: HTTP format error: empty string"},
        {AT("ws:///x"), "environment url `ws:///x` is invalid: HTTP format error: invalid format"},
        {AT("ws://[::1"),
         "environment url `ws://[::1` is invalid: HTTP format error: invalid authority"},
        {AT("ws://[::1]x"),
         "environment url `ws://[::1]x` is invalid: HTTP format error: invalid authority"},
        {AT("ws://a\\b@c"),
         "environment url `ws://a\\b@c` is invalid: HTTP format error: invalid uri character"},
        {AT("ws://x/<"),
         "environment url `ws://x/<` is invalid: HTTP format error: invalid uri character"},
        {AT("ws://a b"),
         "environment url `ws://a b` is invalid: HTTP format error: invalid uri character"},
        {URL "auth_bearer_token=\"a\\nb\"",
         "invalid value for exec-server WebSocket header `authorization`"},
        {TOKEN("ws://example.invalid"), NOT_SECURE},
        {TOKEN("ws://localhost@example.invalid"), NOT_SECURE},
        {TOKEN("ws://example.invalid/@localhost"), NOT_SECURE},
        {TOKEN("ws://example.invalid?@localhost"), NOT_SECURE},
        {TOKEN("ws://localhost."), NOT_SECURE},
        {TOKEN("ws://x.localhost"), NOT_SECURE},
        {TOKEN("ws://[::ffff:127.0.0.1]"), NOT_SECURE},
        {TOKEN("ws://127.0.0.1.example.invalid"), NOT_SECURE},
        {TOKEN("ws://10.0.0.1"), NOT_SECURE},
    };
    (void)state;
    run(cases, ARRAY_LEN(cases));
}

static void refused_by_types(void **state) {
    static const struct environments_case cases[] = {
        {"a = ", PARSE "line 1, column 5: expected a value, not the end of the file"},
        {"foo=1", PARSE "line 1: unknown key `foo`, expected one of `default`, `include_local`, "
                        "`environments`"},
        {URL "foo=1", PARSE "line 4: unknown key `foo`, expected one of " FIELDS},
        {"default=1", PARSE "line 1: `default` must be a string, not an integer"},
        {"include_local=1", PARSE "line 1: `include_local` must be a boolean, not an integer"},
        {"environments=1", PARSE "line 1: `environments` must be an array, not an integer"},
        {"[environments]", PARSE "line 1: `environments` must be an array, not a table"},
        {"environments=[1]", PARSE "line 1: `environments` must be a table, not an integer"},
        {"\n" ENTRY "url='ws://x'", PARSE "line 2: missing field `id`"},
        {ENTRY "id=''\n" ENTRY, PARSE "line 3: missing field `id`"},
        {PROGRAM "args='x'", PARSE "line 4: `environments.args` must be an array, not a string"},
        {PROGRAM "args=[1]", PARSE "line 4: `environments.args` must be a string, not an integer"},
        {PROGRAM "args=[\"\\u0000\"]", PARSE "line 4: `environments.args` contains a NUL byte"},
        {PROGRAM "env=[]", PARSE "line 4: `environments.env` must be a table, not an array"},
        {PROGRAM "env={A=1}", PARSE "line 4: `environments.env` must be a string, not an integer"},
        {PROGRAM "env={'A=b'=''}", PARSE "line 4: `environments.env` has a name that is empty or "
                                         "contains '=' or a NUL byte"},
        {URL "connect_timeout_sec='1'",
         PARSE "line 4: `environments.connect_timeout_sec` must be a number, not a string"},
        {URL "connect_timeout_sec=-1",
         PARSE "line 4: `environments.connect_timeout_sec` is negative"},
        {URL "connect_timeout_sec=nan",
         PARSE "line 4: `environments.connect_timeout_sec` is too large or not a number"},
        {URL "initialize_timeout_sec=1.8446744073709552e19",
         PARSE "line 4: `environments.initialize_timeout_sec` is too large or not a number"},
        {URL "skills={x=1}", PARSE "line 4: unknown key `x`, expected `required`"},
        {URL "skills={required=[1]}",
         PARSE "line 4: `environments.skills.required` must be a string, not an integer"},
    };
    (void)state;
    run(cases, ARRAY_LEN(cases));
}

static void limit_of_entries(void **state) {
    _cleanup_buf_ struct buf b = BUF_INIT(1u << 20);
    (void)state;
    for (unsigned i = 0; i <= ENVIRONMENTS_MAX; i++)
        assert_int_equal(buf_putf(&b, ENTRY "id='x%u'\nurl='ws://x'\n", i), 0);
    assert_int_equal(buf_putc(&b, '\0'), 0);
    assert_string_equal(outcome(b.p), PARSE "more than 1024 environments");
}

static void file_or_variable(void **state) {
    _cleanup_arena_ struct arena a = ARENA_INIT(TOML_ARENA_MAX);
    _cleanup_err_ struct err e = ERR_INIT;
    struct environments list;
    char home[] = "/tmp/test_environments.XXXXXX", path[64], expected[160];
    (void)state;
    assert_non_null(mkdtemp(home));
    snprintf(path, sizeof path, "%s/environments.toml", home);

    assert_int_equal(environments_load(home, NULL, &a, &list, &e), 0);
    assert_true(!list.from_file && list.include_local && list.count == 0);
    assert_string_equal(list.default_id, "local");
    assert_int_equal(environments_load(home, " NONE ", &a, &list, &e), 0);
    assert_true(!list.include_local && list.count == 0 && list.default_id == NULL);
    assert_int_equal(environments_load(home, " ws://x:1 ", &a, &list, &e), 0);
    assert_true(!list.from_file && !list.include_local && list.count == 1);
    assert_string_equal(list.default_id, "remote");
    assert_string_equal(environments_find(&list, "remote")->url, "ws://x:1");
    assert_int_equal(environments_load(home, "x", &a, &list, &e), -EINVAL);

    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, URL, strlen(URL)), strlen(URL));
    close(fd);
    assert_int_equal(environments_load(home, "ws://x:1", &a, &list, &e), 0);
    assert_true(list.from_file && list.include_local && list.count == 1);
    assert_null(environments_find(&list, "remote"));
    assert_non_null(environments_find(&list, "a"));
    assert_int_equal(unlink(path), 0);

    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(environments_load(home, "ws://x:1", &a, &list, &e), -EISDIR);
    snprintf(expected, sizeof expected,
             "failed to read environment config `%s`: Is a directory (os error 21)", path);
    assert_string_equal(err_msg(&e), expected);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(home), 0);
}

static void codex_home(void **state) {
    _cleanup_arena_ struct arena a = ARENA_INIT(4096);
    (void)state;
    assert_string_equal(environments_home("/c", "/h", &a), "/c");
    assert_string_equal(environments_home("", "/h", &a), "/h/.codex");
    assert_string_equal(environments_home(NULL, "/h", &a), "/h/.codex");
    assert_null(environments_home(NULL, NULL, &a));
    assert_null(environments_home(NULL, "", &a));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepted),         cmocka_unit_test(refused_by_rules),
        cmocka_unit_test(refused_by_types), cmocka_unit_test(limit_of_entries),
        cmocka_unit_test(file_or_variable), cmocka_unit_test(codex_home),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
