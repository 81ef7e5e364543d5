#include "fs/fs_watch.h"

#include "fs_run.h"

#include <sys/inotify.h>

/* -- the watches of a connection, with scans that run at once -- */

static struct fs_watch_set set;
static struct fs_watch watches[FS_WATCHES_MAX];
static int fd;

static void begin(void) {
    fs_watch_set_init(&set);
    fd = fs_watch_instance();
    assert_true(fd >= 0);
}

/* Sets up a watch. 0; or -errno with e set. */
static int add(struct fs_watch *w, const char *path, bool recursive, struct err *e) {
    struct fs_watch_scan s;
    fs_watch_scan_init(&s, fd);
    assert_int_equal(fs_watch_put_drops(&set, &s), 0);
    s.recursive = recursive;
    s.room = FS_WATCH_DIRS_MAX - set.dirs - 1;
    int r = fs_watch_open_root(&s, path, e);
    if (r == 0)
        assert_int_equal(fs_watch_init(w, &set, s.root, s.directory, recursive), 0);
    fs_watch_adopt(&set, r == 0 ? w : NULL, &s);
    fs_watch_scan_fini(&s);
    return r;
}

static void watch(struct fs_watch *w, const char *name, bool recursive) {
    struct err e = ERR_INIT;
    int r = add(w, name[0] == '/' ? name : at(name), recursive, &e);
    if (r < 0)
        fail_msg("watch %s: %s", name, err_msg(&e));
}

/* Does what waits to be done. Whether there was anything. */
static bool catch_up(void) {
    struct fs_watch *w;
    bool any = false;
    for (;;) {
        struct fs_watch_scan s;
        fs_watch_scan_init(&s, fd);
        int r = fs_watch_next(&set, &s, &w);
        assert_true(r >= 0);
        if (r == 0)
            return any;
        fs_watch_scan(&s);
        fs_watch_adopt(&set, w, &s);
        fs_watch_scan_fini(&s);
        any = true;
    }
}

/* Reads what the kernel has, once. Whether it had anything. */
static bool feed(void) {
    char buf[16384];
    ssize_t n = read(fd, buf, sizeof buf);
    if (n <= 0) {
        assert_int_equal(errno, EAGAIN);
        return false;
    }
    fs_watch_feed(&set, buf, (size_t)n);
    return true;
}

static void settle(void) {
    while (feed() || catch_up())
        ;
}

static void end(void) {
    for (struct list *n; (n = list_first(&set.watches)) != NULL;)
        fs_watch_fini(list_entry(n, struct fs_watch, node));
    assert_int_equal(set.dirs, 0);
    assert_int_equal(set.bytes, 0);
    assert_true(list_empty(&set.fresh));
    fs_watch_set_fini(&set);
    close(fd);
}

/* -- what it tells: paths below the scratch directory, "." for itself, sorted -- */

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static const char *told(struct fs_watch *w) {
    static char text[65536];
    char *paths[FS_WATCH_PATHS_MAX];
    size_t n = 0, len = strlen(scratch);
    list_for_each(it, &w->changes) {
        const struct fs_watch_change *c = list_entry(it, struct fs_watch_change, order);
        assert_in_range(n, 0, FS_WATCH_PATHS_MAX - 1);
        assert_memory_equal(c->path, scratch, len);
        struct str rest = {c->path + len, c->node.key.n - len};
        paths[n++] = rest.n == 0 ? strdup(".") : strndup(rest.p + 1, rest.n - 1);
    }
    qsort(paths, n, sizeof *paths, by_name);
    char *p = text + sprintf(text, "%s", w->overflow ? "overflow" : "");
    for (size_t i = 0; i < n; i++) {
        p += snprintf(p, (size_t)(text + sizeof text - p), "%s%s", p > text ? " " : "", paths[i]);
        free(paths[i]);
    }
    fs_watch_told(w);
    assert_false(fs_watch_pending(w));
    return text;
}

/* Everything that happened until now, told once, is this. */
#define EXPECT(w, what)                                                                            \
    do {                                                                                           \
        settle();                                                                                  \
        assert_string_equal(told(w), what);                                                        \
    } while (0)

/* -- directories -- */

