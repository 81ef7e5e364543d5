#include "fs/fs_copy.h"

#include "fs/fs_remove.h"
#define MANY_FILES
#include "fs_run.h"
#include "loop/pool.h"

#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>

static atomic_bool never, always = true;

static int cp_flags(const char *source, const char *destination, bool recursive, struct err *e) {
    struct fs_copy c = {.source = source, .destination = destination, .recursive = recursive};
    return fs_copy(&c, &never, e);
}

static int cp(const char *source, const char *destination, struct err *e) {
    return cp_flags(source, destination, true, e);
}

#define OK(call) assert_int_equal(call, 0)

static mode_t mode_of(const char *path) {
    return stat_of(path).st_mode & 07777;
}

static void expect_link(const char *path, const char *target) {
    char got[PATH_MAX] = "";
    ssize_t n = readlink(path, got, sizeof got - 1);
    assert_int_equal(n, strlen(target));
    assert_string_equal(got, target);
}

/* -- files -- */

static void files(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    make_tree();
    OK(cp_flags(at("file"), at("new"), false, &e));
    expect_text(at("new"), "content");
    expect_text(at("file"), "content");
    OK(cp(at("file"), at("dir/file"), &e)); /* shorter and longer ones are replaced */
    expect_text(at("dir/file"), "content");
    make_file("long", "a text that is longer than the other");
    OK(cp(at("file"), at("long"), &e));
    expect_text(at("long"), "content");
    make_file("empty", "");
    OK(cp(at("empty"), at("long"), &e));
    expect_text(at("long"), "");
    assert_int_equal(e.code, 0);
}

static void modes(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    static const mode_t cases[] = {0644, 0600, 0755, 0777, 0400, 0, 04755, 02711, 01644};
    umask(077);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        make_file("source", "x");
        assert_int_equal(chmod(at("source"), cases[i]), 0);
        if (geteuid() != 0 && (cases[i] & 0400) == 0)
            continue;
        OK(cp(at("source"), at("new"), &e));
        assert_int_equal(mode_of(at("new")), cases[i]);
        make_file("old", "y");
        assert_int_equal(chmod(at("old"), 0666), 0);
        OK(cp(at("source"), at("old"), &e));
        assert_int_equal(mode_of(at("old")), cases[i]);
        expect_text(at("old"), "x");
        OK(unlink(at("new")));
        OK(unlink(at("old")));
        OK(unlink(at("source")));
    }
    umask(022);
}

/* The destination is written in place: its inode, and so its other names, stay. */
static void in_place(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    make_file("source", "new");
    make_file("old", "old text");
    OK(link(at("old"), at("other")));
    ino_t ino = stat_of(at("old")).st_ino;
    OK(cp(at("source"), at("old"), &e));
    assert_int_equal(stat_of(at("old")).st_ino, ino);
    expect_text(at("other"), "new");
}

static void destinations(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    make_tree();
    make_file("source", "new");
    OK(cp(at("source"), at("flink"), &e));
    expect_text(at("file"), "new");
    expect_link(at("flink"), "file");
    OK(cp(at("source"), at("dangling"), &e));
    expect_text(at("nothing"), "new");
    OK(cp(at("source"), at("dlink/below"), &e));
    expect_text(at("dir/below"), "new");
    OK(cp(at("source"), "/dev/null", &e));
    FAILS_OS(cp(at("source"), at("dir"), &e), &e, -32603, EISDIR);
    FAILS_OS(cp(at("source"), at("dlink"), &e), &e, -32603, EISDIR);
    FAILS_OS(cp(at("source"), "/", &e), &e, -32603, EISDIR);
    FAILS_OS(cp(at("source"), at("nope/x"), &e), &e, -32004, ENOENT);
    FAILS_OS(cp(at("source"), at("file/x"), &e), &e, -32603, ENOTDIR);
    FAILS_OS(cp(at("source"), at("loop"), &e), &e, -32603, ELOOP);
    FAILS_OS(cp(at("source"), at("socket"), &e), &e, -32603, ENXIO);
}

