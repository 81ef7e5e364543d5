#include "fs/fs_rename.h"

#include "fs_run.h"

#define OK(call) assert_int_equal(call, 0)

static void moves(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    make_tree();
    OK(fs_rename(at("file"), at("dir/moved"), false, &e));
    assert_true(missing(at("file")));
    expect_text(at("dir/moved"), "content");
    OK(fs_rename(at("dir"), at("dir2"), false, &e));
    expect_text(at("dir2/moved"), "content");
    OK(fs_rename(at("fifo"), at("fifo2"), true, &e));
    assert_true(S_ISFIFO(stat_of(at("fifo2")).st_mode));
}

static void links_themselves(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    make_tree();
    OK(fs_rename(at("flink"), at("moved"), false, &e));
    assert_true(S_ISLNK(stat_of(at("moved")).st_mode));
    OK(fs_rename(at("loop"), at("loop2"), false, &e));
    make_file("new", "new");
    OK(fs_rename(at("new"), at("dangling"), true, &e)); /* replaces the link */
    assert_true(S_ISREG(stat_of(at("dangling")).st_mode));
    assert_true(missing(at("nothing")));
    OK(fs_rename(at("dangling"), at("dlink/x"), false, &e)); /* parents are followed */
    expect_text(at("dir/x"), "new");
}

static void replaces(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    static const char *const names[] = {"file",     "dir",  "flink", "dlink",
                                        "dangling", "loop", "fifo",  "socket"};
    make_tree();
    make_file("new", "new");
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        FAILS_OS(fs_rename(at("new"), at(names[i]), false, &e), &e, -32603, EEXIST);
    expect_text(at("file"), "content");
    OK(fs_rename(at("new"), at("file"), true, &e));
    expect_text(at("file"), "new");
    FAILS_OS(fs_rename(at("file"), at("dir"), true, &e), &e, -32603, EISDIR);
    FAILS_OS(fs_rename(at("dir"), at("file"), true, &e), &e, -32603, ENOTDIR);
    make_dir("empty");
    FAILS_OS(fs_rename(at("empty"), at("dir"), true, &e), &e, -32603, ENOTEMPTY);
    OK(fs_rename(at("dir"), at("empty"), true, &e));
    expect_text(at("empty/file"), "inner");
}

static void failures(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    make_tree();
    for (int k = 0; k < 2; k++) {
        bool replace = k > 0;
        FAILS_OS(fs_rename(at("nope"), at("x"), replace, &e), &e, -32004, ENOENT);
        FAILS_OS(fs_rename(at("file"), at("nope/x"), replace, &e), &e, -32004, ENOENT);
        FAILS_OS(fs_rename(at("file/x"), at("x"), replace, &e), &e, -32603, ENOTDIR);
        FAILS_OS(fs_rename(at("dir"), at("dir/below"), replace, &e), &e, -32600, EINVAL);
        FAILS_OS(fs_rename("/", at("x"), replace, &e), &e, -32603, EBUSY);
        FAILS_OS(fs_rename(at("file"), "/", replace, &e), &e, -32603, EBUSY);
        FAILS_OS(fs_rename(at("file"), "/dev/shm/test-fs-rename", replace, &e), &e, -32603, EXDEV);
    }
    expect_text(at("file"), "content");
}

/* File systems and kernels without RENAME_NOREPLACE. */
static int without_noreplace(void) {
    CHECK(forbid(SYS_renameat2, EINVAL) == 0);
    struct err e = ERR_INIT;
    CHECK_OS(fs_rename(at("file"), at("dir"), false, &e), &e, -32603, EEXIST);
    CHECK_OS(fs_rename(at("file"), at("dangling"), false, &e), &e, -32603, EEXIST);
    CHECK_OS(fs_rename(at("dir"), at("dir/x"), false, &e), &e, -32600, EINVAL);
    CHECK_OS(fs_rename(at("nope"), at("x"), false, &e), &e, -32004, ENOENT);
    CHECK(fs_rename(at("file"), at("moved"), false, &e) == 0);
    CHECK(missing(at("file")) && !missing(at("moved")));
    return 0;
}

static void fallback(void **state) {
    (void)state;
    make_tree();
    in_child(without_noreplace);
}

static int as_nobody(void) {
    CHECK(become_nobody() == 0);
    struct err e = ERR_INIT;
    CHECK_OS(fs_rename(at("file"), at("x"), false, &e), &e, -32600, EACCES);
    CHECK_OS(fs_rename(at("closed/f"), at("x"), true, &e), &e, -32600, EACCES);
    return 0;
}

static void permissions(void **state) {
    (void)state;
    needs_root();
    make_tree();
    make_dir("closed");
    make_file("closed/f", "");
    assert_int_equal(chmod(at("closed"), 0700), 0);
    in_child(as_nobody);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        scratch_test(moves),    scratch_test(links_themselves), scratch_test(replaces),
        scratch_test(failures), scratch_test(fallback),         scratch_test(permissions),
    };
    return cmocka_run_group_tests_name("fs_rename", tests, NULL, NULL);
}
