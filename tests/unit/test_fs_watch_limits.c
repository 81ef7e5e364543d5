/* fs/watch: limits, lost events, refusals, mounts. */
#define MANY_FILES
#include "fs_watch_run.h"

/* -- limits -- */

/* d0/, d1/ ... in a directory. */
static void make_dirs(const char *in, size_t n) {
    char name[64];
    make_dir(in);
    for (size_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%s/d%zu", in, i);
        make_dir(name);
    }
}

static void too_many_directories(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    make_dirs("big", FS_WATCH_DIRS_MAX - 2);
    begin();
    watch(&watches[0], "big", true);
    assert_int_equal(set.dirs, FS_WATCH_DIRS_MAX - 1);
    make_dirs("small", 1);
    FAILS(add(&watches[1], at("small"), true, &e), &e, ERR_INVALID_REQUEST,
          "at most 8192 directories may be watched per connection");
    watch(&watches[1], "small", false);
    assert_int_equal(set.dirs, FS_WATCH_DIRS_MAX);
    settle();
    /* Later it does not work either, but then the client hears of it. */
    make_dir("big/more");
    EXPECT(&watches[0], "overflow");
    make_file("big/d7/f", "");
    EXPECT(&watches[0], "big/d7/f");
    assert_int_equal(set.dirs, FS_WATCH_DIRS_MAX);
    /* There is room when the other goes. */
    fs_watch_fini(&watches[1]);
    make_dir("big/again");
    make_file("big/again/f", "");
    EXPECT(&watches[0], "big/again big/again/f");
    end();
}

static void too_many_found_later(void **state) {
    (void)state;
    make_dir("in");
    make_dirs("big", FS_WATCH_DIRS_MAX);
    begin();
    watch(&watches[0], "in", true);
    assert_int_equal(rename(at("big"), at("in/big")), 0);
    EXPECT(&watches[0], "overflow");
    assert_int_equal(set.dirs, FS_WATCH_DIRS_MAX);
    assert_int_equal(rename(at("in/big"), at("big")), 0);
    EXPECT(&watches[0], "in/big");
    assert_int_equal(set.dirs, 1);
    end();
}

static void too_many_changes(void **state) {
    (void)state;
    begin();
    struct fs_watch *w = &watches[0];
    watch(w, ".", false);
    char name[32];
    for (size_t i = 0; i < FS_WATCH_PATHS_MAX; i++) {
        snprintf(name, sizeof name, "f%zu", i);
        make_file(name, "");
    }
    settle();
    assert_false(w->overflow);
    assert_int_equal(w->changed.count, FS_WATCH_PATHS_MAX);
    make_file("f0", "again");
    settle();
    assert_false(w->overflow);
    make_file("more", "");
    settle();
    assert_true(list_empty(&w->changes));
    assert_int_equal(set.bytes, 0);
    make_file("yet more", "");
    EXPECT(w, "overflow");
    make_file("then", "");
    EXPECT(w, "then");
    end();
}

/* Paths of all watches count, by their bytes; the one that wants more gives up its own. */
static void too_many_bytes(void **state) {
    (void)state;
    char name[NAME_MAX + 1];
    begin();
    for (size_t i = 0; i < 8; i++)
        watch(&watches[i], ".", false);
    for (size_t i = 0; i < FS_WATCH_PATHS_MAX; i++) {
        memset(name, 'n', sizeof name - 1);
        name[NAME_MAX] = '\0';
        snprintf(name, 8, "%06zu", i);
        name[6] = 'x';
        make_file(name, "");
        assert_true(feed());
        assert_true(set.bytes <= FS_WATCH_BYTES_MAX);
    }
    size_t gave_up = 0;
    for (size_t i = 0; i < 8; i++) {
        assert_true(watches[i].overflow || watches[i].changed.count == FS_WATCH_PATHS_MAX);
        gave_up += watches[i].overflow;
    }
    assert_in_range(gave_up, 1, 7);
    end();
}

