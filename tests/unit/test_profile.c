#include "sandbox/policy/profile.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

/* Parts of a sandbox object. */
#define LEVEL "\"windowsSandboxLevel\":\"disabled\""
#define PLACES "\"cwd\":\"file:///srv/ws\",\"workspaceRoots\":[\"file:///srv/ws\",\"file:///two\"]"
#define FILES(entries, more)                                                                       \
    "{\"type\":\"managed\",\"file_system\":{\"type\":\"restricted\",\"entries\":[" entries         \
    "]" more "},\"network\":\"restricted\"}"
#define CONTEXT(permissions, more) "{\"permissions\":" permissions more "," LEVEL "}"
#define MANAGED(entries) CONTEXT(FILES(entries, ""), "," PLACES)
#define BARE(entries) CONTEXT(FILES(entries, ""), "")
#define ENTRY(path, access) "{\"path\":" path ",\"access\":\"" access "\"}"
#define SPECIAL(kind) "{\"type\":\"special\",\"value\":{\"kind\":\"" kind "\"}}"
#define BELOW(subpath)                                                                             \
    "{\"type\":\"special\",\"value\":{\"kind\":\"project_roots\",\"subpath\":\"" subpath "\"}}"
#define PATH(uri) "{\"type\":\"path\",\"path\":\"" uri "\"}"
#define GLOB(pattern) "{\"type\":\"glob_pattern\",\"pattern\":\"" pattern "\"}"
#define ROOT_READ ENTRY(SPECIAL("root"), "read")
#define ROOT_WRITE ENTRY(SPECIAL("root"), "write")
#define READ_ONLY FILES(ROOT_READ, "")

static struct json_doc doc;
static struct arena arena = ARENA_INIT(PROFILE_ARENA_MAX);
static char shown[1 << 20];

static const struct json_node *parse(const char *text) {
    _cleanup_err_ struct err e = ERR_INIT;
    if (json_parse(&doc, text, strlen(text), &e) < 0)
        fail_msg("%s: %s", text, err_msg(&e));
    return json_root(&doc);
}

static const char *say_error(const struct err *e) {
    snprintf(shown, sizeof shown, "%d %s", e->code, err_msg(e));
    return shown;
}

