/* The layers of configuration, in a home, a system directory and projects of the test. */
#include "environment/envconf.h"

#include "fs_run.h"

static atomic_bool stop;

static void put(const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", scratch, name);
    for (char *slash = path + strlen(scratch); (slash = strchr(slash + 1, '/')) != NULL;) {
        *slash = '\0';
        mkdir(path, 0755);
        *slash = '/';
    }
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* The configuration of the user, with trust in a directory of the scratch one. */
static void put_user(const char *trusted, const char *level) {
    char text[512];
    snprintf(text, sizeof text, "model = \"user\"\n[projects.\"%s%s\"]\ntrust_level = \"%s\"\n",
             scratch, trusted, level);
    put("home/.codex/config.toml", text);
}

/* The answer or the error, with the scratch directory as "@"; static. */
static const char *ask(const char *cwd, const char *config, const char *required) {
    static char out[8192];
    char at[128], home[128], system_dir[128];
    snprintf(at, sizeof at, "%s%s", scratch, cwd);
    snprintf(home, sizeof home, "%s/home", scratch);
    snprintf(system_dir, sizeof system_dir, "%s/etc", scratch);
    struct str a = str_of(config), b = str_of(required);
    const struct envconf_path paths[] = {{&a, 1}, {&b, 1}};
    struct envconf c = {.cwd = at, .home = home, .system_dir = system_dir, .stop = &stop};
    c.config = (struct envconf_paths){paths, config != NULL};
    c.requirements = (struct envconf_paths){paths + 1, required != NULL};
    _cleanup_buf_ struct buf result = BUF_INIT(ENVCONF_RESULT_MAX);
    _cleanup_err_ struct err e = ERR_INIT;
    int r = envconf_read(&c, &result, &e);
    struct str s = r == 0 ? buf_str(&result) : err_str(&e);
    const char *layers = r == 0 ? memmem(s.p, s.n, "\"config\"", 8) : s.p;
    size_t n = 0;
    for (const char *p = layers; p < s.p + s.n && n + 1 < sizeof out;) {
        size_t left = (size_t)(s.p + s.n - p);
        if (left >= strlen(scratch) && memcmp(p, scratch, strlen(scratch)) == 0) {
            out[n++] = '@';
            p += strlen(scratch);
        } else {
            out[n++] = *p++;
        }
    }
    out[n] = '\0';
    return out;
}

static const char *models(const char *cwd) {
    static char out[512];
    size_t n = 0;
    for (const char *p = ask(cwd, "model", NULL); (p = strstr(p, "model = \\\"")) != NULL;) {
        p += 10;
        if (n > 0)
            out[n++] = ' ';
        while (*p != '\\')
            out[n++] = *p++;
    }
    out[n] = '\0';
    return out;
}

static void all_layers(void **state) {
    (void)state;
    put("etc/config.toml", "model = 'sys'\nother = 1\n");
    put("etc/managed_config.toml",
        "model = 'managed'\napproval_policy = 'never'\nsandbox_mode = 'workspace-write'\n");
    put("etc/requirements.toml", "model = 'req'\n");
    put("p/.codex/config.toml", "model = 'project'\nnotify = ['x']\n");
    put_user("/p", "trusted");
    assert_string_equal(
        ask("/p", "model", "model"),
        "\"config\":{\"layers\":["
        "{\"source\":\"system (@/etc/config.toml)\",\"baseDir\":\"file://@/etc\","
        "\"toml\":\"model = \\\"sys\\\"\\n\"},"
        "{\"source\":\"user (@/home/.codex/config.toml)\",\"baseDir\":\"file://@/home/.codex\","
        "\"toml\":\"model = \\\"user\\\"\\n\"},"
        "{\"source\":\"project (@/p/.codex/config.toml)\",\"baseDir\":\"file://@/p/.codex\","
        "\"toml\":\"model = \\\"project\\\"\\n\"},"
        "{\"source\":\"legacy managed_config.toml (@/etc/managed_config.toml)\",\"baseDir\":"
        "\"file://@/etc\",\"toml\":\"model = \\\"managed\\\"\\n\"}],\"cloudInsertionIndex\":1},"
        "\"requirements\":{\"layers\":[{\"source\":\"@/etc/requirements.toml\",\"baseDir\":"
        "\"file://@/etc\",\"toml\":\"model = \\\"req\\\"\\n\"}],\"cloudInsertionIndex\":1}}");
    assert_string_equal(ask("/p", "notify", "allowed_sandbox_modes"),
                        "\"config\":{\"layers\":[],\"cloudInsertionIndex\":0},\"requirements\":{"
                        "\"layers\":[{\"source\":\"@/etc/managed_config.toml\",\"baseDir\":"
                        "\"file://@/etc\",\"toml\":\"allowed_sandbox_modes = [\\\"read-only\\\", "
                        "\\\"workspace-write\\\"]\\n\"}],\"cloudInsertionIndex\":0}}");
}

static void trust(void **state) {
    (void)state;
    put("p/.codex/config.toml", "model = 'p'\n");
    put("p/sub/.codex/config.toml", "model = 'sub'\n");
    put("p/sub/deep/.codex/config.toml", "model = 'deep'\n");
    put_user("/p", "trusted");
    assert_string_equal(models("/p"), "user p");
    assert_string_equal(models("/p/sub"), "user");
    put("p/.git/HEAD", "");
    assert_string_equal(models("/p/sub/deep"), "user p sub deep");
    assert_string_equal(models("/p/sub/none/x"), "user p sub");
    put_user("/p", "untrusted");
    assert_string_equal(models("/p/sub"), "user");
    put_user("/p/sub", "trusted");
    assert_string_equal(models("/p/sub/deep"), "user sub");
    put_user("/p/sub", "untrusted");
    put("etc/config.toml", "");
    assert_string_equal(models("/p/sub/deep"), "user");
    put_user("/p", "trusted");
    put("etc/managed_config.toml", "projects = {}");
    put("t/.git", "gitdir: ../p/.git/worktrees/t\n");
    put("t/.codex/config.toml", "model = 't'\n");
    assert_string_equal(models("/t"), "user t");
    char text[256];
    snprintf(text, sizeof text, "gitdir: %s/p/.git/modules/t\n", scratch);
    put("t/.git", text);
    assert_string_equal(models("/t"), "user");
    assert_string_equal(models("/home"), "user"); /* its .codex is the user's */
}

static void operator_decides(void **state) {
    char text[256];
    (void)state;
    put("p/.codex/config.toml", "model = 'p'\n");
    put_user("/p", "trusted");
    snprintf(text, sizeof text, "[projects.'%s/p']\ntrust_level='untrusted'\n", scratch);
    put("etc/managed_config.toml", text);
    assert_string_equal(models("/p"), "user");
    put("etc/managed_config.toml", "project_root_markers = ['x', 1]\n");
    assert_string_equal(ask("/p", "model", NULL),
                        "failed to load executor-local config: "
                        "project_root_markers must be an array of strings");
}

static void errors(void **state) {
    char path[128];
    (void)state;
    put_user("/p", "trusted");
    put("p/.codex/config.toml", "a = 1\nb = [\n");
    assert_string_equal(ask("/p", "model", NULL),
                        "failed to load executor-local config: Error parsing project config file "
                        "@/p/.codex/config.toml: TOML parse error at line 3, column 1\n  |\n3 | \n"
                        "  | ^\nexpected a value, not the end of the file\n");
    put_user("/p", "untrusted");
    assert_string_equal(models("/p"), "user");
    put("p/.codex/config.toml", "a = '\xFF'\n");
    assert_string_equal(ask("/p", "model", NULL),
                        "failed to load executor-local config: Failed to read project config file "
                        "@/p/.codex/config.toml: invalid utf-8 sequence of 1 bytes from index 5");
    put("home/.codex/config.toml", "a = \n");
    assert_string_equal(ask("/", "model", NULL),
                        "failed to load executor-local config: @/home/.codex/config.toml:1:5: "
                        "expected a value, not the end of the line");
    put("etc/requirements.toml", "a = 1");
    snprintf(path, sizeof path, "%s/home/.codex/config.toml", scratch);
    assert_int_equal(truncate(path, TOML_TEXT_MAX + 1), 0);
    assert_string_equal(ask("/", "model", NULL),
                        "failed to load executor-local config: Failed to read config file "
                        "@/home/.codex/config.toml: more than 1048576 bytes");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0644), 0);
    assert_string_equal(ask("/", "model", NULL),
                        "failed to load executor-local config: Failed to read config file "
                        "@/home/.codex/config.toml: path `@/home/.codex/config.toml` is not a "
                        "file");
}

static void stopped(void **state) {
    (void)state;
    put("etc/config.toml", "model = 'sys'\n");
    atomic_store(&stop, true);
    assert_non_null(strstr(ask("/", "model", NULL), "Operation canceled"));
    atomic_store(&stop, false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_layers, scratch_new, scratch_rm),
        cmocka_unit_test_setup_teardown(trust, scratch_new, scratch_rm),
        cmocka_unit_test_setup_teardown(operator_decides, scratch_new, scratch_rm),
        cmocka_unit_test_setup_teardown(errors, scratch_new, scratch_rm),
        cmocka_unit_test_setup_teardown(stopped, scratch_new, scratch_rm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
