#include "fs/fs_atomic.h"

#include "fs_run.h"

static int put(const char *path, const char *data, bool follow, struct err *e) {
    return fs_file_write(&(struct fs_write){path, data, strlen(data), follow, true}, e);
}

/* Names in a directory below scratch, without the two dots. */
static size_t entries(const char *name) {
    size_t n = 0;
    DIR *d = opendir(at(name));
    assert_non_null(d);
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n - 2;
}

static const char *not_a_file(const char *path) {
    static char text[512];
    snprintf(text, sizeof text, "path `%s` is not a file", path);
    return text;
}

static void makes(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    umask(027);
    assert_int_equal(put(at("a"), "one", true, &e), 0);
    assert_int_equal(put(at("b"), "two", false, &e), 0);
    assert_int_equal(put(at("c"), "", false, &e), 0);
    umask(022);
    expect_text(at("a"), "one");
    expect_text(at("b"), "two");
    expect_text(at("c"), "");
    assert_int_equal(stat_of(at("a")).st_mode, S_IFREG | 0640);
    assert_int_equal(stat_of(at("b")).st_mode, S_IFREG | 0640);
    assert_int_equal(entries("."), 3);
}

/* The old file stays as it was, for those that have it open or by another name. */
static void replaces(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    for (int follow = 0; follow <= 1; follow++) {
        make_file("file", "old");
        assert_int_equal(chmod(at("file"), 06754), 0);
        assert_int_equal(link(at("file"), at("other")), 0);
        int fd = open(at("file"), O_RDONLY | O_CLOEXEC);
        struct stat before = stat_of(at("file"));
        assert_int_equal(put(at("file"), "new", follow, &e), 0);
        expect_text(at("file"), "new");
        expect_text(at("other"), "old");
        char data[8];
        assert_int_equal(read(fd, data, sizeof data), 3);
        assert_memory_equal(data, "old", 3);
        close(fd);
        struct stat after = stat_of(at("file"));
        assert_int_not_equal(after.st_ino, before.st_ino);
        assert_int_equal(after.st_mode, before.st_mode);
        assert_int_equal(entries("."), 2);
        assert_int_equal(unlink(at("other")), 0);
    }
}

static void keeps_the_owner(void **state) {
    (void)state;
    needs_root();
    struct err e = ERR_INIT;
    make_file("file", "old");
    assert_int_equal(chown(at("file"), 1234, 5678), 0);
    assert_int_equal(chmod(at("file"), 04711), 0);
    assert_int_equal(put(at("file"), "new", true, &e), 0);
    struct stat st = stat_of(at("file"));
    assert_int_equal(st.st_uid, 1234);
    assert_int_equal(st.st_gid, 5678);
    assert_int_equal(st.st_mode & 07777, 04711);
}

static void links(void **state) {
    (void)state;
    make_tree();
    make_link(at("dlink/file"), "far"); /* absolute, through another link */
    make_link("far", "chain");
    struct err e = ERR_INIT;
    assert_int_equal(put(at("flink"), "1", true, &e), 0);
    expect_text(at("file"), "1");
    assert_int_equal(put(at("chain"), "2", true, &e), 0);
    expect_text(at("dir/file"), "2");
    assert_int_equal(put(at("dlink/fresh"), "3", true, &e), 0);
    expect_text(at("dir/fresh"), "3");
    const char *kept[] = {"flink", "chain", "far", "dlink"};
    for (size_t i = 0; i < ARRAY_LEN(kept); i++)
        assert_true(S_ISLNK(stat_of(at(kept[i])).st_mode));
    FAILS_OS(put(at("dangling"), "x", true, &e), &e, -32004, ENOENT);
    FAILS_OS(put(at("loop"), "x", true, &e), &e, -32603, ELOOP);
    FAILS_OS(put(at("dlink"), "x", true, &e), &e, -32603, EISDIR);
    FAILS_OS(put(at("flink"), "x", false, &e), &e, -32603, ELOOP);
    FAILS_OS(put(at("dangling"), "x", false, &e), &e, -32603, ELOOP);
    FAILS_OS(put(at("dlink/file"), "x", false, &e), &e, -32603, ENOTDIR);
    assert_true(missing(at("nothing")));
    expect_text(at("file"), "1");
    assert_int_equal(entries("dir"), 2);
    assert_int_equal(entries("."), 10);
}

