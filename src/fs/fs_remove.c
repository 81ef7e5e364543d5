#include "fs/fs_remove.h"

#include "fs/fs_cursor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>

#define REMOVE_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/*
 * Passes over a directory that is not empty after the first: somebody adds to it, or the file
 * system skips entries while others are removed.
 */
#define REMOVE_PASSES 4

struct remove_tree {
    const struct fs_remove *args;
    struct fs_cursor levels;
    int parent;       /* owned; of the top */
    const char *leaf; /* name of the top in it */
};

/* 0 for what is gone already. */
static int remove_unlink(int dir, const char *name, int flags) {
    return unlinkat(dir, name, flags) == 0 || errno == ENOENT ? 0 : -errno;
}

/* Enters a directory of the last level. Unlinks what is none by now, unless a check decided on a
 * directory. 0 or -errno. */
static int remove_enter(struct remove_tree *t, const char *name) {
    int dir = fs_cursor_last(&t->levels)->list.fd;
    _cleanup_close_ int fd = openat(dir, name, REMOVE_FLAGS);
    if (fd < 0 && (errno == ENOTDIR || errno == ELOOP))
        return t->args->check == NULL ? remove_unlink(dir, name, 0) : -ESTALE;
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    return fs_cursor_push(&t->levels, name, &fd, &(int){-1});
}

/* Asks whether the entry of the last level may be removed. 0 or -errno. */
static int remove_ask(const struct remove_tree *t, const struct fs_entry *entry) {
    const struct fs_place_check *check = t->args->check;
    _cleanup_buf_ struct buf path = BUF_INIT(PATH_MAX);
    if (check == NULL)
        return 0;
    struct stat st = {.st_mode = (mode_t)DTTOIF(entry->type)};
    int dir = fs_cursor_last(&t->levels)->list.fd;
    if (entry->type == DT_UNKNOWN && fstatat(dir, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    int r = fs_cursor_put_path(&t->levels, t->args->at->path, entry->name, &path);
    return r < 0 ? r : check->ask(check->arg, FS_TAKES, path.p, st.st_mode);
}

static int remove_entry(struct remove_tree *t, const struct fs_entry *entry) {
    int r = remove_ask(t, entry);
    if (r < 0)
        return r;
    if (entry->type == DT_DIR)
        return remove_enter(t, entry->name);
    r = remove_unlink(fs_cursor_last(&t->levels)->list.fd, entry->name, 0);
    return r == -EISDIR ? remove_enter(t, entry->name) : r;
}

/* Removes the last level, which was gone through, and leaves it. 0 or -errno. */
static int remove_leave(struct remove_tree *t) {
    size_t last = fs_cursor_depth(&t->levels) - 1;
    int r = fs_cursor_open_parent(&t->levels);
    if (r < 0)
        return r;
    r = last == 0 ? remove_unlink(t->parent, t->leaf, AT_REMOVEDIR)
                  : remove_unlink(fs_cursor_at(&t->levels, last - 1)->list.fd,
                                  fs_cursor_name(&t->levels, last), AT_REMOVEDIR);
    struct fs_level *level = fs_cursor_last(&t->levels);
    if ((r == -ENOTEMPTY || r == -EEXIST) && ++level->passes < REMOVE_PASSES)
        return fs_list_seek(&level->list, 0);
    if (r == 0)
        fs_cursor_pop(&t->levels);
    return r;
}

static int remove_all(struct remove_tree *t, const atomic_bool *stop) {
    int r = 0;
    while (r == 0 && fs_cursor_depth(&t->levels) > 0) {
        if (atomic_load_explicit(stop, memory_order_relaxed))
            return -ECANCELED;
        struct fs_entry entry;
        r = fs_list_next(&fs_cursor_last(&t->levels)->list, &entry);
        if (r > 0)
            r = remove_entry(t, &entry);
        else if (r == 0)
            r = remove_leave(t);
    }
    return r;
}

/* Whether fd is the root directory, which may have more paths than "/". */
static bool remove_is_root(int fd) {
    struct fs_id id;
    struct stat root;
    return fs_cursor_id_of(fd, &id) < 0 || stat("/", &root) < 0 ||
           fs_id_eq(id, (struct fs_id){root.st_dev, root.st_ino});
}

/* Opens the parent directory, and the top in it. 0 or -errno. */
static int remove_open(struct remove_tree *t) {
    const struct fs_place *at = t->args->at;
    t->leaf = at != NULL ? fs_place_name(at) : NULL;
    t->parent = at != NULL ? fs_place_dup(at) : fs_parent_follow(t->args->path, &t->leaf);
    if (t->parent < 0)
        return t->parent;
    _cleanup_close_ int fd = openat(t->parent, t->leaf, REMOVE_FLAGS);
    if (fd < 0)
        return -errno;
    return remove_is_root(fd) ? -EBUSY : fs_cursor_push(&t->levels, "", &fd, &(int){-1});
}

static int remove_tree(const struct fs_remove *args, const atomic_bool *stop) {
    if (args->path[1] == '\0')
        return -EBUSY;
    struct remove_tree t = {.args = args, .levels = fs_cursor_init(false), .parent = -1};
    int r = remove_open(&t);
    if (r == 0)
        r = remove_all(&t, stop);
    fs_cursor_fini(&t.levels);
    util_close_fd(&t.parent);
    return r;
}

/* Ends the call, whose result is n: 0 or -errno. */
static int remove_end(const struct fs_remove *r, int n, struct err *e) {
    return n == -ENOENT && r->force ? 0 : fs_fail_check(e, n);
}

static int remove_follow(const struct fs_remove *r, const atomic_bool *stop, struct err *e) {
    struct stat st;
    if (lstat(r->path, &st) < 0)
        return remove_end(r, -errno, e);
    if (S_ISDIR(st.st_mode) && r->recursive)
        return remove_end(r, remove_tree(r, stop), e);
    int n = S_ISDIR(st.st_mode) ? rmdir(r->path) : unlink(r->path);
    return remove_end(r, n < 0 ? -errno : 0, e);
}

/* Removes one name of an open directory. 0 or -errno with e set. */
static int remove_name(const struct fs_remove *r, int dir, const char *name, struct err *e) {
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return remove_end(r, -errno, e);
    if (S_ISLNK(st.st_mode) && !r->follow)
        return fs_fail_as(e, FS_FAIL_LINK);
    if (unlinkat(dir, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) < 0)
        return remove_end(r, -errno, e);
    return 0;
}

static int remove_nofollow(const struct fs_remove *r, struct err *e) {
    if (r->recursive)
        return fs_fail_as(e, FS_FAIL_REMOVE_TREE);
    _cleanup_close_ int dir = -1;
    const char *leaf;
    int num = -fs_parent_open(r->path, &dir, &leaf, e);
    if (num == ENOENT && r->force) {
        err_fini(e);
        return 0;
    }
    return num != 0 ? -num : remove_name(r, dir, leaf, e);
}

/* Follows no link, whatever replaces a name after the decision. */
static int remove_at(const struct fs_remove *r, const atomic_bool *stop, struct err *e) {
    if (r->at->path[1] == '\0')
        return fs_fail(e, EBUSY);
    if (!r->recursive || !S_ISDIR(r->at->mode))
        return remove_name(r, r->at->dir, fs_place_name(r->at), e);
    return remove_end(r, remove_tree(r, stop), e);
}

int fs_remove(const struct fs_remove *r, const atomic_bool *stop, struct err *e) {
    if (r->at != NULL)
        return remove_at(r, stop, e);
    return r->follow ? remove_follow(r, stop, e) : remove_nofollow(r, e);
}
