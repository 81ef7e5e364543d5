#include "fs/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#define FS_DIR_FLAGS (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* fs_open_dir() component by component: without openat2(), and for paths of any length. */
static int fs_descend(const char *path, size_t n) {
    _cleanup_close_ int dir = open("/", FS_DIR_FLAGS);
    for (size_t at = 1; dir >= 0 && at < n;) {
        char name[PATH_MAX];
        size_t len = MIN(strcspn(path + at, "/"), n - at);
        if (len >= sizeof name)
            return -ENAMETOOLONG;
        memcpy(name, path + at, len);
        name[len] = '\0';
        int fd = openat(dir, name, FS_DIR_FLAGS);
        if (fd < 0)
            return -errno;
        close(dir);
        dir = fd;
        at += len + 1;
    }
    return dir < 0 ? -errno : steal_fd(&dir);
}

int fs_open_dir(const char *path, size_t n) {
    char z[PATH_MAX] = "/";
    struct open_how how = {.flags = FS_DIR_FLAGS, .resolve = RESOLVE_NO_SYMLINKS};
    if (n >= sizeof z)
        return -ENAMETOOLONG;
    memcpy(z, path, n);
    long fd = syscall(SYS_openat2, AT_FDCWD, z, &how, sizeof how);
    if (fd >= 0)
        return (int)fd;
    if (errno == ENOSYS || errno == EPERM)
        return fs_descend(path, n);
    return errno == ELOOP ? -ENOTDIR : -errno;
}

int fs_parent_open(const char *path, int *fd, const char **leaf, struct err *e) {
    if (path[1] == '\0')
        return fs_fail_as(e, FS_FAIL_ROOT);
    const char *slash = strrchr(path, '/');
    *leaf = slash + 1;
    size_t n = (size_t)(slash - path);
    *fd = n < PATH_MAX ? fs_open_dir(path, n) : fs_descend(path, n);
    return *fd < 0 ? fs_fail(e, -steal_fd(fd)) : 0;
}

int fs_parent_follow(const char *path, const char **leaf) {
    char dir[PATH_MAX] = "/";
    const char *slash = strrchr(path, '/');
    size_t n = (size_t)(slash - path);
    if (n >= sizeof dir)
        return -ENAMETOOLONG;
    memcpy(dir, path, n);
    *leaf = slash + 1;
    int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/*
 * Length of the character at s (n > 0 bytes). If that is cut short or wrong, *valid is false and
 * the length is that of its valid beginning, at least 1.
 */
static size_t fs_character(const unsigned char *s, size_t n, bool *valid) {
    unsigned char c = s[0], lo = 0x80, hi = 0xBF;
    size_t more = c < 0x80 ? 0 : c < 0xE0 ? 1 : c < 0xF0 ? 2 : 3;
    if (c == 0xE0)
        lo = 0xA0;
    else if (c == 0xED)
        hi = 0x9F;
    else if (c == 0xF0)
        lo = 0x90;
    else if (c == 0xF4)
        hi = 0x8F;
    *valid = c < 0x80 || (c >= 0xC2 && c <= 0xF4);
    if (!*valid)
        return 1;
    for (size_t i = 1; i <= more; i++) {
        if (i == n || s[i] < lo || s[i] > hi) {
            *valid = false;
            return i;
        }
        lo = 0x80;
        hi = 0xBF;
    }
    return more + 1;
}

int fs_put_lossy(struct buf *b, struct str s) {
    size_t len = b->len, from = 0;
    int r = 0;
    for (size_t i = 0, n; r == 0 && i < s.n; i += n) {
        bool valid;
        n = fs_character((const unsigned char *)s.p + i, s.n - i, &valid);
        if (valid)
            continue;
        r = buf_put(b, s.p + from, i - from);
        if (r == 0)
            r = buf_putz(b, "\xEF\xBF\xBD");
        from = i + n;
    }
    if (r == 0)
        r = buf_put(b, s.p + from, s.n - from);
    if (r < 0)
        b->len = len;
    return r;
}

static struct statx_timestamp fs_timestamp(struct timespec t) {
    return (struct statx_timestamp){.tv_sec = t.tv_sec, .tv_nsec = (uint32_t)t.tv_nsec};
}

int fs_statx(int dir, const char *path, int flags, struct statx *st) {
    const unsigned mask = STATX_BASIC_STATS | STATX_BTIME | STATX_MNT_ID_UNIQUE;
    memset(st, 0, sizeof *st);
    if (statx(dir, path, flags, mask, st) == 0)
        return 0;
    if (errno != ENOSYS && errno != EPERM)
        return -errno;
    struct stat old;
    if (fstatat(dir, path, &old, flags & ~AT_STATX_SYNC_TYPE) < 0)
        return -errno;
    *st = (struct statx){
        .stx_mask = STATX_BASIC_STATS,
        .stx_nlink = (uint32_t)old.st_nlink,
        .stx_uid = old.st_uid,
        .stx_gid = old.st_gid,
        .stx_mode = (uint16_t)old.st_mode,
        .stx_ino = old.st_ino,
        .stx_size = (uint64_t)old.st_size,
        .stx_atime = fs_timestamp(old.st_atim),
        .stx_mtime = fs_timestamp(old.st_mtim),
        .stx_ctime = fs_timestamp(old.st_ctim),
        .stx_dev_major = major(old.st_dev),
        .stx_dev_minor = minor(old.st_dev),
    };
    return 0;
}

int fs_try_open_path(const char *path, int flags) {
    struct open_how how = {
        .flags = (uint64_t)(unsigned)(O_PATH | O_CLOEXEC | flags),
        .resolve = RESOLVE_CACHED | RESOLVE_NO_MAGICLINKS,
    };
    long fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
    return fd < 0 ? -EAGAIN : (int)fd;
}

void fs_fd_path(char out[FS_FD_PATH_SIZE], int fd) {
    snprintf(out, FS_FD_PATH_SIZE, "/proc/self/fd/%d", fd);
}