static void tells_of_a_directory(void **state) {
    (void)state;
    make_dir("d");
    make_file("d/file", "x");
    begin();
    struct fs_watch *w = &watches[0];
    watch(w, "d", false);
    EXPECT(w, "");
    make_file("d/new", "");
    EXPECT(w, "d/new");
    make_file("d/file", "yy");
    EXPECT(w, "d/file");
    assert_int_equal(chmod(at("d/file"), 0600), 0);
    EXPECT(w, "d/file");
    assert_int_equal(rename(at("d/file"), at("d/other")), 0);
    EXPECT(w, "d/file d/other");
    assert_int_equal(unlink(at("d/other")), 0);
    EXPECT(w, "d/other");
    assert_int_equal(chmod(at("d"), 0700), 0);
    EXPECT(w, "d");
    make_dir("d/sub");
    make_link("sub", "d/link");
    EXPECT(w, "d/link d/sub");
    /* What lies deeper, or beside it, is not meant; reading is no change. */
    make_file("d/sub/deep", "");
    make_file("beside", "");
    expect_text(at("d/new"), "");
    EXPECT(w, "");
    assert_int_equal(set.dirs, 1);
    end();
}

static void tells_each_path_once_in_order(void **state) {
    (void)state;
    begin();
    struct fs_watch *w = &watches[0];
    watch(w, ".", false);
    for (int i = 0; i < 3; i++) {
        make_file("b", "1");
        make_file("a", "2");
        make_file("c", "3");
    }
    settle();
    _cleanup_buf_ struct buf b = BUF_INIT(4096), want = BUF_INIT(4096);
    assert_int_equal(fs_watch_put(w, &b), 0);
    assert_int_equal(buf_putf(&want,
                              "\"changedPaths\":[\"file://%s/b\",\"file://%s/a\",\"file://%s/c\"],"
                              "\"overflow\":false",
                              scratch, scratch, scratch),
                     0);
    assert_true(str_eq(buf_str(&b), buf_str(&want)));
    fs_watch_told(w);
    b.len = 0;
    assert_int_equal(fs_watch_put(w, &b), 0);
    assert_true(str_eqz(buf_str(&b), "\"changedPaths\":[],\"overflow\":false"));
    end();
}

static void names_are_escaped(void **state) {
    (void)state;
    begin();
    watch(&watches[0], ".", false);
    make_file("q\"\\ \xFF", "");
    settle();
    _cleanup_buf_ struct buf b = BUF_INIT(4096);
    assert_int_equal(fs_watch_put(&watches[0], &b), 0);
    assert_int_equal(buf_putc(&b, '\0'), 0);
    assert_non_null(strstr(b.p, "/q%22%5C%20%FF\""));
    end();
}

static void the_root_of_all(void **state) {
    (void)state;
    begin();
    watch(&watches[0], "/", false);
    fs_watch_told(&watches[0]); /* others use it, too */
    char events[64] = {0};
    struct inotify_event ev = {.wd = 1, .mask = IN_CREATE, .len = 16};
    memcpy(events, &ev, sizeof ev);
    memcpy(events + sizeof ev, "x", 2);
    fs_watch_feed(&set, events, sizeof ev + 16);
    _cleanup_buf_ struct buf b = BUF_INIT(65536);
    assert_int_equal(fs_watch_put(&watches[0], &b), 0);
    assert_int_equal(buf_putc(&b, '\0'), 0);
    assert_non_null(strstr(b.p, "\"file:///x\""));
    end();
}

/* -- trees -- */

static void tells_of_a_tree(void **state) {
    (void)state;
    make_dir("a");
    make_dir("a/b");
    make_file("a/b/f", "");
    begin();
    struct fs_watch *w = &watches[0];
    watch(w, ".", true);
    assert_int_equal(set.dirs, 3);
    EXPECT(w, "");
    make_file("a/b/f", "x");
    EXPECT(w, "a/b/f");
    /* A new directory, and what is in it by the time it is looked at. */
    make_dir("a/n");
    make_dir("a/n/m");
    make_file("a/n/m/g", "");
    EXPECT(w, "a/n a/n/m a/n/m/g");
    assert_int_equal(set.dirs, 5);
    make_file("a/n/m/h", "");
    assert_int_equal(chmod(at("a/n"), 0700), 0);
    EXPECT(w, "a/n a/n/m/h");
    /* Gone. */
    assert_int_equal(unlink(at("a/n/m/g")), 0);
    assert_int_equal(unlink(at("a/n/m/h")), 0);
    assert_int_equal(rmdir(at("a/n/m")), 0);
    assert_int_equal(rmdir(at("a/n")), 0);
    EXPECT(w, "a/n a/n/m a/n/m/g a/n/m/h");
    assert_int_equal(set.dirs, 3);
    end();
}

