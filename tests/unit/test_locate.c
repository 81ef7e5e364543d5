#include "sandbox/policy/locate.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>
#include <cmocka.h>

static char dir[] = "/tmp/test-locate-XXXXXX";
static struct arena arena = ARENA_INIT(1u << 20);

static const char *at(const char *name) {
    static char path[8][512];
    static unsigned i;
    char *p = path[i++ % 8];
    snprintf(p, sizeof path[0], "%s/%s", dir, name);
    return p;
}

static int set_up(void **state) {
    (void)state;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(chmod(dir, 0755), 0);
    assert_int_equal(mkdir(at("real"), 0755), 0);
    assert_int_equal(mkdir(at("real/sub"), 0755), 0);
    assert_int_equal(mknod(at("real/file"), S_IFREG | 0644, 0), 0);
    assert_int_equal(symlink("real", at("relative")), 0);
    assert_int_equal(symlink(at("real/sub"), at("absolute")), 0);
    assert_int_equal(symlink("relative/../relative/sub", at("winding")), 0);
    assert_int_equal(symlink("loop", at("loop")), 0);
    assert_int_equal(symlink("gone/x", at("dangling")), 0);
    assert_int_equal(mkdir(at("closed"), 0700), 0);
    assert_int_equal(mkdir(at("closed/x"), 0755), 0);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    arena_fini(&arena);
    return system(command);
}

static struct locate_result found(const char *path) {
    struct locate_result r;
    assert_int_equal(locate_path(path, &arena, &r), 0);
    assert_int_equal(r.state, LOCATE_FOUND);
    assert_int_equal(r.existing, strlen(r.path));
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_ino, r.st.st_ino);
    return r;
}

static void plain_paths(void **state) {
    (void)state;
    struct locate_result r = found(at("real/sub"));
    assert_string_equal(r.path, at("real/sub"));
    assert_int_equal(r.link_count, 0);
    assert_true(S_ISREG(found(at("real/file")).st.st_mode));
    assert_string_equal(found("/").path, "/");
    assert_string_equal(found("/..").path, "/");
    assert_string_equal(found(at("real/./../real//sub/.")).path, at("real/sub"));
}

static void links_are_followed_and_told(void **state) {
    (void)state;
    struct locate_result r = found(at("relative/sub"));
    assert_string_equal(r.path, at("real/sub"));
    assert_int_equal(r.link_count, 1);
    assert_string_equal(r.links[0].place, at("relative"));
    assert_string_equal(r.links[0].text, "real");
    r = found(at("absolute"));
    assert_string_equal(r.path, at("real/sub"));
    assert_string_equal(r.links[0].place, at("absolute"));
    r = found(at("winding"));
    assert_string_equal(r.path, at("real/sub"));
    assert_int_equal(r.link_count, 3);
    assert_string_equal(r.links[0].place, at("winding"));
    assert_string_equal(r.links[2].place, at("relative"));
}

static void missing_paths(void **state) {
    (void)state;
    struct locate_result r;
    assert_int_equal(locate_path(at("relative/a/b"), &arena, &r), 0);
    assert_int_equal(r.state, LOCATE_MISSING);
    assert_string_equal(r.path, at("real/a/b"));
    assert_int_equal(r.existing, strlen(at("real")));
    assert_int_equal(locate_first_missing(&r), strlen(at("real/a")));
    assert_true(S_ISDIR(r.st.st_mode));
    /* Below a file. */
    assert_int_equal(locate_path(at("real/file/x"), &arena, &r), 0);
    assert_int_equal(r.state, LOCATE_MISSING);
    assert_int_equal(r.existing, strlen(at("real/file")));
    assert_true(S_ISREG(r.st.st_mode));
    assert_int_equal(locate_path(at("dangling"), &arena, &r), 0);
    assert_int_equal(r.state, LOCATE_MISSING);
    assert_string_equal(r.path, at("gone/x"));
    assert_int_equal(locate_path("/nonexistent-x/y", &arena, &r), 0);
    assert_int_equal(r.existing, 1);
    assert_int_equal(locate_first_missing(&r), strlen("/nonexistent-x"));
}

static void endless_and_long_paths(void **state) {
    (void)state;
    struct locate_result r;
    char path[LOCATE_PATH_MAX + 2];
    assert_int_equal(locate_path(at("loop/x"), &arena, &r), -ELOOP);
    memset(path, 'a', sizeof path - 1);
    path[0] = '/';
    path[sizeof path - 1] = '\0';
    assert_int_equal(locate_path(path, &arena, &r), -ENAMETOOLONG);
}

/* What is missing has no "..": the text of a link never becomes part of a path to make. */
static void dots_behind_what_is_missing(void **state) {
    (void)state;
    struct locate_result r;
    assert_int_equal(symlink("gone/..", at("back")), 0);
    assert_int_equal(symlink("gone/./x/../../y", at("far")), 0);
    assert_int_equal(symlink("./gone/.", at("dots")), 0);
    assert_int_equal(locate_path(at("back/.git"), &arena, &r), 0);
    assert_int_equal(r.state, LOCATE_MISSING);
    assert_true(r.lost);
    assert_string_equal(r.path, at("gone"));
    assert_int_equal(locate_path(at("far"), &arena, &r), 0);
    assert_true(r.lost);
    assert_string_equal(r.path, at("gone/x"));
    assert_int_equal(locate_path(at("dots/z"), &arena, &r), 0);
    assert_false(r.lost);
    assert_string_equal(r.path, at("gone/z"));
}

/* As root there is none that may not be searched. */
static void closed_directories(void **state) {
    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        struct locate_result r;
        if (getuid() == 0 && setresuid(65534, 65534, 65534) < 0)
            _exit(1);
        if (getuid() != 65534)
            chmod(at("closed"), 0);
        bool ok = locate_path(at("closed/x/y"), &arena, &r) == 0 && r.state == LOCATE_BLOCKED &&
                  r.existing == strlen(at("closed")) && strcmp(r.path, at("closed/x/y")) == 0;
        _exit(ok ? 0 : 2);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void relations(void **state) {
    (void)state;
    assert_true(locate_inside("/a", "/a"));
    assert_true(locate_inside("/a/b", "/a"));
    assert_true(locate_inside("/a", "/"));
    assert_true(locate_inside("/", "/"));
    assert_false(locate_inside("/ab", "/a"));
    assert_false(locate_inside("/", "/a"));
    assert_int_equal(locate_depth("/"), 0);
    assert_int_equal(locate_depth("/a"), 1);
    assert_int_equal(locate_depth("/a/b"), 2);
}

int main(void) {
    if (getenv("EXEC_SERVER_EMULATED") != NULL) {
        printf("an emulator shows another root\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_paths),
        cmocka_unit_test(links_are_followed_and_told),
        cmocka_unit_test(missing_paths),
        cmocka_unit_test(endless_and_long_paths),
        cmocka_unit_test(dots_behind_what_is_missing),
        cmocka_unit_test(closed_directories),
        cmocka_unit_test(relations),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
