#include "fs/fs_mkdir.h"

#define MANY_FILES
#include "fs_run.h"

enum { FOLLOW_ALL, FOLLOW_ONE, NOFOLLOW_ALL, NOFOLLOW_ONE };

static int make(int how, const char *path, struct err *e) {
    return fs_mkdir(path, how == FOLLOW_ALL || how == NOFOLLOW_ALL,
                    how == FOLLOW_ALL || how == FOLLOW_ONE, e);
}

/* What each mode says of a path of make_tree(): 0 or errno. */
static const struct {
    const char *name;
    int expected[4];
} cases[] = {
    {"new", {0, 0, 0, 0}},
    {"missing/parents/new", {0, ENOENT, 0, ENOENT}},
    {"dir", {0, EEXIST, 0, EEXIST}},
    {"file", {EEXIST, EEXIST, ENOTDIR, EEXIST}},
    {"file/new", {ENOTDIR, ENOTDIR, ENOTDIR, ENOTDIR}},
    {"file/new/new", {ENOTDIR, ENOTDIR, ENOTDIR, ENOTDIR}},
    {"dlink", {0, EEXIST, ENOTDIR, EEXIST}},
    {"dlink/new", {0, 0, ENOTDIR, ENOTDIR}},
    {"dangling", {EEXIST, EEXIST, ENOTDIR, EEXIST}},
    {"loop", {EEXIST, EEXIST, ENOTDIR, EEXIST}},
    {"dangling/new", {EEXIST, ENOENT, ENOTDIR, ENOTDIR}},
    {"loop/new", {ELOOP, ELOOP, ENOTDIR, ENOTDIR}},
    {"fifo", {EEXIST, EEXIST, ENOTDIR, EEXIST}},
};

static bool is_dir(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static void check_mode(int how) {
    make_tree();
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e = ERR_INIT;
        const char *path = at(cases[i].name);
        int num = cases[i].expected[how], r = make(how, path, &e);
        if (num != 0) {
            fails_os(r, &e, num == ENOENT ? -32004 : -32603, num, cases[i].name, __LINE__);
        } else {
            assert_int_equal(r, 0);
            assert_int_equal(e.code, 0);
            assert_true(is_dir(path));
        }
    }
    assert_true(missing(at("nothing")));
}

static void follow_recursive(void **state) {
    (void)state;
    check_mode(FOLLOW_ALL);
    assert_true(is_dir(at("dir/new"))); /* through the link */
}

static void follow_one(void **state) {
    (void)state;
    check_mode(FOLLOW_ONE);
    assert_true(missing(at("missing")));
}

static void nofollow_recursive(void **state) {
    (void)state;
    check_mode(NOFOLLOW_ALL);
    assert_true(missing(at("dir/new")));
}

static void nofollow_one(void **state) {
    (void)state;
    check_mode(NOFOLLOW_ONE);
    assert_true(missing(at("missing")));
    assert_true(missing(at("dir/new")));
}

static void the_root(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    assert_int_equal(make(FOLLOW_ALL, "/", &e), 0);
    FAILS_OS(make(FOLLOW_ONE, "/", &e), &e, -32603, EEXIST);
    assert_int_equal(make(NOFOLLOW_ALL, "/", &e), 0);
    FAILS(make(NOFOLLOW_ONE, "/", &e), &e, -32603, "directory already exists");
}

/* 0777 without the umask, at every level. */
static void modes(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    umask(027);
    for (int how = FOLLOW_ALL; how <= NOFOLLOW_ONE; how++) {
        char name[16], inner[32];
        snprintf(name, sizeof name, "m%d", how);
        snprintf(inner, sizeof inner, "m%d/a", how);
        if (how == FOLLOW_ONE || how == NOFOLLOW_ONE)
            assert_int_equal(make(how, at(name), &e), 0);
        assert_int_equal(make(how, at(inner), &e), 0);
        assert_int_equal(stat_of(at(name)).st_mode & 07777, 0750);
        assert_int_equal(stat_of(at(inner)).st_mode & 07777, 0750);
    }
    umask(022);
}

/* A directory that its maker may not search can still be the last one made. */
static void unsearchable(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    umask(0777);
    assert_int_equal(make(NOFOLLOW_ALL, at("closed"), &e), 0);
    assert_int_equal(make(FOLLOW_ALL, at("closed2"), &e), 0);
    umask(022);
    assert_int_equal(stat_of(at("closed")).st_mode & 07777, 0);
}

static void long_names(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    char name[300] = "made/";
    memset(name + 5, 'n', 255);
    assert_int_equal(make(FOLLOW_ALL, at(name), &e), 0);
    assert_int_equal(make(NOFOLLOW_ALL, at(name), &e), 0);
    memset(name + 5, 'n', 256);
    for (int how = FOLLOW_ALL; how <= NOFOLLOW_ONE; how++)
        FAILS_OS(make(how, at(name), &e), &e, -32603, ENAMETOOLONG);
}