/* A link to what has no name any more. */
static void deleted_target(void **state) {
    (void)state;
    make_file("file", "old");
    int fd = open(at("file"), O_RDONLY | O_CLOEXEC);
    assert_int_equal(unlink(at("file")), 0);
    char target[64];
    snprintf(target, sizeof target, "/proc/%d/fd/%d", getpid(), fd);
    make_link(target, "link");
    struct err e = ERR_INIT;
    FAILS_OS(put(at("link"), "x", true, &e), &e, -32004, ENOENT);
    make_file("file (deleted)", "a trap");
    FAILS_OS(put(at("link"), "x", true, &e), &e, -32004, ENOENT);
    expect_text(at("file (deleted)"), "a trap");
    close(fd);
    assert_int_equal(entries("."), 2);
}

static void regular_files_only(void **state) {
    (void)state;
    make_tree();
    struct err e = ERR_INIT;
    const char *others[] = {at("fifo"), at("socket"), "/dev/null"};
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        mode_t mode = stat_of(others[i]).st_mode;
        FAILS(put(others[i], "x", true, &e), &e, -32600, not_a_file(others[i]));
        FAILS(put(others[i], "x", false, &e), &e, -32600, "path is not a regular file");
        assert_int_equal(stat_of(others[i]).st_mode, mode);
    }
    for (int follow = 0; follow <= 1; follow++) {
        FAILS_OS(put(at("dir"), "x", follow, &e), &e, -32603, EISDIR);
        FAILS_OS(put(at("no/file"), "x", follow, &e), &e, -32004, ENOENT);
        FAILS_OS(put(at("file/x"), "x", follow, &e), &e, -32603, ENOTDIR);
    }
    FAILS_OS(put("/", "x", true, &e), &e, -32603, EISDIR);
    FAILS(put("/", "x", false, &e), &e, -32600, "path must name an entry");
}

/* The temporary name is cut to fit, between characters. */
static void long_names(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    char name[300] = "";
    for (size_t i = 0; i < 255; i += 3)
        memcpy(name + i, "\xE2\x82\xAC", 3);
    assert_int_equal(put(at(name), "1", true, &e), 0);
    assert_int_equal(put(at(name), "2", false, &e), 0);
    expect_text(at(name), "2");
    assert_int_equal(entries("."), 1);
    memset(name, 'n', 256);
    for (int follow = 0; follow <= 1; follow++)
        FAILS_OS(put(at(name), "x", follow, &e), &e, -32603, ENAMETOOLONG);
    assert_int_equal(entries("."), 1);
}

/* A program that runs can be replaced so, unlike in place. */
static void running_program(void **state) {
    (void)state;
    pid_t pid = start_program(at("program"));
    assert_true(open(at("program"), O_WRONLY | O_CLOEXEC) < 0 && errno == ETXTBSY);
    struct err e = ERR_INIT;
    assert_int_equal(put(at("program"), "new", true, &e), 0);
    expect_text(at("program"), "new");
    assert_int_equal(stat_of(at("program")).st_mode & 07777, 0755);
    end_program(pid);
}

/* -- failures leave the old file, and nothing else -- */

