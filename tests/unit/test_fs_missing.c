#include "fs/fs_missing.h"

#include "fs_run.h"

#include <poll.h>
#include <sys/inotify.h>

/* -- a watch -- */

static struct fs_missing m;

static void set_path(const char *name) {
    m.path[m.count] = strdup(name[0] == '/' ? name : at(name));
    assert_non_null(m.path[m.count++]);
}

/* Sets the watch up: `names` end with NULL. What fs_missing_open() says. */
static int watch_all(const char *const *names, const char *present) {
    m = FS_MISSING_INIT;
    for (; *names != NULL; names++)
        set_path(*names);
    if (present != NULL)
        set_path(present);
    m.present = present != NULL;
    return fs_missing_open(&m);
}

static int watch(const char *name, const char *present) {
    return watch_all((const char *const[]){name, NULL}, present);
}

/* The kernel has queued the events when the call that caused them returns. */
static bool fired(void) {
    char buf[4096];
    bool fires = false;
    ssize_t n;
    while ((n = read(m.fd, buf, sizeof buf)) > 0)
        fires |= fs_missing_fires(&m, buf, (size_t)n);
    assert_int_equal(n, -1);
    assert_int_equal(errno, EAGAIN);
    return fires;
}

static void unwatch(void) {
    fs_missing_fini(&m);
}

/* -- what happens: an action and its argument -- */

