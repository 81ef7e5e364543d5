#include "fs/fs_atomic.h"

#include "base/utf8.h"
#include "fs/fs_attrs.h"
#include "fs/fs_rename.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/random.h>

#define ATOMIC_TRIES 16 /* names of temporary files */
#define ATOMIC_EXTRA 14 /* bytes that such a name adds: ".", ".XXXXXXXX", ".tmp" */
#define ATOMIC_PRIVATE 0600
#define ATOMIC_ROUNDS 8 /* attempts to catch up with changes of the old file's attributes */

struct fs_atomic {
    int dir;             /* owned; O_PATH, holds the file */
    int readable;        /* owned; `dir` opened for fsync(), or -1: we may not read it */
    int fd;              /* owned; the temporary file */
    const char *name;    /* of the file; borrowed from the path, or from `real` */
    char *name_copy;     /* owned; name as it was */
    char real[PATH_MAX]; /* where a link led */
    bool follow;         /* links in the path are followed */
    bool exists;         /* there is an old file */
    struct fs_attrs old; /* attributes of the old file when last seen */
    char temp[NAME_MAX + 1];
};

/* Opens the directory of an absolute path, through links. 0 or -errno. */
static int atomic_open_dir(struct fs_atomic *a, const char *path) {
    if (path[1] == '\0')
        return -EISDIR;
    util_close_fd(&a->dir);
    a->dir = fs_parent_follow(path, &a->name);
    return MIN(a->dir, 0);
}

/* Opens what has the name now, and stats it. A descriptor (O_PATH) or -errno. */
static int atomic_look(const struct fs_atomic *a, const char *name, struct stat *st) {
    _cleanup_close_ int fd = openat(a->dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, st) < 0)
        return -errno;
    return steal_fd(&fd);
}

/*
 * Moves on to the target of the link. The kernel follows it, because it refuses links of strangers
 * in shared directories. The path that /proc then gives counts only if it leads to that very file.
 * The file's descriptor (O_PATH), or -errno.
 */
static int atomic_resolve(struct fs_atomic *a) {
    _cleanup_close_ int target = openat(a->dir, a->name, O_PATH | O_CLOEXEC);
    struct stat st;
    if (target < 0 || fstat(target, &st) < 0)
        return -errno;
    char link[FS_FD_PATH_SIZE];
    fs_fd_path(link, target);
    ssize_t n = readlink(link, a->real, sizeof a->real);
    if (n < 0)
        return errno == ENOENT ? -EOPNOTSUPP : -errno; /* no /proc */
    if (n == sizeof a->real)
        return -ENAMETOOLONG;
    a->real[n] = '\0';
    if (a->real[0] != '/')
        return -ENOENT;
    int r = atomic_open_dir(a, a->real);
    if (r < 0)
        return r;
    struct stat now;
    _cleanup_close_ int found = atomic_look(a, a->name, &now);
    if (found < 0)
        return found;
    return now.st_dev == st.st_dev && now.st_ino == st.st_ino ? steal_fd(&found) : -ENOENT;
}

/* Whether we may write the file behind fd, which `name` led to. 0 or -errno. */
static int atomic_may_write(const struct fs_atomic *a, int fd, const char *name) {
    if (faccessat(fd, "", W_OK, AT_EACCESS | AT_EMPTY_PATH) == 0)
        return 0;
    if (errno != EINVAL) /* an old kernel needs a name */
        return -errno;
    int r = faccessat(a->dir, name, W_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW);
    return r < 0 ? -errno : 0;
}

