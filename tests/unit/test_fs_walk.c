#include "fs/fs_walk.h"

#define MANY_FILES
#include "fs_json_run.h"
#include "fs_run.h"

#include <limits.h>
#include <signal.h>

static atomic_bool never, always = true;

#define ALL(p)                                                                                     \
    ((struct fs_walk){.path = (p), .max_depth = 64, .max_directories = 10000, .max_entries = 50000})

static void walk(const struct fs_walk *w, struct buf *b) {
    struct err e = ERR_INIT;
    *b = BUF_INIT(FS_RESULT_MAX);
    if (json_walk(w, &never, b, &e) < 0)
        fail_msg("%s: %d %s", w->path, e.code, err_msg(&e));
    assert_int_equal(e.code, 0);
}

static bool has(const struct buf *b, const char *text) {
    return memmem(b->p, b->len, text, strlen(text)) != NULL;
}

static size_t count(const struct buf *b, const char *text) {
    size_t n = 0;
    const char *end = b->p + b->len;
    for (const char *p = b->p; (p = memmem(p, (size_t)(end - p), text, strlen(text))) != NULL; p++)
        n++;
    return n;
}

/* Appends the items of a list of names, each escaped as in a URI: a '/' at the end is a directory,
 * "name:13" an error. */
static void put_items(struct buf *b, const char *root, const char *items, bool errors) {
    char copy[2048];
    snprintf(copy, sizeof copy, "%s", items);
    char *save = NULL;
    bool first = true;
    for (char *s = strtok_r(copy, " ", &save); s != NULL; s = strtok_r(NULL, " ", &save)) {
        size_t n = strlen(s);
        char *colon = errors ? strrchr(s, ':') : NULL;
        bool dir = s[n - 1] == '/';
        n = colon != NULL ? (size_t)(colon - s) : n - dir;
        assert_int_equal(buf_putf(b, "%s{\"path\":\"file://%s%s%.*s\",", first ? "" : ",", root,
                                  n > 0 ? "/" : "", (int)n, s),
                         0);
        first = false;
        int num = colon != NULL ? atoi(colon + 1) : 0;
        int r = errors ? buf_putf(b, "\"message\":\"%s (os error %d)\"}", err_os_text(num), num)
                       : buf_putf(b, "\"kind\":\"%s\"}", dir ? "directory" : "file");
        assert_int_equal(r, 0);
    }
}

/* The exact result of a walk, with paths relative to its root. */
#define EXPECT(w, entries, errors, truncated) expect(w, entries, errors, truncated, __LINE__)
static void expect(struct fs_walk w, const char *entries, const char *errors, bool truncated,
                   int line) {
    struct buf got, want = BUF_INIT(FS_RESULT_MAX);
    walk(&w, &got);
    assert_int_equal(buf_putz(&want, "{\"entries\":["), 0);
    put_items(&want, w.path, entries, false);
    assert_int_equal(buf_putz(&want, "],\"errors\":["), 0);
    put_items(&want, w.path, errors, true);
    assert_int_equal(buf_putf(&want, "],\"truncated\":%s}", truncated ? "true" : "false"), 0);
    if (!str_eq(buf_str(&got), buf_str(&want)))
        fail_msg("line %d: %.*s\nwanted %.*s", line, (int)got.len, got.p, (int)want.len, want.p);
    buf_fini(&got);
    buf_fini(&want);
}

static struct fs_walk follow(struct fs_walk w) {
    w.follow_directory_links = true;
    return w;
}

static struct fs_walk prune(struct fs_walk w) {
    w.prune_hidden = true;
    return w;
}

static struct fs_walk depth(struct fs_walk w, uint64_t n) {
    w.max_depth = n;
    return w;
}

static struct fs_walk dirs(struct fs_walk w, uint64_t n) {
    w.max_directories = n;
    return w;
}

static struct fs_walk entries(struct fs_walk w, uint64_t n) {
    w.max_entries = n;
    return w;
}