static void put(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void put(const char *fmt, ...) {
    size_t n = strlen(shown);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(shown + n, sizeof shown - n, fmt, ap);
    va_end(ap);
}

/* A plan on one line. */
static const char *say_plan(const struct plan *p) {
    static const char *const access[] = {"r", "w", "x"};
    static const char *const network[] = {"net=no", "net=yes", "net=managed"};
    snprintf(shown, sizeof shown, "%s%s%s%s", network[p->network],
             p->confine_files ? "" : " unconfined", p->full_read ? " full" : "",
             p->minimal ? " minimal" : "");
    for (size_t i = 0; i < p->entry_count; i++)
        put(" %s:%s", access[p->entries[i].access], p->entries[i].path);
    for (size_t i = 0; i < p->glob_count; i++) {
        const struct plan_glob *g = &p->globs[i];
        put(" %.*s|%s", (int)g->fixed, g->pattern, g->pattern + g->fixed);
        if (g->max_depth != 0)
            put("#%u", g->max_depth);
    }
    return shown;
}

/* The plan of a context, or the error of its decoding or planning. */
static const char *plan_of(const char *text, struct profile_context c) {
    _cleanup_err_ struct err e = ERR_INIT;
    struct profile *profile;
    struct plan plan;
    arena_reset(&arena);
    if (profile_decode(parse(text), c.call, &arena, &profile, &e) < 0)
        return say_error(&e);
    assert_non_null(profile);
    assert_int_equal(e.code, 0);
    if (profile_plan(profile, &c, &arena, &plan, &e) < 0)
        return say_error(&e);
    assert_int_equal(e.code, 0);
    assert_string_equal(plan.cwd, c.call == PROFILE_PROCESS ? c.cwd : "/");
    return say_plan(&plan);
}

static const char *process_plan(const char *text) {
    return plan_of(
        text, (struct profile_context){.call = PROFILE_PROCESS, .cwd = "/run", .tmpdir = NULL});
}

static const char *files_plan(const char *text) {
    return plan_of(text, (struct profile_context){.call = PROFILE_FILES, .cwd = "/server"});
}

/* What a call has to do, or the error it gets before anything is touched. */
static const char *need_of(const char *text, enum profile_call call, bool write) {
    _cleanup_err_ struct err e = ERR_INIT;
    struct profile *p;
    arena_reset(&arena);
    if (profile_decode(parse(text), call, &arena, &p, &e) < 0)
        return say_error(&e);
    enum profile_need need =
        call == PROFILE_FILES ? profile_files_need(p, write) : profile_process_need(p);
    return need == PROFILE_DIRECT ? "direct" : "confined";
}

static void refused(const char *text, const char *message) {
    char want[1024];
    snprintf(want, sizeof want, "-32602 %s", message);
    assert_string_equal(need_of(text, PROFILE_FILES, false), want);
    assert_string_equal(need_of(text, PROFILE_PROCESS, false), want);
}

static void test_none(void **state) {
    (void)state;
    _cleanup_err_ struct err e = ERR_INIT;
    struct profile *p = (struct profile *)1;
    assert_int_equal(profile_decode(NULL, PROFILE_FILES, &arena, &p, &e), 0);
    assert_null(p);
    assert_int_equal(profile_decode(parse("null"), PROFILE_PROCESS, &arena, &p, &e), 0);
    assert_null(p);
    assert_int_equal(profile_files_need(NULL, true), PROFILE_DIRECT);
    assert_int_equal(profile_process_need(NULL), PROFILE_DIRECT);
}

static void test_context_shapes(void **state) {
    (void)state;
    refused("{}", "missing field `permissions`");
    refused("{\"a\":1}", "missing field `permissions`");
    refused("5", "invalid type: number, expected struct WireFileSystemSandboxContext");
    refused("\"x\"", "invalid type: string \"x\", expected struct WireFileSystemSandboxContext");
    refused("[]", "invalid type: sequence, expected struct WireFileSystemSandboxContext");
    refused(CONTEXT(READ_ONLY, ",\"sandboxOverride\":null"),
            "invalid type: null, expected string or map");
    refused(CONTEXT(READ_ONLY, ",\"sandboxOverride\":\"x\""),
            "unknown variant `x`, expected one of `noOverride`, "
            "`escalatedSandboxWithRestrictions`, `bypassSandboxFirstAttempt`");
    refused("{\"permissions\":" READ_ONLY ",\"windowsSandboxLevel\":\"x\"}",
            "unknown variant `x`, expected one of `disabled`, `restricted-token`, `elevated`, "
            "`mxc`");
    refused("{\"permissions\":" READ_ONLY ",\"windowsSandboxLevel\":5}",
            "invalid type: number, expected string or map");
    refused(CONTEXT(READ_ONLY, ",\"windowsSandboxProxySettingsMode\":\"x\""),
            "unknown variant `x`, expected `reconcile` or `preserve`");
    refused(CONTEXT(READ_ONLY, ",\"useLegacyLandlock\":null"),
            "invalid type: null, expected a boolean");
    refused(CONTEXT(READ_ONLY, ",\"policyContext\":\"x\""),
            "invalid type: string \"x\", expected struct WireFileSystemPolicyContext");
    refused(CONTEXT(READ_ONLY, ",\"policyContext\":{\"workspaceRoots\":null}"),
            "invalid type: null, expected a sequence");
    refused(CONTEXT(READ_ONLY, ",\"workspaceRoots\":null"),
            "invalid type: null, expected a sequence");
    refused(CONTEXT(READ_ONLY, ",\"workspaceRoots\":[5]"),
            "invalid type: number, expected a string");
    refused(CONTEXT(READ_ONLY, ",\"cwd\":\"rel\""), "invalid URI: relative URL without a base");
    refused(CONTEXT(READ_ONLY, ",\"cwd\":\"http://x/\""), "unsupported path URI scheme `http`");
    refused(CONTEXT(READ_ONLY, ",\"userHomeDir\":\"file:///a?q\""),
            "query parameters are not allowed in path URIs");
    refused(CONTEXT(READ_ONLY, ",\"temporaryDirectories\":[\"file:///x%00y\"]"),
            "'file:///x%00y' is invalid on 'linux'");
}

static void test_context_accepted(void **state) {
    (void)state;
    static const char *const texts[] = {
        "{\"permissions\":" READ_ONLY "}", /* no windowsSandboxLevel */
        CONTEXT(READ_ONLY, ",\"fooBar\":1,\"windowsSandboxPrivateDesktop\":\"x\""),
        CONTEXT(READ_ONLY, ",\"cwd\":null,\"policyContext\":null,\"userHomeDir\":null"),
        CONTEXT(READ_ONLY, ",\"temporaryDirectories\":null"),
        CONTEXT(READ_ONLY, ",\"windowsSandboxProxySettingsMode\":null"),
        CONTEXT(READ_ONLY, ",\"sandboxOverride\":\"bypassSandboxFirstAttempt\""),
        CONTEXT(READ_ONLY, ",\"useLegacyLandlock\":true"),
        CONTEXT(READ_ONLY, ",\"cwd\":\"/native\",\"workspaceRoots\":[\"/a\"]"),
        CONTEXT(READ_ONLY, ",\"userHomeDir\":\"file://server/x\""),
        MANAGED(ROOT_READ),
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        assert_string_equal(need_of(texts[i], PROFILE_FILES, false), "direct");
        assert_string_equal(need_of(texts[i], PROFILE_FILES, true), "confined");
        assert_string_equal(process_plan(texts[i]), "net=no full r:/");
    }
}

static void test_permission_shapes(void **state) {
    (void)state;
    refused(CONTEXT("5", ""), "invalid type: integer `5`, expected internally tagged enum "
                              "ExecPermissionProfile");
    refused(CONTEXT("1.5", ""), "invalid type: floating point `1.5`, expected internally tagged "
                                "enum ExecPermissionProfile");
    refused(CONTEXT("\"read-only\"", ""), "invalid type: string \"read-only\", expected internally "
                                          "tagged enum ExecPermissionProfile");
    refused(CONTEXT("{}", ""), "missing field `type`");
    refused(CONTEXT("{\"network\":\"restricted\"}", ""), "missing field `type`");
    refused(CONTEXT("{\"type\":5}", ""), "invalid type: number, expected variant identifier");
    refused(CONTEXT("{\"type\":\"x\"}", ""),
            "unknown variant `x`, expected one of `managed`, `disabled`, `external`");
    refused(CONTEXT("{\"type\":\"managed\"}", ""), "missing field `file_system`");
    refused(CONTEXT("{\"type\":\"external\"}", ""), "missing field `network`");
    refused(CONTEXT("{\"type\":\"external\",\"network\":true}", ""),
            "invalid type: boolean `true`, expected string or map");
    refused(CONTEXT("{\"type\":\"external\",\"network\":5}", ""),
            "invalid type: integer `5`, expected string or map");
    refused(CONTEXT("{\"type\":\"external\",\"network\":{\"enabled\":null}}", ""),
            "invalid type: map, expected a string");
    refused(
        CONTEXT("{\"network\":\"y\",\"file_system\":{\"type\":\"x\"},\"type\":\"managed\"}", ""),
        "unknown variant `y`, expected `restricted` or `enabled`");
    refused(
        CONTEXT("{\"file_system\":{\"type\":\"x\"},\"network\":\"y\",\"type\":\"managed\"}", ""),
        "unknown variant `x`, expected `restricted` or `unrestricted`");
    refused(
        CONTEXT("{\"type\":\"managed\",\"file_system\":{\"type\":5},\"network\":\"enabled\"}", ""),
        "invalid type: integer `5`, expected variant identifier");
    refused(CONTEXT("{\"type\":\"managed\",\"file_system\":{\"type\":\"restricted\"}}", ""),
            "missing field `entries`");
    refused(CONTEXT("{\"type\":\"managed\",\"file_system\":[]}", ""),
            "invalid type: sequence, expected internally tagged enum "
            "ExecManagedFileSystemPermissions");
}

static void test_entry_shapes(void **state) {
    (void)state;
    refused(BARE("5"), "invalid type: integer `5`, expected struct ExecFileSystemSandboxEntry");
    refused(BARE("{}"), "missing field `path`");
    refused(BARE("{\"path\":" SPECIAL("root") "}"), "missing field `access`");
    refused(BARE(ENTRY(SPECIAL("root"), "x")),
            "unknown variant `x`, expected one of `read`, `write`, `deny`, `none`");
    refused(
        BARE("{\"path\":" SPECIAL("root") ",\"access\":\"read\",\"missing_path_behavior\":\"x\"}"),
        "unknown variant `x`, expected `skip`");
    refused(BARE(ENTRY("\"x\"", "read")),
            "invalid type: string \"x\", expected internally tagged enum ExecFileSystemPath");
    refused(BARE(ENTRY("{\"type\":\"x\"}", "read")),
            "unknown variant `x`, expected one of `path`, `glob_pattern`, `special`");
    refused(BARE(ENTRY("{\"type\":\"path\"}", "read")), "missing field `path`");
    refused(BARE(ENTRY("{\"type\":\"path\",\"path\":5}", "read")),
            "invalid type: integer `5`, expected a string");
    refused(BARE(ENTRY(PATH("rel"), "read")), "invalid URI: relative URL without a base");
    refused(BARE(ENTRY(PATH("/a\\u0000b"), "read")), "path contains a NUL byte");
    refused(BARE(ENTRY("{\"type\":\"glob_pattern\"}", "deny")), "missing field `pattern`");
    refused(BARE(ENTRY(GLOB("/a\\u0000*"), "deny")), "path contains a NUL byte");
    refused(BARE(ENTRY("{\"type\":\"special\"}", "read")), "missing field `value`");
    refused(BARE(ENTRY("{\"type\":\"special\",\"value\":\"root\"}", "read")),
            "invalid type: string \"root\", expected internally tagged enum FileSystemSpecialPath");
    refused(BARE(ENTRY("{\"type\":\"special\",\"value\":{}}", "read")), "missing field `kind`");
    refused(BARE(ENTRY(SPECIAL("cwd"), "read")),
            "unknown variant `cwd`, expected one of `root`, `minimal`, "
            "`current_working_directory`, `project_roots`, `tmpdir`, `slash_tmp`, `unknown`");
    refused(BARE(ENTRY(SPECIAL("unknown"), "read")), "missing field `path`");
    refused(BARE(ENTRY("{\"type\":\"special\",\"value\":{\"kind\":\"project_roots\","
                       "\"subpath\":true}}",
                       "read")),
            "invalid type: boolean `true`, expected a string");
}

static void test_depth_shapes(void **state) {
    (void)state;
#define DEPTH(value) CONTEXT(FILES(ROOT_READ, ",\"glob_scan_max_depth\":" value), "")
    refused(DEPTH("0"), "invalid value: integer `0`, expected a nonzero usize");
    refused(DEPTH("-1"), "invalid value: integer `-1`, expected a nonzero usize");
    refused(DEPTH("1.5"), "invalid type: floating point `1.5`, expected a nonzero usize");
    refused(DEPTH("\"x\""), "invalid type: string \"x\", expected a nonzero usize");
    assert_string_equal(need_of(DEPTH("null"), PROFILE_FILES, false), "direct");
    assert_string_equal(need_of(DEPTH("18446744073709551615"), PROFILE_FILES, false), "direct");
}

/* A policy, and what it means for a reading and a changing file call and for a process. */
static void needs(const char *text, const char *read, const char *write, const char *process) {
    assert_string_equal(need_of(text, PROFILE_FILES, false), read);
    assert_string_equal(need_of(text, PROFILE_FILES, true), write);
    assert_string_equal(need_of(text, PROFILE_PROCESS, false), process);
}

static void test_needs_of_kinds(void **state) {
    (void)state;
    needs(CONTEXT("{\"type\":\"disabled\"}", ""), "direct", "direct", "direct");
    needs(CONTEXT("{\"type\":\"disabled\",\"network\":5}", ""), "direct", "direct", "direct");
    needs(CONTEXT("{\"type\":\"external\",\"network\":\"enabled\"}", ""), "direct", "direct",
          "direct");
    needs(CONTEXT("{\"type\":\"external\",\"network\":\"restricted\"}", ""), "direct", "direct",
          "confined");
    needs(CONTEXT("{\"type\":\"managed\",\"file_system\":{\"type\":\"unrestricted\",\"entries\":5},"
                  "\"network\":\"enabled\"}",
                  ""),
          "direct", "direct", "direct");
    needs(CONTEXT("{\"type\":\"managed\",\"file_system\":{\"type\":\"restricted\",\"entries\":"
                  "[" ROOT_WRITE "]},\"network\":\"enabled\"}",
                  ""),
          "direct", "direct", "direct");
    needs(BARE(""), "confined", "confined", "confined");
    needs(BARE(ROOT_READ), "direct", "confined", "confined");
    needs(BARE(ROOT_WRITE), "direct", "direct", "confined");
    needs(BARE(ENTRY(PATH("/"), "write")), "confined", "confined", "confined");
}

/* What takes from root write, and from root read. */
static void test_needs_of_narrowing(void **state) {
    (void)state;
    static const char *const harmless[] = {
        MANAGED(ROOT_WRITE "," ROOT_READ),
        MANAGED(ROOT_WRITE "," ENTRY(SPECIAL("minimal"), "read")),
        MANAGED(ROOT_WRITE "," ENTRY("{\"type\":\"special\",\"value\":{\"kind\":\"unknown\","
                                     "\"path\":\":x\"}}",
                                     "read")),
        MANAGED(ROOT_WRITE "," ENTRY(PATH("/a"), "write")),
        MANAGED(ROOT_WRITE "," ENTRY(PATH("/a"), "read") "," ENTRY(PATH("file:///a/"), "write")),
        MANAGED(ROOT_WRITE
                "," ENTRY(PATH("/tmp"), "read") "," ENTRY(SPECIAL("slash_tmp"), "write")),
        MANAGED(ROOT_WRITE "," ENTRY(PATH("/"), "read")),
        MANAGED(ROOT_WRITE "," ENTRY(BELOW("a"), "read") "," ENTRY(BELOW("a"), "write")),
        MANAGED(ROOT_WRITE "," ENTRY(GLOB("/a/*"), "write")),
    };
    static const char *const narrowing[] = {
        MANAGED(ROOT_WRITE "," ENTRY(PATH("/a"), "read")),
        MANAGED(ROOT_WRITE "," ENTRY(PATH("/a"), "read") "," ENTRY(PATH("/b"), "write")),
        MANAGED(ROOT_WRITE "," ENTRY(BELOW("a"), "read") "," ENTRY(BELOW("b"), "write")),
        MANAGED(ROOT_WRITE "," ENTRY(SPECIAL("tmpdir"), "read")),
        MANAGED(ROOT_WRITE "," ENTRY(GLOB("/a/*"), "read")),
    };
    static const char *const denying[] = {
        MANAGED(ROOT_WRITE "," ENTRY(PATH("/a"), "deny")),
        MANAGED(ROOT_WRITE "," ENTRY(PATH("/a"), "deny") "," ENTRY(PATH("/a"), "write")),
        MANAGED(ROOT_WRITE "," ENTRY(SPECIAL("root"), "none")),
        MANAGED(ROOT_WRITE "," ENTRY(GLOB("/a/*"), "deny")),
        MANAGED(ROOT_READ "," ENTRY(SPECIAL("minimal"), "deny")),
    };
    for (size_t i = 0; i < ARRAY_LEN(harmless); i++)
        needs(harmless[i], "direct", "direct", "confined");
    for (size_t i = 0; i < ARRAY_LEN(narrowing); i++)
        needs(narrowing[i], "direct", "confined", "confined");
    for (size_t i = 0; i < ARRAY_LEN(denying); i++)
        needs(denying[i], "confined", "confined", "confined");
}

static void test_dynamic_needs_cwd(void **state) {
    (void)state;
    static const char want[] =
        "-32602 file system sandbox context with dynamic permissions requires cwd";
#define DYNAMIC(entry, more) CONTEXT(FILES(ROOT_READ "," entry, ""), more)
    static const char *const texts[] = {
        DYNAMIC(ENTRY(SPECIAL("project_roots"), "write"), ""),
        DYNAMIC(ENTRY(SPECIAL("current_working_directory"), "read"), ",\"cwd\":null"),
        DYNAMIC(ENTRY(GLOB("*.env"), "deny"), ",\"policyContext\":{}"),
        DYNAMIC(ENTRY(GLOB(""), "read"), ""),
        DYNAMIC(ENTRY(GLOB("codex-project-roots://*"), "deny"), ""),
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        assert_string_equal(need_of(texts[i], PROFILE_FILES, false), want);
        assert_string_equal(need_of(texts[i], PROFILE_PROCESS, false), "confined");
    }
    needs(DYNAMIC(ENTRY(GLOB("/a/*"), "read"), ""), "direct", "confined", "confined");
    needs(DYNAMIC(ENTRY(GLOB("*"), "read"), ",\"policyContext\":{\"cwd\":\"file:///x\"}"), "direct",
          "confined", "confined");
}

static void test_plan_of_tokens(void **state) {
    (void)state;
    static const char workspace[] =
        MANAGED(ROOT_READ "," ENTRY(SPECIAL("project_roots"), "write") "," ENTRY(
            SPECIAL("slash_tmp"), "write") "," ENTRY(SPECIAL("tmpdir"),
                                                     "write") "," ENTRY(BELOW(".git"), "read"));
    struct profile_context c = {.call = PROFILE_PROCESS, .cwd = "/run", .tmpdir = "/var//t/./"};
    static const char without[] =
        "net=no full r:/ w:/srv/ws r:/srv/ws/.git w:/tmp w:/two r:/two/.git";
    assert_string_equal(
        plan_of(workspace, c),
        "net=no full r:/ w:/srv/ws r:/srv/ws/.git w:/tmp w:/two r:/two/.git w:/var/t");
    static const char *const ignored[] = {NULL, "", "rel", "~/x"};
    for (size_t i = 0; i < ARRAY_LEN(ignored); i++) {
        c.tmpdir = ignored[i];
        assert_string_equal(plan_of(workspace, c), without);
    }
    assert_string_equal(process_plan(BARE(ENTRY(SPECIAL("project_roots"), "write"))), "net=no");
    assert_string_equal(process_plan(MANAGED(ENTRY(SPECIAL("minimal"), "read"))), "net=no minimal");
    assert_string_equal(process_plan(MANAGED(ENTRY(SPECIAL("minimal"), "deny"))), "net=no");
    assert_string_equal(process_plan(MANAGED(ROOT_READ "," ENTRY(SPECIAL("minimal"), "read"))),
                        "net=no full r:/");
}

static void test_plan_of_subpaths(void **state) {
    (void)state;
#define ONE(subpath) process_plan(MANAGED(ENTRY(BELOW(subpath), "write")))
    assert_string_equal(ONE("a/b"), "net=no w:/srv/ws/a/b w:/two/a/b");
    assert_string_equal(ONE("a//b/"), "net=no w:/srv/ws/a/b w:/two/a/b");
    assert_string_equal(ONE(""), "net=no w:/srv/ws w:/two");
    assert_string_equal(ONE("/a"), "net=no");
    assert_string_equal(ONE("../a"), "net=no");
    assert_string_equal(ONE("..a/..."), "net=no w:/srv/ws/..a/... w:/two/..a/...");
}

/* An absolute subpath, or one with dot segments: grants nothing, and takes from the whole root. */
static void test_plan_of_odd_subpaths(void **state) {
    (void)state;
#define READS(entry, subpath) process_plan(MANAGED(entry "," ENTRY(BELOW(subpath), "read")))
#define ODD(s)                                                                                     \
    assert_string_equal(ONE(s), "net=no");                                                         \
    assert_string_equal(process_plan(MANAGED(ENTRY(BELOW(s), "read"))), "net=no");                 \
    assert_string_equal(process_plan(MANAGED(ENTRY(BELOW(s), "deny"))),                            \
                        "net=no x:/srv/ws x:/two");                                                \
    assert_string_equal(READS(ENTRY(SPECIAL("project_roots"), "write"), s),                        \
                        "net=no r:/srv/ws r:/two");                                                \
    assert_string_equal(READS(ENTRY(PATH("/srv"), "write"), s), "net=no w:/srv r:/srv/ws");        \
    assert_string_equal(READS(ENTRY(BELOW("x"), "write"), s), "net=no r:/srv/ws/x r:/two/x")
    ODD(".");
    ODD("//");
    ODD("/etc");
    ODD("../a");
    ODD("a/..");
}

/* Of several entries for one path deny counts before write before read. */
static void test_plan_merges(void **state) {
    (void)state;
#define PAIR(x, y) process_plan(MANAGED(ENTRY(PATH("/a"), x) "," ENTRY(PATH("/a/"), y)))
    assert_string_equal(PAIR("read", "write"), "net=no w:/a");
    assert_string_equal(PAIR("write", "read"), "net=no w:/a");
    assert_string_equal(PAIR("deny", "write"), "net=no x:/a");
    assert_string_equal(PAIR("read", "none"), "net=no x:/a");
    assert_string_equal(process_plan(MANAGED(ROOT_READ "," ENTRY(PATH("/"), "write"))),
                        "net=no full w:/");
    assert_string_equal(
        process_plan(MANAGED(ROOT_READ "," ENTRY(PATH("/b"), "read") "," ENTRY(PATH("/"), "deny"))),
        "net=no r:/b");
    assert_string_equal(process_plan(MANAGED(ENTRY(PATH("/a/b"), "read") "," ENTRY(
                            PATH("/a-b"), "read") "," ENTRY(PATH("/a"), "read"))),
                        "net=no r:/a r:/a-b r:/a/b");
}

/* Odd spellings of paths are put right, not refused. */
static void test_plan_normalises(void **state) {
    (void)state;
#define SPELT(uri) process_plan(MANAGED(ENTRY(PATH(uri), "read")))
    assert_string_equal(SPELT("file:///x/"), "net=no r:/x");
    assert_string_equal(SPELT("file:///x%2Fy"), "net=no r:/x/y");
    assert_string_equal(SPELT("file:///x%2F%2Fy%2F..%2Fz"), "net=no r:/x/z");
    assert_string_equal(SPELT("file:///x%FFy"), "net=no r:/x\xFFy");
    assert_string_equal(SPELT("file://localhost/x"), "net=no r:/x");
    assert_string_equal(SPELT("/x//../y/"), "net=no r:/y");
    assert_string_equal(SPELT("file:///%00/bad/path/L0M6L3g"), "net=no r:/C:/x");
}

static void test_plan_of_globs(void **state) {
    (void)state;
#define MATCH(pattern) process_plan(MANAGED(ENTRY(GLOB(pattern), "deny")))
#define UNSAFE(pattern)                                                                            \
    "-32603 unreadable glob `" pattern                                                             \
    "` cannot be safely expanded; use a pattern with a non-root directory prefix"
    assert_string_equal(MATCH("/a/b/**/*.env"), "net=no /a/b|/**/*.env");
    assert_string_equal(MATCH("/a/[b]/c"), "net=no /a|/[b]/c");
    assert_string_equal(MATCH("/a//./b/../c*/"), "net=no /a|/c*");
    assert_string_equal(MATCH("/a/b*/../c*"), "net=no /a|/c*");
    assert_string_equal(MATCH("*.env"), "net=no /srv/ws|/*.env");
    assert_string_equal(MATCH("../x/?"), "net=no /srv/x|/?");
    assert_string_equal(MATCH("~/x*"), "net=no /srv/ws/~|/x*");
    assert_string_equal(MATCH("codex-project-roots://a/{b,c}"),
                        "net=no /srv/ws/a|/{b,c} /two/a|/{b,c}");
    assert_string_equal(MATCH("codex-project-roots:///a*"), "net=no");
    assert_string_equal(MATCH("codex-project-roots://../a*"), "net=no");
    assert_string_equal(MATCH("/*.txt"), UNSAFE("/*.txt"));
    assert_string_equal(MATCH("/../**"), UNSAFE("/**"));
    assert_string_equal(MATCH("/a/b"), UNSAFE("/a/b"));
    assert_string_equal(MATCH(""), UNSAFE("/srv/ws"));
    assert_string_equal(MATCH("/"), UNSAFE("/"));
    assert_string_equal(
        process_plan(MANAGED(ENTRY(GLOB("/a/*"), "read") "," ENTRY(GLOB("/b"), "write"))),
        "net=no");
}

static void test_plan_of_glob_bases(void **state) {
    (void)state;
    struct profile_context c = {.call = PROFILE_PROCESS, .cwd = "/run", .home = "/home//u"};
    assert_string_equal(plan_of(MANAGED(ENTRY(GLOB("~/x*"), "deny")), c), "net=no /home/u|/x*");
    assert_string_equal(plan_of(MANAGED(ENTRY(GLOB("~x*"), "deny")), c), "net=no /srv/ws|/~x*");
    assert_string_equal(plan_of(BARE(ENTRY(GLOB("x*"), "deny")), c), "net=no /run|/x*");
    /* An error shows what was sent where the directory has no name in UTF-8. */
    assert_string_equal(
        process_plan(CONTEXT(FILES(ENTRY(GLOB("x"), "deny"), ""), ",\"cwd\":\"file:///%FF\"")),
        UNSAFE("x"));
    /* A directory may be named like a pattern. */
    assert_string_equal(
        process_plan(CONTEXT(FILES(ENTRY(GLOB("b/c*"), "deny"), ""), ",\"cwd\":\"/w/[a]*\"")),
        "net=no /w/[a]*/b|/c*");
    assert_string_equal(
        process_plan(CONTEXT(FILES(ENTRY(GLOB("../[a]*/c"), "deny"), ""), ",\"cwd\":\"/w/[a]*\"")),
        "net=no /w|/[a]*/c");
#define DEEP(n) CONTEXT(FILES(ENTRY(GLOB("/a/*"), "deny"), ",\"glob_scan_max_depth\":" n), "")
    assert_string_equal(process_plan(DEEP("3")), "net=no /a|/*#3");
    assert_string_equal(process_plan(DEEP("18446744073709551615")), "net=no /a|/*#4294967295");
}

static void test_policy_context(void **state) {
    (void)state;
#define POLICY(object)                                                                             \
    process_plan(                                                                                  \
        CONTEXT(FILES(ENTRY(SPECIAL("project_roots"), "write") "," ENTRY(GLOB("*"), "deny"), ""),  \
                "," PLACES ",\"policyContext\":" object))
    assert_string_equal(POLICY("null"), "net=no w:/srv/ws w:/two /srv/ws|/*");
    assert_string_equal(POLICY("{}"), "net=no /srv/ws|/*");
    assert_string_equal(POLICY("{\"cwd\":null}"), "net=no /srv/ws|/*");
    assert_string_equal(POLICY("{\"cwd\":\"/c\"}"), "net=no /c|/*");
    assert_string_equal(POLICY("{\"workspaceRoots\":[\"/p\"]}"), "net=no w:/p /srv/ws|/*");
    assert_string_equal(POLICY("{\"cwd\":\"/c\",\"workspaceRoots\":[\"/p\"]}"),
                        "net=no w:/p /c|/*");
}

static void test_plan_of_files(void **state) {
    (void)state;
    assert_string_equal(files_plan(MANAGED("")), "net=no minimal");
    assert_string_equal(files_plan(MANAGED(ENTRY(PATH("/a"), "write"))), "net=no minimal w:/a");
    assert_string_equal(files_plan(MANAGED(ROOT_READ)), "net=no full r:/");
    assert_string_equal(files_plan(BARE(ENTRY(GLOB("/a/*"), "deny"))), "net=no minimal /a|/*");
    assert_string_equal(
        files_plan("{\"permissions\":{\"type\":\"managed\",\"file_system\":{\"type\":"
                   "\"restricted\",\"entries\":[]},\"network\":\"enabled\"}}"),
        "net=no minimal");
}

static void test_plan_without_files(void **state) {
    (void)state;
    assert_string_equal(process_plan(CONTEXT("{\"type\":\"disabled\"}", "")), "net=yes unconfined");
    assert_string_equal(
        process_plan(CONTEXT("{\"type\":\"external\",\"network\":\"restricted\"}", "")),
        "net=no unconfined");
    assert_string_equal(process_plan(MANAGED(ROOT_WRITE "," ENTRY(PATH("/a"), "write"))),
                        "net=no unconfined");
    struct profile_context c = {.call = PROFILE_PROCESS, .cwd = "/", .inherit_pids = true};
    _cleanup_err_ struct err e = ERR_INIT;
    struct profile *p;
    struct plan plan;
    arena_reset(&arena);
    assert_int_equal(profile_decode(parse(MANAGED("")), c.call, &arena, &p, &e), 0);
    assert_int_equal(profile_plan(p, &c, &arena, &plan, &e), 0);
    assert_true(plan.inherit_pids);
}

#define FOREIGN "'file://server/x' is invalid on 'linux'"
#define BAD_CWD ",\"cwd\":\"file://server/x\""
#define BAD_ROOT ",\"workspaceRoots\":[\"file:///a\",\"file://server/x\"]"

static void test_foreign_in_files(void **state) {
    (void)state;
    static const char entry[] = BARE(ROOT_WRITE "," ENTRY(PATH("file://server/x"), "write"));
    needs(entry, "confined", "confined", "confined");
    assert_string_equal(files_plan(entry), "-32600 invalid sandbox permission path URI: " FOREIGN);
    assert_string_equal(files_plan(CONTEXT(FILES("", ""), BAD_CWD BAD_ROOT)), "-32600 " FOREIGN);
    assert_string_equal(files_plan(CONTEXT(FILES("", ""), BAD_ROOT)),
                        "-32600 file system sandbox workspace root is not native to this "
                        "exec-server host: " FOREIGN);
    assert_string_equal(files_plan("{\"permissions\":" FILES(ENTRY(PATH("file://server/x"), "read"),
                                                             "") BAD_CWD "}"),
                        "-32600 invalid sandbox permission path URI: " FOREIGN);
    assert_string_equal(
        files_plan("{\"permissions\":" FILES("", "") ",\"windowsSandboxLevel\":\"mxc\"}"),
        "-32600 failed to prepare fs sandbox: failed to prepare MXC sandbox: "
        "native MXC is unavailable on this executor");
    assert_string_equal(
        files_plan("{\"permissions\":" FILES("", "") BAD_CWD ",\"windowsSandboxLevel\":\"mxc\"}"),
        "-32600 " FOREIGN);
    /* Where the sandbox is not entered nobody looks. */
    needs(CONTEXT(READ_ONLY, BAD_CWD), "direct", "confined", "confined");
    needs(CONTEXT("{\"type\":\"disabled\"}", BAD_CWD), "direct", "direct", "confined");
    needs(CONTEXT("{\"type\":\"disabled\"}", BAD_ROOT), "direct", "direct", "confined");
}

static void test_foreign_in_processes(void **state) {
    (void)state;
    assert_string_equal(process_plan(BARE(ENTRY(PATH("file:///C:/x"), "read"))),
                        "-32602 invalid sandbox permission path URI: 'file:///C:/x' is invalid on "
                        "'linux'");
    assert_string_equal(process_plan(CONTEXT("{\"type\":\"disabled\"}", BAD_CWD)),
                        "-32602 sandbox cwd URI `file://server/x` is not valid on this exec-server "
                        "host: " FOREIGN);
    assert_string_equal(process_plan(CONTEXT(READ_ONLY, BAD_ROOT)),
                        "-32602 sandbox workspace root URI `file://server/x` is not valid on this "
                        "exec-server host: " FOREIGN);
    static const char mxc[] =
        "{\"permissions\":{\"type\":\"disabled\"}" BAD_CWD ",\"windowsSandboxLevel\":\"mxc\"}";
    assert_string_equal(need_of(mxc, PROFILE_PROCESS, false), "confined");
    assert_string_equal(process_plan(mxc), "-32602 native MXC is unavailable on this executor");
}

static void test_untagged(void **state) {
    (void)state;
#define APRIL(permissions) "{\"permissions\":" permissions ",\"cwd\":\"/w\"," LEVEL "}"
    assert_string_equal(
        process_plan(APRIL(
            "{\"network\":{\"enabled\":true},\"file_system\":{\"entries\":[" ROOT_READ
            "," ENTRY(SPECIAL("current_working_directory"),
                      "write") "," ENTRY(PATH("/n"), "none") "],\"glob_scan_max_depth\":2}}")),
        "net=yes full r:/ x:/n w:/w");
    assert_string_equal(
        process_plan(APRIL("{\"file_system\":{\"read\":[\"/r\"],\"write\":[\"/x\"]}}")),
        "net=no r:/r w:/x");
    assert_string_equal(
        process_plan(APRIL("{\"network\":{\"enabled\":null},\"file_system\":null}")), "net=no");
    assert_string_equal(process_plan(APRIL("{\"network\":{}}")), "net=no");
    /* Without a cwd the process's is the workspace; a file call has none. */
    static const char none[] = "{\"permissions\":{\"file_system\":{\"entries\":[" ENTRY(
        SPECIAL("project_roots"), "write") "]}}}";
    assert_string_equal(process_plan(none), "net=no w:/run");
    assert_string_equal(files_plan(none),
                        "-32602 file system sandbox context with dynamic permissions requires cwd");
    refused(APRIL("{\"network\":{\"enabled\":1}}"), "invalid type: number, expected a boolean");
    refused(APRIL("{\"file_system\":{\"read\":[\"rel\"]}}"),
            "invalid URI: relative URL without a base");
    refused(APRIL("{\"file_system\":{\"write\":5}}"), "invalid type: number, expected a sequence");
    /* A tag anywhere means today's shape. */
    refused(APRIL("{\"file_system\":{\"type\":\"unrestricted\"}}"), "missing field `type`");
}

static const char *legacy_plan(const char *policy, const char *more) {
    char text[2048];
    snprintf(text, sizeof text, "{\"sandboxPolicy\":%s,\"sandboxPolicyCwd\":\"/w\"," LEVEL "%s}",
             policy, more);
    struct profile_context c = {.call = PROFILE_PROCESS, .cwd = "/run", .tmpdir = "/t"};
    return plan_of(text, c);
}

static void test_legacy_policies(void **state) {
    (void)state;
    assert_string_equal(legacy_plan("{\"type\":\"danger-full-access\"}", ""), "net=yes unconfined");
    assert_string_equal(legacy_plan("{\"type\":\"read-only\"}", ""), "net=no full r:/");
    assert_string_equal(legacy_plan("{\"type\":\"read-only\",\"network_access\":true,\"access\":"
                                    "{\"type\":\"full-access\"}}",
                                    ""),
                        "net=yes full r:/");
    assert_string_equal(legacy_plan("{\"type\":\"read-only\",\"access\":{\"type\":\"restricted\","
                                    "\"readable_roots\":[\"/x\"]}}",
                                    ""),
                        "net=no minimal r:/x");
    assert_string_equal(legacy_plan("{\"type\":\"read-only\",\"access\":{\"type\":\"restricted\","
                                    "\"include_platform_defaults\":false}}",
                                    ""),
                        "net=no");
    assert_string_equal(legacy_plan("{\"type\":\"external-sandbox\"}", ""), "net=no unconfined");
    assert_string_equal(
        legacy_plan("{\"type\":\"external-sandbox\",\"network_access\":\"enabled\"}", ""),
        "net=yes unconfined");
    assert_string_equal(legacy_plan("{\"type\":\"workspace-write\"}", ""),
                        "net=no full r:/ w:/t w:/tmp w:/w");
    assert_string_equal(
        legacy_plan("{\"type\":\"workspace-write\",\"writable_roots\":[\"/x\"],\"network_access\":"
                    "true,\"exclude_tmpdir_env_var\":true,\"exclude_slash_tmp\":true}",
                    ""),
        "net=yes full r:/ w:/w w:/x");
}

static void test_legacy_contexts(void **state) {
    (void)state;
    static const char read_only[] = "{\"type\":\"read-only\"}";
    assert_string_equal(legacy_plan(read_only, ",\"fileSystemSandboxPolicy\":null,"
                                               "\"additionalPermissions\":null"),
                        "net=no full r:/");
    assert_string_equal(legacy_plan(read_only,
                                    ",\"fileSystemSandboxPolicy\":{\"kind\":"
                                    "\"restricted\",\"entries\":[" ENTRY(
                                        SPECIAL("current_working_directory"), "write") "]}"),
                        "net=no w:/w");
    assert_string_equal(
        legacy_plan(read_only, ",\"fileSystemSandboxPolicy\":{\"kind\":\"unrestricted\"}"),
        "net=no unconfined");
    assert_string_equal(legacy_plan(read_only,
                                    ",\"additionalPermissions\":{\"network\":{\"enabled\":true},"
                                    "\"file_system\":{\"write\":[\"/x\"]}}"),
                        "net=yes full r:/ w:/x");
    assert_string_equal(legacy_plan(read_only, ",\"additionalPermissions\":5"),
                        "-32602 invalid type: number, expected struct PermissionProfile");
    assert_string_equal(legacy_plan(read_only, ",\"additionalPermissions\":{\"network\":5}"),
                        "-32602 invalid type: number, expected struct NetworkPermissions");
    assert_string_equal(legacy_plan(read_only, ",\"fileSystemSandboxPolicy\":5"),
                        "-32602 invalid type: number, expected struct FileSystemSandboxPolicy");
    assert_string_equal(legacy_plan("{\"type\":\"x\"}", ""),
                        "-32602 unknown variant `x`, expected one of `danger-full-access`, "
                        "`read-only`, `external-sandbox`, `workspace-write`");
    assert_string_equal(
        legacy_plan("5", ""),
        "-32602 invalid type: number, expected internally tagged enum SandboxPolicy");
    refused("{\"fileSystemSandboxPolicy\":{}}", "missing field `sandboxPolicy`");
    needs("{\"sandboxPolicy\":{\"type\":\"read-only\"}}", "direct", "confined", "confined");
}

/* Appends `count` copies of `item`, separated by commas. */
static void put_copies(struct buf *b, const char *item, size_t count) {
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(buf_putz(b, i > 0 ? "," : ""), 0);
        assert_int_equal(buf_putz(b, item), 0);
    }
}

