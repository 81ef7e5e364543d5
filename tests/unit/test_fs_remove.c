#include "fs/fs_remove.h"

#define MANY_FILES
#include "fs_run.h"
#include "loop/pool.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>

static atomic_bool never, always = true;

static int rm_flags(const char *path, bool recursive, bool force, bool follow, struct err *e) {
    struct fs_remove r = {path, recursive, force, follow, NULL, NULL};
    return fs_remove(&r, &never, e);
}

/* As a request without any options. */
static int rm(const char *path, struct err *e) {
    return rm_flags(path, true, true, true, e);
}

static int rm_one(const char *path, struct err *e) {
    return rm_flags(path, false, true, true, e);
}

static int rm_nofollow(const char *path, bool force, struct err *e) {
    return rm_flags(path, false, force, false, e);
}

#define OK(call) assert_int_equal(call, 0)

static void entries_themselves(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    for (int recursive = 0; recursive < 2; recursive++) {
        make_tree();
        make_dir("empty");
        static const char *const names[] = {"flink", "dlink",  "dangling", "loop",
                                            "fifo",  "socket", "empty",    "file"};
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
            OK(rm_flags(at(names[i]), recursive > 0, false, true, &e));
            assert_true(missing(at(names[i])));
        }
        expect_text(at("dir/file"), "inner"); /* not what the link led to */
        OK(rm(at("dir"), &e));
        assert_true(missing(at("dir")));
    }
    assert_int_equal(e.code, 0);
}

static void entries_themselves_nofollow(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    make_tree();
    make_dir("empty");
    static const char *const links[] = {"flink", "dlink", "dangling", "loop"};
    for (size_t i = 0; i < ARRAY_LEN(links); i++) {
        FAILS(rm_nofollow(at(links[i]), true, &e), &e, -32600, "path contains a symbolic link");
        assert_false(missing(at(links[i])));
    }
    FAILS_OS(rm_nofollow(at("dir"), true, &e), &e, -32603, ENOTEMPTY);
    FAILS_OS(rm_nofollow(at("dlink/file"), true, &e), &e, -32603, ENOTDIR);
    FAILS_OS(rm_nofollow(at("file/x"), true, &e), &e, -32603, ENOTDIR);
    FAILS(rm_nofollow("/", true, &e), &e, -32600, "path must name an entry");
    expect_text(at("dir/file"), "inner");
    static const char *const names[] = {"file", "fifo", "socket", "empty", "dir/file", "dir"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        OK(rm_nofollow(at(names[i]), false, &e));
        assert_true(missing(at(names[i])));
    }
}