/* .h/x Zcap nested/{deep/f,note} ünï, links to nested, up, itself, a file and nothing, a FIFO. */
static void make_walk_tree(void) {
    make_dir(".h");
    make_file(".h/x", "");
    make_file("Zcap", "");
    make_dir("nested");
    make_dir("nested/deep");
    make_file("nested/deep/f", "");
    make_file("nested/note", "");
    make_file("\xC3\xBCn\xC3\xAF", "");
    make_link("nested", "zdir");
    make_link("..", "nested/up");
    make_link("Zcap", "lfile");
    make_link("nothing", "dangling");
    make_link("loop", "loop");
    make_fifo("fifo");
    make_socket("socket");
}

static void breadth_first_in_order(void **state) {
    (void)state;
    make_walk_tree();
    EXPECT(ALL(scratch),
           ".h/ Zcap nested/ %C3%BCn%C3%AF .h/x nested/deep/ nested/note nested/deep/f", "", false);
    EXPECT(depth(ALL(scratch), 0), ".h/ Zcap nested/ %C3%BCn%C3%AF", "", false);
    EXPECT(depth(ALL(scratch), 1), ".h/ Zcap nested/ %C3%BCn%C3%AF .h/x nested/deep/ nested/note",
           "", false);
    EXPECT(prune(ALL(scratch)),
           ".h/ Zcap nested/ %C3%BCn%C3%AF nested/deep/ nested/note nested/deep/f", "", false);
    make_dir("empty");
    EXPECT(ALL(at("empty")), "", "", false);
}

static void follows_links_to_directories(void **state) {
    (void)state;
    make_walk_tree();
    /* nested comes first, so zdir is listed, not read; up is the root, which was read. */
    EXPECT(follow(ALL(scratch)),
           ".h/ Zcap nested/ zdir/ %C3%BCn%C3%AF .h/x nested/deep/ nested/note nested/up/ "
           "nested/deep/f",
           "", false);
    make_link("nested", "anested"); /* now this one is first */
    EXPECT(follow(ALL(scratch)),
           ".h/ Zcap anested/ nested/ zdir/ %C3%BCn%C3%AF .h/x anested/deep/ anested/note "
           "anested/up/ anested/deep/f",
           "", false);
}

static void loops_end(void **state) {
    (void)state;
    make_dir("a");
    make_link("..", "a/up");
    make_link(".", "a/self");
    make_link("../b", "a/b");
    make_dir("b");
    make_link("../a", "b/a");
    make_file("b/f", "");
    EXPECT(follow(ALL(scratch)), "a/ b/ a/b/ a/self/ a/up/ b/a/ b/f", "", false);
    /* Above the root of the walk: everything is found below the link, once. */
    EXPECT(follow(ALL(at("a"))), "b/ self/ up/ b/a/ b/f up/a/ up/b/", "", false);
}

/* A hidden directory that is not read can still be read through a link that is not hidden. */
static void pruned_directories_are_not_claimed(void **state) {
    (void)state;
    make_dir(".h");
    make_file(".h/x", "");
    make_link(".h", "seen");
    make_link("seen", ".again");
    EXPECT(prune(follow(ALL(scratch))), ".again/ .h/ seen/ seen/x", "", false);
    EXPECT(follow(ALL(scratch)), ".again/ .h/ seen/ .again/x", "", false);
    EXPECT(prune(ALL(at(".h"))), "x", "", false); /* the root is never pruned */
}

