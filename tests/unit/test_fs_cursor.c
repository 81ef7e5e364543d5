#include "fs/fs_cursor.h"

#include "fs_run.h"

#define DEPTH 60

static int open_dir(int dir, const char *name, int flags) {
    int fd = openat(dir, name, O_DIRECTORY | O_CLOEXEC | flags);
    assert_true(fd >= 0);
    return fd;
}

/* Goes down to d/d/d/...; with peers p/p/p/... */
static struct fs_cursor go_down(bool peers, size_t depth) {
    struct fs_cursor l = fs_cursor_init(peers);
    int fd = open_dir(AT_FDCWD, at("d"), O_RDONLY);
    int peer = peers ? open_dir(AT_FDCWD, at("p"), O_PATH) : -1;
    assert_int_equal(fs_cursor_push(&l, "", &fd, &peer), 0);
    for (size_t i = 1; i < depth; i++) {
        const struct fs_level *last = fs_cursor_last(&l);
        mkdirat(last->list.fd, "d", 0777);
        fd = open_dir(last->list.fd, "d", O_RDONLY);
        if (peers) {
            mkdirat(last->peer, "d", 0777);
            peer = open_dir(last->peer, "d", O_PATH);
        }
        assert_int_equal(fs_cursor_push(&l, "d", &fd, &peer), 0);
        assert_int_equal(fd, -1);
        assert_int_equal(peer, -1);
    }
    assert_int_equal(fs_cursor_depth(&l), depth);
    return l;
}

static struct fs_id id_by_names(const char *top, size_t depth) {
    int fd = open_dir(AT_FDCWD, at(top), O_PATH);
    for (size_t i = 0; i < depth; i++) {
        int next = open_dir(fd, "d", O_PATH);
        close(fd);
        fd = next;
    }
    struct fs_id id;
    assert_int_equal(fs_cursor_id_of(fd, &id), 0);
    close(fd);
    return id;
}

/* Goes up; each level is the directory it was on the way down. */
static void go_up(struct fs_cursor *l, size_t depth) {
    for (size_t i = depth - 1; i > 0; i--) {
        assert_int_equal(fs_cursor_open_parent(l), 0);
        assert_string_equal(fs_cursor_name(l, i), "d");
        fs_cursor_pop(l);
        struct fs_id id;
        assert_int_equal(fs_cursor_id_of(fs_cursor_last(l)->list.fd, &id), 0);
        assert_true(fs_id_eq(id, id_by_names("d", i - 1)));
        if (!l->peers)
            continue;
        assert_int_equal(fs_cursor_id_of(fs_cursor_last(l)->peer, &id), 0);
        assert_true(fs_id_eq(id, id_by_names("p", i - 1)));
    }
    assert_int_equal(fs_cursor_depth(l), 1);
}

static void few_descriptors(void **state) {
    (void)state;
    make_dir("d");
    make_dir("p");
    size_t before = open_fds();
    struct fs_cursor l = go_down(false, DEPTH);
    assert_int_equal(open_fds() - before, FS_CURSOR_OPEN + 1);
    go_up(&l, DEPTH);
    fs_cursor_fini(&l);
    assert_int_equal(open_fds(), before);

    l = go_down(true, DEPTH);
    assert_int_equal(open_fds() - before, 2 * (FS_CURSOR_OPEN + 1));
    go_up(&l, DEPTH);
    fs_cursor_fini(&l);
    l = go_down(true, DEPTH); /* given up in the middle */
    fs_cursor_fini(&l);
    assert_int_equal(open_fds(), before);
}

/* A directory is gone on with where it was left, also if it was closed meanwhile. */
static void goes_on(void **state) {
    (void)state;
    make_dir("d");
    for (int i = 0; i < 20; i++) {
        char name[32];
        snprintf(name, sizeof name, "d/%d", i);
        make_file(name, "");
    }
    make_dir("d/d");
    for (int i = 0; i < 20; i++) {
        char name[32];
        snprintf(name, sizeof name, "d/d/%d", i);
        make_file(name, "");
    }
    struct fs_cursor l = go_down(false, 2);
    unsigned seen = 0;
    struct fs_entry entry;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(fs_list_next(&fs_cursor_last(&l)->list, &entry), 1);
        seen += entry.type == DT_REG;
    }
    for (size_t i = 2; i < DEPTH; i++) { /* no further "d" is made at level 1 */
        const struct fs_level *last = fs_cursor_last(&l);
        mkdirat(last->list.fd, "e", 0777);
        int fd = open_dir(last->list.fd, "e", O_RDONLY);
        assert_int_equal(fs_cursor_push(&l, "e", &fd, &(int){-1}), 0);
    }
    assert_int_equal(fs_cursor_at(&l, 1)->list.fd, -1);
    for (size_t i = DEPTH - 1; i > 1; i--) {
        assert_int_equal(fs_cursor_open_parent(&l), 0);
        fs_cursor_pop(&l);
    }
    while (fs_list_next(&fs_cursor_last(&l)->list, &entry) > 0)
        seen += entry.type == DT_REG;
    assert_int_equal(seen, 20);
    assert_int_equal(fs_list_seek(&fs_cursor_last(&l)->list, 0), 0);
    for (seen = 0; fs_list_next(&fs_cursor_last(&l)->list, &entry) > 0;)
        seen += entry.type == DT_REG;
    assert_int_equal(seen, 20);
    fs_cursor_fini(&l);
}

