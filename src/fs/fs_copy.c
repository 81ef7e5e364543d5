#include "fs/fs_copy.h"

#include "fs/fs_copy_file.h"
#include "fs/fs_file.h"
#include "fs/fs_cursor.h"
#include "fs/fs_mkdir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>

#define COPY_DIR_MODE 0777

struct copy_tree {
    const struct fs_copy *args;
    const atomic_bool *stop;
    struct fs_cursor levels; /* of the source; peers are the directories copied to */
    struct fs_id top;        /* the destination */
};

/* -- is the destination inside the source? -- */

/*
 * Real path of `path`, whose end may be missing: resolves the longest part that exists and appends
 * the rest as it is. Owned; NULL with errno.
 */
static char *copy_real_path(const char *path) {
    _cleanup_free_ char *prefix = strdup(path);
    if (prefix == NULL)
        return NULL;
    size_t n = strlen(prefix);
    char *real;
    while ((real = realpath(prefix, NULL)) == NULL && n > 1) {
        while (n > 1 && prefix[n - 1] != '/')
            n--;
        n -= n > 1;
        prefix[n] = '\0';
    }
    const char *rest = path + n;
    if (real == NULL || *rest == '\0')
        return real;
    struct buf whole = BUF_INIT(strlen(real) + strlen(rest) + 2);
    int r = buf_putz(&whole, str_eqz(str_of(real), "/") ? "" : real);
    if (r == 0 && *rest != '/')
        r = buf_putc(&whole, '/');
    if (r == 0)
        r = buf_put(&whole, rest, strlen(rest) + 1);
    free(real);
    if (r < 0)
        buf_fini(&whole);
    return whole.p;
}