/* A context with so many equal entries and roots. */
static const char *many(struct buf *b, const char *entry, size_t entries, const char *root,
                        size_t roots) {
    b->len = 0;
    assert_int_equal(buf_putz(b, "{\"permissions\":{\"type\":\"managed\",\"file_system\":{\"type\":"
                                 "\"restricted\",\"entries\":["),
                     0);
    put_copies(b, entry, entries);
    assert_int_equal(buf_putz(b, "]},\"network\":\"restricted\"},\"cwd\":\"/w\","
                                 "\"workspaceRoots\":["),
                     0);
    put_copies(b, root, roots);
    assert_int_equal(buf_put(b, "]}", 3), 0);
    return b->p;
}

static void test_limits(void **state) {
    (void)state;
    _cleanup_buf_ struct buf b = BUF_INIT(16 << 20);
    static const char entry[] = ENTRY(PATH("/a"), "read");
    static const char project[] = ENTRY(BELOW("x"), "read");
    static const char glob[] = ENTRY(GLOB("codex-project-roots://*"), "deny");
    static const char too_many[] = "-32602 the sandbox has more than 4096 entries";
    assert_string_equal(process_plan(many(&b, entry, PLAN_ENTRIES_MAX, "\"/r\"", 1)),
                        "net=no r:/a");
    assert_string_equal(process_plan(many(&b, entry, PLAN_ENTRIES_MAX + 1, "\"/r\"", 1)), too_many);
    assert_string_equal(process_plan(many(&b, project, 4, "\"/r\"", 1024)), "net=no r:/r/x");
    assert_string_equal(process_plan(many(&b, project, 5, "\"/r\"", 1024)), too_many);
    assert_string_equal(process_plan(many(&b, glob, PLAN_ENTRIES_MAX, "\"/r\"", 1024)), too_many);
    assert_string_equal(process_plan(many(&b, "", 0, "\"/r\"", 1025)),
                        "-32602 the sandbox has more than 1024 paths in a list");
}