/* Path of level i of d. */
static const char *level_path(size_t i) {
    static char path[8192];
    size_t n = (size_t)snprintf(path, sizeof path, "%s/d", scratch);
    for (size_t k = 0; k < i; k++)
        n += (size_t)snprintf(path + n, sizeof path - n, "/d");
    return path;
}

/* Goes down a tree; then somebody moves its level 31 out of it. */
static struct fs_cursor go_down_and_move(void) {
    make_dir("d");
    make_dir("elsewhere");
    struct fs_cursor l = go_down(false, DEPTH);
    assert_int_equal(rename(level_path(31), at("elsewhere/d")), 0);
    return l;
}

/* Goes up to the moved level. */
static void go_up_to_moved(struct fs_cursor *l) {
    for (size_t i = DEPTH - 1; i > 31; i--) {
        assert_int_equal(fs_cursor_open_parent(l), 0);
        fs_cursor_pop(l);
    }
}

/* ".." of the moved level leads elsewhere; the cursor finds level 30 by its names. */
static void moved(void **state) {
    (void)state;
    struct fs_cursor l = go_down_and_move();
    go_up_to_moved(&l);
    assert_int_equal(fs_cursor_open_parent(&l), 0);
    struct fs_id id;
    assert_int_equal(fs_cursor_id_of(fs_cursor_at(&l, 30)->list.fd, &id), 0);
    assert_true(fs_id_eq(id, id_by_names("d", 30)));
    fs_cursor_fini(&l);
}

/* Level 20 is another directory by now: its names lead nowhere. */
static void lost(void **state) {
    (void)state;
    struct fs_cursor l = go_down_and_move();
    assert_int_equal(rename(level_path(20), at("elsewhere/moved")), 0);
    assert_int_equal(mkdir(level_path(20), 0777), 0);
    go_up_to_moved(&l);
    assert_int_equal(fs_cursor_open_parent(&l), -ESTALE);
    fs_cursor_fini(&l);
}

/* The cursor does not pass a level that is a link by now. */
static void replaced_by_link(void **state) {
    (void)state;
    struct fs_cursor l = go_down_and_move();
    assert_int_equal(rename(level_path(20), at("elsewhere/moved")), 0);
    assert_int_equal(symlink(at("elsewhere/moved"), level_path(20)), 0);
    go_up_to_moved(&l);
    assert_int_equal(fs_cursor_open_parent(&l), -ESTALE);
    fs_cursor_fini(&l);
}

/* The peer of a level lies behind a link, so that ".." of what is below it is another. */
static void peers_behind_links(void **state) {
    (void)state;
    make_dir("d");
    make_dir("p");
    make_dir("p/d");
    make_dir("target");
    assert_int_equal(symlink(at("target"), at("p/d/d")), 0);
    struct fs_cursor l = go_down(true, DEPTH);
    go_up(&l, DEPTH);
    fs_cursor_fini(&l);
}

static void too_deep(void **state) {
    (void)state;
    make_dir("d");
    struct fs_cursor l = fs_cursor_init(false);
    char name[256];
    memset(name, 'n', 255);
    name[255] = '\0';
    int r = 0;
    size_t n = 0;
    for (; r == 0 && n < 100000; n++) {
        int fd = open_dir(AT_FDCWD, at("d"), O_RDONLY);
        r = fs_cursor_push(&l, name, &fd, &(int){-1});
        assert_int_equal(fd, -1);
    }
    assert_int_equal(r, -ENAMETOOLONG);
    assert_in_range(n, 60000, 70000);
    fs_cursor_fini(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        scratch_test(few_descriptors),
        scratch_test(goes_on),
        scratch_test(moved),
        scratch_test(lost),
        scratch_test(replaced_by_link),
        scratch_test(peers_behind_links),
        scratch_test(too_deep),
    };
    return cmocka_run_group_tests_name("fs_cursor", tests, NULL, NULL);
}