static void follows_moves_inside(void **state) {
    (void)state;
    make_dir("a");
    make_dir("a/b");
    make_file("a/b/f", "");
    begin();
    struct fs_watch *w = &watches[0];
    watch(w, ".", true);
    assert_int_equal(rename(at("a"), at("z")), 0);
    make_file("z/b/g", "");
    EXPECT(w, "a z z/b z/b/f z/b/g");
    assert_int_equal(set.dirs, 3);
    make_file("z/b/f", "x");
    EXPECT(w, "z/b/f");
    /* Over another directory. */
    make_dir("y");
    make_dir("y/b");
    EXPECT(w, "y y/b");
    assert_int_equal(rmdir(at("y/b")), 0);
    assert_int_equal(rename(at("z"), at("y")), 0);
    make_file("y/b/h", "");
    EXPECT(w, "y y/b y/b/f y/b/g y/b/h z");
    assert_int_equal(set.dirs, 3);
    end();
}

static void forgets_what_moves_away(void **state) {
    (void)state;
    make_dir("in");
    make_dir("in/a");
    make_dir("in/a/b");
    begin();
    struct fs_watch *w = &watches[0];
    watch(w, "in", true);
    assert_int_equal(rename(at("in/a"), at("out")), 0);
    EXPECT(w, "in/a");
    make_file("out/b/f", "");
    EXPECT(w, "");
    assert_int_equal(set.dirs, 1);
    assert_false(feed()); /* the kernel does not watch it any more */
    assert_int_equal(rename(at("out"), at("in/c")), 0);
    EXPECT(w, "in/c in/c/b in/c/b/f");
    make_file("in/c/b/g", "");
    EXPECT(w, "in/c/b/g");
    end();
}

static void does_not_follow_links(void **state) {
    (void)state;
    make_dir("in");
    make_dir("out");
    make_link("../out", "in/link");
    begin();
    struct fs_watch *w = &watches[0];
    watch(w, "in", true);
    assert_int_equal(set.dirs, 1);
    make_link("../out", "in/another");
    make_file("out/f", "");
    EXPECT(w, "in/another");
    assert_int_equal(set.dirs, 1);
    end();
}

/* A directory made while it is being scanned is found and reported both. */
static void found_and_reported(void **state) {
    (void)state;
    begin();
    struct fs_watch *w = &watches[0];
    watch(w, ".", true);
    make_dir("a");
    assert_true(feed()); /* waits to be scanned */
    make_dir("a/b");
    assert_true(catch_up());
    make_dir("a/b/c");
    assert_string_equal(told(w), "a a/b");
    EXPECT(w, "a/b/c");
    assert_int_equal(set.dirs, 4);
    /* Gone before it could be scanned. */
    make_dir("x");
    assert_true(feed());
    assert_int_equal(rmdir(at("x")), 0);
    EXPECT(w, "x");
    assert_int_equal(set.dirs, 4);
    /* Replaced by a link before. */
    make_dir("y");
    assert_true(feed());
    assert_int_equal(rmdir(at("y")), 0);
    make_link("a", "y");
    EXPECT(w, "y");
    make_file("a/f", "");
    EXPECT(w, "a/f");
    assert_int_equal(set.dirs, 4);
    end();
}

/* -- other things than directories -- */

static void tells_of_a_file(void **state) {
    (void)state;
    make_file("f", "x");
    begin();
    struct fs_watch *w = &watches[0];
    watch(w, "f", true); /* `recursive` means nothing here */
    make_file("ff", "");
    assert_int_equal(chmod(scratch, 0700), 0);
    EXPECT(w, "");
    make_file("f", "y");
    EXPECT(w, "f");
    /* It may be replaced, go and come. */
    assert_int_equal(rename(at("ff"), at("f")), 0);
    EXPECT(w, "f");
    make_file("f", "z");
    EXPECT(w, "f");
    assert_int_equal(unlink(at("f")), 0);
    EXPECT(w, "f");
    make_dir("f");
    EXPECT(w, "f");
    assert_int_equal(set.dirs, 1);
    end();
}

static void tells_of_a_file_by_a_link(void **state) {
    (void)state;
    make_tree();
    begin();
    watch(&watches[0], "flink", false);
    assert_string_equal(watches[0].root, at("file"));
    watch(&watches[1], "dlink", false);
    assert_string_equal(watches[1].root, at("dir"));
    make_file("file", "");
    make_file("dir/new", "");
    EXPECT(&watches[0], "file");
    assert_string_equal(told(&watches[1]), "dir/new");
    watch(&watches[2], "fifo", false);
    assert_int_equal(chmod(at("fifo"), 0600), 0);
    EXPECT(&watches[2], "fifo");
    end();
}

