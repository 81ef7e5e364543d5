#include "app/shell.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

/* In the tables %s is a directory that has what shell_files() makes. */
static char dir[] = "/tmp/test_shell.XXXXXX";

static void make(const char *name, mode_t mode) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fclose(f);
    assert_int_equal(chmod(path, mode), 0);
}

static void make_dir(const char *name) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

static int shell_files(void **state) {
    static const char *const names[] = {"in/bash", "in/zsh",   "in/sh",   "in/dash",
                                        "in/fish", "in/false", "in/rbash"};
    (void)state;
    assert_non_null(mkdtemp(dir));
    make_dir("in");
    make_dir("closed");
    make_dir("tree");
    make_dir("tree/bash");
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        make(names[i], 0755);
    make("closed/bash", 0644);
    return 0;
}

static int remove_files(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", dir);
    return system(command);
}

static const struct row {
    const char *login, *path, *expected;
} rows[] = {
    {"%s/in/bash", "/nowhere", "%s/in/bash"},
    {"%s/in/zsh", "%s/in", "%s/in/zsh"},
    {"%s/in/sh", "%s/in", "%s/in/sh"},
    {"%s/in/dash", "%s/in", "%s/in/bash"},
    {"%s/in/fish", "/nowhere:%s/in", "%s/in/bash"},
    {"%s/in/false", "%s/closed:%s/tree:%s/in", "%s/in/bash"},
    {"%s/in/rbash", ":%s/in:", "%s/in/bash"},
    {"%s/closed/bash", "%s/in", "%s/in/bash"},
    {"%s/tree/bash", "%s/in", "%s/in/bash"},
    {"%s/nowhere/bash", "%s/in", "%s/in/bash"},
    {"bash", "%s/in", "%s/in/bash"},
    {"", "%s/in", "%s/in/bash"},
    {NULL, "%s/in", "%s/in/bash"},
};

static char *expand(const char *text) {
    char *out;
    if (text == NULL)
        return NULL;
    out = calloc(1, 256);
    assert_non_null(out);
    for (const char *mark; (mark = strstr(text, "%s")) != NULL; text = mark + 2) {
        strncat(out, text, (size_t)(mark - text));
        strcat(out, dir);
    }
    return strcat(out, text);
}

static void clients_get_a_shell_that_runs_scripts(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        _cleanup_free_ char *login = expand(rows[i].login), *path = expand(rows[i].path);
        _cleanup_free_ char *expected = expand(rows[i].expected);
        _cleanup_free_ char *got = shell_for_clients(login, path);
        assert_string_equal(got, expected);
    }
}

/* Without a bash in PATH the usual places count. */
static void usual_places(void **state) {
    (void)state;
    const char *usual = access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh";
    static const char *const paths[] = {NULL, "", ":", "/nowhere", ".", "bin:../bin"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        _cleanup_free_ char *got = shell_for_clients("/usr/sbin/nologin", paths[i]);
        assert_string_equal(got, usual);
    }
}

static void terminals_get_the_login_shell(void **state) {
    (void)state;
    _cleanup_free_ char *fish = expand("%s/in/fish"), *closed = expand("%s/closed/bash");
    assert_string_equal(shell_for_terminals(fish), fish);
    assert_string_equal(shell_for_terminals(closed), "/bin/sh");
    assert_string_equal(shell_for_terminals(NULL), "/bin/sh");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clients_get_a_shell_that_runs_scripts),
        cmocka_unit_test(usual_places),
        cmocka_unit_test(terminals_get_the_login_shell),
    };
    return cmocka_run_group_tests(tests, shell_files, remove_files);
}
