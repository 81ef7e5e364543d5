#include "fs/fs_link.h"

#include "fs_run.h"

static struct fs_link got;

static void reads(void **state) {
    (void)state;
    make_tree();
    struct err e = ERR_INIT;
    static const char *const table[][2] = {
        {"a", "nowhere"}, {"b", "/abs/../x//"}, {"c", "\xFF\x01 \n"}, {"d", "d"}};
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        make_link(table[i][1], table[i][0]);
        assert_int_equal(fs_link_read(at(table[i][0]), &got, &e), 0);
        assert_string_equal(got.target, table[i][1]);
        assert_int_equal(got.n, strlen(table[i][1]));
    }
    make_link("x", "dir/in");
    assert_int_equal(fs_link_read(at("dlink/in"), &got, &e), 0); /* links before it are followed */
    static const char *const others[] = {"file", "dir", "fifo", "socket"};
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        FAILS(fs_link_read(at(others[i]), &got, &e), &e, -32600, "path is not a symbolic link");
    FAILS(fs_link_read("/", &got, &e), &e, -32600, "path is not a symbolic link");
    FAILS_OS(fs_link_read(at("nothing"), &got, &e), &e, -32004, ENOENT);
    FAILS_OS(fs_link_read(at("dangling/x"), &got, &e), &e, -32004, ENOENT);
    FAILS_OS(fs_link_read(at("file/x"), &got, &e), &e, -32603, ENOTDIR);
    FAILS_OS(fs_link_read(at("loop/x"), &got, &e), &e, -32603, ELOOP);
}

static void makes(void **state) {
    (void)state;
    make_tree();
    struct err e = ERR_INIT;
    static char longest[FS_LINK_TARGET_MAX + 1];
    memset(longest, 'x', FS_LINK_TARGET_MAX);
    const char *targets[] = {"file", "\xFF/..", ".", longest};
    for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
        char name[8];
        snprintf(name, sizeof name, "n%zu", i);
        assert_int_equal(fs_link_make(at(name), targets[i], &e), 0);
        assert_int_equal(fs_link_read(at(name), &got, &e), 0);
        assert_string_equal(got.target, targets[i]);
    }
    static const char *const taken[] = {"file", "dir", "flink", "dangling", "loop"};
    for (size_t i = 0; i < ARRAY_LEN(taken); i++)
        FAILS_OS(fs_link_make(at(taken[i]), "x", &e), &e, -32603, EEXIST);
    FAILS_OS(fs_link_make("/", "x", &e), &e, -32603, EEXIST);
    FAILS_OS(fs_link_make(at("no/x"), "x", &e), &e, -32004, ENOENT);
    FAILS_OS(fs_link_make(at("file/x"), "x", &e), &e, -32603, ENOTDIR);
    FAILS_OS(fs_link_make(at("loop/x"), "x", &e), &e, -32603, ELOOP);
}

/* A place keeps to what was decided on. */
static void places(void **state) {
    (void)state;
    make_tree();
    struct err e = ERR_INIT;
    struct fs_place p = FS_PLACE_INIT;
    strcpy(p.path, at("dangling"));
    assert_int_equal(fs_place_fill(&p, false), 0);
    assert_int_equal(fs_link_read_place(&p, &got, &e), 0);
    FAILS_OS(fs_link_make_place(&p, "x", &e), &e, -32603, EEXIST);
    assert_int_equal(unlink(at("dangling")), 0);
    FAILS_OS(fs_link_read_place(&p, &got, &e), &e, -32004, ENOENT);
    make_file("dangling", "");
    FAILS(fs_link_read_place(&p, &got, &e), &e, -32600, "path is not a symbolic link");
    assert_int_equal(fs_place_fill(&p, false), 0);
    assert_int_equal(rename(at("flink"), at("dangling")), 0); /* nobody decided on this link */
    FAILS(fs_link_read_place(&p, &got, &e), &e, -32600, "path is not a symbolic link");
    strcpy(p.path, at("new"));
    assert_int_equal(fs_place_fill(&p, false), 0);
    FAILS_OS(fs_link_read_place(&p, &got, &e), &e, -32004, ENOENT);
    assert_int_equal(fs_link_make_place(&p, "y", &e), 0);
    assert_int_equal(fs_link_read(at("new"), &got, &e), 0);
    assert_string_equal(got.target, "y");
    fs_place_fini(&p);
}

static int plain_user(void) {
    struct err e = ERR_INIT;
    CHECK(become_nobody() == 0);
    CHECK_OS(fs_link_read(at("closed/l"), &got, &e), &e, -32600, EACCES);
    CHECK_OS(fs_link_make(at("closed/m"), "x", &e), &e, -32600, EACCES);
    CHECK_OS(fs_link_make(at("m"), "x", &e), &e, -32600, EACCES);
    return 0;
}

static void permissions(void **state) {
    (void)state;
    needs_root();
    make_dir("closed");
    make_link("x", "closed/l");
    assert_int_equal(chmod(at("closed"), 0700), 0);
    in_child(plain_user);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        scratch_test(reads),
        scratch_test(makes),
        scratch_test(places),
        scratch_test(permissions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