/* Whether `path` is `dir` or lies below it; both are real paths. */
static bool copy_below(const char *path, const char *dir) {
    size_t n = strlen(dir);
    if (n == 1)
        return true;
    return strncmp(path, dir, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

static int copy_check_nesting(const struct fs_copy *c, struct err *e) {
    if (c->from != NULL)
        return copy_below(c->to->path, c->from->path) ? fs_fail_as(e, FS_FAIL_COPY_INSIDE) : 0;
    _cleanup_free_ char *source = realpath(c->source, NULL);
    if (source == NULL)
        return fs_fail(e, errno);
    _cleanup_free_ char *destination = copy_real_path(c->destination);
    if (destination == NULL)
        return fs_fail(e, ENOMEM);
    return copy_below(destination, source) ? fs_fail_as(e, FS_FAIL_COPY_INSIDE) : 0;
}

/* -- one entry -- */

/* Opens the directory `name` of dir; with `make` makes it first. A descriptor or -errno. */
static int copy_make_dir(int dir, const char *name, bool make, bool follow) {
    int num = make && mkdirat(dir, name, COPY_DIR_MODE) < 0 ? errno : 0;
    if (num == ENOENT)
        return -num;
    int flags = O_PATH | O_DIRECTORY | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW);
    int fd = openat(dir, name, flags);
    if (fd < 0)
        return num != 0 ? -num : -errno;
    return fd;
}

/* Opens a directory of the source, which must not be the destination, to be read. */
static int copy_open_dir(const struct copy_tree *t, int dir, const char *name, struct err *e) {
    _cleanup_close_ int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return fs_fail(e, errno);
    struct fs_id id;
    int r = fs_cursor_id_of(fd, &id);
    if (r < 0)
        return fs_fail(e, -r);
    return fs_id_eq(id, t->top) ? fs_fail_as(e, FS_FAIL_COPY_INSIDE) : steal_fd(&fd);
}

/* `make`: the directory may be made at the destination. */
static int copy_enter(struct copy_tree *t, const char *name, bool make, struct err *e) {
    const struct fs_level *level = fs_cursor_last(&t->levels);
    _cleanup_close_ int peer = copy_make_dir(level->peer, name, make, t->args->to == NULL);
    if (peer < 0)
        return fs_fail(e, -peer);
    _cleanup_close_ int fd = copy_open_dir(t, level->list.fd, name, e);
    if (fd < 0)
        return fd;
    return fs_fail_check(e, fs_cursor_push(&t->levels, name, &fd, &peer));
}

/* Names a destination that is no file by its path. */
static int copy_regular(const struct copy_tree *t, const struct fs_copy_file *c, struct err *e) {
    int r = fs_copy_file_regular(c, t->stop, e);
    if (r <= 0)
        return r;
    _cleanup_buf_ struct buf path = BUF_INIT(PATH_MAX + 2 * ERR_MSG_MAX);
    r = fs_cursor_put_path(&t->levels, t->args->destination, c->destination, &path);
    if (r == -ENOMEM || path.len == 0)
        return fs_fail(e, -r);
    path.p[path.len - 1] = '\0'; /* the text would not show the rest of a longer one */
    return fs_fail_not_file(e, path.p);
}

/* Asks whether an entry of a type may be copied; *there: something is at the destination. 0 or
 * -errno. */
static int copy_ask(const struct copy_tree *t, const char *name, unsigned char type, bool *there) {
    const struct fs_place_check *check = t->args->check;
    _cleanup_buf_ struct buf from = BUF_INIT(PATH_MAX), to = BUF_INIT(PATH_MAX);
    if (check == NULL)
        return 0;
    int r = fs_cursor_put_path(&t->levels, t->args->from->path, name, &from);
    if (r == 0)
        r = fs_cursor_put_path(&t->levels, t->args->to->path, name, &to);
    if (r == 0 && type != DT_DIR)
        r = check->ask(check->arg, FS_READS, from.p, (mode_t)DTTOIF(type));
    struct stat st;
    int peer = fs_cursor_last(&t->levels)->peer;
    if (r == 0 && fstatat(peer, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        st.st_mode = 0;
    *there = r == 0 && st.st_mode != 0;
    return r < 0 ? r
                 : check->ask(check->arg, type == DT_DIR ? FS_MAKES : FS_CHANGES, to.p, st.st_mode);
}

/* Skips everything but files, directories and links. */
static int copy_entry(struct copy_tree *t, const struct fs_entry *entry, struct err *e) {
    const struct fs_level *level = fs_cursor_last(&t->levels);
    struct fs_copy_file c = {level->list.fd, level->peer, entry->name, entry->name,
                             t->args->to != NULL};
    unsigned char type = entry->type;
    struct stat st;
    if (type == DT_UNKNOWN) {
        if (fstatat(c.source_dir, c.source, &st, AT_SYMLINK_NOFOLLOW) < 0)
            return fs_fail(e, errno);
        type = FS_LIST_TYPE(st.st_mode);
    }
    bool there = false;
    int r = copy_ask(t, entry->name, type, &there);
    if (r < 0)
        return fs_fail(e, -r);
    switch (type) {
    case DT_DIR: return copy_enter(t, entry->name, !there, e);
    case DT_REG: return copy_regular(t, &c, e);
    case DT_LNK: return fs_copy_file_link(&c, e);
    default: return 0;
    }
}

/* -- the tree -- */

static int copy_all(struct copy_tree *t, struct err *e) {
    int r = 0;
    while (r == 0 && fs_cursor_depth(&t->levels) > 0) {
        if (atomic_load_explicit(t->stop, memory_order_relaxed))
            return fs_fail(e, ECANCELED);
        struct fs_entry entry;
        r = fs_list_next(&fs_cursor_last(&t->levels)->list, &entry);
        if (r > 0) {
            r = copy_entry(t, &entry, e);
            continue;
        }
        if (r == 0)
            r = fs_cursor_open_parent(&t->levels);
        if (r < 0)
            return fs_fail(e, -r);
        fs_cursor_pop(&t->levels);
    }
    return r;
}

/* Returns the directory to look a path up in, borrowed; *name is the name in it. */
static int copy_dir(const struct fs_place *at, const char *path, const char **name) {
    *name = at != NULL ? fs_place_name(at) : path;
    return at != NULL ? at->dir : AT_FDCWD;
}

/* Makes the destination if it is missing. Its descriptor, or -errno with e set. */
static int copy_open_peer(const struct fs_copy *args, struct err *e) {
    int fd;
    if (args->to != NULL) {
        fd = fs_mkdir_all_at(args->to, args->check);
        return fd < 0 ? fs_fail(e, -fd) : fd;
    }
    int r = fs_mkdir(args->destination, true, true, e);
    if (r < 0)
        return r;
    fd = open(args->destination, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? fs_fail(e, errno) : fd;
}

static int copy_open(struct copy_tree *t, struct err *e) {
    _cleanup_close_ int peer = copy_open_peer(t->args, e);
    const char *name;
    if (peer < 0)
        return peer;
    int r = fs_cursor_id_of(peer, &t->top);
    if (r < 0)
        return fs_fail(e, -r);
    int dir = copy_dir(t->args->from, t->args->source, &name);
    _cleanup_close_ int fd = copy_open_dir(t, dir, name, e);
    if (fd < 0)
        return fd;
    return fs_fail_check(e, fs_cursor_push(&t->levels, "", &fd, &peer));
}

static int copy_tree(const struct fs_copy *args, const atomic_bool *stop, struct err *e) {
    int r = copy_check_nesting(args, e);
    if (r < 0)
        return r;
    struct copy_tree t = {.args = args, .stop = stop, .levels = fs_cursor_init(true)};
    r = copy_open(&t, e);
    if (r == 0)
        r = copy_all(&t, e);
    fs_cursor_fini(&t.levels);
    return r;
}

static int copy_one(const struct fs_copy *args, bool link, const atomic_bool *stop, struct err *e) {
    struct fs_copy_file c = {.nofollow = args->to != NULL};
    c.source_dir = copy_dir(args->from, args->source, &c.source);
    c.destination_dir = copy_dir(args->to, args->destination, &c.destination);
    int r = link ? fs_copy_file_link(&c, e) : fs_copy_file_regular(&c, stop, e);
    return r > 0 ? fs_fail_not_file(e, args->destination) : r;
}

int fs_copy(const struct fs_copy *args, const atomic_bool *stop, struct err *e) {
    struct stat st;
    const char *name;
    int dir = copy_dir(args->from, args->source, &name);
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return fs_fail(e, errno);
    if (args->from != NULL && ((st.st_mode ^ args->from->mode) & S_IFMT) != 0)
        return fs_fail(e, ESTALE); /* not what was decided on */
    switch (st.st_mode & S_IFMT) {
    case S_IFREG:
    case S_IFLNK: return copy_one(args, S_ISLNK(st.st_mode), stop, e);
    case S_IFDIR: break;
    default: return fs_fail_as(e, FS_FAIL_COPY_KIND);
    }
    if (!args->recursive)
        return fs_fail_as(e, FS_FAIL_COPY_TREE);
    return copy_tree(args, stop, e);
}