static void sources(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    const char *kind = "fs/copy only supports regular files, directories, and symlinks";
    make_tree();
    FAILS_OS(cp(at("nope"), at("x"), &e), &e, -32004, ENOENT);
    FAILS_OS(cp(at("file/x"), at("x"), &e), &e, -32603, ENOTDIR);
    FAILS_OS(cp(at("loop/x"), at("x"), &e), &e, -32603, ELOOP);
    FAILS(cp(at("fifo"), at("x"), &e), &e, -32600, kind);
    FAILS(cp(at("socket"), at("x"), &e), &e, -32600, kind);
    FAILS(cp("/dev/null", at("x"), &e), &e, -32600, kind);
    FAILS(cp_flags(at("dir"), at("x"), false, &e), &e, -32600,
          "fs/copy requires recursive: true when sourcePath is a directory");
    assert_true(missing(at("x")));
    OK(cp(at("dlink/file"), at("x"), &e)); /* links above it are followed */
    expect_text(at("x"), "inner");
}

/* Nothing is lost, whatever the two names are. */
static void onto_itself(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    const char *text = "fs/copy cannot copy a file to itself";
    make_tree();
    OK(link(at("file"), at("hard")));
    static const char *const names[] = {"file", "flink", "hard"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        FAILS(cp(at("file"), at(names[i]), &e), &e, -32600, text);
        expect_text(at("file"), "content");
    }
    FAILS(cp(at("dir/file"), at("dlink/file"), &e), &e, -32600, text);
    expect_text(at("dir/file"), "inner");
    make_dir("copy"); /* also somewhere inside a tree */
    OK(link(at("dir/file"), at("copy/file")));
    FAILS(cp(at("dir"), at("copy"), &e), &e, -32600, text);
    expect_text(at("dir/file"), "inner");
}