/* A path of `levels` directories "d", made by the caller; owned by the test. */
static char *deep_path(size_t levels) {
    char *path = malloc(strlen(scratch) + 2 * levels + 1);
    assert_non_null(path);
    char *p = stpcpy(path, scratch);
    for (size_t i = 0; i < levels; i++)
        p = stpcpy(p, "/d");
    return path;
}

/* Removes what deep_path() names; nftw() cannot. */
static void remove_deep(size_t levels) {
    int fd = open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 1; i < levels; i++) {
        int next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        close(fd);
        fd = next;
    }
    for (size_t i = 0; i < levels; i++) {
        assert_int_equal(unlinkat(fd, "d", AT_REMOVEDIR), 0);
        int up = openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(fd);
        fd = up;
    }
    close(fd);
}

/* Only follow mode has the kernel's limit of a path. */
static void long_paths(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    _cleanup_free_ char *path = deep_path(2500);
    FAILS_OS(make(FOLLOW_ALL, path, &e), &e, -32603, ENAMETOOLONG);
    FAILS_OS(make(FOLLOW_ONE, path, &e), &e, -32603, ENAMETOOLONG);
    assert_true(missing(at("d")));
    FAILS_OS(make(NOFOLLOW_ONE, path, &e), &e, -32004, ENOENT);
    assert_int_equal(make(NOFOLLOW_ALL, path, &e), 0);
    FAILS_OS(make(NOFOLLOW_ONE, path, &e), &e, -32603, EEXIST);
    remove_deep(2500);
    _cleanup_free_ char *fits = deep_path(1800);
    assert_int_equal(make(FOLLOW_ALL, fits, &e), 0);
    remove_deep(1800);
}

/* Two who make the same directories at once: both succeed, in either mode. */
static void races(void **state) {
    (void)state;
    for (int how = FOLLOW_ALL; how <= NOFOLLOW_ALL; how += NOFOLLOW_ALL) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        int bad = 0;
        for (int i = 0; i < 200; i++) {
            struct err e = ERR_INIT;
            char name[64];
            snprintf(name, sizeof name, "race%d/%d/a/b/c", how, i);
            bad += make(how, at(name), &e) != 0;
            err_fini(&e);
        }
        if (pid == 0)
            _exit(bad != 0);
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        assert_int_equal(bad, 0);
    }
}

static int plain_user(void) {
    struct err e = ERR_INIT;
    CHECK(become_nobody() == 0);
    for (int how = FOLLOW_ALL; how <= NOFOLLOW_ONE; how++) {
        CHECK_OS(make(how, at("ours/new"), &e), &e, -32600, EACCES);
        CHECK_OS(make(how, at("closed/new"), &e), &e, -32600, EACCES);
        char name[32];
        snprintf(name, sizeof name, "search-only/open/%d", how);
        CHECK(make(how, at(name), &e) == 0);
    }
    CHECK(make(FOLLOW_ALL, at("ours"), &e) == 0); /* is there */
    CHECK(make(NOFOLLOW_ALL, at("closed"), &e) == 0);
    return 0;
}

static void permissions(void **state) {
    (void)state;
    needs_root();
    make_dir("ours");
    make_dir("closed");
    assert_int_equal(chmod(at("closed"), 0), 0);
    make_dir("search-only");
    make_dir("search-only/open");
    assert_int_equal(chmod(at("search-only/open"), 0777), 0);
    assert_int_equal(chmod(at("search-only"), 0711), 0);
    in_child(plain_user);
}

static int read_only_system(void) {
    struct err e = ERR_INIT;
    CHECK(own_mounts() == 0);
    CHECK(mount("none", at("m"), "tmpfs", MS_RDONLY, NULL) == 0);
    for (int how = FOLLOW_ALL; how <= NOFOLLOW_ONE; how++)
        CHECK_OS(make(how, at("m/new"), &e), &e, -32603, EROFS);
    CHECK(make(FOLLOW_ALL, at("m"), &e) == 0);
    CHECK(make(NOFOLLOW_ALL, at("m"), &e) == 0);
    return 0;
}

static void read_only(void **state) {
    (void)state;
    needs_root();
    make_dir("m");
    in_child(read_only_system);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        scratch_test(follow_recursive),   scratch_test(follow_one),
        scratch_test(nofollow_recursive), scratch_test(nofollow_one),
        scratch_test(the_root),           scratch_test(modes),
        scratch_test(unsearchable),       scratch_test(long_names),
        scratch_test(long_paths),         scratch_test(races),
        scratch_test(permissions),        scratch_test(read_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
