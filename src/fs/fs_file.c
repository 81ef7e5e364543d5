#include "fs/fs_file.h"

#include "fs/fs_atomic.h"
#include "fs/fs_site.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <time.h>

/* Opening never waits for a peer (FIFO, lease), and never makes a terminal ours. */
#define FILE_FLAGS (O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
#define FILE_MODE 0666

/* How long a device may refuse to take more. */
#define FILE_DEVICE_MS 10000

/* Bytes per write(). For larger ones the kernel takes larger, colder blocks of memory. */
#define FILE_WRITE_MAX (256u << 10)

#define FILE_PROBE_BUF (256u << 10)
#define FILE_NULL_DEVICE makedev(1, 3)

#define FILE_DAY (24 * 60 * 60) /* seconds */

/*
 * open() in follow or no-follow mode. The descriptor, or -errno with e set. It asks again after a
 * signal: when the server is stopped and continued, a network file system may give up the call.
 */
static int file_open(const char *path, bool follow, int flags, struct err *e) {
    _cleanup_close_ int dir = -1;
    const char *leaf = path;
    if (!follow) {
        int r = fs_parent_open(path, &dir, &leaf, e);
        if (r < 0)
            return r;
        flags |= O_NOFOLLOW;
    }
    int fd;
    do
        fd = openat(follow ? AT_FDCWD : dir, leaf, flags | FILE_FLAGS, FILE_MODE);
    while (fd < 0 && errno == EINTR);
    return fd < 0 ? fs_fail(e, errno) : fd;
}

/* Makes a file of an open descriptor, which it takes over. */
static struct fs_file file_make(int *fd, const struct statx *st, enum fs_device kind) {
    return (struct fs_file){
        .fd = steal_fd(fd),
        .size = st->stx_size,
        .site = fs_site(st),
        .quick = kind >= FS_DEVICE_DATA,
        .noatime = kind == FS_DEVICE_NOATIME,
    };
}

struct fs_file fs_file_adopt(struct fs_devices *d, int *fd, const struct statx *st, bool read) {
    enum fs_device kind = fs_devices_learn(d, *fd, st);
    return file_make(fd, st, read ? kind : FS_DEVICE_UNKNOWN);
}

/* Opens a regular file. 0 or -errno with e set. */
static int file_open_regular(struct fs_devices *d, const char *path, bool follow, int flags,
                             struct fs_file *f, struct err *e) {
    _cleanup_close_ int fd = file_open(path, follow, flags, e);
    if (fd < 0)
        return fd;
    struct statx st;
    int r = fs_statx(fd, "", AT_EMPTY_PATH, &st);
    if (r < 0)
        return fs_fail(e, -r);
    if (!S_ISREG(st.stx_mode))
        return follow ? fs_fail_not_file(e, path) : fs_fail_as(e, FS_FAIL_IRREGULAR);
    *f = fs_file_adopt(d, &fd, &st, flags == O_RDONLY);
    return 0;
}

int fs_file_open_read(struct fs_devices *d, const char *path, bool follow, struct fs_file *f,
                      struct err *e) {
    return file_open_regular(d, path, follow, O_RDONLY, f, e);
}

int fs_file_open_replace(struct fs_devices *d, const char *path, struct fs_file *f, struct err *e) {
    return file_open_regular(d, path, true, O_WRONLY | O_CREAT | O_TRUNC, f, e);
}

int fs_file_open_update(struct fs_devices *d, const char *path, struct fs_file *f, struct err *e) {
    return file_open_regular(d, path, true, O_WRONLY | O_CREAT, f, e);
}

int fs_file_open_write(struct fs_devices *d, const char *path, struct fs_file *f, struct err *e) {
    return file_open_regular(d, path, true, O_WRONLY, f, e);
}

/* Whether [offset, offset + n) goes beyond the largest offset of the kernel. */
static bool file_beyond(uint64_t offset, size_t n) {
    return offset > INT64_MAX || n > INT64_MAX - offset;
}

ssize_t fs_file_pread(int fd, void *dst, size_t n, uint64_t offset) {
    if (file_beyond(offset, n)) { /* the kernel's order: a bad offset, how it is open, the end */
        bool closed = offset <= INT64_MAX && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY;
        return closed ? -EBADF : -EINVAL;
    }
    size_t done = 0;
    while (done < n) {
        ssize_t r = pread(fd, (char *)dst + done, n - done, (off_t)(offset + done));
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return -errno;
        if (r == 0)
            break;
        done += (size_t)r;
    }
    return (ssize_t)done;
}