static void do_create(const char *name) {
    make_file(name, "");
}
static void do_mkdir(const char *name) {
    make_dir(name);
}
static void do_symlink(const char *name) {
    make_link("nowhere", name);
}
static void do_fifo(const char *name) {
    make_fifo(name);
}
static void do_rename_in(const char *name) {
    assert_int_equal(rename(at("old"), at(name)), 0);
}
static void do_link_in(const char *name) {
    assert_int_equal(link(at("old"), at(name)), 0);
}
static void do_remove(const char *name) {
    assert_int_equal(remove(at(name)), 0);
}
static void do_rename_away(const char *name) {
    assert_int_equal(rename(at(name), at("elsewhere")), 0);
}
static void do_append(const char *name) {
    int fd = open(at(name), O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_int_equal(write(fd, "x", 1), 1);
    close(fd);
}
static void do_truncate(const char *name) {
    assert_int_equal(truncate(at(name), 0), 0);
}
static void do_chmod(const char *name) {
    assert_int_equal(chmod(at(name), 0700), 0);
}
static void do_utime(const char *name) {
    assert_int_equal(utimensat(AT_FDCWD, at(name), (struct timespec[2]){{1, 0}, {1, 0}}, 0), 0);
}
static void do_read(const char *name) {
    char c;
    int fd = open(at(name), O_RDONLY | O_CLOEXEC);
    (void)!read(fd, &c, 1);
    close(fd);
}
static void do_open_to_write(const char *name) {
    int fd = open(at(name), O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    close(fd);
}
static void do_list(const char *name) {
    DIR *d = opendir(at(name));
    assert_non_null(readdir(d));
    closedir(d);
}

struct happening {
    const char *missing, *present;
    void (*act)(const char *name);
    const char *name;
    bool fires;
};

/* In a directory with: old, file, empty/, d/ with a file c in it. */
static const struct happening happenings[] = {
    {"a", NULL, do_create, "a", true},
    {"a", NULL, do_mkdir, "a", true},
    {"a", NULL, do_symlink, "a", true},
    {"a", NULL, do_fifo, "a", true},
    {"a", NULL, do_rename_in, "a", true},
    {"a", NULL, do_link_in, "a", true},
    {"a", NULL, do_create, "b", false},
    {"a", NULL, do_create, "ab", false},
    {"ab", NULL, do_create, "a", false},
    /* What a file system may take for the same. */
    {"new", NULL, do_create, "NeW", true},
    {"new", NULL, do_create, "\xC3\xA9", true},
    {"\xC3\xA9", NULL, do_create, "new", true},
    {"\xC3\xA9/new", NULL, do_create, "b", true},
    {"x/\xC3\xA9", NULL, do_create, "b", false},
    {"d/new", NULL, do_mkdir, "D", true},
    {"d/new", NULL, do_create, "d/\xFF", true},
    {"d/new", NULL, do_create, "empty/\xFF", false},
    {"a", "d/c", do_create, "d/C", true},
    {"a", "d/c", do_create, "d/cc", false},
    {"a", NULL, do_append, "file", false},
    {"a", NULL, do_remove, "file", false},
    {"a", NULL, do_rename_away, "file", false},
    /* Below directories that are missing, too. */
    {"x/y/f", NULL, do_mkdir, "x", true},
    {"x/y/f", NULL, do_create, "x", true},
    {"x/y/f", NULL, do_mkdir, "y", false},
    {"x/y/f", NULL, do_create, "f", false},
    {"d/y/f", NULL, do_mkdir, "d/y", true},
    {"d/y/f", NULL, do_create, "d/f", false},
    {"d/y/f", NULL, do_mkdir, "y", false},
    /* Directories above. */
    {"empty/f", NULL, do_remove, "empty", true},
    {"empty/f", NULL, do_rename_away, "empty", true},
    {"d/y/f", NULL, do_rename_away, "d", true},
    {"d/f", NULL, do_chmod, "d", true},
    {"d/f", NULL, do_chmod, ".", true},
    {"d/f", NULL, do_list, "d", false},
    {"d/f", NULL, do_append, "d/c", false},
    /* What is present. */
    {"a", "file", do_append, "file", true},
    {"a", "file", do_truncate, "file", true},
    {"a", "file", do_chmod, "file", true},
    {"a", "file", do_utime, "file", true},
    {"a", "file", do_remove, "file", true},
    {"a", "file", do_rename_away, "file", true},
    {"a", "file", do_rename_in, "file", true},
    {"a", "file", do_read, "file", false},
    {"a", "file", do_open_to_write, "file", false},
    {"a", "file", do_append, "old", false},
    {"a", "d/c", do_append, "d/c", true},
    {"a", "d/c", do_chmod, "d", true},
    {"a", "d/c", do_rename_away, "d", true},
    {"a", "d/c", do_create, "d/n", false},
    {"a", "d/c", do_create, "c", false},
    {"a", "d", do_create, "d/n", false},
    {"a", "d", do_append, "d/c", false},
    {"a", "d", do_remove, "d/c", false},
    {"a", "d", do_chmod, "d", true},
    {"a", "d", do_rename_away, "d", true},
    {"d/a", "d", do_create, "d/a", true},
    {"d/a", "d", do_create, "d/b", false},
};

static void populate(void) {
    make_file("old", "old");
    make_file("file", "text");
    make_dir("empty");
    make_dir("d");
    make_file("d/c", "c");
}

static void fires_for_what_matters(void **state) {
    for (size_t i = 0; i < ARRAY_LEN(happenings); i++) {
        const struct happening *h = &happenings[i];
        if (i > 0) {
            assert_int_equal(scratch_rm(state), 0);
            assert_int_equal(scratch_new(state), 0);
        }
        populate();
        assert_int_equal(watch(h->missing, h->present), 0);
        assert_false(fired());
        h->act(h->name);
        if (fired() != h->fires)
            fail_msg("row %zu: missing %s, present %s, %s: fired is %d", i, h->missing,
                     h->present ? h->present : "none", h->name, !h->fires);
        unwatch();
    }
}

static void other_names_and_attributes(void **state) {
    (void)state;
    /* A name of 255 bytes, and one that is not UTF-8. */
    char name[256];
    memset(name, 0xFE, sizeof name - 1);
    name[255] = '\0';
    assert_int_equal(watch(name, NULL), 0);
    make_file(name, "");
    assert_true(fired());
    unwatch();
    name[254] = '\0';
    assert_int_equal(watch(name, NULL), 0);
    unwatch();
    /* Below a missing directory even names that no file can have. */
    char deep[512] = "x/";
    memset(deep + 2, 'a', 300);
    assert_int_equal(watch(deep, NULL), 0);
    make_dir("x");
    assert_true(fired());
    unwatch();
}

/* Directories that may be one, too. */
static void directories_of_one_name(void **state) {
    (void)state;
    make_dir("d");
    make_dir("D");
    assert_int_equal(watch_all((const char *const[]){"d/x", "D/y", NULL}, NULL), 0);
    make_file("d/z", "");
    assert_false(fired());
    make_file("d/Y", "");
    assert_true(fired());
    make_file("D/x", "");
    assert_true(fired());
    unwatch();
}

/* A directory, and another path that begins with its name. */
static void names_end_at_slashes(void **state) {
    (void)state;
    make_dir("d");
    assert_int_equal(watch_all((const char *const[]){"d/x", "d-q/x", NULL}, NULL), 0);
    make_file("d/q", "");
    assert_false(fired());
    make_dir("d-q");
    assert_true(fired());
    unwatch();
}

/* Another watch by the same instance does not hear what happened to the one before. */
static void instance_used_again(void **state) {
    (void)state;
    make_file("file", "");
    assert_int_equal(watch("a", "file"), 0);
    int fd = m.fd, old = m.dir[m.dirs - 1].wd;
    do_append("file");
    fs_missing_stop(&m);
    make_file("b", "");
    m.fd = -1;
    unwatch();
    m = FS_MISSING_INIT;
    m.fd = fd;
    set_path("c");
    set_path("file");
    m.present = true;
    do_chmod("file");
    assert_int_equal(fs_missing_open(&m), 0);
    assert_int_equal(m.fd, fd);
    assert_int_not_equal(m.dir[m.dirs - 1].wd, old);
    assert_false(fired());
    make_file("a", "");
    assert_false(fired());
    make_file("c", "");
    assert_true(fired());
    fs_missing_stop(&m);
    char buf[4096];
    while (read(fd, buf, sizeof buf) > 0)
        ;
    make_file("d", "");
    assert_int_equal(read(fd, buf, sizeof buf), -1);
    unwatch();
}

static void any_of_several(void **state) {
    (void)state;
    const char *const names[] = {"a", "b", "a", "d/e", NULL};
    assert_int_equal(watch_all(names, NULL), 0);
    assert_int_equal(m.dirs, 4); /* /, /tmp, the scratch directory, d */
    make_file("c", "");
    assert_false(fired());
    make_file("b", "");
    assert_true(fired());
    unwatch();
}

/* -- what is refused -- */

static void expect_refused(const char *name, const char *present, int r) {
    assert_int_equal(watch(name, present), r);
    unwatch();
}

static void refuses(void **state) {
    (void)state;
    make_tree();
    expect_refused("file", NULL, -EEXIST);
    expect_refused("dir", NULL, -EEXIST);
    expect_refused("dangling", NULL, -EEXIST);
    expect_refused("/", NULL, -EEXIST);
    expect_refused("dlink/a", NULL, -ENOTDIR);
    expect_refused("dlink/a/b", NULL, -ENOTDIR);
    expect_refused("dangling/a", NULL, -ENOTDIR);
    expect_refused("loop/a", NULL, -ENOTDIR);
    expect_refused("file/a", NULL, -ENOTDIR);
    expect_refused("fifo/a", NULL, -ENOTDIR);
    expect_refused("a", "b", -ENOENT);
    expect_refused("a", "flink", -ELOOP);
    expect_refused("a", "dlink/file", -ENOTDIR);
    expect_refused("a", "dangling", -ELOOP);
    expect_refused("/proc/no-such-entry", NULL, -EOPNOTSUPP);
    expect_refused("/sys/no-such-entry", NULL, -EOPNOTSUPP);
    expect_refused("a", "/proc/version", -EOPNOTSUPP);
    assert_int_equal(watch_all((const char *const[]){"a", "file", NULL}, NULL), -EEXIST);
    unwatch();
    assert_int_equal(watch("a", "/"), 0);
    unwatch();
}

static void names_too_long(void **state) {
    (void)state;
    static char path[5000];
    memset(path, 'a', 256);
    expect_refused(path, NULL, -ENAMETOOLONG);
    for (size_t i = 0; i < sizeof path - 1; i++)
        path[i] = i % 200 == 199 ? '/' : 'a';
    expect_refused(path, NULL, -ENAMETOOLONG);
    path[4000] = '\0';
    assert_int_equal(watch(path, NULL), 0);
    unwatch();
}

/* n paths d0/f, d1/f ... below the scratch directory, which has two above it. */
static int watch_dirs(size_t n, bool make) {
    static char names[FS_MISSING_PATHS_MAX + 1][16];
    const char *list[FS_MISSING_PATHS_MAX + 1] = {NULL};
    for (size_t i = 0; i < n; i++) {
        snprintf(names[i], sizeof names[i], "d%u", (unsigned)i);
        if (make)
            make_dir(names[i]);
        strcat(names[i], "/f");
        list[i] = names[i];
    }
    return watch_all(list, NULL);
}

static void at_most_64_directories(void **state) {
    (void)state;
    assert_int_equal(watch_dirs(61, true), 0);
    assert_int_equal(m.dirs, FS_MISSING_DIRS_MAX);
    make_file("d60/f", "");
    assert_true(fired());
    unwatch();
    assert_int_equal(remove(at("d60/f")), 0);
    /* Whether they exist or not. */
    assert_int_equal(watch_dirs(62, false), -E2BIG);
    unwatch();
    char deep[256];
    for (size_t i = 0; i < 64; i++)
        memcpy(deep + 2 * i, "x/", 3);
    deep[2 * 62 - 1] = '\0'; /* 62 names: the directories above are 3 + 61 */
    assert_int_equal(watch(deep, NULL), 0);
    unwatch();
    deep[2 * 62 - 1] = '/';
    deep[2 * 63 - 1] = '\0';
    assert_int_equal(watch(deep, NULL), -E2BIG);
    unwatch();
}

static void sixty_four_paths_and_one_present(void **state) {
    (void)state;
    static char names[FS_MISSING_PATHS_MAX][8];
    const char *list[FS_MISSING_PATHS_MAX + 1] = {NULL};
    for (size_t i = 0; i < FS_MISSING_PATHS_MAX; i++) {
        snprintf(names[i], sizeof names[i], "m%zu", i);
        list[i] = names[i];
    }
    make_file("file", "");
    assert_int_equal(watch_all(list, "file"), 0);
    do_append("file");
    assert_true(fired());
    make_file("m63", "");
    assert_true(fired());
    unwatch();
}

/* -- as somebody else, and with mounts -- */

static int unreadable_directory(void) {
    if (become_nobody() != 0)
        return 1;
    m = FS_MISSING_INIT;
    m.path[m.count++] = strdup(at("secret/f"));
    CHECK(fs_missing_open(&m) == -EACCES);
    fs_missing_fini(&m);
    return 0;
}

static void needs_to_read_directories(void **state) {
    (void)state;
    needs_root();
    make_dir("secret");
    assert_int_equal(chmod(at("secret"), 0711), 0);
    in_child(unreadable_directory);
}

static int told_of_mounts(void) {
    if (own_mounts() != 0)
        return 1;
    m = FS_MISSING_INIT;
    m.path[m.count++] = strdup(at("d/f"));
    CHECK(fs_missing_open(&m) == 0);
    struct pollfd p = {.fd = m.mounts, .events = POLLPRI};
    CHECK(poll(&p, 1, 0) == 0);
    CHECK(mount("none", at("d"), "tmpfs", 0, NULL) == 0);
    CHECK(poll(&p, 1, 0) == 1 && (p.revents & POLLPRI) != 0);
    fs_missing_fini(&m);
    CHECK(umount(at("d")) == 0);
    return 0;
}

static void hears_of_mounts(void **state) {
    (void)state;
    needs_root();
    make_dir("d");
    in_child(told_of_mounts);
}

static int told_of_unmount(void) {
    char buf[4096];
    if (own_mounts() != 0)
        return 1;
    CHECK(mount("none", at("d"), "tmpfs", 0, NULL) == 0);
    m = FS_MISSING_INIT;
    m.path[m.count++] = strdup(at("d/f"));
    CHECK(fs_missing_open(&m) == 0);
    CHECK(umount(at("d")) == 0);
    ssize_t n = read(m.fd, buf, sizeof buf);
    CHECK(n > 0 && fs_missing_fires(&m, buf, (size_t)n));
    fs_missing_fini(&m);
    return 0;
}

static void hears_of_unmounts(void **state) {
    (void)state;
    needs_root();
    make_dir("d");
    in_child(told_of_unmount);
}

static int no_instance(void) {
    if (forbid(SYS_inotify_init1, EMFILE) != 0)
        return 1;
    m = FS_MISSING_INIT;
    m.path[m.count++] = strdup(at("a"));
    CHECK(fs_missing_open(&m) == -EMFILE);
    fs_missing_fini(&m);
    return 0;
}

static int no_watches(void) {
    if (forbid(SYS_inotify_add_watch, ENOSPC) != 0)
        return 1;
    m = FS_MISSING_INIT;
    m.path[m.count++] = strdup(at("a"));
    CHECK(fs_missing_open(&m) == -ENOSPC);
    fs_missing_fini(&m);
    return 0;
}

static void limits_of_the_kernel(void **state) {
    (void)state;
    in_child(no_instance);
    in_child(no_watches);
}

/* -- events as bytes -- */

static size_t put_event(char *dst, int wd, uint32_t mask, const char *name) {
    struct inotify_event ev = {.wd = wd, .mask = mask, .len = name != NULL ? 16 : 0};
    memcpy(dst, &ev, sizeof ev);
    if (name != NULL)
        strncpy(dst + sizeof ev, name, 16);
    return sizeof ev + ev.len;
}

static bool event_fires(int wd, uint32_t mask, const char *name) {
    char buf[64];
    return fs_missing_fires(&m, buf, put_event(buf, wd, mask, name));
}

static void decodes(void **state) {
    (void)state;
    assert_int_equal(watch("a", NULL), 0);
    int wd = m.dir[m.dirs - 1].wd;
    assert_false(fs_missing_fires(&m, "", 0));
    assert_true(event_fires(wd, IN_CREATE, "a"));
    assert_true(event_fires(wd, IN_CREATE | IN_ISDIR, "a"));
    assert_false(event_fires(wd, IN_CREATE, "b"));
    assert_false(event_fires(wd, IN_OPEN, "a"));
    assert_false(event_fires(wd, IN_CLOSE_WRITE, "a"));
    assert_false(event_fires(wd + 1, IN_CREATE, "a"));
    assert_true(event_fires(wd, IN_DELETE_SELF, NULL));
    assert_true(event_fires(wd, IN_MOVE_SELF, NULL));
    assert_true(event_fires(wd, IN_ATTRIB | IN_ISDIR, NULL));
    assert_true(event_fires(wd, IN_UNMOUNT, NULL));
    assert_true(event_fires(wd, IN_IGNORED, NULL));
    assert_false(event_fires(wd + 1, IN_IGNORED, NULL));
    assert_true(event_fires(-1, IN_Q_OVERFLOW, NULL));
    /* The second event counts as the first. */
    char buf[128];
    size_t n = put_event(buf, wd, IN_CREATE, "b");
    n += put_event(buf + n, wd, IN_MOVED_TO, "a");
    assert_true(fs_missing_fires(&m, buf, n));
    /* Half an event is taken for one. */
    n = put_event(buf, wd, IN_CREATE, "b");
    assert_true(fs_missing_fires(&m, buf, n - 1));
    assert_true(fs_missing_fires(&m, buf, 3));
    unwatch();
}

/* An event of no watch does not mean directories that have none. */
static void missing_directories_have_no_events(void **state) {
    (void)state;
    assert_int_equal(watch("x/a", NULL), 0);
    assert_int_equal(m.dir[m.dirs - 1].wd, -1);
    assert_false(event_fires(-1, IN_CREATE, "a"));
    assert_false(event_fires(-1, IN_DELETE_SELF, NULL));
    unwatch();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        scratch_test(fires_for_what_matters),
        scratch_test(other_names_and_attributes),
        scratch_test(directories_of_one_name),
        scratch_test(names_end_at_slashes),
        scratch_test(instance_used_again),
        scratch_test(any_of_several),
        scratch_test(refuses),
        scratch_test(names_too_long),
        scratch_test(at_most_64_directories),
        scratch_test(sixty_four_paths_and_one_present),
        scratch_test(needs_to_read_directories),
        scratch_test(hears_of_mounts),
        scratch_test(hears_of_unmounts),
        scratch_test(limits_of_the_kernel),
        scratch_test(decodes),
        scratch_test(missing_directories_have_no_events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