static void roots(void **state) {
    (void)state;
    make_tree();
    EXPECT(ALL(at("dir")), "file", "", false);
    EXPECT(ALL(at("dlink")), "", "", false);
    EXPECT(follow(ALL(at("dlink"))), "file", "", false);
    static const char *const others[] = {"file", "flink", "fifo", "socket"};
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        EXPECT(ALL(at(others[i])), "", "", false);
        EXPECT(follow(ALL(at(others[i]))), "", "", false);
    }
    static const struct {
        const char *name;
        int code, num;
    } bad[] = {{"nope", -32004, ENOENT},
               {"dangling", -32004, ENOENT},
               {"loop", -32603, ELOOP},
               {"file/x", -32603, ENOTDIR}};
    struct buf b = BUF_INIT(FS_RESULT_MAX);
    struct err e = ERR_INIT;
    assert_int_equal(buf_putz(&b, "kept"), 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct fs_walk w = ALL(at(bad[i].name));
        fails_os(json_walk(&w, &never, &b, &e), &e, bad[i].code, bad[i].num, bad[i].name, __LINE__);
        w = follow(w);
        fails_os(json_walk(&w, &never, &b, &e), &e, bad[i].code, bad[i].num, bad[i].name, __LINE__);
    }
    assert_int_equal(b.len, 4);
    buf_fini(&b);
}

static void limits_are_checked_first(void **state) {
    (void)state;
    struct buf b = BUF_INIT(FS_RESULT_MAX);
    struct err e = ERR_INIT;
    const char *zero = "filesystem walk limits must be greater than zero";
    const char *max = "filesystem walk limits exceed maximums: depth=64, directories=10000, "
                      "entries=50000";
    struct fs_walk all = ALL("/nope"), w;
    FAILS_OS(json_walk(&all, &never, &b, &e), &e, -32004, ENOENT);
    w = dirs(all, 0);
    FAILS(json_walk(&w, &never, &b, &e), &e, -32600, zero);
    w = dirs(entries(all, 0), 10001);
    FAILS(json_walk(&w, &never, &b, &e), &e, -32600, zero);
    w = depth(all, 65);
    FAILS(json_walk(&w, &never, &b, &e), &e, -32600, max);
    w = dirs(all, 10001);
    FAILS(json_walk(&w, &never, &b, &e), &e, -32600, max);
    w = entries(all, UINT64_MAX);
    FAILS(json_walk(&w, &never, &b, &e), &e, -32600, max);
    assert_int_equal(b.len, 0);
    buf_fini(&b);
}

static void counts_every_name(void **state) {
    (void)state;
    make_file("b", "");
    make_fifo("c");
    make_file("d", "");
    EXPECT(entries(ALL(scratch), 3), "b d", "", false);
    EXPECT(entries(ALL(scratch), 2), "b", "", true);
    EXPECT(entries(ALL(scratch), 1), "b", "", true);
    make_link("nothing", "a"); /* is not counted, */
    make_link("nothing", "e");
    EXPECT(entries(ALL(scratch), 3), "b d", "", false);
    make_link("b", "e1"); /* but this is, */
    EXPECT(entries(ALL(scratch), 3), "b d", "", true);
    EXPECT(entries(ALL(scratch), 4), "b d", "", false);
    make_file("f\xFF", ""); /* and this. */
    EXPECT(entries(ALL(scratch), 4), "b d", "", true);
    EXPECT(entries(ALL(scratch), 5), "b d", "f%EF%BF%BD:2", false);
}

static void counts_across_directories(void **state) {
    (void)state;
    make_dir("a");
    make_dir("b");
    EXPECT(entries(ALL(scratch), 2), "a/ b/", "", false);
    make_file("b/x", "");
    EXPECT(entries(ALL(scratch), 2), "a/ b/", "", true);
    EXPECT(entries(ALL(scratch), 3), "a/ b/ b/x", "", false);
}

