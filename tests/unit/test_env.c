#include "proc/env.h"

#include "base/buf.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

struct fixture {
    struct json_doc doc;
    struct arena arena;
    struct env_policy policy;
    struct env_request request;
    struct buf text; /* the result, one variable per line */
};

static struct fixture f;

static int setup(void **state) {
    (void)state;
    f = (struct fixture){.arena = ARENA_INIT(1 << 22), .text = BUF_INIT(1 << 20)};
    json_doc_init(&f.doc, 1 << 20, 1);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    json_doc_fini(&f.doc);
    arena_fini(&f.arena);
    buf_fini(&f.text);
    return 0;
}

/*
 * Reads {"env":{},"inherit":"all"|"core"|"none","ignore":true,"exclude":[],"set":{},"only":[]}; no
 * "inherit" means no policy. `'` stands for a double quote.
 */
static void request(const char *json) {
    _cleanup_err_ struct err e = ERR_INIT;
    size_t n = strlen(json);
    char *text = arena_strdup(&f.arena, (struct str){json, n});
    for (char *p = text; (p = strchr(p, '\'')) != NULL;)
        *p = '"';
    assert_int_equal(json_parse(&f.doc, text, n, &e), 0);
    const struct json_node *root = json_root(&f.doc), *inherit = json_get(root, "inherit");
    f.request = (struct env_request){.env = json_get(root, "env")};
    if (inherit == NULL)
        return;
    const struct json_node *ignore = json_get(root, "ignore");
    f.policy = (struct env_policy){
        .inherit = str_eqz(json_str(inherit), "all")    ? ENV_ALL
                   : str_eqz(json_str(inherit), "core") ? ENV_CORE
                                                        : ENV_NONE,
        .ignore_default_excludes = ignore != NULL && ignore->type == JSON_TRUE,
        .exclude = json_get(root, "exclude"),
        .set = json_get(root, "set"),
        .include_only = json_get(root, "only"),
    };
    f.request.policy = &f.policy;
}

static char **build(char *const *inherited) {
    char **envp = NULL;
    assert_int_equal(env_build(&f.arena, &f.request, inherited, &envp), 0);
    assert_non_null(envp);
    return envp;
}

/* The environment that results, each variable followed by a newline. */
static const char *result(char *const *inherited) {
    f.text.len = 0;
    for (char **v = build(inherited); *v != NULL; v++)
        assert_int_equal(buf_putf(&f.text, "%s\n", *v), 0);
    assert_int_equal(buf_putc(&f.text, '\0'), 0);
    return f.text.p;
}

static char *const nothing[] = {NULL};
#define INHERITED(...) ((char *const[]){__VA_ARGS__, NULL})

/* -- exact -- */

static void exactly_the_map_sorted(void **state) {
    (void)state;
    request("{'env':{'b':'2','B':'1','a_':'4','a':'3','':'x','c=d':'5','e':''}}");
    assert_string_equal(result(INHERITED("PATH=/bin", "HOME=/root")),
                        "=x\nB=1\na=3\na_=4\nb=2\nc=d=5\ne=\n");
    request("{'env':{}}");
    assert_string_equal(result(INHERITED("PATH=/bin")), "");
}

static void a_nul_is_reported(void **state) {
    (void)state;
    char **envp;
    request("{'env':{'a':'x\\u0000y'}}");
    assert_int_equal(env_build(&f.arena, &f.request, nothing, &envp), -EINVAL);
    request("{'env':{'a\\u0000':'x'}}");
    assert_int_equal(env_build(&f.arena, &f.request, nothing, &envp), -EINVAL);
}

/* -- policy -- */

static void inherits_all(void **state) {
    (void)state;
    request("{'env':{},'inherit':'all','exclude':[],'set':{},'only':[]}");
    assert_string_equal(result(INHERITED("Z=1", "A=2", "=odd=x", "nonsense", "E=", "P=a=b")),
                        "=odd=x\nA=2\nE=\nP=a=b\nZ=1\n");
}