/* Opens the null device, and nothing that merely has its name. A descriptor or -errno. */
static int file_open_null(void) {
    _cleanup_close_ int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    return S_ISCHR(st.st_mode) && st.st_rdev == FILE_NULL_DEVICE ? steal_fd(&fd) : -ENODEV;
}

/* fs_file_probe() for what the kernel cannot pass to the null device. */
static ssize_t file_probe_copy(int fd, size_t n, uint64_t offset) {
    _cleanup_free_ char *buf = malloc(FILE_PROBE_BUF);
    size_t done = 0;
    if (buf == NULL)
        return -ENOMEM;
    while (done < n) {
        size_t want = MIN(n - done, (size_t)FILE_PROBE_BUF);
        ssize_t r = fs_file_pread(fd, buf, want, offset + done);
        if (r < 0)
            return r;
        done += (size_t)r;
        if ((size_t)r < want)
            break;
    }
    return (ssize_t)done;
}

ssize_t fs_file_probe(int fd, size_t n, uint64_t offset) {
    _cleanup_close_ int null = file_open_null();
    size_t done = 0;
    while (done < n && null >= 0 && !file_beyond(offset, n)) {
        off_t at = (off_t)(offset + done);
        ssize_t r = sendfile(null, fd, &at, n - done); /* copies nothing */
        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0)
            break;
        done += (size_t)r;
    }
    if (done == n)
        return (ssize_t)n;
    ssize_t rest = file_probe_copy(fd, n - done, offset + done); /* finds the error, or the end */
    return rest < 0 ? rest : (ssize_t)done + rest;
}

/* a is later than b. */
static bool file_later(struct statx_timestamp a, struct statx_timestamp b) {
    return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

/*
 * Whether a read leaves the access time alone. To write it may wait for the journal, even with
 * RWF_NOWAIT. With relatime the kernel updates it if it is not later than the last change, or older
 * than a day.
 */
static bool file_settled(const struct statx *st, bool noatime) {
    return noatime ||
           (file_later(st->stx_atime, st->stx_mtime) && file_later(st->stx_atime, st->stx_ctime) &&
            time(NULL) - st->stx_atime.tv_sec < FILE_DAY - 1);
}

bool fs_file_try_settle(struct fs_file *f) {
    struct statx st;
    const int flags = AT_EMPTY_PATH | AT_STATX_DONT_SYNC;
    f->settled = f->quick &&
                 (f->noatime || (fs_statx(f->fd, "", flags, &st) == 0 && file_settled(&st, false)));
    return f->settled;
}

/* Takes over a descriptor if its file can be read without waiting. 0 or -EAGAIN. */
static int file_take_quick(const struct fs_devices *d, int *fd, struct fs_file *f) {
    struct statx st;
    if (fs_statx(*fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, &st) < 0)
        return -EAGAIN;
    enum fs_device kind = fs_devices_find(d, &st);
    if (kind < FS_DEVICE_DATA || !S_ISREG(st.stx_mode) ||
        (st.stx_attributes & (STATX_ATTR_ENCRYPTED | STATX_ATTR_VERITY)) != 0)
        return -EAGAIN;
    *f = file_make(fd, &st, kind);
    f->settled = file_settled(&st, f->noatime);
    return 0;
}

/* Opens a file on the mount of "/", if that is local: no open waits there. */
static int file_try_root(const struct fs_devices *d, const char *path, struct fs_file *f) {
    size_t n = strnlen(path, PATH_MAX);
    if (n == PATH_MAX) /* too long, though not relative to "/" */
        return -EAGAIN;
    if (fs_devices_root(d) < FS_DEVICE_DATA || n < 2)
        return -EXDEV;
    struct open_how how = {
        .flags = (uint64_t)(unsigned)(O_RDONLY | FILE_FLAGS),
        .resolve = RESOLVE_CACHED | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
    };
    _cleanup_close_ int fd = (int)syscall(SYS_openat2, d->root, path + 1, &how, sizeof how);
    /* The kernel also says EAGAIN where something is mounted in another namespace: a sandbox. */
    if (fd < 0)
        return errno == EXDEV || errno == EAGAIN ? -EXDEV : -EAGAIN;
    return file_take_quick(d, &fd, f);
}

/*
 * Elsewhere an open may wait: encrypted and sealed files read keys and signatures from the disk. So
 * look at the file first, and open it through the descriptor that found it: nothing can come in its
 * place.
 */
int fs_file_try_open_read(const struct fs_devices *d, const char *path, struct fs_file *f) {
    int r = file_try_root(d, path, f);
    if (r != -EXDEV)
        return r;
    struct fs_file seen;
    _cleanup_close_ int found = fs_try_open_path(path, 0);
    if (found < 0 || file_take_quick(d, &found, &seen) < 0)
        return -EAGAIN;
    _cleanup_close_ int path_fd = seen.fd;
    char name[FS_FD_PATH_SIZE];
    fs_fd_path(name, path_fd);
    seen.fd = open(name, O_RDONLY | FILE_FLAGS);
    if (seen.fd < 0)
        return -EAGAIN;
    *f = seen;
    return 0;
}

bool fs_file_closes_fast(const struct fs_file *f) {
    struct stat st;
    return f->quick && fstat(f->fd, &st) == 0 && st.st_nlink > 0;
}

/* A short read may mean that the rest is not cached; an empty one means the end. */
ssize_t fs_file_try_pread(const struct fs_file *f, void *dst, size_t n, uint64_t offset) {
    if (!f->quick || !f->settled || file_beyond(offset, n))
        return -EAGAIN;
    size_t done = 0;
    while (done < n) {
        struct iovec rest = {(char *)dst + done, n - done};
        ssize_t r = preadv2(f->fd, &rest, 1, (off_t)(offset + done), RWF_NOWAIT);
        if (r < 0)
            return -EAGAIN;
        if (r == 0)
            break;
        done += (size_t)r;
    }
    return (ssize_t)done;
}

int fs_file_pwrite(int fd, const void *src, size_t n, uint64_t offset) {
    if (file_beyond(offset, n))
        return -EINVAL;
    for (size_t done = 0; done < n;) {
        ssize_t r = pwrite(fd, (const char *)src + done, n - done, (off_t)(offset + done));
        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0)
            return r < 0 ? -errno : -EIO;
        done += (size_t)r;
    }
    return 0;
}