static void limits_directories(void **state) {
    (void)state;
    make_dir("a");
    make_dir("a/s");
    make_file("a/x", "");
    make_dir("b");
    make_file("b/x", "");
    EXPECT(dirs(ALL(scratch), 1), "a/ b/", "", true);
    EXPECT(dirs(ALL(scratch), 2), "a/ b/ a/s/ a/x", "", true);
    EXPECT(dirs(ALL(scratch), 3), "a/ b/ a/s/ a/x b/x", "", true);
    EXPECT(dirs(ALL(scratch), 4), "a/ b/ a/s/ a/x b/x", "", false);
    /* Those that would not be read anyway do not count: too deep, hidden, read before. */
    EXPECT(dirs(depth(ALL(scratch), 0), 1), "a/ b/", "", false);
    make_link("a", "c");
    EXPECT(dirs(follow(ALL(scratch)), 4), "a/ b/ c/ a/s/ a/x b/x", "", false);
    make_dir(".h");
    EXPECT(dirs(prune(ALL(scratch)), 4), ".h/ a/ b/ a/s/ a/x b/x", "", false);
}

static void odd_names(void **state) {
    (void)state;
    static const char *const names[] = {"%41", "a\\b", "a b",  "C:",  "#", "?x",  "...",
                                        "C|",  "\x01", "\x7F", "\"q", "~", "[x]", "\xC3\xA9"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        make_file(names[i], "");
    EXPECT(ALL(scratch), "%01 %22q %23 %2541 ... %3Fx C: C| [x] a%20b a%5Cb ~ %7F %C3%A9", "",
           false);
    char name[256], uri[3 * 255 + 4];
    memset(name, 'n', 255);
    name[255] = '\0';
    make_dir("long");
    snprintf(uri, sizeof uri, "long/%s", name);
    make_dir(uri);
    snprintf(uri, sizeof uri, "%s/", name);
    EXPECT(ALL(at("long")), uri, "", false);
}

/* JSON has no form for a name that is not UTF-8: the search uses the form that is shown. */
static void bad_names(void **state) {
    (void)state;
    make_file("n\xFF", "");
    make_dir("d\xFE");
    make_file("d\xFE/x", "");
    EXPECT(ALL(scratch), "", "d%EF%BF%BD:2 n%EF%BF%BD:2", false);
    make_file("n\xEF\xBF\xBD", ""); /* there is one of that name */
    make_dir("d\xEF\xBF\xBD");
    make_file("d\xEF\xBF\xBD/y", "");
    EXPECT(ALL(scratch), "d%EF%BF%BD/ d%EF%BF%BD/ n%EF%BF%BD n%EF%BF%BD d%EF%BF%BD/y", "", false);
    EXPECT(follow(ALL(scratch)), "d%EF%BF%BD/ d%EF%BF%BD/ n%EF%BF%BD n%EF%BF%BD d%EF%BF%BD/y", "",
           false);
    /* The root may have any bytes. */
    struct buf b;
    struct fs_walk w = ALL(at("d\xFE"));
    walk(&w, &b);
    assert_true(has(&b, "/d%FE/x\",\"kind\":\"file\"}"));
    buf_fini(&b);
}

static int as_nobody(void) {
    CHECK(become_nobody() == 0);
    static const struct {
        const char *name;
        bool below; /* the path of the error is that of a name in it */
    } cases[] = {{"readable", true}, {"searchable", false}, {"closed", false}};
    struct err e = ERR_INIT;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        for (int k = 0; k < 2; k++) {
            char want[512];
            struct fs_walk w = ALL(at(cases[i].name));
            w.follow_directory_links = k > 0;
            struct buf b = BUF_INIT(FS_RESULT_MAX);
            CHECK(json_walk(&w, &never, &b, &e) == 0);
            int n = snprintf(want, sizeof want,
                             "{\"entries\":[],\"errors\":[{\"path\":\"file://%s%s\",\"message\":"
                             "\"Permission denied (os error 13)\"}",
                             w.path, cases[i].below ? "/d" : "");
            CHECK(b.len > (size_t)n && memcmp(b.p, want, (size_t)n) == 0);
            /* Of d and f, or of itself; the link is not seen at all. */
            CHECK(count(&b, "\"message\"") == (cases[i].below ? 2u : 1u));
            buf_fini(&b);
        }
    }
    struct fs_walk w = ALL(at("closed/d"));
    struct buf b = BUF_INIT(FS_RESULT_MAX);
    CHECK_OS(json_walk(&w, &never, &b, &e), &e, -32600, EACCES);
    /* From above, each is listed and then fails. */
    w = dirs(ALL(scratch), 4);
    CHECK(json_walk(&w, &never, &b, &e) == 0);
    CHECK(has(&b, "\"errors\":[{\"path\":"));
    CHECK(has(&b, "\"truncated\":false"));
    buf_fini(&b);
    return 0;
}

