#include "client/localtree.h"

#include "local_run.h"

static void makes(void **state) {
    (void)state;
    mkdir("r", 0700);
    struct localtree *t = localtree_new(local_open("r"));
    assert_int_equal(localtree_mkdir(t, "a"), 0);
    assert_int_equal(localtree_mkdir(t, "a"), 1);
    assert_int_equal(localtree_mkdir(t, "a/b\xff"), 0);
    assert_int_equal(localtree_mkdir(t, "x/y"), -ENOENT);
    assert_int_equal(local_stat("r/a/b\xff").st_mode & 07777, 0700);
    assert_int_equal(localtree_symlink(t, "a/l", "../../out"), 0);
    assert_int_equal(localtree_symlink(t, "a/l", "there"), 0); /* in place of another */
    char target[64] = "";
    assert_int_equal(readlink("r/a/l", target, sizeof(target) - 1), 5);
    assert_string_equal(target, "there");
    assert_int_equal(localtree_symlink(t, "a", "there"), -EISDIR);
    assert_int_equal(localtree_mkdir(t, "a/l"), -EEXIST);
    struct localtree_traits traits = {true, true, 0750, -1500000000};
    assert_int_equal(localtree_set_directory(t, "a", &traits), 0);
    struct stat st = local_stat("r/a");
    assert_int_equal(st.st_mode & 07777, 0750);
    assert_int_equal(localtree_ns(st.st_mtim), -1500000000);
    assert_int_equal(localtree_set_directory(t, "", &traits), 0);
    assert_int_equal(localtree_set_link(t, "a/l", &traits), 0);
    assert_int_equal(localtree_ns(local_stat("r/a/l").st_mtim), -1500000000);
    localtree_free(t);
}

static void stays_inside(void **state) {
    (void)state;
    mkdir("r", 0700);
    mkdir("out", 0700);
    assert_int_equal(symlink("../out", "r/up"), 0);
    assert_int_equal(symlink("/", "r/top"), 0);
    assert_int_equal(symlink(".", "r/self"), 0);
    local_file("r/file", "");
    struct localtree *t = localtree_new(local_open("r"));
    static const char *const names[] = {"",        ".",       "..",     "../out/x", "/out",
                                        "a/../b",  "a/./b",   "a//b",   "a/",       "up/x",
                                        "up/../x", "top/tmp", "self/x", "file/x",   "up/a/b"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        assert_true(localtree_mkdir(t, names[i]) < 0);
        assert_true(localtree_symlink(t, names[i], "x") < 0);
    }
    struct localtree_traits traits = {true, false, 0777, 0};
    assert_true(localtree_set_directory(t, "up", &traits) < 0);
    assert_true(rmdir("out") == 0); /* nothing is in it */
    /* A directory that was fine becomes a link. */
    assert_int_equal(localtree_mkdir(t, "d"), 0);
    assert_int_equal(rmdir("r/d"), 0);
    mkdir("out", 0700);
    assert_int_equal(symlink("../out", "r/d"), 0);
    assert_true(localtree_mkdir(t, "d/x") < 0);
    assert_int_equal(rmdir("out"), 0);
    localtree_free(t);
}

static void deep(void **state) {
    (void)state;
    struct localtree *t = localtree_new(local_open("."));
    char name[8192] = "";
    for (int i = 0; i < 60; i++) {
        size_t n = strlen(name);
        snprintf(name + n, sizeof(name) - n, "%s%0*d", n ? "/" : "", 100, i);
        assert_int_equal(localtree_mkdir(t, name), 0);
    }
    localtree_free(t);
}

static void masks(void **state) {
    (void)state;
    mode_t old = umask(027);
    assert_int_equal(localtree_umask(), 027);
    umask(old);
    assert_int_equal(localtree_umask(), old);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(makes, local_setup, local_teardown),
        cmocka_unit_test_setup_teardown(stays_inside, local_setup, local_teardown),
        cmocka_unit_test_setup_teardown(deep, local_setup, local_teardown),
        cmocka_unit_test(masks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