static void wide_new_directory(void **state) {
    (void)state;
    make_dir("in");
    make_dir("wide");
    char name[32];
    for (size_t i = 0; i <= FS_WATCH_PATHS_MAX; i++) {
        snprintf(name, sizeof name, "wide/f%zu", i);
        make_file(name, "");
    }
    make_dir("wide/sub");
    begin();
    watch(&watches[0], "in", true);
    assert_int_equal(rename(at("wide"), at("in/wide")), 0);
    EXPECT(&watches[0], "overflow");
    assert_int_equal(set.dirs, 3); /* the subdirectory was found all the same */
    make_file("in/wide/sub/f", "");
    EXPECT(&watches[0], "in/wide/sub/f");
    end();
}

/* -- lost events -- */

static void catches_up_after_an_overflow(void **state) {
    (void)state;
    make_dir("d");
    make_file("d/f", "");
    make_dir("gone");
    begin();
    watch(&watches[0], "d", true);
    watch(&watches[1], "d/f", false);
    watch(&watches[2], "gone", false);
    /* What follows goes unheard. */
    make_dir("d/new");
    make_dir("d/new/deep");
    assert_int_equal(rmdir(at("gone")), 0);
    char drop[65536];
    assert_true(read(fd, drop, sizeof drop) > 0);
    put_event(-1, IN_Q_OVERFLOW, NULL);
    for (size_t i = 0; i < 3; i++)
        assert_true(watches[i].lost && watches[i].overflow);
    settle();
    for (size_t i = 0; i < 3; i++) {
        assert_false(watches[i].lost);
        assert_string_equal(told(&watches[i]), "overflow");
    }
    assert_int_equal(set.dirs, 4);
    assert_null(watches[2].top);
    make_file("d/new/deep/x", "");
    make_file("d/f", "x");
    EXPECT(&watches[0], "d/f d/new/deep/x");
    assert_string_equal(told(&watches[1]), "d/f");
    end();
}

/* The kernel's queue does overflow, and all is well after it. */
static void real_overflow(void **state) {
    (void)state;
    unsigned most = 0;
    FILE *f = fopen("/proc/sys/fs/inotify/max_queued_events", "re");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%u", &most), 1);
    fclose(f);
    if (most > 200000)
        skip();
    make_file("a", "");
    make_file("b", "");
    begin();
    struct fs_watch *w = &watches[0];
    watch(w, ".", true);
    for (unsigned i = 0; i <= most; i++)
        assert_int_equal(chmod(at(i % 2 ? "a" : "b"), 0600), 0);
    make_dir("unheard");
    while (feed())
        ;
    assert_true(w->lost && w->overflow);
    EXPECT(w, "overflow");
    make_file("unheard/f", "");
    EXPECT(w, "unheard/f");
    end();
}

/* A scan that no thread took up changes nothing. */
static void scan_taken_back(void **state) {
    (void)state;
    make_dir("out");
    begin();
    struct fs_watch *w = &watches[0], *of;
    watch(w, ".", true);
    make_dir("a");
    make_dir("a/b");
    assert_int_equal(rename(at("out"), at("a/out")), 0);
    while (feed())
        ;
    struct fs_watch_scan s;
    fs_watch_scan_init(&s, fd);
    assert_int_equal(fs_watch_next(&set, &s, &of), 1);
    assert_ptr_equal(of, w);
    assert_int_equal(s.drops, 1);
    fs_watch_adopt(&set, NULL, &s);
    fs_watch_scan_fini(&s);
    assert_int_equal(set.unused.len, sizeof(int));
    fs_watch_lose(w);
    EXPECT(w, "overflow");
    assert_int_equal(set.dirs, 4);
    make_file("a/b/f", "");
    EXPECT(w, "a/b/f");
    end();
}

/* -- what the kernel or permissions refuse -- */

static int denied(void) {
    struct err e = ERR_INIT;
    struct fs_watch *w = &watches[0];
    if (become_nobody() != 0)
        return 1;
    fs_watch_set_init(&set);
    fd = fs_watch_scan_instance();
    CHECK_OS(add(w, at("secret"), true, &e), &e, ERR_INVALID_REQUEST, EACCES);
    /* Below, what must not be read is left out. */
    CHECK(add(w, scratch, true, &e) == 0);
    CHECK(set.dirs == 2 && !fs_watch_pending(w));
    end();
    return 0;
}