static int deny_hidden(void *arg, enum fs_need need, const char *path, mode_t mode) {
    size_t *asked = arg;
    (*asked)++;
    assert_true(need == FS_READS && S_ISLNK(mode));
    assert_memory_equal(path, scratch, strlen(scratch));
    assert_null(strstr(path, "/zdir/"));
    return strrchr(path, '/')[1] == '.' ? -EACCES : 0;
}

#define LINK(name, target) "/" name "\",\"kind\":\"symlink\",\"target\":\"" target "\"}"

/* Each link with its target, none followed, all counted; names as they are. */
static void lists_links(void **state) {
    (void)state;
    make_walk_tree();
    make_link("\xFF", "nested/bad");
    make_link("no", ".hidden");
    make_file("n\xFF", "");
    make_dir("d\xFE");
    make_link("../up", "d\xFE/l");
    struct err e = ERR_INIT;
    struct buf b;
    struct fs_walk w = ALL(scratch);
    w.links = true;
    walk(&w, &b);
    assert_int_equal(count(&b, "\"symlink\""), count(&b, "\"target\":"));
    assert_true(has(&b, LINK("zdir", "nested")) && has(&b, LINK(".hidden", "no")));
    assert_true(has(&b, LINK("d%FE/l", "../up")) && has(&b, "/n%FF\",\"kind\":\"file\"}"));
    assert_true(has(&b, "/nested/bad\",\"kind\":\"symlink\",\"target\":\"\xEF\xBF\xBD\","
                        "\"targetBase64\":\"/w==\"}"));
    assert_true(has(&b, "\"errors\":[],\"truncated\":false"));
    assert_false(has(&b, "/zdir/"));
    buf_fini(&b);

    size_t asked = 0;
    const struct fs_place_check check = {deny_hidden, &asked};
    make_link(".", "self");
    w.path = at("self/nested"); /* through a link: the question has the real path */
    w.check = &check;
    walk(&w, &b);
    assert_true(asked == 0 && !has(&b, "target") && has(&b, "/self/nested/bad\",\"kind\":"));
    buf_fini(&b);
    struct fs_place root = FS_PLACE_INIT;
    strcpy(root.path, at("nested"));
    assert_int_equal(fs_place_fill(&root, false), 0);
    w.at = &root;
    walk(&w, &b);
    assert_true(asked == 2 && has(&b, "/self/nested/bad\",\"kind\":\"symlink\",\"target\":"));
    buf_fini(&b);
    w.path = scratch;
    strcpy(root.path, scratch);
    assert_int_equal(fs_place_fill(&root, false), 0);
    walk(&w, &b);
    assert_true(has(&b, "/.hidden\",\"kind\":\"symlink\"}") && has(&b, LINK("zdir", "nested")));
    buf_fini(&b);

    w.max_entries = 1; /* .h */
    walk(&w, &b);
    assert_true(has(&b, "\"truncated\":true") && !has(&b, "symlink"));
    buf_fini(&b);
    w.follow_directory_links = true;
    b = BUF_INIT(FS_RESULT_MAX);
    FAILS(json_walk(&w, &never, &b, &e), &e, -32600,
          "filesystem walk cannot both list and follow links");
    buf_fini(&b);
    fs_place_fini(&root);
}

