/* File calls through the gate, with the disk changed between its decision and the act. */
#include "confine/fs_access.h"

#include "fs/fs_meta.h"
#include "fs_run.h"

static struct arena arena;
static struct access policy;
static struct fs_call_access real;
static void (*between)(void); /* done once, right after a path has been decided on */
static void (*after)(void);   /* done when the call has asked for a .git it has come to */
static int skip;              /* paths before that one */

static bool is_there(const char *name) {
    return !missing(at(name));
}

static void move(const char *from, const char *to) {
    assert_int_equal(rename(at(from), at(to)), 0);
}

static int pass(void *arg, const struct fs_call_path *p, struct fs_place *out) {
    int r = real.pass(arg, p, out);
    if (skip-- > 0)
        return r;
    void (*now)(void) = between;
    between = NULL;
    if (now != NULL)
        now();
    return r;
}

static int check(void *arg, enum fs_need need, const char *path, mode_t mode) {
    int r = real.check(arg, need, path, mode);
    if (after != NULL && strcmp(strrchr(path, '/'), "/.git") == 0)
        after();
    return r;
}

/* A workspace ws, writable but for ws/secret/..., and ws/denied, which does not exist. */
static int set_up(void **state) {
    static struct plan_entry entries[2];
    static struct plan_glob glob;
    static char root[128], denied[128], pattern[128];
    static struct plan plan;
    struct fault fault = {0};
    if (scratch_new(state) < 0)
        return -1;
    snprintf(root, sizeof root, "%s/ws", scratch);
    snprintf(denied, sizeof denied, "%s/ws/denied", scratch);
    snprintf(pattern, sizeof pattern, "%s/ws/secret/**", scratch);
    entries[0] = (struct plan_entry){root, PLAN_WRITE};
    entries[1] = (struct plan_entry){denied, PLAN_DENY};
    glob = (struct plan_glob){pattern, (uint32_t)strlen(pattern) - 3, 0};
    plan = (struct plan){.confine_files = true,
                         .full_read = true,
                         .entries = entries,
                         .entry_count = 2,
                         .globs = &glob,
                         .glob_count = 1,
                         .cwd = "/"};
    make_dir("ws");
    make_dir("ws/secret");
    make_dir("ws/plain");
    make_file("ws/secret/key", "SECRET");
    make_file("ws/plain/key", "plain");
    arena = ARENA_INIT(8u << 20);
    if (access_build(&policy, &plan, &arena, &fault) < 0)
        return -1;
    real = fs_access_calls(&policy);
    between = after = NULL;
    skip = 0;
    return 0;
}

static int tear_down(void **state) {
    access_fini(&policy);
    arena_fini(&arena);
    return scratch_rm(state);
}

/* Makes a call, with `change` done in between. errno, or 0; what it read goes to `got`. */
static int call(struct fs_call c, void (*change)(void), char got[64]) {
    struct fs_call_access gate = real;
    struct fs_call_result result = FS_CALL_RESULT_INIT;
    _cleanup_err_ struct err e = ERR_INIT;
    gate.pass = pass;
    gate.check = check;
    between = change;
    int r = fs_call_run(&c, (struct str){"new", 3}, &gate, &result, &e);
    if (got != NULL) {
        ssize_t n = result.fd >= 0 ? read(result.fd, got, 63) : 0;
        got[MAX(n, 0)] = '\0';
        if (result.bytes.len > 0)
            memcpy(got, result.bytes.p, MIN(result.bytes.len, (size_t)64));
    }
    util_close_fd(&result.fd);
    buf_fini(&result.bytes);
    assert_null(between);
    return -r;
}

static struct fs_call one(enum fs_call_op op, const char *path) {
    return (struct fs_call){.op = op, .path = path, .follow = true};
}

/* -- a link to `a/..` -- */

static void make_a(void) {
    make_dir("ws/a");
}

static void plant_nothing(void **state) {
    (void)state;
    make_dir("ws/evil");
    make_file("ws/evil/config", "x");
    assert_int_equal(symlink("a/..", at("ws/link")), 0);
    static const char *const names[] = {".git", "denied"};
    for (size_t i = 0; i < 2; i++) {
        char path[128], evil[128];
        snprintf(path, sizeof path, "%s/ws/link/%s", scratch, names[i]);
        snprintf(evil, sizeof evil, "%s/ws/evil", scratch);
        struct fs_call copy = {.op = FS_CALL_COPY,
                               .path = evil,
                               .destination = path,
                               .follow = true,
                               .recursive = true};
        struct fs_call mkdir_all = one(FS_CALL_MKDIR, path);
        mkdir_all.recursive = true;
        const struct fs_call calls[] = {copy, mkdir_all, one(FS_CALL_MKDIR, path),
                                        one(FS_CALL_WRITE, path), one(FS_CALL_WRITE_NEW, path)};
        for (size_t k = 0; k < 5; k++) {
            skip = k == 0;                                          /* the source */
            assert_int_equal(call(calls[k], make_a, NULL), ENOENT); /* `a` comes too late */
            assert_int_not_equal(call(calls[k], NULL, NULL), 0);
            assert_int_equal(rmdir(at("ws/a")), 0);
            assert_false(is_there("ws/.git"));
            assert_false(is_there("ws/denied"));
        }
    }
}

