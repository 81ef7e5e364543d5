#include "fs/fs_meta.h"

#include "base/uri.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/syscall.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

/* Milliseconds since 1970, rounded down; as far as 64 bits go. */
static int64_t meta_ms(struct statx_timestamp t) {
    int64_t ms;
    if (__builtin_mul_overflow((int64_t)t.tv_sec, 1000, &ms))
        return t.tv_sec < 0 ? INT64_MIN : INT64_MAX;
    return __builtin_add_overflow(ms, t.tv_nsec / 1000000, &ms) ? INT64_MAX : ms;
}

static const char *meta_bool(bool b) {
    return b ? "true" : "false";
}

/* In follow mode the protocol has no times before 1970. */
static int meta_put(struct buf *b, const struct statx *st, bool follow, bool link) {
    int64_t created = st->stx_mask & STATX_BTIME ? meta_ms(st->stx_btime) : 0;
    int64_t modified = meta_ms(st->stx_mtime);
    return buf_putf(b,
                    "{\"isDirectory\":%s,\"isFile\":%s,\"isSymlink\":%s,\"size\":%" PRIu64
                    ",\"createdAtMs\":%" PRId64 ",\"modifiedAtMs\":%" PRId64 ",\"mode\":%u}",
                    meta_bool(S_ISDIR(st->stx_mode)), meta_bool(S_ISREG(st->stx_mode)),
                    meta_bool(link), (uint64_t)st->stx_size, follow ? MAX(created, 0) : created,
                    follow ? MAX(modified, 0) : modified, st->stx_mode & 07777u);
}

/* So that the next call for this mount can be quick. */
static void meta_learn(struct fs_devices *d, const char *path, const struct statx *st) {
    if (d == NULL || fs_devices_find(d, st) != FS_DEVICE_UNKNOWN)
        return;
    _cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);
    struct statx opened;
    if (fd >= 0 && fs_statx(fd, "", AT_EMPTY_PATH, &opened) == 0)
        (void)fs_devices_learn(d, fd, &opened);
}

static int meta_follow(struct fs_devices *d, const char *path, struct buf *result, struct err *e) {
    struct statx st;
    int r = fs_statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, &st);
    bool link = r == 0 && S_ISLNK(st.stx_mode);
    if (link)
        r = fs_statx(AT_FDCWD, path, AT_NO_AUTOMOUNT, &st);
    if (r == 0) {
        meta_learn(d, path, &st);
        r = meta_put(result, &st, true, link);
    }
    return r < 0 ? fs_fail(e, -r) : 0;
}

static int meta_nofollow(const char *path, struct buf *result, struct err *e) {
    _cleanup_close_ int dir = -1;
    const char *leaf = path;
    if (path[1] != '\0') {
        int r = fs_parent_open(path, &dir, &leaf, e);
        if (r < 0)
            return r;
    }
    struct statx st;
    int r = fs_statx(dir, leaf, AT_SYMLINK_NOFOLLOW, &st);
    if (r == 0 && S_ISLNK(st.stx_mode))
        return err_set(e, ERR_INVALID_REQUEST, "path contains a symbolic link");
    if (r == 0)
        r = meta_put(result, &st, false, false);
    return r < 0 ? fs_fail(e, -r) : 0;
}

int fs_get_metadata(struct fs_devices *d, const char *path, bool follow, struct buf *result,
                    struct err *e) {
    return follow ? meta_follow(d, path, result, e) : meta_nofollow(path, result, e);
}

int fs_meta_get_at(const struct fs_place *p, bool follow, bool link, struct buf *result) {
    struct statx st;
    int r = fs_statx(p->dir, fs_place_name(p), AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, &st);
    if (r == 0 && ((st.stx_mode ^ p->mode) & S_IFMT) != 0)
        r = -ESTALE; /* not what was decided on */
    return r < 0 ? r : meta_put(result, &st, follow, link);
}

int fs_meta_try(const struct fs_devices *d, const char *path, struct buf *result) {
    _cleanup_close_ int fd = fs_try_open_path(path, O_NOFOLLOW);
    struct statx st;
    if (fd < 0 || fs_statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, &st) < 0)
        return -EAGAIN;
    if (S_ISLNK(st.stx_mode) || fs_devices_find(d, &st) < FS_DEVICE_METADATA)
        return -EAGAIN;
    return meta_put(result, &st, true, false) < 0 ? -EAGAIN : 0;
}

int fs_canonicalize(const char *path, struct buf *result, struct err *e) {
    if (strlen(path) >= PATH_MAX) /* else a missing name at the beginning would be reported */
        return fs_fail(e, ENAMETOOLONG);
    _cleanup_free_ char *real = realpath(path, NULL);
    if (real == NULL)
        return fs_fail(e, errno);
    size_t len = result->len;
    int r = buf_putz(result, "{\"path\":\"");
    if (r == 0)
        r = uri_from_path(result, str_of(real)); /* has nothing that JSON would escape */
    if (r == 0)
        r = buf_putz(result, "\"}");
    if (r == 0)
        return 0;
    result->len = len;
    return fs_fail(e, -r);
}

/* Sets the mode of what an O_PATH descriptor refers to. 0 or -errno. */
static int meta_chmod_fd(int fd, mode_t mode) {
    if (syscall(SYS_fchmodat2, fd, "", mode, AT_EMPTY_PATH) == 0)
        return 0;
    if (errno != ENOSYS && errno != EPERM) /* EPERM may be a filter's word for ENOSYS */
        return -errno;
    char path[FS_FD_PATH_SIZE];
    fs_fd_path(path, fd);
    if (chmod(path, mode) == 0)
        return 0;
    return errno == ENOENT ? -EOPNOTSUPP : -errno; /* no /proc */
}

/* Takes an O_PATH descriptor over, or -errno. */
static int meta_chmod_opened(int opened, mode_t mode, struct err *e) {
    _cleanup_close_ int fd = opened;
    struct stat st;
    if (fd < 0)
        return fs_fail(e, -fd);
    if (fstat(fd, &st) < 0)
        return fs_fail(e, errno);
    if (S_ISLNK(st.st_mode))
        return err_set(e, ERR_INVALID_REQUEST, "path contains a symbolic link");
    int r = meta_chmod_fd(fd, mode);
    return r < 0 ? fs_fail(e, -r) : 0;
}

static int meta_chmod_nofollow(const char *path, mode_t mode, struct err *e) {
    _cleanup_close_ int dir = -1;
    const char *leaf = path;
    if (path[1] != '\0') {
        int r = fs_parent_open(path, &dir, &leaf, e);
        if (r < 0)
            return r;
    }
    int fd = openat(dir, leaf, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    return meta_chmod_opened(fd < 0 ? -errno : fd, mode, e);
}

int fs_meta_set_permissions_at(const struct fs_place *p, mode_t mode, struct err *e) {
    int fd = p->object >= 0 ? fcntl(p->object, F_DUPFD_CLOEXEC, 0) : fs_place_open(p, O_PATH, 0);
    return meta_chmod_opened(fd == -1 ? -errno : fd, mode, e);
}

int fs_set_permissions(const char *path, mode_t mode, bool follow, struct err *e) {
    if (!follow)
        return meta_chmod_nofollow(path, mode, e);
    return fchmodat(AT_FDCWD, path, mode, 0) < 0 ? fs_fail(e, errno) : 0;
}