/* Targets count: a walk with many long ones is cut. */
static void links_have_a_budget(void **state) {
    (void)state;
    static char target[4096];
    memset(target, '\x01', sizeof target - 1);
    for (int i = 0; i < 1200; i++) {
        char name[16];
        snprintf(name, sizeof name, "l%04d", i);
        make_link(target, name);
    }
    struct buf b;
    struct fs_walk w = ALL(scratch);
    w.links = true;
    walk(&w, &b);
    assert_true(has(&b, "\"truncated\":true"));
    assert_in_range(count(&b, "\"symlink\""), 900, 1100);
    buf_fini(&b);
}

static void permissions(void **state) {
    (void)state;
    needs_root();
    static const struct {
        const char *name;
        mode_t mode;
    } made[] = {{"readable", 0744}, {"searchable", 0711}, {"closed", 0700}};
    for (size_t i = 0; i < ARRAY_LEN(made); i++) {
        char name[64];
        make_dir(made[i].name);
        snprintf(name, sizeof name, "%s/f", made[i].name);
        make_file(name, "");
        snprintf(name, sizeof name, "%s/d", made[i].name);
        make_dir(name);
        snprintf(name, sizeof name, "%s/l", made[i].name);
        make_link("f", name);
        assert_int_equal(chmod(at(made[i].name), made[i].mode), 0);
    }
    in_child(as_nobody);
}

