/* fs/watch: which changes are told. */
#include "fs_watch_run.h"

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

#define TOLD "{\"method\":\"fs/changed\",\"params\":{\"watchId\":\"w\",\"changedPaths\":["

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
    assert_int_equal(fs_json_changes(&b, STR_LIT("w"), w), 0);
    assert_int_equal(buf_putf(&want,
                              TOLD "\"file://%s/b\",\"file://%s/a\",\"file://%s/c\"],"
                                   "\"overflow\":false}}",
                              scratch, scratch, scratch),
                     0);
    assert_true(str_eq(buf_str(&b), buf_str(&want)));
    fs_watch_told(w);
    b.len = 0;
    assert_int_equal(fs_json_changes(&b, STR_LIT("w"), w), 0);
    assert_true(str_eqz(buf_str(&b), TOLD "],\"overflow\":false}}"));
    end();
}

static void names_are_escaped(void **state) {
    (void)state;
    begin();
    watch(&watches[0], ".", false);
    make_file("q\"\\ \xFF", "");
    settle();
    _cleanup_buf_ struct buf b = BUF_INIT(4096);
    assert_int_equal(fs_json_changes(&b, STR_LIT("w"), &watches[0]), 0);
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
    assert_int_equal(fs_json_changes(&b, STR_LIT("w"), &watches[0]), 0);
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
    /* A new directory, and the entries that it has when the scan reaches it. */
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
    assert_true(catch_up());
    assert_int_equal(set.dirs, 4);
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

/* What is to be removed is not, when somebody has come for it meanwhile. */
static void wanted_again(void **state) {
    (void)state;
    make_dir("d");
    begin();
    watch(&watches[0], "d", false);
    fs_watch_fini(&watches[0]);
    struct fs_watch_scan s;
    struct err e = ERR_INIT;
    fs_watch_scan_init(&s, fd);
    assert_int_equal(fs_watch_scan_open_root(&s, at("d"), &e), 0);
    assert_int_equal(fs_watch_init(&watches[1], &set, s.root, s.directory, false), 0);
    fs_watch_adopt(&set, &watches[1], &s);
    fs_watch_scan_fini(&s);
    assert_int_equal(set.unused.len, sizeof(int));
    settle();
    make_file("d/f", "");
    EXPECT(&watches[1], "d/f");
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
        scratch_test(wanted_again),
        scratch_test(failed_setup),
        scratch_test(strange_events),
        scratch_test(at_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
