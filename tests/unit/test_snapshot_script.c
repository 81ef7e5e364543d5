/* Shell snapshots: what a capture printed, and a command with the state. */
#include "process/snapshot_script.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>
#include <sys/resource.h>

#define MARK "\0exec-server-snapshot"
#define END "exec-server-snapshot-end"

static struct arena arena = ARENA_INIT(16u << 20);

/* Parses a literal, which may contain NULs. */
#define PARSE(text, out) snapshot_script_parse((struct str){(text), sizeof(text) - 1}, (out))

static void captures(void **state) {
    (void)state;
    struct snapshot_text t;
    assert_int_equal(PARSE("noise" MARK "\0state\n\0A=b\0C=\0" END, &t), 0);
    assert_true(str_eqz(t.state, "state\n"));
    assert_int_equal(t.variables.n, 7);
    assert_memory_equal(t.variables.p, "A=b\0C=\0", 7);
    assert_int_equal(PARSE(MARK "\0\0" END, &t), 0);
    assert_int_equal(t.state.n + t.variables.n, 0);
}

static void bad_captures(void **state) {
    (void)state;
    struct snapshot_text t;
    assert_int_equal(PARSE("", &t), -EINVAL);
    assert_int_equal(PARSE("noise", &t), -EINVAL);
    assert_int_equal(PARSE(END, &t), -EINVAL);
    assert_int_equal(PARSE(MARK "\0" END, &t), -EINVAL);
    assert_int_equal(PARSE(MARK "\0state\0A=b\0", &t), -EINVAL);
    assert_int_equal(PARSE(MARK "\0state\0A=b" END, &t), -EINVAL);
    assert_int_equal(PARSE(MARK "\0state\0A=b\0" END "x", &t), -EINVAL);
    assert_int_equal(PARSE(MARK "\0st\xff\0A=b\0" END, &t), -EINVAL);
}

static void large_captures(void **state) {
    (void)state;
    static char text[SNAPSHOT_SCRIPT_STATE_MAX + 256];
    for (size_t extra = 0; extra < 2; extra++) {
        char *end = mempcpy(text, MARK "\0", sizeof MARK);
        memset(end, 'x', SNAPSHOT_SCRIPT_STATE_MAX + extra);
        end += SNAPSHOT_SCRIPT_STATE_MAX + extra;
        *end++ = '\0';
        end = mempcpy(end, END, sizeof END - 1);
        struct snapshot_text t;
        int r = snapshot_script_parse((struct str){text, (size_t)(end - text)}, &t);
        assert_int_equal(r, extra == 0 ? 0 : -EINVAL);
    }
}

/* Whether a list has that entry, once. */
static bool has(char *const *list, const char *entry) {
    int n = 0;
    for (; *list != NULL; list++)
        n += strcmp(*list, entry) == 0;
    assert_true(n < 2);
    return n == 1;
}

static void commands(void **state) {
    (void)state;
    char *argv[] = {"/bin/bash", "-lc", "echo x", "zero", NULL};
    char *envp[] = {"A=request", "B=policy", "C=c", NULL};
    char *environment[] = {"A=profile", "B=profile", "D=d", NULL}, *own[] = {"A", NULL};
    struct snapshot_command c = {argv, envp};
    assert_int_equal(
        snapshot_script_apply(&arena, SNAPSHOT_BASH, STR_LIT("state"), environment, own, &c), 0);
    assert_string_equal(c.argv[0], "/bin/bash");
    assert_string_equal(c.argv[1], "-pc");
    assert_non_null(strstr(c.argv[2], "\necho x"));
    assert_string_equal(c.argv[3], "zero");
    assert_null(c.argv[4]);
    assert_true(has(c.envp, "A=request") && has(c.envp, "B=profile") && has(c.envp, "C=c"));
    assert_true(has(c.envp, "D=d") && has(c.envp, SNAPSHOT_SCRIPT_PREFIX "0=state"));
    assert_false(has(c.envp, "A=profile") || has(c.envp, "B=policy"));
    assert_string_equal(argv[1], "-lc"); /* the caller's stays */
}

/* A long state comes in parts that split no character. */
static void parts(void **state) {
    (void)state;
    static char text[200 << 10];
    char *argv[] = {"sh", "-lc", "", NULL}, *none[] = {NULL};
    struct snapshot_command c = {argv, none};
    for (size_t i = 0; i + 3 < sizeof text; i += 3)
        memcpy(text + i, "\xe2\x82\xac", 3);
    assert_int_equal(snapshot_script_apply(&arena, SNAPSHOT_SH, str_of(text), none, none, &c), 0);
    size_t n = 0, bytes = 0;
    for (; c.envp[n] != NULL; n++) {
        const char *part = strchr(c.envp[n], '=') + 1;
        assert_true(strlen(part) <= SNAPSHOT_SCRIPT_PART_MAX);
        assert_memory_equal(part, text + bytes, strlen(part));
        assert_int_equal(strlen(part) % 3, 0);
        bytes += strlen(part);
    }
    assert_int_equal(bytes, strlen(text));
    assert_true(n > 2);
}

/* A command that the kernel might refuse is not made. */
static void small_stack(void **state) {
    (void)state;
    static char text[200 << 10];
    char *argv[] = {"sh", "-lc", "", NULL}, *none[] = {NULL};
    struct snapshot_command c = {argv, none};
    struct rlimit old, small;
    memset(text, 'x', sizeof text - 1);
    assert_int_equal(getrlimit(RLIMIT_STACK, &old), 0);
    small = (struct rlimit){1u << 20, old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_STACK, &small), 0);
    assert_int_equal(snapshot_script_apply(&arena, SNAPSHOT_SH, str_of(text), none, none, &c),
                     -E2BIG);
    assert_int_equal(setrlimit(RLIMIT_STACK, &old), 0);
}

static void shells(void **state) {
    (void)state;
    assert_int_equal(snapshot_script_shell(STR_LIT("bash")), SNAPSHOT_BASH);
    assert_int_equal(snapshot_script_shell(STR_LIT("zsh")), SNAPSHOT_ZSH);
    assert_int_equal(snapshot_script_shell(STR_LIT("sh")), SNAPSHOT_SH);
    assert_int_equal(snapshot_script_shell(STR_LIT("fish")), SNAPSHOT_SHELLS);
    assert_int_equal(snapshot_script_shell(STR_LIT("")), SNAPSHOT_SHELLS);
}

static int end(void **state) {
    (void)state;
    arena_fini(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(captures),       cmocka_unit_test(bad_captures),
        cmocka_unit_test(large_captures), cmocka_unit_test(commands),
        cmocka_unit_test(parts),          cmocka_unit_test(small_stack),
        cmocka_unit_test(shells),
    };
    return cmocka_run_group_tests(tests, NULL, end);
}