static void inherits_nothing(void **state) {
    (void)state;
    request("{'env':{'A':'1'},'inherit':'none','exclude':[],'set':{'B':'2'},'only':[]}");
    assert_string_equal(result(INHERITED("PATH=/bin", "Z=1")), "A=1\nB=2\n");
}

static void inherits_the_core(void **state) {
    (void)state;
    request("{'env':{},'inherit':'core','exclude':[],'set':{},'only':[]}");
    assert_string_equal(
        result(INHERITED("PATH=1", "SHELL=2", "TMPDIR=3", "TEMP=4", "TMP=5", "HOME=6", "LANG=7",
                         "LC_ALL=8", "LC_CTYPE=9", "LOGNAME=10", "USER=11", "TERM=no", "PWD=no",
                         "LC_TIME=no", "PATHX=no", "path=12", "Home=13")),
        "HOME=6\nHome=13\nLANG=7\nLC_ALL=8\nLC_CTYPE=9\nLOGNAME=10\nPATH=1\nSHELL=2\nTEMP=4\n"
        "TMP=5\nTMPDIR=3\nUSER=11\npath=12\n");
}

static void drops_secrets(void **state) {
    (void)state;
    char *const inherited[] = {"API_KEY=1",  "monkey=2",  "My_Secret_x=3", "TOKENS=4",
                               "PASSWORD=5", "KEBOARD=6", "TOKE=7",        NULL};
    request("{'env':{},'inherit':'all','exclude':[],'set':{},'only':[]}");
    assert_string_equal(result(inherited), "KEBOARD=6\nPASSWORD=5\nTOKE=7\n");
    request("{'env':{},'inherit':'all','ignore':true,'exclude':[],'set':{},'only':[]}");
    assert_string_equal(result(inherited), "API_KEY=1\nKEBOARD=6\nMy_Secret_x=3\nPASSWORD=5\n"
                                           "TOKE=7\nTOKENS=4\nmonkey=2\n");
}

/* What is set or sent is not subject to the excludes; what is set is subject to includeOnly. */
static void order_of_the_steps(void **state) {
    (void)state;
    request("{'env':{'MY_KEY':'sent','OUT':'sent'},'inherit':'all','exclude':['X*'],"
            "'set':{'X1':'set','A_TOKEN':'set','gone':'set'},'only':['X?','*TOKEN','in*']}");
    assert_string_equal(result(INHERITED("X1=i", "X2=i", "IN=i", "inner=i", "other=i")),
                        "A_TOKEN=set\nIN=i\nMY_KEY=sent\nOUT=sent\nX1=set\ninner=i\n");
}

static void later_steps_win(void **state) {
    (void)state;
    request("{'env':{'A':'sent','B':'sent'},'inherit':'all','exclude':[],"
            "'set':{'B':'set','C':'set'},'only':[]}");
    assert_string_equal(result(INHERITED("A=i", "B=i", "C=i", "D=i")),
                        "A=sent\nB=sent\nC=set\nD=i\n");
}

static void only_an_empty_pattern_keeps_nothing(void **state) {
    (void)state;
    request("{'env':{'E':'1'},'inherit':'all','exclude':[''],'set':{'S':'1'},'only':['']}");
    assert_string_equal(result(INHERITED("A=1")), "E=1\n");
    request("{'env':{},'inherit':'all','exclude':[''],'set':{},'only':[]}");
    assert_string_equal(result(INHERITED("A=1")), "A=1\n");
}

/* The reference falls over such a variable; it is passed over. */
static void passes_over_what_is_no_text(void **state) {
    (void)state;
    request("{'env':{},'inherit':'all','exclude':[],'set':{},'only':[]}");
    assert_string_equal(result(INHERITED("A=\xff", "\xc3=1", "B=\xc3\xa9")), "B=\xc3\xa9\n");
}