/* Waits until a device takes more. 0; -EAGAIN: it did not in FILE_DEVICE_MS. */
static int file_wait_writable(int fd) {
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    int r;
    do
        r = poll(&p, 1, FILE_DEVICE_MS);
    while (r < 0 && errno == EINTR);
    return r > 0 ? 0 : -EAGAIN;
}

int fs_file_write_all(int fd, const void *src, size_t n) {
    bool waited = false; /* since the last byte: some devices say writable and EAGAIN for ever */
    for (size_t done = 0; done < n;) {
        ssize_t r = write(fd, (const char *)src + done, MIN(n - done, (size_t)FILE_WRITE_MAX));
        if (r == 0)
            return -EIO;
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0 && (errno != EAGAIN || waited))
            return -errno;
        waited = r < 0;
        if (waited && file_wait_writable(fd) < 0)
            return -EAGAIN;
        done += r > 0 ? (size_t)r : 0;
    }
    return 0;
}

/* Through links devices are written, too. A FIFO is not: its reader may never read. */
int fs_file_write(const struct fs_write *w, struct err *e) {
    if (w->atomic)
        return fs_atomic_write(w, NULL, e);
    int flags = O_WRONLY | O_CREAT | (w->follow ? O_TRUNC : 0);
    _cleanup_close_ int fd = file_open(w->path, w->follow, flags, e);
    if (fd < 0)
        return fd;
    struct stat st;
    if (fstat(fd, &st) < 0)
        return fs_fail(e, errno);
    if (w->follow && S_ISFIFO(st.st_mode))
        return fs_fail_not_file(e, w->path);
    if (!w->follow && !S_ISREG(st.st_mode))
        return fs_fail_as(e, FS_FAIL_IRREGULAR);
    if (!w->follow && ftruncate(fd, 0) < 0)
        return fs_fail(e, errno);
    return fs_fail_check(e, fs_file_write_all(fd, w->data, w->n));
}