static void needs_to_read(void **state) {
    (void)state;
    needs_root();
    make_dir("secret");
    make_dir("open");
    assert_int_equal(chmod(at("secret"), 0700), 0);
    in_child(denied);
}

static int no_more_watches(void) {
    struct err e = ERR_INIT;
    fs_watch_set_init(&set);
    fd = fs_watch_scan_instance();
    CHECK(add(&watches[0], scratch, true, &e) == 0);
    if (forbid(SYS_inotify_add_watch, ENOSPC) != 0)
        return 1;
    CHECK_OS(add(&watches[1], scratch, true, &e), &e, ERR_INTERNAL, ENOSPC);
    CHECK(mkdir(at("new"), 0700) == 0);
    settle();
    CHECK(watches[0].overflow && set.dirs == 1);
    end();
    return 0;
}

static int no_more_instances(void) {
    if (forbid(SYS_inotify_init1, EMFILE) != 0)
        return 1;
    CHECK(fs_watch_scan_instance() == -EMFILE);
    return 0;
}

static void limits_of_the_kernel(void **state) {
    (void)state;
    in_child(no_more_watches);
    in_child(no_more_instances);
}

static int unmounts(void) {
    struct err e = ERR_INIT;
    if (own_mounts() != 0)
        return 1;
    CHECK(mount("none", at("m"), "tmpfs", 0, NULL) == 0);
    CHECK(mkdir(at("m/sub"), 0700) == 0);
    fs_watch_set_init(&set);
    fd = fs_watch_scan_instance();
    CHECK(add(&watches[0], scratch, true, &e) == 0);
    CHECK(add(&watches[1], at("m"), true, &e) == 0);
    CHECK(set.dirs == 5);
    CHECK(umount(at("m")) == 0);
    settle();
    CHECK(strncmp(told(&watches[0]), "m m/", 4) == 0);
    CHECK(strstr(told(&watches[1]), "m") != NULL && watches[1].top == NULL);
    CHECK(set.dirs == 2);
    /* What was below it is seen again. */
    CHECK(mkdir(at("m/under"), 0700) == 0);
    settle();
    CHECK(strcmp(told(&watches[0]), "m/under") == 0);
    end();
    return 0;
}

static void mount_inside(void **state) {
    (void)state;
    needs_root();
    make_dir("m");
    make_file("m/hidden", "");
    in_child(unmounts);
}

/* One directory with two names: both are told. */
static int two_names(void) {
    struct err e = ERR_INIT;
    if (own_mounts() != 0)
        return 1;
    CHECK(mount(at("a"), at("a/loop"), NULL, MS_BIND, NULL) == 0);
    fs_watch_set_init(&set);
    fd = fs_watch_scan_instance();
    CHECK(add(&watches[0], at("a"), true, &e) == 0);
    CHECK(set.dirs == 3); /* a, a/loop (which is a), a/loop/loop */
    make_file("a/f", "");
    settle();
    CHECK(strcmp(told(&watches[0]), "a/f a/loop/f") == 0);
    make_dir("a/d");
    settle();
    CHECK(strcmp(told(&watches[0]), "a/d a/loop/d") == 0);
    CHECK(set.dirs == 5);
    CHECK(rmdir(at("a/d")) == 0);
    settle();
    CHECK(set.dirs == 3);
    end();
    CHECK(umount(at("a/loop")) == 0);
    return 0;
}

static void bind_mount(void **state) {
    (void)state;
    needs_root();
    make_dir("a");
    make_dir("a/loop");
    in_child(two_names);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        scratch_test(too_many_directories), scratch_test(too_many_found_later),
        scratch_test(too_many_changes),     scratch_test(too_many_bytes),
        scratch_test(wide_new_directory),   scratch_test(catches_up_after_an_overflow),
        scratch_test(real_overflow),        scratch_test(scan_taken_back),
        scratch_test(needs_to_read),        scratch_test(limits_of_the_kernel),
        scratch_test(mount_inside),         scratch_test(bind_mount),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