/* Each item costs 64 and its URI; what would go beyond 4 MiB ends the walk. */
static void budget(void **state) {
    (void)state;
    make_dir("d");
    char name[256];
    memset(name, 'n', sizeof name);
    int fd = open(at("d"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (unsigned i = 0; i < 14000; i++) {
        snprintf(name + 240, 16, "%010u", i * 7919 % 14000);
        assert_int_equal(mknodat(fd, name, S_IFREG | 0644, 0), 0);
    }
    close(fd);
    struct buf b;
    struct fs_walk w = ALL(at("d"));
    walk(&w, &b);
    size_t item = 64 + strlen("file:///") + strlen(w.path) + 250;
    size_t fit = (4u << 20) / item;
    assert_in_range(fit, 1000, 13999);
    assert_int_equal(count(&b, "\"kind\":\"file\""), fit);
    assert_true(has(&b, "],\"errors\":[],\"truncated\":true}"));
    snprintf(name + 240, 16, "%010zu", fit - 1); /* in order: the last one that fits, */
    assert_true(has(&b, name));
    snprintf(name + 240, 16, "%010zu", fit); /* and the first that does not */
    assert_false(has(&b, name));
    buf_fini(&b);
}

/* A directory with more names than are wanted: the first in order, not the first that are read. */
static void large_directory(void **state) {
    (void)state;
    make_dir("d");
    int fd = open(at("d"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (unsigned i = 0; i < 52000; i++) {
        char name[32];
        snprintf(name, sizeof name, "%05u", i * 7919 % 52000);
        assert_int_equal(mknodat(fd, name, S_IFREG | 0644, 0), 0);
    }
    close(fd);
    EXPECT(entries(ALL(at("d")), 3), "00000 00001 00002", "", true);
    struct buf b;
    struct fs_walk w = ALL(at("d"));
    walk(&w, &b);
    assert_true(has(&b, "/00000\""));
    assert_false(has(&b, "/49999\"")); /* the budget is less than 50,000 entries of this size */
    assert_true(has(&b, "\"truncated\":true}"));
    buf_fini(&b);
}

/* As deep as a walk goes; as far as a path can name things. */
static void deep(void **state) {
    (void)state;
    char path[PATH_MAX + 300];
    size_t n = (size_t)snprintf(path, sizeof path, "%s", scratch);
    for (int i = 0; i < 66; i++) {
        n += (size_t)snprintf(path + n, sizeof path - n, "/%d", i);
        assert_int_equal(mkdir(path, 0777), 0);
    }
    struct buf b;
    struct fs_walk w = ALL(scratch);
    walk(&w, &b);
    assert_true(has(&b, "/63/64\",\"kind\":\"directory\"}"));
    assert_false(has(&b, "/64/65\""));
    assert_true(has(&b, "\"truncated\":false}"));
    buf_fini(&b);
}

static void paths_that_are_too_long(void **state) {
    (void)state;
    char path[PATH_MAX + 300], name[256];
    make_dir("long");
    size_t n = (size_t)snprintf(path, sizeof path, "%s/long", scratch);
    while (n < PATH_MAX - 215) {
        n += (size_t)snprintf(path + n, sizeof path - n, "/%0200d", 0);
        assert_int_equal(mkdir(path, 0777), 0);
    }
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    memset(name, 'l', 255);
    name[255] = '\0';
    assert_int_equal(symlinkat("/", fd, name), 0);
    name[0] = 'd';
    assert_int_equal(mkdirat(fd, name, 0777), 0);
    assert_int_equal(mkdirat(fd, "e", 0777), 0);
    for (int k = 0; k < 2; k++) {
        struct fs_walk w = ALL(at("long"));
        w.follow_directory_links = k > 0;
        struct buf b;
        walk(&w, &b);
        char want[600];
        snprintf(want, sizeof want, "/%s\",\"message\":\"Filename too long (os error 36)\"}]",
                 name);
        assert_true(has(&b, want));
        assert_true(has(&b, "/e\",\"kind\":\"directory\"}],\"errors\":[{"));
        buf_fini(&b);
    }
    assert_int_equal(unlinkat(fd, name, AT_REMOVEDIR), 0);
    name[0] = 'l';
    assert_int_equal(unlinkat(fd, name, 0), 0);
    close(fd);
}

/* The real path of a directory can be too long, though the one through a link is not. */
static void real_paths_that_are_too_long(void **state) {
    (void)state;
    char path[PATH_MAX + 300];
    make_dir("deep");
    size_t n = (size_t)snprintf(path, sizeof path, "%s/deep", scratch), half = 0;
    while (n < PATH_MAX - 160) {
        n += (size_t)snprintf(path + n, sizeof path - n, "/%0100d", 0);
        assert_int_equal(mkdir(path, 0777), 0);
        if (half == 0 && n > PATH_MAX / 2)
            half = n;
    }
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char name[201];
    memset(name, 'y', 200);
    name[200] = '\0';
    assert_int_equal(mkdirat(fd, name, 0777), 0);
    assert_int_equal(mkdirat(fd, "z", 0777), 0);
    path[half] = '\0';
    make_link(path, "half");
    memmove(path + 5, path + half + 1, strlen(path + half + 1) + 1);
    memcpy(path, "half/", 5);
    assert_int_equal(symlink(path, at("whole")), 0);
    char items[300], errors[300];
    snprintf(items, sizeof items, "%s/ z/", name);
    snprintf(errors, sizeof errors, "%s:36", name);
    EXPECT(follow(ALL(at("whole"))), items, errors, false);
    assert_int_equal(unlinkat(fd, name, AT_REMOVEDIR), 0);
    close(fd);
}

/* What has no URI of its own is an error, as its directory or as the drive it looks like. */
static int in_jail(void) {
    CHECK(chroot(scratch) == 0 && chdir("/") == 0);
    struct err e = ERR_INIT;
    struct buf b = BUF_INIT(FS_RESULT_MAX);
    struct fs_walk w = ALL("/");
    CHECK(json_walk(&w, &never, &b, &e) == 0);
    const char *want = "{\"entries\":[{\"path\":\"file:///a\",\"kind\":\"directory\"},"
                       "{\"path\":\"file:///a/c:\",\"kind\":\"directory\"}],"
                       "\"errors\":[{\"path\":\"file:///C:\",\"message\":"
                       "\"'file:///C:' is invalid on 'linux'\"}],\"truncated\":false}";
    CHECK(b.len == strlen(want) && memcmp(b.p, want, b.len) == 0);
    b.len = 0;
    w.path = "/c:";
    CHECK(json_walk(&w, &never, &b, &e) == 0);
    want = "{\"entries\":[],\"errors\":[{\"path\":\"file:///%00/bad/path/L2M6\",\"message\":"
           "\"'file:///%00/bad/path/L2M6' is invalid on 'linux'\"}],\"truncated\":false}";
    CHECK(b.len == strlen(want) && memcmp(b.p, want, b.len) == 0);
    buf_fini(&b);
    return 0;
}

static void drives(void **state) {
    (void)state;
    needs_root();
    make_dir("c:");
    make_file("c:/f", "");
    make_dir("a");
    make_dir("a/c:");
    in_child(in_jail);
}

/* The way without openat2() gives the same. */
static int without_openat2(void) {
    CHECK(forbid(SYS_openat2, ENOSYS) == 0);
    struct err e = ERR_INIT;
    struct buf b = BUF_INIT(FS_RESULT_MAX);
    struct fs_walk w = ALL(scratch);
    CHECK(json_walk(&w, &never, &b, &e) == 0);
    CHECK(has(&b, "/a/b/c\",\"kind\":\"file\"}"));
    buf_fini(&b);
    return 0;
}

static void older_kernels(void **state) {
    (void)state;
    make_dir("a");
    make_dir("a/b");
    make_file("a/b/c", "");
    in_child(without_openat2);
}

static void stops(void **state) {
    (void)state;
    struct buf b = BUF_INIT(FS_RESULT_MAX);
    struct err e = ERR_INIT;
    make_file("f", "");
    struct fs_walk w = ALL(scratch);
    FAILS_OS(json_walk(&w, &always, &b, &e), &e, -32603, ECANCELED);
    assert_int_equal(b.len, 0);
    buf_fini(&b);
}

/* Puts a link to somewhere else in the place of a directory, and back, until it is killed. */
_Noreturn static void meddle(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;)
        renameat2(AT_FDCWD, at("t/d"), AT_FDCWD, at("link"), RENAME_EXCHANGE);
}

/* No name of a directory that is reached through a link is ever told. */
static void swapped_links(void **state) {
    (void)state;
    make_dir("secret");
    make_dir("secret/e");
    make_file("secret/e/leak", "");
    make_dir("t");
    make_dir("t/d");
    make_dir("t/d/e");
    make_file("t/d/e/fine", "");
    assert_int_equal(symlink(at("secret"), at("link")), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        meddle();
    size_t read_it = 0;
    for (int i = 0; i < 1000; i++) {
        struct buf b;
        struct fs_walk w = ALL(at("t"));
        walk(&w, &b);
        assert_false(has(&b, "leak"));
        read_it += has(&b, "/d/e/fine\"");
        buf_fini(&b);
    }
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_true(read_it > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        scratch_test(breadth_first_in_order),
        scratch_test(follows_links_to_directories),
        scratch_test(loops_end),
        scratch_test(pruned_directories_are_not_claimed),
        scratch_test(roots),
        scratch_test(limits_are_checked_first),
        scratch_test(counts_every_name),
        scratch_test(counts_across_directories),
        scratch_test(limits_directories),
        scratch_test(odd_names),
        scratch_test(bad_names),
        scratch_test(lists_links),
        scratch_test(links_have_a_budget),
        scratch_test(permissions),
        scratch_test(budget),
        scratch_test(large_directory),
        scratch_test(deep),
        scratch_test(paths_that_are_too_long),
        scratch_test(real_paths_that_are_too_long),
        scratch_test(drives),
        scratch_test(older_kernels),
        scratch_test(stops),
        scratch_test(swapped_links),
    };
    return cmocka_run_group_tests_name("fs_walk", tests, NULL, NULL);
}