static void recursive_nofollow(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    const char *text = "recursive no-follow removal is unsupported";
    make_tree();
    static const char *const names[] = {"dir", "file", "flink", "nope", "file/x"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        FAILS(rm_flags(at(names[i]), true, true, false, &e), &e, -32603, text);
    FAILS(rm_flags("/", true, true, false, &e), &e, -32603, text);
    expect_text(at("dir/file"), "inner");
    expect_text(at("file"), "content");
}

static void what_is_missing(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    make_tree();
    static const char *const names[] = {"nope", "nope/x", "dir/nope", "dangling/x"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        OK(rm(at(names[i]), &e));
        OK(rm_one(at(names[i]), &e));
        FAILS_OS(rm_flags(at(names[i]), true, false, true, &e), &e, -32004, ENOENT);
        FAILS_OS(rm_flags(at(names[i]), false, false, true, &e), &e, -32004, ENOENT);
    }
    OK(rm_nofollow(at("nope"), true, &e));
    OK(rm_nofollow(at("nope/x"), true, &e));
    FAILS_OS(rm_nofollow(at("nope"), false, &e), &e, -32004, ENOENT);
    FAILS_OS(rm_nofollow(at("nope/x"), false, &e), &e, -32004, ENOENT);
    FAILS_OS(rm(at("file/x"), &e), &e, -32603, ENOTDIR);
    FAILS_OS(rm(at("loop/x"), &e), &e, -32603, ELOOP);
    FAILS_OS(rm_one(at("file/x"), &e), &e, -32603, ENOTDIR);
    assert_int_equal(e.code, 0);
}

static void through_links(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    make_tree();
    OK(rm(at("dlink/file"), &e));
    assert_true(missing(at("dir/file")));
    make_dir("dir/sub");
    make_file("dir/sub/f", "");
    OK(rm(at("dlink/sub"), &e));
    assert_true(missing(at("dir/sub")));
}

static void not_empty(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    make_tree();
    FAILS_OS(rm_one(at("dir"), &e), &e, -32603, ENOTEMPTY);
    expect_text(at("dir/file"), "inner");
    FAILS_OS(rm_one("/", &e), &e, -32603, EBUSY);
}

static void whole_trees(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    make_dir("keep");
    make_file("keep/f", "kept");
    make_dir("t");
    char name[300];
    for (int i = 0; i < 30; i++) {
        snprintf(name, sizeof name, "t/d%d", i);
        make_dir(name);
        snprintf(name, sizeof name, "t/d%d/empty", i);
        make_dir(name);
        for (int k = 0; k < 50; k++) {
            snprintf(name, sizeof name, "t/d%d/f%d", i, k);
            make_file(name, "");
        }
        snprintf(name, sizeof name, "t/d%d/link", i);
        assert_int_equal(symlink(at("keep"), at(name)), 0);
    }
    make_fifo("t/fifo");
    make_socket("t/socket");
    make_file("t/n\xFF\xFE", "");
    make_dir("t/d\xFF");
    make_file("t/d\xFF/\n\"", "");
    memset(name, 'x', 2 + 255);
    memcpy(name, "t/", 2);
    name[2 + 255] = '\0';
    make_dir(name);
    OK(rm(at("t"), &e));
    assert_true(missing(at("t")));
    expect_text(at("keep/f"), "kept");
}

static void large_directory(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    make_dir("t");
    int fd = open(at("t"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (unsigned i = 0; i < 50001; i++) {
        char name[32];
        snprintf(name, sizeof name, "%u", i);
        assert_int_equal(
            i % 100 == 0 ? mkdirat(fd, name, 0777) : mknodat(fd, name, S_IFREG | 0644, 0), 0);
    }
    close(fd);
    OK(rm(at("t"), &e));
    assert_true(missing(at("t")));
}

/* -- trees that no path can name -- */

/* A chain of directories, each with a file; a second, short branch on every tenth level. */
static void make_deep(const char *top, int levels, const char *name) {
    make_dir(top);
    int fd = open(at(top), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    for (int i = 0; i < levels; i++) {
        assert_int_equal(mkdirat(fd, name, 0777), 0);
        assert_int_equal(mknodat(fd, "file", S_IFREG | 0644, 0), 0);
        if (i % 10 == 0)
            assert_int_equal(mkdirat(fd, "branch", 0777), 0);
        int next = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        close(fd);
        fd = next;
    }
    close(fd);
}

struct call {
    const char *path;
    int r;
    struct err e;
};

static void *call_rm(void *arg) {
    struct call *c = arg;
    c->r = rm(c->path, &c->e);
    return NULL;
}

/* In a thread with no more stack than those of the pool have. */
static int rm_in_thread(const char *path, struct err *e) {
    struct call c = {.path = path, .e = ERR_INIT};
    pthread_attr_t attr;
    pthread_t thread;
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, POOL_STACK), 0);
    assert_int_equal(pthread_create(&thread, &attr, call_rm, &c), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attr);
    *e = c.e;
    return c.r;
}

static void deep_trees(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    make_deep("t", 3000, "directory");
    OK(rm_in_thread(at("t"), &e));
    assert_true(missing(at("t")));
    char name[256];
    memset(name, 'n', 255);
    name[255] = '\0';
    make_deep("t", 300, name); /* 76,800 bytes of path */
    OK(rm_in_thread(at("t"), &e));
    assert_true(missing(at("t")));
}

/* -- errors -- */

static void stops(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    make_tree();
    struct fs_remove r = {at("dir"), true, true, true, NULL, NULL};
    FAILS_OS(fs_remove(&r, &always, &e), &e, -32603, ECANCELED);
    expect_text(at("dir/file"), "inner");
}

static int as_nobody(void) {
    CHECK(become_nobody() == 0);
    struct err e = ERR_INIT;
    CHECK_OS(rm(at("closed/f"), &e), &e, -32600, EACCES);
    CHECK_OS(rm(at("closed/nope"), &e), &e, -32600, EACCES);
    CHECK_OS(rm(at("open/f"), &e), &e, -32600, EACCES); /* may be seen, not removed */
    CHECK_OS(rm_nofollow(at("open/f"), true, &e), &e, -32600, EACCES);
    CHECK_OS(rm_nofollow(at("closed/f"), true, &e), &e, -32600, EACCES);
    CHECK(rm(at("open/nope"), &e) == 0);
    CHECK_OS(rm(at("open"), &e), &e, -32600, EACCES);
    /* One's own, but not readable: gone through for a recursive removal only. */
    CHECK(mkdir(at("public/d"), 0777) == 0 && mkdir(at("public/d/sub"), 0) == 0);
    CHECK_OS(rm(at("public/d/sub"), &e), &e, -32600, EACCES);
    CHECK_OS(rm(at("public/d"), &e), &e, -32600, EACCES);
    CHECK(rm_one(at("public/d/sub"), &e) == 0);
    CHECK(rm(at("public/d"), &e) == 0);
    CHECK(missing(at("public/d")));
    /* What cannot be removed stays, the rest is gone. */
    CHECK(mkdir(at("public/d"), 0777) == 0 && mkdir(at("public/d/sub"), 0777) == 0);
    CHECK(mknod(at("public/d/sub/f"), S_IFREG | 0644, 0) == 0);
    CHECK(chmod(at("public/d/sub"), 0555) == 0);
    CHECK_OS(rm(at("public/d"), &e), &e, -32600, EACCES);
    CHECK(!missing(at("public/d/sub/f")));
    CHECK(chmod(at("public/d/sub"), 0755) == 0);
    CHECK(rm(at("public/d"), &e) == 0);
    /* The sticky bit: others' files in a public directory. */
    CHECK_OS(rm(at("sticky/f"), &e), &e, -32600, EPERM);
    return 0;
}

static void permissions(void **state) {
    (void)state;
    needs_root();
    static const struct {
        const char *name;
        mode_t mode;
    } dirs[] = {{"closed", 0700}, {"open", 0755}, {"public", 0777}, {"sticky", 01777}};
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
        char name[64];
        make_dir(dirs[i].name);
        snprintf(name, sizeof name, "%s/f", dirs[i].name);
        make_file(name, "kept");
        assert_int_equal(chmod(at(dirs[i].name), dirs[i].mode), 0);
    }
    in_child(as_nobody);
    expect_text(at("closed/f"), "kept");
    expect_text(at("open/f"), "kept");
}

static int with_mounts(void) {
    CHECK(own_mounts() == 0);
    struct err e = ERR_INIT;
    CHECK(mount("none", at("t/mnt"), "tmpfs", 0, "size=1m") == 0);
    CHECK(mknod(at("t/mnt/inside"), S_IFREG | 0644, 0) == 0);
    CHECK_OS(rm_one(at("t/mnt"), &e), &e, -32603, EBUSY);
    CHECK(!missing(at("t/mnt/inside")));
    CHECK_OS(rm(at("t/mnt"), &e), &e, -32603, EBUSY);
    CHECK(missing(at("t/mnt/inside")));
    CHECK_OS(rm_one(at("t/mnt"), &e), &e, -32603, EBUSY);
    CHECK_OS(rm(at("t"), &e), &e, -32603, EBUSY);
    CHECK(umount(at("t/mnt")) == 0);
    CHECK(rm(at("t"), &e) == 0);
    CHECK(missing(at("t")));
    return 0;
}

static void mount_points(void **state) {
    (void)state;
    needs_root();
    make_dir("t");
    make_dir("t/mnt");
    in_child(with_mounts);
}

/* The root directory, under all its names; in a jail, so that nothing but the jail is at stake. */
static int in_jail(void) {
    CHECK(own_mounts() == 0);
    CHECK(mount(scratch, at("again"), NULL, MS_BIND, NULL) == 0);
    CHECK(chroot(scratch) == 0 && chdir("/") == 0);
    struct err e = ERR_INIT;
    CHECK_OS(rm("/", &e), &e, -32603, EBUSY);
    CHECK_OS(rm_one("/", &e), &e, -32603, EBUSY);
    CHECK_OS(rm("/again", &e), &e, -32603, EBUSY);
    CHECK(!missing("/d/f") && !missing("/again/d/f"));
    CHECK(rm("/d", &e) == 0);
    CHECK(missing("/d"));
    return 0;
}

static void root_directory(void **state) {
    (void)state;
    needs_root();
    make_dir("d");
    make_file("d/f", "");
    make_dir("again");
    in_child(in_jail);
    assert_true(missing(at("d")));
}

/* -- others at work in the same tree -- */

_Noreturn static void swap_link(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;)
        renameat2(AT_FDCWD, at("t/d"), AT_FDCWD, at("link"), RENAME_EXCHANGE);
}