/* -- names that never reach a command -- */

static const char restricted_any_case[] =
    "'CODEX_EXEC_SERVER_NOISE_AUTH_TOKEN':'1','codex_exec_server_noise_auth_token':'1',"
    "'NODE_REPL_AUTH_TOKEN':'1','Node_Repl_Auth_Token':'1','OPENAI_FEDERATION_RULE_ID':'1',"
    "'openai_federation_rule_id':'1','OPENAI_IDENTITY_TOKEN_FILE':'1',"
    "'OPENAI_WORKLOAD_IDENTITY_CONTEXT':'1','CODEX_GUARDIAN_DECISIONS_API_KEY':'1',"
    "'codex_guardian_decisions_api_key':'1','CODEX_EXEC_SERVER_EXIT_ON_STDIN_CLOSE':'1',"
    "'CODEX_TOOL_CALL_ID':'1'";
static const char allowed[] = "'codex_exec_server_exit_on_stdin_close':'1',"
                              "'codex_tool_call_id':'1','CODEX_THREAD_ID':'1',"
                              "'CODEX_SESSION_ID':'1'";
static const char allowed_result[] =
    "CODEX_SESSION_ID=1\nCODEX_THREAD_ID=1\ncodex_exec_server_exit_on_stdin_close=1\n"
    "codex_tool_call_id=1\n";

static void requestf(const char *format, const char *a, const char *b) {
    _cleanup_buf_ struct buf text = BUF_INIT(1 << 16);
    for (const char *p = format; *p != '\0'; p++) {
        const char *part = *p == '@' ? a : *p == '%' ? b : NULL;
        assert_int_equal(part ? buf_putz(&text, part) : buf_putc(&text, *p), 0);
    }
    assert_int_equal(buf_putc(&text, '\0'), 0);
    request(text.p);
}

static void restricted_in_the_map(void **state) {
    (void)state;
    requestf("{'env':{@,%}}", restricted_any_case, allowed);
    assert_string_equal(result(nothing), allowed_result);
}

static void restricted_in_what_is_set(void **state) {
    (void)state;
    requestf("{'env':{},'inherit':'none','ignore':true,'exclude':[],'set':{@,%},'only':[]}",
             restricted_any_case, allowed);
    assert_string_equal(result(nothing), allowed_result);
}

static void restricted_in_what_is_inherited(void **state) {
    (void)state;
    request("{'env':{},'inherit':'all','ignore':true,'exclude':[],'set':{},'only':[]}");
    assert_string_equal(
        result(INHERITED("CODEX_EXEC_SERVER_NOISE_AUTH_TOKEN=1", "node_repl_auth_token=1",
                         "CODEX_TOOL_CALL_ID=1", "CODEX_EXEC_SERVER_EXIT_ON_STDIN_CLOSE=1",
                         "CODEX_THREAD_ID=1")),
        "CODEX_THREAD_ID=1\n");
}

/* -- what the server adds -- */

static void metadata_wins(void **state) {
    (void)state;
    request("{'env':{'CODEX_THREAD_ID':'sent','CODEX_TOOL_CALL_ID':'sent'}}");
    f.request.thread_id = STR_LIT("thread");
    f.request.tool_call_id = STR_LIT("call");
    assert_string_equal(result(nothing), "CODEX_THREAD_ID=thread\nCODEX_TOOL_CALL_ID=call\n");
    request("{'env':{},'inherit':'none','exclude':['*'],'set':{},'only':['nothing']}");
    f.request.thread_id = STR_LIT("thread");
    f.request.tool_call_id = STR_LIT("");
    assert_string_equal(result(nothing), "CODEX_THREAD_ID=thread\nCODEX_TOOL_CALL_ID=\n");
}

static void a_call_id_with_a_nul_is_not_set(void **state) {
    (void)state;
    request("{'env':{'A':'1'}}");
    f.request.tool_call_id = (struct str){"a\0b", 3};
    assert_string_equal(result(nothing), "A=1\n");
}

