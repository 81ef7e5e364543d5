#include "fs/fs_atomic.h"

#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/random.h>

#define ATOMIC_TRIES 16 /* names of temporary files */
#define ATOMIC_EXTRA 14 /* bytes that such a name has more: ".", ".XXXXXXXX", ".tmp" */
#define ATOMIC_PRIVATE 0600

struct fs_atomic {
    int dir;             /* owned; O_PATH, holds the file */
    int readable;        /* owned; the same to be synced, or -1: it may not be read */
    int fd;              /* owned; the temporary file */
    const char *name;    /* of the file; borrowed from the path, or from `real` */
    char *name_copy;     /* the same, owned */
    char real[PATH_MAX]; /* where a link led */
    bool exists;         /* there is an old file, and `old` are its facts */
    struct stat old;
    char temp[NAME_MAX + 1];
};

/* Splits an absolute path and opens the directory, through links. 0 or -errno. */
static int atomic_open_dir(struct fs_atomic *a, const char *path) {
    char dir[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t n = slash == path ? 1 : (size_t)(slash - path);
    if (n >= sizeof dir)
        return -ENAMETOOLONG;
    if (slash[1] == '\0')
        return -EISDIR;
    memcpy(dir, path, n);
    dir[n] = '\0';
    util_close_fd(&a->dir);
    a->dir = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    a->name = slash + 1;
    return a->dir < 0 ? -errno : 0;
}

/* Learns what is there under the name now. 0, also when nothing is, or -errno. */
static int atomic_look(struct fs_atomic *a) {
    a->exists = fstatat(a->dir, a->name, &a->old, AT_SYMLINK_NOFOLLOW) == 0;
    return a->exists || errno == ENOENT ? 0 : -errno;
}

/*
 * Goes on where the link leads. The kernel follows it, because it refuses links of strangers in
 * shared directories; its word for where that is holds if the same file is found there.
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
    if (r == 0)
        r = atomic_look(a);
    if (r < 0)
        return r;
    bool same = a->exists && a->old.st_dev == st.st_dev && a->old.st_ino == st.st_ino;
    return same ? 0 : -ENOENT;
}

/* Finds directory, name and old file, and whether it may be replaced. 0 or -errno with e set. */
static int atomic_find(struct fs_atomic *a, const struct fs_write *w, struct err *e) {
    int r;
    if (w->follow) {
        r = atomic_open_dir(a, w->path);
    } else {
        r = fs_parent_open(w->path, &a->dir, &a->name, e);
        if (r < 0)
            return r;
    }
    if (r == 0)
        r = atomic_look(a);
    if (r == 0 && a->exists && S_ISLNK(a->old.st_mode))
        r = w->follow ? atomic_resolve(a) : -ELOOP;
    if (r < 0)
        return fs_fail(e, -r);
    if (!a->exists)
        return 0;
    if (S_ISDIR(a->old.st_mode))
        return fs_fail(e, EISDIR);
    if (!S_ISREG(a->old.st_mode))
        return fs_not_file(e, w->path, w->follow);
    if (faccessat(a->dir, a->name, W_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) < 0)
        return fs_fail(e, errno);
    return 0;
}

/* Puts together a name that nobody can guess. 0 or -errno. */
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
 * Makes the temporary file: its descriptor or -errno. What replaces an old file is private until
 * it has the mode of that one.
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

/* A file that is not its old owner's must not be run as such. */
static void atomic_take_mode(const struct fs_atomic *a, int fd) {
    mode_t mode = a->old.st_mode & 07777;
    if (fchown(fd, a->old.st_uid, a->old.st_gid) < 0) {
        mode &= (mode_t) ~(S_ISUID | S_ISGID);
        (void)!fchown(fd, (uid_t)-1, a->old.st_gid);
    }
    (void)!fchmod(fd, mode); /* some file systems have one mode for all files */
}

/* The name is on disk when the directory is. One that we may not read cannot be asked for that. */
static int atomic_sync_dir(int dir) {
    if (dir < 0)
        return 0;
    return fsync(dir) < 0 && errno != EINVAL && errno != EROFS ? -errno : 0;
}

static void atomic_free(struct fs_atomic *a) {
    util_close_fd(&a->fd);
    util_close_fd(&a->readable);
    util_close_fd(&a->dir);
    free(a->name_copy);
    free(a);
}

void fs_atomic_abort(struct fs_atomic *a) {
    (void)unlinkat(a->dir, a->temp, 0);
    atomic_free(a);
}

/* Finds the place and makes the temporary file. 0 or -errno with e set. */
static int atomic_begin(struct fs_atomic *a, const struct fs_write *w, struct err *e) {
    int r = atomic_find(a, w, e);
    if (r < 0)
        return r;
    a->readable = openat(a->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (a->readable < 0 && errno != EACCES)
        return fs_fail(e, errno);
    a->fd = atomic_create(a);
    return a->fd < 0 ? fs_fail(e, -a->fd) : 0;
}

int fs_atomic_begin(const struct fs_write *w, struct fs_atomic **out, int *fd, struct err *e) {
    struct fs_atomic *a = calloc(1, sizeof *a);
    if (a == NULL)
        return fs_fail(e, ENOMEM);
    a->dir = a->readable = a->fd = -1;
    int r = atomic_begin(a, w, e);
    if (r < 0) {
        atomic_free(a);
        return r;
    }
    a->name_copy = strdup(a->name); /* the path is the caller's */
    if (a->name_copy == NULL) {
        fs_atomic_abort(a);
        return fs_fail(e, ENOMEM);
    }
    *out = a;
    *fd = a->fd;
    return 0;
}

/* Gives the file its mode, and its name. 0 or -errno. */
static int atomic_rename(struct fs_atomic *a) {
    if (a->exists)
        atomic_take_mode(a, a->fd);
    if (fsync(a->fd) < 0)
        return -errno;
    return renameat(a->dir, a->temp, a->dir, a->name_copy) < 0 ? -errno : 0;
}

int fs_atomic_commit(struct fs_atomic *a, struct err *e) {
    int r = atomic_rename(a);
    if (r < 0) {
        fs_atomic_abort(a);
        return fs_fail(e, -r);
    }
    r = atomic_sync_dir(a->readable);
    bool made = !a->exists;
    atomic_free(a);
    return r < 0 ? fs_fail(e, -r) : made;
}

int fs_write_atomic(const struct fs_write *w, struct err *e) {
    struct fs_atomic *a;
    int fd;
    int r = fs_atomic_begin(w, &a, &fd, e);
    if (r < 0)
        return r;
    r = fs_write_all(fd, w->data, w->n);
    if (r < 0) {
        fs_atomic_abort(a);
        return fs_fail(e, -r);
    }
    r = fs_atomic_commit(a, e);
    return MIN(r, 0);
}