/* Removes a tree that somebody changes meanwhile. */
static void rm_contested(const char *name) {
    struct err e = ERR_INIT;
    int r = rm(at(name), &e);
    if (r < 0 && r != -ENOTEMPTY && r != -ENOTDIR && r != -EISDIR)
        fail_msg("%s: %s", name, err_msg(&e));
    err_fini(&e);
}

/* A directory becomes a link to another tree while it is being removed: that loses nothing. */
static void swapped_links(void **state) {
    (void)state;
    make_dir("other");
    make_file("other/f", "kept");
    make_dir("other/e");
    make_file("other/e/f", "kept");
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        swap_link();
    for (int i = 0; i < 300; i++) {
        rm_contested("t");
        rm_contested("link");
        mkdir(at("t"), 0777); /* what is there already is as good, also if it is a link */
        mkdir(at("t/d"), 0777);
        mkdir(at("t/d/e"), 0777);
        mknod(at("t/d/e/f"), S_IFREG | 0644, 0);
        if (symlink(at("other"), at("link")) < 0)
            assert_int_equal(errno, EEXIST);
        rm_contested("t");
        expect_text(at("other/f"), "kept");
        expect_text(at("other/e/f"), "kept");
    }
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void *race(void *arg) {
    struct call *c = arg;
    struct fs_remove r = {c->path, true, true, true, NULL, NULL};
    c->r = fs_remove(&r, &never, &c->e);
    return NULL;
}

/* Two at once: each takes what the other has removed as removed. */
static void two_at_once(void **state) {
    (void)state;
    for (int i = 0; i < 30; i++) {
        make_dir("t");
        for (int d = 0; d < 10; d++) {
            char name[64];
            snprintf(name, sizeof name, "t/d%d", d);
            make_dir(name);
            for (int f = 0; f < 20; f++) {
                snprintf(name, sizeof name, "t/d%d/f%d", d, f);
                assert_int_equal(mknod(at(name), S_IFREG | 0644, 0), 0);
            }
        }
        struct call calls[2] = {{at("t"), -1, ERR_INIT}, {at("t"), -1, ERR_INIT}};
        pthread_t threads[2];
        for (int k = 0; k < 2; k++)
            assert_int_equal(pthread_create(&threads[k], NULL, race, &calls[k]), 0);
        for (int k = 0; k < 2; k++)
            assert_int_equal(pthread_join(threads[k], NULL), 0);
        for (int k = 0; k < 2; k++) {
            if (calls[k].r < 0)
                fail_msg("%s", err_msg(&calls[k].e));
        }
        assert_true(missing(at("t")));
    }
}

_Noreturn static void add_files(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (unsigned i = 0;; i++) {
        char name[64];
        snprintf(name, sizeof name, "t/new-%u", i % 100);
        mknod(at(name), S_IFREG | 0644, 0);
    }
}

/* Somebody adds without end: the removal ends, one way or the other. */
static void growing(void **state) {
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        add_files();
    for (int i = 0; i < 200; i++) {
        if (mkdir(at("t"), 0777) < 0)
            assert_int_equal(errno, EEXIST);
        struct err e = ERR_INIT;
        int r = rm(at("t"), &e);
        assert_true(r == 0 || r == -ENOTEMPTY);
        assert_int_equal(e.code, r == 0 ? 0 : -32603);
        err_fini(&e);
    }
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    struct err e = ERR_INIT;
    OK(rm(at("t"), &e));
    assert_true(missing(at("t")));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        scratch_test(entries_themselves), scratch_test(entries_themselves_nofollow),
        scratch_test(recursive_nofollow), scratch_test(what_is_missing),
        scratch_test(through_links),      scratch_test(not_empty),
        scratch_test(whole_trees),        scratch_test(large_directory),
        scratch_test(deep_trees),         scratch_test(stops),
        scratch_test(permissions),        scratch_test(mount_points),
        scratch_test(root_directory),     scratch_test(swapped_links),
        scratch_test(two_at_once),        scratch_test(growing),
    };
    return cmocka_run_group_tests_name("fs_remove", tests, NULL, NULL);
}