static void to_fifos(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    char text[8300];
    make_tree();
    FAILS_OS(cp(at("file"), at("fifo"), &e), &e, -32603, ENXIO);
    int fd = open(at("fifo"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(fd >= 0);
    snprintf(text, sizeof text, "path `%s` is not a file", at("fifo"));
    FAILS(cp(at("file"), at("fifo"), &e), &e, -32600, text);
    make_link("fifo", "to-fifo");
    snprintf(text, sizeof text, "path `%s` is not a file", at("to-fifo"));
    FAILS(cp(at("file"), at("to-fifo"), &e), &e, -32600, text);
    char c;
    assert_int_equal(read(fd, &c, 1), 0);
    close(fd);

    make_dir("tree");
    make_dir("tree/sub");
    make_file("tree/sub/n\xFF", "x");
    make_dir("copy");
    make_dir("copy/sub");
    make_fifo("copy/sub/n\xFF");
    FAILS_OS(cp(at("tree"), at("copy"), &e), &e, -32603, ENXIO);
    fd = open(at("copy/sub/n\xFF"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    snprintf(text, sizeof text, "path `%s` is not a file", at("copy/sub/n\xEF\xBF\xBD"));
    FAILS(cp(at("tree"), at("copy"), &e), &e, -32600, text);
    close(fd);
}

static void links(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    make_tree();
    static const struct {
        const char *name, *target;
    } cases[] = {{"flink", "file"}, {"dlink", "dir"}, {"dangling", "nothing"}, {"loop", "loop"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        OK(cp_flags(at(cases[i].name), at("new"), i % 2 == 0, &e));
        expect_link(at("new"), cases[i].target);
        OK(unlink(at("new")));
    }
    static const char *const existing[] = {"file", "dir", "dlink", "dangling", "fifo", "flink"};
    for (size_t i = 0; i < ARRAY_LEN(existing); i++)
        FAILS_OS(cp(at("flink"), at(existing[i]), &e), &e, -32603, EEXIST);
    FAILS_OS(cp(at("flink"), at("nope/x"), &e), &e, -32004, ENOENT);
    char target[PATH_MAX];
    memset(target, 't', sizeof target);
    target[PATH_MAX - 1] = '\0';
    OK(symlink(target, at("long")));
    OK(cp(at("long"), at("long2"), &e));
    expect_link(at("long2"), target);
}

/* -- contents -- */

/* Bytes that differ everywhere. */
static void fill(char *p, size_t n, unsigned seed) {
    for (size_t i = 0; i < n; i++)
        p[i] = (char)((i * 2654435761u + seed) >> 13);
}

static void make_large(const char *name, size_t n) {
    _cleanup_free_ char *p = malloc(n);
    fill(p, n, 7);
    int fd = open(at(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    assert_int_equal(write(fd, p, n), (ssize_t)n);
    close(fd);
}

static bool is_large(const char *path, size_t n) {
    _cleanup_free_ char *want = malloc(n), *got = malloc(n + 1);
    fill(want, n, 7);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t len = 0;
    for (ssize_t r = 1; fd >= 0 && r > 0; len += r > 0 ? (size_t)r : 0)
        r = read(fd, got + len, n + 1 - len);
    close(fd);
    return len == n && memcmp(want, got, n) == 0;
}

#define LARGE ((1u << 20) + 4321)

static void large_files(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    make_large("source", LARGE);
    OK(cp(at("source"), at("copy"), &e));
    assert_true(is_large(at("copy"), LARGE));
    /* To another file system, which the kernel may not do by itself. */
    char path[128];
    snprintf(path, sizeof path, "/dev/shm/other-%s", strrchr(scratch, '/') + 1);
    OK(cp(at("source"), path, &e));
    assert_true(is_large(path, LARGE));
    OK(cp(path, at("back"), &e));
    assert_true(is_large(at("back"), LARGE));
    OK(unlink(path));
    /* More than is copied in one step. */
    int fd = open(at("huge"), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    OK(ftruncate(fd, (70 << 20) - 3));
    assert_int_equal(pwrite(fd, "end", 3, (70 << 20) - 3), 3);
    close(fd);
    OK(cp(at("huge"), at("huge2"), &e));
    assert_int_equal(stat_of(at("huge2")).st_size, 70 << 20);
    fd = open(at("huge2"), O_RDONLY | O_CLOEXEC);
    char end[4] = "";
    assert_int_equal(pread(fd, end, 4, (70 << 20) - 3), 3);
    assert_string_equal(end, "end");
    close(fd);
}

/* Files that seem to be empty. */
static void proc_files(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    OK(cp("/proc/version", at("copy"), &e));
    char want[4096], got[4096];
    int fd = open("/proc/version", O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, want, sizeof want);
    close(fd);
    assert_true(n > 10);
    fd = open(at("copy"), O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(fd, got, sizeof got), n);
    close(fd);
    assert_memory_equal(want, got, (size_t)n);
    FAILS_OS(cp("/proc/self/mem", at("mem"), &e), &e, -32603, EIO);
}

static unsigned forbidden_with;

static int without_copy_file_range(void) {
    CHECK(forbid(SYS_copy_file_range, forbidden_with) == 0);
    struct err e = ERR_INIT;
    CHECK(cp(at("source"), at("copy"), &e) == 0);
    CHECK(is_large(at("copy"), LARGE));
    CHECK(cp(at("source"), "/dev/null", &e) == 0);
    return 0;
}

static int with_real_error(void) {
    CHECK(forbid(SYS_copy_file_range, EDQUOT) == 0);
    struct err e = ERR_INIT;
    CHECK_OS(cp(at("source"), at("copy"), &e), &e, -32603, EDQUOT);
    return 0;
}

static void without_help_of_the_kernel(void **state) {
    (void)state;
    static const unsigned nums[] = {ENOSYS, EXDEV, EINVAL, EOPNOTSUPP, EPERM};
    make_large("source", LARGE);
    for (size_t i = 0; i < ARRAY_LEN(nums); i++) {
        forbidden_with = nums[i];
        in_child(without_copy_file_range);
    }
    in_child(with_real_error);
}

static int on_small_disk(void) {
    CHECK(own_mounts() == 0);
    CHECK(mount("none", at("mnt"), "tmpfs", 0, "size=256k") == 0);
    struct err e = ERR_INIT;
    CHECK_OS(cp(at("source"), at("mnt/copy"), &e), &e, -32603, ENOSPC);
    CHECK(stat_of(at("mnt/copy")).st_size > 0); /* the part stays */
    CHECK(mount(NULL, at("mnt"), NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0);
    CHECK_OS(cp(at("source"), at("mnt/new"), &e), &e, -32603, EROFS);
    CHECK_OS(cp(at("dir"), at("mnt/new"), &e), &e, -32603, EROFS);
    CHECK_OS(cp(at("link"), at("mnt/new"), &e), &e, -32603, EROFS);
    return 0;
}

static void disk_errors(void **state) {
    (void)state;
    needs_root();
    make_large("source", LARGE);
    make_dir("dir");
    make_link("dir", "link");
    make_dir("mnt");
    in_child(on_small_disk);
}

/* -- trees -- */

static void make_source(void) {
    make_dir("s");
    make_file("s/f", "f");
    OK(chmod(at("s/f"), 0751));
    make_dir("s/d");
    make_dir("s/d/e");
    make_file("s/d/e/g", "g");
    make_dir("s/empty");
    make_link("f", "s/link");
    make_link("nothing", "s/dangling");
    make_link("..", "s/d/up");
    make_fifo("s/fifo");
    make_socket("s/socket");
    make_file("s/n\xFF", "bad");
    OK(chmod(at("s/d"), 0711));
}

static void expect_copy(const char *name) {
    char path[PATH_MAX];
    size_t n = (size_t)snprintf(path, sizeof path, "%s", at(name));
#define AT(x) (snprintf(path + n, sizeof path - n, "/%s", x), path)
    expect_text(AT("f"), "f");
    assert_int_equal(mode_of(AT("f")), 0751);
    expect_text(AT("d/e/g"), "g");
    assert_int_equal(mode_of(AT("d")), 0755); /* modes of directories are not copied */
    assert_true(S_ISDIR(stat_of(AT("empty")).st_mode));
    expect_link(AT("link"), "f");
    expect_link(AT("dangling"), "nothing");
    expect_link(AT("d/up"), "..");
    expect_text(AT("n\xFF"), "bad");
    assert_true(missing(AT("fifo")));
    assert_true(missing(AT("socket")));
#undef AT
}

static void trees(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    make_source();
    OK(cp(at("s"), at("new"), &e));
    expect_copy("new");
    OK(cp(at("s"), at("missing/parents/new"), &e));
    expect_copy("missing/parents/new");
    make_dir("target");
    make_link("target", "to-target");
    OK(cp(at("s"), at("to-target"), &e)); /* not the link, but what it leads to */
    expect_copy("target");
    make_link("s", "to-s");
    OK(cp(at("to-s"), at("link"), &e)); /* a link as the source is copied as such */
    expect_link(at("link"), "s");
    OK(cp(at("s/d"), at("flat"), &e));
    expect_text(at("flat/e/g"), "g");
}

static void merges(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    make_dir("s");
    make_dir("s/d");
    make_file("s/d/f", "new");
    make_file("s/d/g", "new");
    make_dir("t");
    make_dir("t/real");
    make_link("real", "t/d"); /* a directory may be a link there */
    make_file("t/real/f", "old text");
    make_file("t/real/kept", "kept");
    OK(cp(at("s"), at("t"), &e));
    expect_text(at("t/real/f"), "new");
    expect_text(at("t/real/g"), "new");
    expect_text(at("t/real/kept"), "kept");
    expect_link(at("t/d"), "real");
}

/* What is in the way ends the copy; what was copied before stays. */
static void conflicts(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    make_tree();
    FAILS_OS(cp(at("dir"), at("file"), &e), &e, -32603, EEXIST);
    FAILS_OS(cp(at("dir"), at("dangling"), &e), &e, -32603, EEXIST);
    FAILS_OS(cp(at("dir"), at("loop"), &e), &e, -32603, EEXIST);
    FAILS_OS(cp(at("dir"), at("fifo"), &e), &e, -32603, EEXIST);
    FAILS_OS(cp(at("dir"), at("file/x"), &e), &e, -32603, ENOTDIR);
    FAILS_OS(cp(at("dir"), at("loop/x"), &e), &e, -32603, ELOOP);
    static const struct {
        const char *source, *there;
        int num;
    } cases[] = {{"d/", "file", EEXIST}, {"d/", "dangling", EEXIST}, {"f", "d/", EISDIR},
                 {"l", "file", EEXIST},  {"l", "dangling", EEXIST},  {"d/", "fifo", EEXIST}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        make_dir("s");
        make_dir("t");
        if (cases[i].source[0] == 'd')
            make_dir("s/x");
        else if (cases[i].source[0] == 'f')
            make_file("s/x", "x");
        else
            make_link("y", "s/x");
        if (strcmp(cases[i].there, "file") == 0)
            make_file("t/x", "there");
        else if (strcmp(cases[i].there, "fifo") == 0)
            make_fifo("t/x");
        else if (strcmp(cases[i].there, "dangling") == 0)
            make_link("nothing", "t/x");
        else
            make_dir("t/x");
        struct stat before = stat_of(at("t/x"));
        FAILS_OS(cp(at("s"), at("t"), &e), &e, -32603, cases[i].num);
        assert_int_equal(stat_of(at("t/x")).st_ino, before.st_ino);
        struct fs_remove s = {at("s"), true, false, true, NULL, NULL},
                         t = {at("t"), true, false, true, NULL, NULL};
        OK(fs_remove(&s, &never, &e));
        OK(fs_remove(&t, &never, &e));
    }
}

static void into_itself(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    const char *text = "fs/copy cannot copy a directory to itself or one of its descendants";
    make_dir("s");
    make_dir("s/d");
    make_file("s/f", "f");
    make_link("nope", "s/dangling");
    make_link("s", "l");
    make_link("s/d", "ld");
    static const char *const names[] = {"s",  "s/new", "s/d", "s/new/new", "l",           "l/new",
                                        "ld", "ld/x",  "s/f", "s/f/x",     "s/dangling/x"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        FAILS(cp(at("s"), at(names[i]), &e), &e, -32600, text);
    FAILS(cp("/", at("new"), &e), &e, -32600, text);
    assert_true(missing(at("s/new")));
    /* Names that only begin alike, and the way up, are allowed. */
    OK(cp(at("s"), at("s2"), &e));
    expect_text(at("s2/f"), "f");
    make_dir("s/d/d");
    make_file("s/d/d/g", "g");
    OK(cp(at("s/d"), at("s"), &e));
    expect_text(at("s/d/g"), "g");
}

/* A bind mount gives a directory two real paths: the copy notices when it meets its own
 * destination. */
static int with_bind_mount(void) {
    CHECK(own_mounts() == 0);
    CHECK(mount(at("s"), at("again"), NULL, MS_BIND, NULL) == 0);
    struct err e = ERR_INIT;
    CHECK(cp(at("s"), at("again/new"), &e) == -EINVAL && e.code == -32600);
    err_fini(&e);
    CHECK(cp(at("s"), at("again"), &e) == -EINVAL && e.code == -32600);
    err_fini(&e);
    CHECK(missing(at("s/new/new/new")));
    return 0;
}

static void into_itself_by_mount(void **state) {
    (void)state;
    needs_root();
    make_dir("s");
    make_file("s/f", "f");
    make_dir("again");
    in_child(with_bind_mount);
    expect_text(at("s/f"), "f");
}

/* -- trees that no path can name -- */

struct call {
    const char *source, *destination;
    int r;
    struct err e;
};

static void *call_cp(void *arg) {
    struct call *c = arg;
    c->r = cp(c->source, c->destination, &c->e);
    return NULL;
}

/* In a thread with no more stack than those of the pool have. */
static int cp_in_thread(const char *source, const char *destination) {
    struct call c = {.source = source, .destination = destination, .e = ERR_INIT};
    pthread_attr_t attr;
    pthread_t thread;
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, POOL_STACK), 0);
    assert_int_equal(pthread_create(&thread, &attr, call_cp, &c), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attr);
    if (c.r < 0)
        fail_msg("%s", err_msg(&c.e));
    return c.r;
}

static int enter(int fd, const char *name) {
    int next = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(next >= 0);
    close(fd);
    return next;
}

static void deep_tree(int levels, const char *name) {
    make_dir("t");
    int fd = open(at("t"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < levels; i++) {
        OK(mkdirat(fd, name, 0777));
        if (i % 10 == 0) {
            OK(mkdirat(fd, "branch", 0777));
            OK(symlinkat("x", fd, "link"));
        }
        fd = enter(fd, name);
    }
    OK(mknodat(fd, "last", S_IFREG | 0640, 0));
    close(fd);
    OK(cp_in_thread(at("t"), at("copy")));
    fd = open(at("copy"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat st;
    for (int i = 0; i < levels; i++) {
        OK(i % 10 == 0 ? fstatat(fd, "branch", &st, 0) : 0);
        OK(i % 10 == 0 ? fstatat(fd, "link", &st, AT_SYMLINK_NOFOLLOW) : 0);
        fd = enter(fd, name);
    }
    OK(fstatat(fd, "last", &st, 0));
    close(fd);
    struct err e = ERR_INIT;
    struct fs_remove t = {at("t"), true, false, true, NULL, NULL},
                     c = {at("copy"), true, false, true, NULL, NULL};
    OK(fs_remove(&t, &never, &e));
    OK(fs_remove(&c, &never, &e));
}

static void deep_trees(void **state) {
    (void)state;
    deep_tree(3000, "directory");
    char name[256];
    memset(name, 'n', 255);
    name[255] = '\0';
    deep_tree(100, name);
}

static void large_directory(void **state) {
    (void)state;
    make_dir("t");
    int fd = open(at("t"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < 3000; i++) {
        char name[32];
        snprintf(name, sizeof name, "a name for file %d", i);
        OK(mknodat(fd, name, S_IFREG | 0644, 0));
        if (i % 10 == 0) {
            snprintf(name, sizeof name, "directory %d", i);
            OK(mkdirat(fd, name, 0777));
        }
    }
    close(fd);
    struct err e = ERR_INIT;
    OK(cp(at("t"), at("copy"), &e));
    DIR *d = opendir(at("copy"));
    size_t n = 0;
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    assert_int_equal(n, 3000 + 300 + 2);
}

/* -- errors -- */

static void stops(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    make_source();
    struct fs_copy file = {.source = at("s/f"), .destination = at("new"), .recursive = true};
    struct fs_copy tree = {.source = at("s"), .destination = at("tree"), .recursive = true};
    FAILS_OS(fs_copy(&file, &always, &e), &e, -32603, ECANCELED);
    FAILS_OS(fs_copy(&tree, &always, &e), &e, -32603, ECANCELED);
    assert_true(missing(at("tree/f")));
}

static atomic_bool halt;

static void *call_cp_endless(void *arg) {
    struct call *c = arg;
    struct fs_copy args = {.source = c->source, .destination = c->destination, .recursive = true};
    c->r = fs_copy(&args, &halt, &c->e);
    return NULL;
}

/* In the middle of a file: one that has no end is copied until it is told to stop. */
static void stops_in_a_file(void **state) {
    (void)state;
    int fd = open(at("huge"), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    OK(ftruncate(fd, (off_t)1 << 40));
    close(fd);
    atomic_store(&halt, false);
    struct call c = {at("huge"), "/dev/null", 0, ERR_INIT};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, call_cp_endless, &c), 0);
    poll(NULL, 0, 20); /* so that it is likely under way */
    atomic_store(&halt, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    FAILS_OS(c.r, &c.e, -32603, ECANCELED);
}

static int as_nobody(void) {
    CHECK(become_nobody() == 0);
    struct err e = ERR_INIT;
    CHECK_OS(cp(at("secret"), at("public/x"), &e), &e, -32600, EACCES);
    CHECK(missing(at("public/x")));
    CHECK_OS(cp(at("file"), at("new"), &e), &e, -32600, EACCES);
    CHECK_OS(cp(at("file"), at("secret"), &e), &e, -32600, EACCES);
    CHECK_OS(cp(at("link"), at("new"), &e), &e, -32600, EACCES);
    CHECK_OS(cp(at("tree"), at("new"), &e), &e, -32600, EACCES);
    CHECK_OS(cp(at("closed/f"), at("public/x"), &e), &e, -32600, EACCES);
    /* Another's file that all may write: emptied, but its mode cannot be set. */
    CHECK_OS(cp(at("file"), at("shared"), &e), &e, -32600, EPERM);
    CHECK(stat_of(at("shared")).st_size == 0);
    /* The part before an unreadable directory stays, and so does its empty copy. */
    CHECK_OS(cp(at("tree"), at("public/tree"), &e), &e, -32600, EACCES);
    CHECK(S_ISDIR(stat_of(at("public/tree/closed")).st_mode));
    CHECK_OS(cp(at("listable"), at("public/list"), &e), &e, -32600, EACCES);
    /* Bits that the kernel takes from files that are written stay away. */
    CHECK(cp(at("suid"), at("public/suid"), &e) == 0);
    CHECK((stat_of(at("public/suid")).st_mode & 07777) == 0755);
    return 0;
}

static void permissions(void **state) {
    (void)state;
    needs_root();
    make_file("file", "text");
    make_file("secret", "secret");
    OK(chmod(at("secret"), 0600));
    make_file("shared", "shared");
    OK(chmod(at("shared"), 0666));
    make_file("suid", "text");
    OK(chmod(at("suid"), 04755));
    make_link("file", "link");
    make_dir("public");
    OK(chmod(at("public"), 0777));
    make_dir("closed");
    make_file("closed/f", "");
    OK(chmod(at("closed"), 0700));
    make_dir("tree");
    make_dir("tree/closed");
    OK(chmod(at("tree/closed"), 0));
    make_dir("listable");
    make_file("listable/f", "");
    OK(chmod(at("listable"), 0744));
    in_child(as_nobody);
    expect_text(at("secret"), "secret");
}

/* -- others at work in the same tree -- */

_Noreturn static void meddle(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (unsigned i = 0;; i++) {
        char name[64];
        snprintf(name, sizeof name, "s/come-and-go-%u", i % 20);
        mknod(at(name), S_IFREG | 0644, 0);
        snprintf(name, sizeof name, "s/come-and-go-%u", (i + 10) % 20);
        unlink(at(name));
        renameat2(AT_FDCWD, at("s/d"), AT_FDCWD, at("link"), RENAME_EXCHANGE);
    }
}

/* Nothing that a link in the source leads to is ever copied. */
static void changing(void **state) {
    (void)state;
    make_dir("secret");
    make_file("secret/leak", "");
    make_dir("s");
    make_dir("s/d");
    make_file("s/d/fine", "");
    OK(symlink(at("secret"), at("link")));
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        meddle();
    size_t whole = 0;
    for (int i = 0; i < 300; i++) {
        struct err e = ERR_INIT;
        int r = cp(at("s"), at("copy"), &e);
        if (r < 0 && r != -ENOENT && r != -ENOTDIR && r != -ELOOP && r != -EINVAL)
            fail_msg("%s", err_msg(&e));
        err_fini(&e);
        if (!missing(at("copy/d")) && !S_ISLNK(stat_of(at("copy/d")).st_mode)) {
            assert_true(missing(at("copy/d/leak")));
            whole += !missing(at("copy/d/fine"));
        }
        struct fs_remove rm = {at("copy"), true, true, true, NULL, NULL};
        OK(fs_remove(&rm, &never, &e));
    }
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_true(whole > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        scratch_test(files),
        scratch_test(modes),
        scratch_test(in_place),
        scratch_test(destinations),
        scratch_test(sources),
        scratch_test(onto_itself),
        scratch_test(to_fifos),
        scratch_test(links),
        scratch_test(large_files),
        scratch_test(proc_files),
        scratch_test(without_help_of_the_kernel),
        scratch_test(disk_errors),
        scratch_test(trees),
        scratch_test(merges),
        scratch_test(conflicts),
        scratch_test(into_itself),
        scratch_test(into_itself_by_mount),
        scratch_test(deep_trees),
        scratch_test(large_directory),
        scratch_test(stops),
        scratch_test(stops_in_a_file),
        scratch_test(permissions),
        scratch_test(changing),
    };
    return cmocka_run_group_tests_name("fs_copy", tests, NULL, NULL);
}