static void test_text_limits(void **state) {
    (void)state;
    _cleanup_buf_ struct buf b = BUF_INIT(16 << 20);
    static const char too_long[] = "-32602 the sandbox has more than 2097152 bytes of paths";
    static char item[62000];
    snprintf(item, sizeof item,
             "{\"path\":{\"type\":\"path\",\"path\":\"/%060000d\"},\"access\":\"read\"}", 0);
    assert_string_equal(process_plan(many(&b, item, 40, "\"/r\"", 1)), too_long);
    /* What is long only before it is normalised counts too: it is looked at once per root. */
    size_t n = (size_t)snprintf(item, sizeof item,
                                "{\"access\":\"deny\",\"path\":{\"type\":"
                                "\"glob_pattern\",\"pattern\":\""
                                "codex-project-roots://");
    while (n < 60000)
        n += (size_t)snprintf(item + n, sizeof item - n, "a/../");
    snprintf(item + n, sizeof item - n, "*\"}}");
    assert_string_equal(process_plan(many(&b, item, 1, "\"/r\"", 1)), "net=no /r|/*");
    assert_string_equal(process_plan(many(&b, item, 1, "\"/r\"", 1024)), too_long);
}

static void test_no_memory(void **state) {
    (void)state;
    _cleanup_err_ struct err e = ERR_INIT;
    _cleanup_arena_ struct arena none = ARENA_INIT(0);
    struct profile *p;
    assert_int_equal(profile_decode(parse(MANAGED("")), PROFILE_FILES, &none, &p, &e), -ENOMEM);
    assert_int_equal(e.code, ERR_INTERNAL);
    assert_null(p);
}