/* Reads the attributes of the file behind fd, opening it if there is no /proc. 0 or -errno. */
static int atomic_read_attrs(const struct fs_atomic *a, int fd, const char *name,
                             struct fs_attrs *out) {
    int r = fs_attrs_read(fd, out);
    if (r != -EBADF)
        return r;
    struct stat st, opened;
    _cleanup_close_ int open =
        openat(a->dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
    if (open < 0 || fstat(fd, &st) < 0 || fstat(open, &opened) < 0)
        return -errno;
    bool same = st.st_dev == opened.st_dev && st.st_ino == opened.st_ino;
    return same ? fs_attrs_read(open, out) : -EBUSY;
}

/* Whether the file behind fd may be replaced; reads its attributes. 0 or -errno with e set. */
static int atomic_admit(const struct fs_atomic *a, int fd, const char *name, const char *path,
                        struct fs_attrs *out, struct err *e) {
    struct stat st;
    if (fstat(fd, &st) < 0)
        return fs_fail(e, errno);
    if (S_ISDIR(st.st_mode))
        return fs_fail(e, EISDIR);
    if (S_ISLNK(st.st_mode))
        return fs_fail(e, ELOOP);
    if (!S_ISREG(st.st_mode))
        return a->follow ? fs_fail_not_file(e, path) : fs_fail_as(e, FS_FAIL_IRREGULAR);
    int r = atomic_may_write(a, fd, name);
    if (r == 0)
        r = atomic_read_attrs(a, fd, name, out);
    return fs_fail_check(e, r);
}

/* Finds directory, name and old file, and whether it may be replaced. 0 or -errno with e set. */
static int atomic_find(struct fs_atomic *a, const struct fs_write *w, const struct fs_place *at,
                       struct err *e) {
    int r = 0;
    if (at != NULL) {
        a->dir = fs_place_dup(at);
        a->name = fs_place_name(at);
        r = MIN(a->dir, 0);
    } else if (w->follow) {
        r = atomic_open_dir(a, w->path);
    } else {
        r = fs_parent_open(w->path, &a->dir, &a->name, e);
        if (r < 0)
            return r;
    }
    struct stat st;
    _cleanup_close_ int fd = r < 0 ? r : atomic_look(a, a->name, &st);
    if (r == 0 && fd == -ENOENT)
        return 0;
    if (fd >= 0 && S_ISLNK(st.st_mode) && w->follow) {
        util_close_fd(&fd);
        fd = atomic_resolve(a);
    }
    if (fd < 0)
        return fs_fail(e, -fd);
    a->exists = true;
    return atomic_admit(a, fd, a->name, w->path, &a->old, e);
}

/* Makes up a name that nobody can guess. 0 or -errno. */
static int atomic_name(struct fs_atomic *a) {
    static const char digits[] = "0123456789abcdefghijklmnopqrstuv";
    unsigned char random[8];
    if (getrandom(random, sizeof random, 0) != sizeof random)
        return -EIO;
    char text[sizeof random + 1] = "";
    for (size_t i = 0; i < sizeof random; i++)
        text[i] = digits[random[i] % 32];
    size_t n = utf8_cut(a->name, strlen(a->name), NAME_MAX - ATOMIC_EXTRA);
    snprintf(a->temp, sizeof a->temp, ".%.*s.%s.tmp", (int)n, a->name, text);
    return 0;
}

/*
 * Makes the temporary file. Its descriptor or -errno. One that replaces an old file is private
 * until it has the old attributes.
 */
static int atomic_create(struct fs_atomic *a) {
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    for (int i = 0; i < ATOMIC_TRIES; i++) {
        int r = atomic_name(a);
        if (r < 0)
            return r;
        int fd = openat(a->dir, a->temp, flags, a->exists ? ATOMIC_PRIVATE : 0666);
        if (fd >= 0 || errno != EEXIST)
            return fd >= 0 ? fd : -errno;
    }
    return -EEXIST;
}

static void atomic_free(struct fs_atomic *a) {
    util_close_fd(&a->fd);
    util_close_fd(&a->readable);
    util_close_fd(&a->dir);
    free(a->name_copy);
    fs_attrs_fini(&a->old);
    free(a);
}

void fs_atomic_abort(struct fs_atomic *a) {
    (void)unlinkat(a->dir, a->temp, 0);
    atomic_free(a);
}

/* Finds the place and makes the temporary file. 0 or -errno with e set. */
static int atomic_begin(struct fs_atomic *a, const struct fs_write *w, const struct fs_place *at,
                        struct err *e) {
    int r = atomic_find(a, w, at, e);
    if (r < 0)
        return r;
    a->readable = openat(a->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (a->readable < 0 && errno != EACCES)
        return fs_fail(e, errno);
    a->name_copy = strdup(a->name); /* the caller may free the path */
    if (a->name_copy == NULL)
        return fs_fail(e, ENOMEM);
    a->fd = atomic_create(a);
    return a->fd < 0 ? fs_fail(e, -a->fd) : 0;
}

int fs_atomic_begin(const struct fs_write *w, const struct fs_place *at, struct fs_atomic **out,
                    int *fd, struct err *e) {
    struct fs_atomic *a = calloc(1, sizeof *a);
    if (a == NULL)
        return fs_fail(e, ENOMEM);
    a->dir = a->readable = a->fd = -1;
    a->follow = w->follow;
    a->old = FS_ATTRS_INIT;
    int r = atomic_begin(a, w, at, e);
    if (r < 0) {
        atomic_free(a);
        return r;
    }
    *out = a;
    *fd = a->fd;
    return 0;
}

/*
 * Looks at the old file again, which others may have changed or replaced meanwhile. 0: it is gone
 * or unchanged. 1: it has changed, and a->old is new. Or -errno with e set.
 */
static int atomic_look_again(struct fs_atomic *a, struct err *e) {
    struct stat st;
    _cleanup_close_ int fd = atomic_look(a, a->name_copy, &st);
    if (fd == -ENOENT)
        return 0;
    if (fd < 0)
        return fs_fail(e, -fd);
    _cleanup_attrs_ struct fs_attrs now = FS_ATTRS_INIT;
    int r = atomic_admit(a, fd, a->name_copy, a->name_copy, &now, e);
    if (r < 0 || (a->exists && fs_attrs_equal(&now, &a->old)))
        return r;
    fs_attrs_fini(&a->old);
    a->old = now;
    now = FS_ATTRS_INIT;
    a->exists = true;
    return 1;
}

/*
 * Renames the file once it has the old file's current attributes. A change between the last look
 * and the rename is lost.
 */
static int atomic_rename(struct fs_atomic *a, struct err *e) {
    int r = atomic_look_again(a, e);
    for (int i = 0; r >= 0 && i < ATOMIC_ROUNDS; i++) {
        r = a->exists ? fs_attrs_apply(a->fd, &a->old) : 0;
        if (r == 0 && fsync(a->fd) < 0)
            r = -errno;
        if (r < 0)
            return fs_fail(e, -r);
        r = atomic_look_again(a, e);
        if (r != 0)
            continue;
        r = fs_rename_at(a->dir, a->temp, a->dir, a->name_copy, a->exists);
        if (r != -EEXIST || a->exists) /* else somebody made the file meanwhile */
            return fs_fail_check(e, r);
        r = 1;
    }
    return r > 0 ? fs_fail(e, EBUSY) : r;
}

int fs_atomic_commit(struct fs_atomic *a, struct err *e) {
    bool made = !a->exists;
    int r = atomic_rename(a, e);
    if (r < 0) {
        fs_atomic_abort(a);
        return r;
    }
    /* The name is on disk when the directory is. One that we may not read cannot be synced. */
    if (a->readable >= 0 && fsync(a->readable) < 0 && errno != EINVAL && errno != EROFS)
        r = fs_fail(e, errno);
    made &= !a->exists;
    atomic_free(a);
    return r < 0 ? r : made;
}

int fs_atomic_write(const struct fs_write *w, const struct fs_place *at, struct err *e) {
    struct fs_atomic *a;
    int fd;
    int r = fs_atomic_begin(w, at, &a, &fd, e);
    if (r < 0)
        return r;
    r = fs_file_write_all(fd, w->data, w->n);
    if (r < 0) {
        fs_atomic_abort(a);
        return fs_fail(e, -r);
    }
    r = fs_atomic_commit(a, e);
    return MIN(r, 0);
}