static int full_disk(void) {
    struct err e = ERR_INIT;
    CHECK(own_mounts() == 0);
    CHECK(mount("none", at("m"), "tmpfs", 0, "size=64k") == 0);
    CHECK(put(at("m/file"), "old", true, &e) == 0);
    _cleanup_free_ char *data = calloc(1, 1 << 20);
    CHECK(data != NULL);
    for (int follow = 0; follow <= 1; follow++) {
        struct fs_write w = {at("m/file"), data, 1 << 20, follow, true};
        CHECK_OS(fs_file_write(&w, &e), &e, -32603, ENOSPC);
        w.path = at("m/fresh");
        CHECK_OS(fs_file_write(&w, &e), &e, -32603, ENOSPC);
    }
    struct stat st;
    CHECK(stat(at("m/file"), &st) == 0 && st.st_size == 3);
    DIR *d = opendir(at("m"));
    int n = 0;
    while (d != NULL && readdir(d) != NULL)
        n++;
    CHECK(n == 3);
    CHECK(mount("none", at("m"), NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0);
    CHECK_OS(put(at("m/file"), "x", true, &e), &e, -32603, EROFS);
    CHECK_OS(put(at("m/fresh"), "x", false, &e), &e, -32603, EROFS);
    return 0;
}

static void full_and_read_only(void **state) {
    (void)state;
    needs_root();
    make_dir("m");
    in_child(full_disk);
}

static int failing_calls(void) {
    struct err e = ERR_INIT;
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        CHECK(forbid(SYS_fsync, EIO) == 0);
        CHECK_OS(put(at("file"), "new", true, &e), &e, -32603, EIO);
        _exit(0);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
#ifdef SYS_renameat
    CHECK(forbid(SYS_renameat, EBUSY) == 0);
#endif
    CHECK(forbid(SYS_renameat2, EBUSY) == 0);
    CHECK_OS(put(at("file"), "new", false, &e), &e, -32603, EBUSY);
    return 0;
}

static void late_failures(void **state) {
    (void)state;
    make_file("file", "old");
    in_child(failing_calls);
    expect_text(at("file"), "old");
    assert_int_equal(entries("."), 1);
}

static int no_proc(void) {
    struct err e = ERR_INIT;
    CHECK(chroot(scratch) == 0 && chdir("/") == 0);
    CHECK(put("/file", "new", true, &e) == 0);
    CHECK(put("/fresh", "new", false, &e) == 0);
    CHECK_OS(put("/flink", "newer", true, &e), &e, -32603, EOPNOTSUPP);
    return 0;
}

static void without_proc(void **state) {
    (void)state;
    needs_root();
    make_file("file", "old");
    make_link("file", "flink");
    in_child(no_proc);
    expect_text(at("file"), "new");
    expect_text(at("fresh"), "new");
    assert_int_equal(entries("."), 3);
}

/* -- as a plain user -- */

static int plain_user(void) {
    struct err e = ERR_INIT;
    CHECK(become_nobody() == 0);
    for (int follow = 0; follow <= 1; follow++) {
        CHECK_OS(put(at("ours/file"), "x", follow, &e), &e, -32600, EACCES);
        CHECK_OS(put(at("ours/open"), "x", follow, &e), &e, -32600, EACCES);
        CHECK_OS(put(at("ours/fresh"), "x", follow, &e), &e, -32600, EACCES);
        CHECK_OS(put(at("theirs/read-only"), "x", follow, &e), &e, -32600, EACCES);
        CHECK(put(at("unlisted/file"), "new", follow, &e) == 0);
    }
    CHECK(put(at("theirs/setuid"), "new", true, &e) == 0);
    return 0;
}

static void permissions(void **state) {
    (void)state;
    needs_root();
    make_dir("ours");
    make_file("ours/file", "old");
    make_file("ours/open", "old");
    assert_int_equal(chmod(at("ours/open"), 0666), 0);
    make_dir("theirs");
    make_file("theirs/read-only", "old");
    assert_int_equal(chmod(at("theirs/read-only"), 0444), 0);
    make_file("theirs/setuid", "old");
    assert_int_equal(chmod(at("theirs/setuid"), 06777), 0);
    make_dir("unlisted"); /* may be written and searched, not read */
    assert_int_equal(chmod(at("unlisted"), 0733), 0);
    assert_int_equal(chown(at("theirs"), NOBODY, NOBODY), 0);
    in_child(plain_user);
    expect_text(at("ours/open"), "old");
    expect_text(at("theirs/read-only"), "old");
    expect_text(at("theirs/setuid"), "new");
    expect_text(at("unlisted/file"), "new");
    /* Root's program with a stranger's contents would be a gift. */
    struct stat st = stat_of(at("theirs/setuid"));
    assert_int_equal(st.st_uid, NOBODY);
    assert_int_equal(st.st_mode & 07777, 0777);
    assert_int_equal(entries("ours"), 2);
    assert_int_equal(entries("theirs"), 2);
    assert_int_equal(entries("unlisted"), 1);
}

/* Where the kernel refuses a stranger's link in a shared directory, so do we. */
static void links_of_strangers(void **state) {
    (void)state;
    needs_root();
    char on = '0';
    int fd = open("/proc/sys/fs/protected_symlinks", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        assert_int_equal(read(fd, &on, 1), 1);
        close(fd);
    }
    make_file("precious", "old");
    make_dir("shared");
    assert_int_equal(chmod(at("shared"), 01777), 0);
    make_link(at("precious"), "shared/link");
    assert_int_equal(lchown(at("shared/link"), NOBODY, NOBODY), 0);
    struct err e = ERR_INIT;
    int plain = open(at("shared/link"), O_WRONLY | O_CLOEXEC);
    assert_int_equal(plain >= 0, on == '0');
    if (plain >= 0) {
        close(plain);
        assert_int_equal(put(at("shared/link"), "new", true, &e), 0);
        expect_text(at("precious"), "new");
    } else {
        FAILS_OS(put(at("shared/link"), "new", true, &e), &e, -32600, EACCES);
        expect_text(at("precious"), "old");
    }
}

/* -- others look while it is written, and it is killed in the middle -- */

enum { WHOLE = 300000 };

/* Writes the file over and over, full of one letter at a time. */
static void write_for_ever(void) {
    struct err e = ERR_INIT;
    static char data[WHOLE];
    for (char c = 'a';; c = c == 'z' ? 'a' : (char)(c + 1)) {
        memset(data, c, sizeof data);
        if (fs_file_write(&(struct fs_write){at("file"), data, sizeof data, true, true}, &e) < 0)
            _exit(1);
    }
}

/* Whole, and of one letter, which is returned. */
static char check_whole(void) {
    static char data[WHOLE + 1];
    int fd = open(at("file"), O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(read(fd, data, sizeof data), WHOLE);
    close(fd);
    for (size_t i = 1; i < WHOLE; i++) {
        if (data[i] != data[0])
            fail_msg("torn at %zu", i);
    }
    return data[0];
}

static void never_torn(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    static char first[WHOLE];
    memset(first, 'A', sizeof first);
    assert_int_equal(
        fs_file_write(&(struct fs_write){at("file"), first, sizeof first, true, true}, &e), 0);
    for (int round = 0; round < 4; round++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
            write_for_ever();
        int changes = 0;
        for (char last = check_whole(); changes < 5;) {
            char now = check_whole();
            changes += now != last;
            last = now;
            assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
        }
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        check_whole();
        assert_in_range(entries("."), 1, (size_t)round + 2); /* a kill leaves one file at most */
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        scratch_test(makes),
        scratch_test(replaces),
        scratch_test(keeps_the_owner),
        scratch_test(links),
        scratch_test(deleted_target),
        scratch_test(regular_files_only),
        scratch_test(long_names),
        scratch_test(running_program),
        scratch_test(full_and_read_only),
        scratch_test(late_failures),
        scratch_test(without_proc),
        scratch_test(permissions),
        scratch_test(links_of_strangers),
        scratch_test(never_torn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