static int set_up(void **state) {
    (void)state;
    json_doc_init(&doc, 16 << 20, 1);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    json_doc_fini(&doc);
    arena_fini(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_context_shapes),
        cmocka_unit_test(test_context_accepted),
        cmocka_unit_test(test_permission_shapes),
        cmocka_unit_test(test_entry_shapes),
        cmocka_unit_test(test_depth_shapes),
        cmocka_unit_test(test_needs_of_kinds),
        cmocka_unit_test(test_needs_of_narrowing),
        cmocka_unit_test(test_dynamic_needs_cwd),
        cmocka_unit_test(test_plan_of_tokens),
        cmocka_unit_test(test_plan_of_subpaths),
        cmocka_unit_test(test_plan_of_odd_subpaths),
        cmocka_unit_test(test_plan_merges),
        cmocka_unit_test(test_plan_normalises),
        cmocka_unit_test(test_plan_of_globs),
        cmocka_unit_test(test_plan_of_glob_bases),
        cmocka_unit_test(test_policy_context),
        cmocka_unit_test(test_plan_of_files),
        cmocka_unit_test(test_plan_without_files),
        cmocka_unit_test(test_foreign_in_files),
        cmocka_unit_test(test_foreign_in_processes),
        cmocka_unit_test(test_untagged),
        cmocka_unit_test(test_legacy_policies),
        cmocka_unit_test(test_legacy_contexts),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_text_limits),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