/* -- a directory becomes a link to another, or another takes its name -- */

static void swap_for_link(void) {
    move("ws/plain", "ws/moved");
    assert_int_equal(symlink("secret", at("ws/plain")), 0);
}

static void swap_for_dir(void) {
    move("ws/plain", "ws/moved");
    move("ws/secret", "ws/plain");
}

static void secret_stays(void) {
    char got[64];
    bool moved = !is_there("ws/secret");
    FILE *f = fopen(at(moved ? "ws/plain/key" : "ws/secret/key"), "r");
    assert_non_null(f);
    assert_int_equal(fread(got, 1, 7, f), 6);
    assert_memory_equal(got, "SECRET", 6);
    fclose(f);
}

static void swapped(struct fs_call c, bool reads) {
    void (*const changes[])(void) = {swap_for_link, swap_for_dir};
    for (size_t i = 0; i < 2; i++) {
        char got[64], path[128];
        snprintf(path, sizeof path, "%s/ws/plain/key", scratch);
        c.path = path;
        (void)call(c, changes[i], got);
        secret_stays();
        assert_null(strstr(got, "SECRET"));
        if (reads)
            assert_string_equal(got, "plain");
        if (changes[i] == swap_for_link)
            assert_int_equal(unlink(at("ws/plain")), 0);
        else
            move("ws/plain", "ws/secret");
        move("ws/moved", "ws/plain");
        make_file("ws/plain/key", "plain");
    }
}

static void parents_are_exchanged(void **state) {
    (void)state;
    struct fs_call c = one(FS_CALL_READ, NULL);
    swapped(c, true);
    c.follow = false;
    swapped(c, true);
    c = one(FS_CALL_WRITE, NULL);
    swapped(c, false);
    swapped(one(FS_CALL_WRITE_NEW, NULL), false);
    swapped(one(FS_CALL_REMOVE, NULL), false);
    c = one(FS_CALL_REMOVE, NULL);
    c.recursive = true;
    swapped(c, false);
    c.recursive = false;
    c.follow = false;
    swapped(c, false);
    c = one(FS_CALL_RENAME, NULL);
    char renamed[128];
    snprintf(renamed, sizeof renamed, "%s/ws/renamed", scratch);
    c.destination = renamed;
    c.replace = true;
    swapped(c, false);
    assert_true(is_there("ws/renamed"));
}