/* -- the end of a root -- */

static void root_removed(void **state) {
    (void)state;
    make_dir("d");
    make_dir("d/e");
    begin();
    struct fs_watch *w = &watches[0];
    watch(w, "d", true);
    assert_int_equal(rmdir(at("d/e")), 0);
    assert_int_equal(rmdir(at("d")), 0);
    EXPECT(w, "d d/e");
    assert_null(w->top);
    assert_int_equal(set.dirs, 0);
    make_dir("d");
    make_file("d/f", "");
    EXPECT(w, "");
    end();
}

static void root_moved(void **state) {
    (void)state;
    make_dir("d");
    make_dir("d/e");
    begin();
    struct fs_watch *w = &watches[0];
    watch(w, "d", true);
    assert_int_equal(rename(at("d"), at("x")), 0);
    EXPECT(w, "d");
    make_file("x/e/f", "");
    EXPECT(w, "");
    assert_int_equal(set.dirs, 0);
    end();
}

static void directory_of_a_file_removed(void **state) {
    (void)state;
    make_dir("d");
    make_file("d/f", "");
    begin();
    struct fs_watch *w = &watches[0];
    watch(w, "d/f", false);
    assert_int_equal(rename(at("d"), at("x")), 0);
    EXPECT(w, "d/f");
    make_file("x/f", "1");
    EXPECT(w, "");
    end();
}

/* -- several watches -- */

static void share_a_directory(void **state) {
    (void)state;
    make_dir("d");
    make_dir("d/e");
    make_file("d/e/f", "");
    begin();
    watch(&watches[0], ".", true);
    watch(&watches[1], "d/e", false);
    watch(&watches[2], "d/e/f", false);
    assert_int_equal(set.dirs, 5);
    make_file("d/e/f", "x");
    settle();
    assert_string_equal(told(&watches[0]), "d/e/f");
    assert_string_equal(told(&watches[1]), "d/e/f");
    assert_string_equal(told(&watches[2]), "d/e/f");
    /* Those that stay still hear. */
    fs_watch_fini(&watches[0]);
    assert_int_equal(set.dirs, 2);
    settle();
    make_file("d/e/g", "");
    settle();
    assert_string_equal(told(&watches[1]), "d/e/g");
    assert_string_equal(told(&watches[2]), "");
    fs_watch_fini(&watches[1]);
    settle();
    make_file("d/e/f", "y");
    EXPECT(&watches[2], "d/e/f");
    fs_watch_fini(&watches[2]);
    settle();
    make_file("d/e/f", "z");
    assert_false(feed());
    end();
}

/* A failed set-up takes nothing away from others, and leaves nothing behind. */
static void failed_setup(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    make_tree();
    begin();
    watch(&watches[0], "dir", false);
    FAILS_OS(add(&watches[1], at("none"), false, &e), &e, ERR_NOT_FOUND, ENOENT);
    FAILS_OS(add(&watches[1], at("dangling"), false, &e), &e, ERR_NOT_FOUND, ENOENT);
    FAILS_OS(add(&watches[1], at("loop"), false, &e), &e, ERR_INTERNAL, ELOOP);
    FAILS_OS(add(&watches[1], at("file/x"), false, &e), &e, ERR_INTERNAL, ENOTDIR);
    make_file("dir/n", "");
    EXPECT(&watches[0], "dir/n");
    end();
}

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
    /* Nor later, but then it is said. */
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

static void put_event(int wd, uint32_t mask, const char *name) {
    char buf[64];
    struct inotify_event ev = {.wd = wd, .mask = mask, .len = name != NULL ? 16 : 0};
    memcpy(buf, &ev, sizeof ev);
    if (name != NULL)
        strncpy(buf + sizeof ev, name, 16);
    fs_watch_feed(&set, buf, sizeof ev + ev.len);
}

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
    fd = fs_watch_instance();
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
    fd = fs_watch_instance();
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
    CHECK(fs_watch_instance() == -EMFILE);
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
    fd = fs_watch_instance();
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
    fd = fs_watch_instance();
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

/* -- bytes that make no sense -- */

