#include "fs/fs_meta.h"

#include <errno.h>
#include <fcntl.h>
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

static void meta_set(struct fs_meta *m, const struct statx *st, bool follow, bool link) {
    int64_t created = st->stx_mask & STATX_BTIME ? meta_ms(st->stx_btime) : 0;
    int64_t modified = meta_ms(st->stx_mtime);
    *m = (struct fs_meta){
        .size = st->stx_size,
        .created_ms = follow ? MAX(created, 0) : created,
        .modified_ms = follow ? MAX(modified, 0) : modified,
        .mode = st->stx_mode,
        .link = link,
    };
}

/* Makes the next fs_meta_try() on this mount possible. */
static void meta_learn(struct fs_devices *d, const char *path, const struct statx *st) {
    if (d == NULL || fs_devices_find(d, st) != FS_DEVICE_UNKNOWN)
        return;
    _cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);
    struct statx opened;
    if (fd >= 0 && fs_statx(fd, "", AT_EMPTY_PATH, &opened) == 0)
        (void)fs_devices_learn(d, fd, &opened);
}

/* fs_parent_open() of any path: "/" is its own leaf. */
static int meta_open_parent(const char *path, int *dir, const char **leaf, struct err *e) {
    *leaf = path;
    return path[1] != '\0' ? fs_parent_open(path, dir, leaf, e) : 0;
}

static int meta_get_nofollow(const char *path, struct fs_meta *m, struct err *e) {
    _cleanup_close_ int dir = -1;
    const char *leaf;
    struct statx st;
    int r = meta_open_parent(path, &dir, &leaf, e);
    if (r < 0)
        return r;
    r = fs_statx(dir, leaf, AT_SYMLINK_NOFOLLOW, &st);
    if (r < 0)
        return fs_fail(e, -r);
    if (S_ISLNK(st.stx_mode))
        return fs_fail_as(e, FS_FAIL_LINK);
    meta_set(m, &st, false, false);
    return 0;
}

int fs_meta_get(struct fs_devices *d, const char *path, bool follow, struct fs_meta *m,
                struct err *e) {
    if (!follow)
        return meta_get_nofollow(path, m, e);
    struct statx st;
    int r = fs_statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, &st);
    bool link = r == 0 && S_ISLNK(st.stx_mode);
    if (link)
        r = fs_statx(AT_FDCWD, path, AT_NO_AUTOMOUNT, &st);
    if (r < 0)
        return fs_fail(e, -r);
    meta_learn(d, path, &st);
    meta_set(m, &st, true, link);
    return 0;
}

int fs_meta_get_at(const struct fs_place *p, bool follow, bool link, struct fs_meta *m) {
    struct statx st;
    int r = fs_statx(p->dir, fs_place_name(p), AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, &st);
    if (r < 0)
        return r;
    if (((st.stx_mode ^ p->mode) & S_IFMT) != 0)
        return -ESTALE; /* not what was decided on */
    meta_set(m, &st, follow, link);
    return 0;
}

int fs_meta_try(const struct fs_devices *d, const char *path, struct fs_meta *m) {
    _cleanup_close_ int fd = fs_try_open_path(path, O_NOFOLLOW);
    struct statx st;
    if (fd < 0 || fs_statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, &st) < 0)
        return -EAGAIN;
    if (S_ISLNK(st.stx_mode) || fs_devices_find(d, &st) < FS_DEVICE_METADATA)
        return -EAGAIN;
    meta_set(m, &st, true, false);
    return 0;
}

int fs_meta_canonicalize(const char *path, char **real, struct err *e) {
    if (strlen(path) >= PATH_MAX) /* else a missing name at the beginning would be reported */
        return fs_fail(e, ENAMETOOLONG);
    *real = realpath(path, NULL);
    return *real == NULL ? fs_fail(e, errno) : 0;
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
        return fs_fail_as(e, FS_FAIL_LINK);
    return fs_fail_check(e, meta_chmod_fd(fd, mode));
}

/* Opens what a place decided on, with O_PATH. A descriptor or -errno. */
static int meta_open_place(const struct fs_place *p) {
    if (p->object < 0)
        return fs_place_open(p, O_PATH, 0);
    int fd = fcntl(p->object, F_DUPFD_CLOEXEC, 0);
    return fd < 0 ? -errno : fd;
}

int fs_meta_set_permissions_at(const struct fs_place *p, mode_t mode, struct err *e) {
    return meta_chmod_opened(meta_open_place(p), mode, e);
}

int fs_meta_set_permissions(const char *path, mode_t mode, bool follow, struct err *e) {
    if (follow)
        return fchmodat(AT_FDCWD, path, mode, 0) < 0 ? fs_fail(e, errno) : 0;
    _cleanup_close_ int dir = -1;
    const char *leaf;
    int r = meta_open_parent(path, &dir, &leaf, e);
    if (r < 0)
        return r;
    int fd = openat(dir, leaf, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    return meta_chmod_opened(fd < 0 ? -errno : fd, mode, e);
}

/* The times of a utimensat() that changes the second one only. */
struct meta_times {
    struct timespec t[2];
};

static struct meta_times meta_times_of(int64_t ms) {
    int64_t rest = ms % 1000; /* negative before 1970 */
    struct timespec t = {.tv_sec = (time_t)(ms / 1000 - (rest < 0)),
                         .tv_nsec = (long)(rest + (rest < 0 ? 1000 : 0)) * 1000000};
    return (struct meta_times){{{.tv_nsec = UTIME_OMIT}, t}};
}

/* Sets the times of what an O_PATH descriptor refers to, also of a link. 0 or -errno. */
static int meta_utime_fd(int fd, const struct timespec t[2]) {
    if (utimensat(fd, "", t, AT_EMPTY_PATH) == 0)
        return 0;
    if (errno != EINVAL) /* a kernel before 5.8 does not know the flag */
        return -errno;
    char path[FS_FD_PATH_SIZE];
    fs_fd_path(path, fd);
    if (utimensat(AT_FDCWD, path, t, 0) == 0)
        return 0;
    return errno == ENOENT ? -EOPNOTSUPP : -errno; /* no /proc */
}

int fs_meta_set_times_at(const struct fs_place *p, int64_t modified_ms, struct err *e) {
    const struct meta_times times = meta_times_of(modified_ms);
    struct stat st;
    if (p->mode == 0)
        return fs_fail(e, ENOENT);
    _cleanup_close_ int fd = meta_open_place(p);
    if (fd < 0)
        return fs_fail(e, -fd);
    if (fstat(fd, &st) < 0)
        return fs_fail(e, errno);
    if (((st.st_mode ^ p->mode) & S_IFMT) != 0)
        return fs_fail(e, ESTALE);
    return fs_fail_check(e, meta_utime_fd(fd, times.t));
}

int fs_meta_set_times(const char *path, int64_t modified_ms, bool follow, struct err *e) {
    const struct meta_times times = meta_times_of(modified_ms);
    if (follow)
        return utimensat(AT_FDCWD, path, times.t, 0) < 0 ? fs_fail(e, errno) : 0;
    _cleanup_close_ int dir = -1;
    const char *leaf;
    int r = meta_open_parent(path, &dir, &leaf, e);
    if (r < 0)
        return r;
    return utimensat(dir, leaf, times.t, AT_SYMLINK_NOFOLLOW) < 0 ? fs_fail(e, errno) : 0;
}