static void modes_and_sizes(void **state) {
    (void)state;
    struct stat st;
    char got[64];
    struct fs_meta meta;
    struct fs_call c = one(FS_CALL_CHMOD, at("ws/plain/key"));
    c.mode = 0600;
    assert_int_equal(call(c, swap_for_link, NULL), 0);
    assert_int_equal(stat(at("ws/secret/key"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0644);
    assert_int_equal(stat(at("ws/moved/key"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(unlink(at("ws/plain")), 0);
    move("ws/moved", "ws/plain");
    c = one(FS_CALL_METADATA, at("ws/plain/key"));
    assert_int_equal(call(c, swap_for_link, got), 0);
    memcpy(&meta, got, sizeof meta);
    assert_true(S_ISREG(meta.mode));
    assert_int_not_equal(meta.size, 6);
}

static void copies_take_what_was_decided(void **state) {
    (void)state;
    struct fs_call c = one(FS_CALL_COPY, at("ws/plain"));
    c.recursive = true;
    c.destination = at("ws/copy");
    assert_int_equal(call(c, swap_for_link, NULL), ESTALE);
    assert_false(is_there("ws/copy"));
}

/* Names that a tree brings along are decided on one by one. */
static void trees_ask_for_each_name(void **state) {
    (void)state;
    make_dir("evil");
    make_dir("evil/.git");
    make_file("evil/.git/config", "x");
    struct fs_call c = one(FS_CALL_COPY, at("evil"));
    c.recursive = true;
    c.destination = at("ws");
    assert_int_equal(call(c, NULL, NULL), EROFS);
    assert_false(is_there("ws/.git"));
}

/* A denied file that comes into a tree after the decision stops its removal. */
static void bring_key(void) {
    assert_int_equal(link(at("ws/plain/key"), at("ws/secret/in/key")), 0);
}

static void removal_asks_for_each_name(void **state) {
    (void)state;
    make_dir("ws/secret/in");
    struct fs_call c = one(FS_CALL_REMOVE, at("ws/secret/in"));
    c.recursive = true;
    assert_int_equal(call(c, bring_key, NULL), EACCES);
    assert_true(is_there("ws/secret/in/key"));
}

/* -- what was there, or was not, when it was decided on -- */

static void lose_place(void) {
    (void)!rmdir(at("ws/.git"));
}

/* A directory that holds the place of a protected name goes with the command it is for. */
static void places_are_not_made_again(void **state) {
    (void)state;
    make_dir("evil");
    make_dir("evil/.git");
    make_dir("ws/.git");
    assert_int_equal(call(one(FS_CALL_MKDIR, at("ws/.git")), lose_place, NULL), EEXIST);
    assert_false(is_there("ws/.git"));
    static const struct {
        enum fs_call_op op;
        const char *path, *destination;
    } calls[] = {{FS_CALL_MKDIR, "ws/.git", "ws"},
                 {FS_CALL_COPY, "evil/.git", "ws/.git"},
                 {FS_CALL_COPY, "evil", "ws"}};
    after = lose_place;
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        char path[128], destination[128];
        snprintf(path, sizeof path, "%s/%s", scratch, calls[i].path);
        snprintf(destination, sizeof destination, "%s/%s", scratch, calls[i].destination);
        struct fs_call c = one(calls[i].op, path);
        c.destination = destination;
        c.recursive = true;
        make_dir("ws/.git");
        assert_int_equal(call(c, NULL, NULL), ENOENT);
        assert_false(is_there("ws/.git"));
    }
}

static void make_key(void) {
    make_file("ws/secret/new", "SECRET");
}

/* A denied file that comes into being after the decision stays. */
static void nothing_is_not_removed(void **state) {
    (void)state;
    struct fs_call c = one(FS_CALL_REMOVE, at("ws/secret/new"));
    for (int force = 0; force < 2; force++) {
        c.force = force;
        assert_int_equal(call(c, make_key, NULL), force ? 0 : ENOENT);
        assert_true(is_there("ws/secret/new"));
        assert_int_equal(unlink(at("ws/secret/new")), 0);
    }
}

/* -- links -- */

static struct fs_call link_to(const char *path, const char *target) {
    struct fs_call c = one(FS_CALL_SYMLINK, path);
    c.target = target;
    return c;
}

static void links_are_made_where_allowed(void **state) {
    (void)state;
    make_dir("out");
    make_link("../out", "ws/way");
    static const struct {
        const char *name;
        int error;
    } table[] = {{"ws/new", 0},
                 {"ws/plain/new", 0},
                 {"ws/new", EEXIST},
                 {"ws/plain", EEXIST},
                 {"ws/.git", EROFS},
                 {"ws/.codex", EROFS},
                 {"ws/denied", EACCES},
                 {"ws/secret/l", EACCES},
                 {"ws/secret/key", EACCES},
                 {"out/new", EROFS},
                 {"ws/way/new", EROFS},
                 {"ws/no/new", ENOENT},
                 {"ws/plain/key/x", ENOTDIR}};
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        bool before = is_there(table[i].name);
        assert_int_equal(call(link_to(at(table[i].name), "/etc/passwd"), NULL, NULL),
                         table[i].error);
        assert_int_equal(is_there(table[i].name), before || table[i].error == 0);
    }
}

/* What leads through a link of the client's is decided on by where it leads. */
static void links_grant_nothing(void **state) {
    (void)state;
    make_dir("out");
    make_file("out/f", "out");
    char out[128], got[64];
    snprintf(out, sizeof out, "%s/out", scratch);
    const char *targets[] = {out, "secret", "denied", ".git", "a/.."};
    for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
        assert_int_equal(call(link_to(at("ws/l"), targets[i]), NULL, NULL), 0);
        static const char *const names[] = {"ws/l/f", "ws/l/key", "ws/l/.git", "ws/l/.codex/x"};
        for (size_t k = 0; k < ARRAY_LEN(names); k++) {
            assert_int_not_equal(call(one(FS_CALL_WRITE_NEW, at(names[k])), NULL, NULL), 0);
            if (i != 1) /* patterns deny files only */
                assert_int_not_equal(call(one(FS_CALL_MKDIR, at(names[k])), NULL, NULL), 0);
            assert_int_not_equal(call(link_to(at(names[k]), "x"), NULL, NULL), 0);
            struct fs_call c = one(FS_CALL_TIMES, at(names[k]));
            assert_int_not_equal(call(c, NULL, NULL), 0);
        }
        assert_int_not_equal(call(one(FS_CALL_READ, at("ws/l/key")), NULL, got), 0);
        assert_false(is_there("ws/.git") || is_there("ws/denied") || is_there("ws/.codex"));
        assert_int_equal(call(one(FS_CALL_REMOVE, at("ws/l")), NULL, NULL), 0);
    }
    secret_stays();
}

/* With the parent exchanged in between, a link is made and read where it was decided. */
static void links_keep_their_place(void **state) {
    (void)state;
    char got[64] = "";
    make_link("PLAIN", "ws/plain/l");
    make_link("SECRET", "ws/secret/l");
    assert_int_equal(call(one(FS_CALL_READ_LINK, at("ws/secret/l")), NULL, NULL), EACCES);
    assert_int_equal(call(one(FS_CALL_READ_LINK, at("ws/plain/l")), swap_for_link, got), 0);
    assert_memory_equal(got, "PLAIN", 5);
    assert_int_equal(unlink(at("ws/plain")), 0);
    move("ws/moved", "ws/plain");
    assert_int_equal(call(link_to(at("ws/plain/m"), "x"), swap_for_dir, NULL), 0);
    assert_true(is_there("ws/moved/m") && !is_there("ws/plain/m"));
    move("ws/plain", "ws/secret");
    move("ws/moved", "ws/plain");
    struct stat st;
    struct fs_call c = one(FS_CALL_TIMES, at("ws/plain/key"));
    c.modified_ms = 1000;
    assert_int_equal(call(c, swap_for_link, NULL), 0);
    assert_int_equal(stat(at("ws/moved/key"), &st), 0);
    assert_int_equal(st.st_mtim.tv_sec, 1);
    assert_int_equal(stat(at("ws/secret/key"), &st), 0);
    assert_int_not_equal(st.st_mtim.tv_sec, 1);
}

static void come_first(void) {
    make_link("secret/key", "ws/new");
}

/* A link that comes between decision and act is neither followed nor replaced. */
static void links_that_come_in_between(void **state) {
    (void)state;
    assert_int_equal(call(link_to(at("ws/new"), "x"), come_first, NULL), EEXIST);
    assert_int_equal(unlink(at("ws/new")), 0);
    assert_int_equal(call(one(FS_CALL_READ_LINK, at("ws/new")), come_first, NULL), ENOENT);
    assert_int_equal(unlink(at("ws/new")), 0);
    struct fs_call c = one(FS_CALL_TIMES, at("ws/new"));
    assert_int_equal(call(c, come_first, NULL), ENOENT);
    assert_int_equal(unlink(at("ws/new")), 0);
    assert_int_equal(call(one(FS_CALL_UPDATE, at("ws/new")), come_first, NULL), ELOOP);
    secret_stays();
}

/* A walk tells no target of a link with a denied name. */
static void walks_hide_targets(void **state) {
    (void)state;
    make_link("SECRET", "ws/secret/l");
    make_link("PLAIN", "ws/plain/l");
    make_link("ws", "way");
    static const char *const roots[] = {"ws", "way/secret"};
    for (size_t i = 0; i < ARRAY_LEN(roots); i++) {
        struct fs_call c = {.op = FS_CALL_WALK,
                            .path = at(roots[i]),
                            .links = true,
                            .max_depth = 9,
                            .max_directories = 9,
                            .max_entries = 99};
        struct fs_call_result result = FS_CALL_RESULT_INIT;
        _cleanup_err_ struct err e = ERR_INIT;
        assert_int_equal(fs_call_run(&c, (struct str){"", 0}, &real, &result, &e), 0);
        assert_null(memmem(result.bytes.p, result.bytes.len, "SECRET", 6));
        assert_non_null(memmem(result.bytes.p, result.bytes.len, "secret/l", 8));
        assert_int_equal(memmem(result.bytes.p, result.bytes.len, "PLAIN", 5) != NULL, i == 0);
        buf_fini(&result.bytes);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(plant_nothing),
        TEST(parents_are_exchanged),
        TEST(modes_and_sizes),
        TEST(copies_take_what_was_decided),
        TEST(trees_ask_for_each_name),
        TEST(removal_asks_for_each_name),
        TEST(places_are_not_made_again),
        TEST(nothing_is_not_removed),
        TEST(links_are_made_where_allowed),
        TEST(links_grant_nothing),
        TEST(links_keep_their_place),
        TEST(links_that_come_in_between),
        TEST(walks_hide_targets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