static void shell_only_when_missing(void **state) {
    (void)state;
    request("{'env':{'A':'1','shell':'x'}}");
    f.request.shell = "/bin/zsh";
    assert_string_equal(result(INHERITED("SHELL=/server")), "A=1\nSHELL=/bin/zsh\nshell=x\n");
    request("{'env':{'SHELL':''}}");
    f.request.shell = "/bin/zsh";
    assert_string_equal(result(nothing), "SHELL=\n");
    request("{'env':{},'inherit':'core','exclude':[],'set':{},'only':[]}");
    f.request.shell = "/bin/zsh";
    assert_string_equal(result(INHERITED("SHELL=/server")), "SHELL=/server\n");
}

static void many_variables(void **state) {
    (void)state;
    enum { COUNT = 1000 };
    _cleanup_buf_ struct buf text = BUF_INIT(1 << 16);
    assert_int_equal(buf_putz(&text, "{'env':{"), 0);
    for (int i = COUNT - 1; i >= 0; i--)
        assert_int_equal(buf_putf(&text, "'V%04d':'%d'%s", i, i, i ? "," : "}}"), 0);
    assert_int_equal(buf_putc(&text, '\0'), 0);
    request(text.p);
    char **envp = build(nothing);
    for (int i = 0; i < COUNT; i++) {
        char want[32];
        snprintf(want, sizeof want, "V%04d=%d", i, i);
        assert_string_equal(envp[i], want);
    }
    assert_null(envp[COUNT]);
}

/* Out of memory is an answer, not a crash, wherever it happens. */
static void out_of_memory(void **state) {
    (void)state;
    request("{'env':{'A':'1','B':'2'},'inherit':'all','exclude':[],'set':{'C':'3'},'only':[]}");
    for (size_t max = 0; max < 65536; max += 512) {
        _cleanup_arena_ struct arena small = ARENA_INIT(max);
        char **envp = NULL;
        int r = env_build(&small, &f.request, INHERITED("D=4"), &envp);
        if (r == 0) {
            assert_string_equal(envp[3], "D=4");
            return;
        }
        assert_int_equal(r, -ENOMEM);
    }
    fail_msg("never enough");
}

/* A text of n times `c` between two others. */
static void put_run(struct buf *b, const char *before, char c, size_t n, const char *after) {
    assert_int_equal(buf_putz(b, before), 0);
    while (n-- > 0)
        assert_int_equal(buf_putc(b, c), 0);
    assert_int_equal(buf_putz(b, after), 0);
}

/* Names and patterns that would take hours to compare are given up. */
static void matching_is_bounded(void **state) {
    (void)state;
    char **envp;
    _cleanup_buf_ struct buf text = BUF_INIT(1 << 19);
    put_run(&text, "{'env':{},'inherit':'none','exclude':[],'set':{'", 'a', 80000, "':''},");
    put_run(&text, "'only':['*", 'a', 40000, "b']}");
    assert_int_equal(buf_putc(&text, '\0'), 0);
    request(text.p);
    assert_int_equal(env_build(&f.arena, &f.request, nothing, &envp), -E2BIG);
    text.len = 0;
    put_run(&text, "{'env':{},'inherit':'none','exclude':[],'set':{'", 'a', 80000, "':''},");
    assert_int_equal(buf_putz(&text, "'only':['*b','a*']}"), 0);
    assert_int_equal(buf_putc(&text, '\0'), 0);
    request(text.p);
    assert_int_equal(env_build(&f.arena, &f.request, nothing, &envp), 0);
    assert_int_equal(strlen(envp[0]), 80001);
}