static void strange_events(void **state) {
    (void)state;
    make_dir("d");
    begin();
    struct fs_watch *w = &watches[0];
    watch(w, ".", true);
    int top = 1;
    put_event(99, IN_CREATE, "x");
    put_event(-7, IN_CREATE, "x");
    assert_string_equal(told(w), "");
    put_event(top, IN_CREATE | IN_ISDIR, "d"); /* known already */
    assert_int_equal(set.dirs, 2);
    assert_true(list_empty(&set.fresh));
    put_event(top, IN_DELETE | IN_ISDIR, "never");
    put_event(top, IN_MOVED_FROM | IN_ISDIR, "never");
    assert_string_equal(told(w), "d never");
    char half[20] = {0};
    fs_watch_feed(&set, half, 3);
    assert_true(w->lost);
    EXPECT(w, "overflow");
    struct inotify_event ev = {.wd = top, .mask = IN_CREATE, .len = 1000};
    memcpy(half, &ev, sizeof ev);
    fs_watch_feed(&set, half, sizeof half);
    EXPECT(w, "overflow");
    end();
}

/* -- anything, at random: every change is told, and the tree is that of the disk -- */

static size_t dirs_seen;

static int count_dir(const char *path, const struct stat *st, int kind, struct FTW *w) {
    (void)path;
    (void)st;
    (void)w;
    dirs_seen += kind == FTW_D;
    return 0;
}

static const char *some_path(unsigned depth) {
    static char name[4][64];
    static unsigned next;
    char *p = name[next++ % 4];
    int n = 0;
    for (unsigned i = 0; i < depth; i++)
        n += sprintf(p + n, "%s%c", i > 0 ? "/" : "", "abc"[rand() % 3]);
    return p;
}

/* Does something; the paths that it has changed, or NULL. */
static bool something(const char **one, const char **two) {
    *one = some_path(1 + (unsigned)rand() % 3);
    *two = NULL;
    switch (rand() % 5) {
    case 0:
    case 1: return mkdir(at(*one), 0700) == 0;
    case 2: {
        int f = open(at(*one), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        bool ok = f >= 0 && write(f, "x", 1) == 1;
        if (f >= 0)
            close(f);
        return ok;
    }
    case 3: return remove(at(*one)) == 0;
    default:
        *two = some_path(1 + (unsigned)rand() % 3);
        return strcmp(*one, *two) != 0 && rename(at(*one), at(*two)) == 0;
    }
}

static bool has_path(const struct fs_watch *w, const char *name) {
    return name == NULL || hash_find(&w->changed, str_of(at(name))) != NULL;
}

static void at_random(void **state) {
    (void)state;
    srand(4);
    begin();
    struct fs_watch *w = &watches[0];
    watch(w, ".", true);
    for (int i = 0; i < 4000; i++) {
        const char *one, *two;
        if (!something(&one, &two))
            continue;
        if (rand() % 3 == 0)
            (void)feed(); /* scans come late */
        else
            settle();
        if (rand() % 3 != 0)
            continue;
        settle();
        if (!has_path(w, one) || !has_path(w, two))
            fail_msg("step %d: %s, %s not told", i, one, two ? two : "-");
        fs_watch_told(w);
        dirs_seen = 0;
        nftw(scratch, count_dir, 16, FTW_PHYS);
        assert_int_equal(set.dirs, dirs_seen);
    }
    end();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        scratch_test(tells_of_a_directory),
        scratch_test(tells_each_path_once_in_order),
        scratch_test(names_are_escaped),
        scratch_test(the_root_of_all),
        scratch_test(tells_of_a_tree),
        scratch_test(follows_moves_inside),
        scratch_test(forgets_what_moves_away),
        scratch_test(does_not_follow_links),
        scratch_test(found_and_reported),
        scratch_test(tells_of_a_file),
        scratch_test(tells_of_a_file_by_a_link),
        scratch_test(root_removed),
        scratch_test(root_moved),
        scratch_test(directory_of_a_file_removed),
        scratch_test(share_a_directory),
        scratch_test(failed_setup),
        scratch_test(too_many_directories),
        scratch_test(too_many_found_later),
        scratch_test(too_many_changes),
        scratch_test(too_many_bytes),
        scratch_test(wide_new_directory),
        scratch_test(catches_up_after_an_overflow),
        scratch_test(real_overflow),
        scratch_test(scan_taken_back),
        scratch_test(needs_to_read),
        scratch_test(limits_of_the_kernel),
        scratch_test(mount_inside),
        scratch_test(bind_mount),
        scratch_test(strange_events),
        scratch_test(at_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