/* `names` variables and `patterns` patterns, none of which matches. */
static int build_many(int names, int patterns) {
    char **envp;
    _cleanup_buf_ struct buf text = BUF_INIT(1 << 19);
    assert_int_equal(buf_putz(&text, "{'env':{},'inherit':'none','exclude':[],'set':{"), 0);
    for (int i = 0; i < names; i++)
        assert_int_equal(buf_putf(&text, "%s'n%d':''", i > 0 ? "," : "", i), 0);
    assert_int_equal(buf_putz(&text, "},'only':["), 0);
    for (int i = 0; i < patterns; i++)
        assert_int_equal(buf_putf(&text, "%s'x%d'", i > 0 ? "," : "", i), 0);
    assert_int_equal(buf_put(&text, "]}", sizeof "]}"), 0);
    request(text.p);
    int r = env_build(&f.arena, &f.request, nothing, &envp);
    if (r == 0)
        assert_null(envp[0]);
    return r;
}

/* Many patterns that each fail at once are bounded, too. */
static void many_patterns_are_bounded(void **state) {
    (void)state;
    assert_true(3000 * 10000 > ENV_MATCH_STEPS);
    assert_int_equal(build_many(3000, 10000), -E2BIG);
    assert_int_equal(build_many(20, 10000), 0);
}

/* -- patterns -- */

static bool match(const char *pattern, const char *name) {
    return env_match(str_of(pattern), str_of(name));
}

static void patterns(void **state) {
    (void)state;
    assert_true(match("PATH", "path"));
    assert_false(match("PATH", "PATHS"));
    assert_false(match("PATHS", "PATH"));
    assert_true(match("*", "anything"));
    assert_true(match("*", ""));
    assert_true(match("**", ""));
    assert_true(match("a**b", "aB"));
    assert_true(match("a*b*c", "aXbYbZc"));
    assert_false(match("a*b*c", "aXbYbZ"));
    assert_true(match("*KEY*", "monkey"));
    assert_true(match("*a*a*a*", "banana"));
    assert_false(match("*a*a*a*a*", "banana"));
    assert_true(match("A?C", "abc"));
    assert_false(match("A?C", "ac"));
    assert_false(match("?", ""));
    assert_true(match("?*", "x"));
    assert_false(match("", ""));
    assert_false(match("", "x"));
    assert_true(match("[FH]*", "[fh]oo"));
    assert_false(match("[FH]*", "Foo"));
    assert_true(match("a.b", "A.B"));
    assert_false(match("a.b", "axb"));
    assert_true(match("\xc3\xa9?", "\xc3\xa9x"));
    assert_true(match("?", "\xc3\xa9")); /* one character, not one byte */
    assert_true(match("?", "\xf0\x9f\x98\x80"));
    assert_false(match("??", "\xc3\xa9"));
}

/* -- looking up -- */

static void lookup(void **state) {
    (void)state;
    char *const envp[] = {"PATHX=no", "PAT=no", "PATH=/bin", "EMPTY=", NULL};
    assert_string_equal(env_get(envp, "PATH"), "/bin");
    assert_string_equal(env_get(envp, "EMPTY"), "");
    assert_null(env_get(envp, "HOME"));
    assert_null(env_get(nothing, "PATH"));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(exactly_the_map_sorted),
        TEST(a_nul_is_reported),
        TEST(inherits_all),
        TEST(inherits_nothing),
        TEST(inherits_the_core),
        TEST(drops_secrets),
        TEST(order_of_the_steps),
        TEST(later_steps_win),
        TEST(only_an_empty_pattern_keeps_nothing),
        TEST(passes_over_what_is_no_text),
        TEST(restricted_in_the_map),
        TEST(restricted_in_what_is_set),
        TEST(restricted_in_what_is_inherited),
        TEST(metadata_wins),
        TEST(a_call_id_with_a_nul_is_not_set),
        TEST(shell_only_when_missing),
        TEST(many_variables),
        TEST(out_of_memory),
        TEST(matching_is_bounded),
        TEST(many_patterns_are_bounded),
        TEST(patterns),
        TEST(lookup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
