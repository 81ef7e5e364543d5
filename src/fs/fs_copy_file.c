#include "fs/fs_copy_file.h"

#include "fs/fs_attrs.h"
#include "fs/fs_file.h"
#include "fs/fs_link.h"

#include <errno.h>
#include <fcntl.h>

/* An open never waits for a peer, and never makes a terminal ours. */
#define COPY_FLAGS (O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

#define COPY_STEP (64u << 20) /* bytes between two looks at *stop */
#define COPY_BUF (128u << 10)
#define COPY_PRIVATE 0700 /* until the access list is there */

static bool copy_stopped(const atomic_bool *stop) {
    return atomic_load_explicit(stop, memory_order_relaxed);
}

/* Whether this errno says that the kernel alone cannot copy between the two files. */
static bool copy_needs_buffer(int num) {
    return num == EXDEV || num == EINVAL || num == EOPNOTSUPP || num == ENOSYS || num == EPERM ||
           num == EBADF;
}

static int copy_buffered(int in, int out, const atomic_bool *stop) {
    _cleanup_free_ char *buf = malloc(COPY_BUF);
    if (buf == NULL)
        return -ENOMEM;
    for (;;) {
        if (copy_stopped(stop))
            return -ECANCELED;
        ssize_t n = read(in, buf, COPY_BUF);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : 0;
        int r = fs_file_write_all(out, buf, (size_t)n);
        if (r < 0)
            return r;
    }
}

/*
 * That the kernel's copy gives nothing need not be the end: files of /proc seem empty to it, and
 * files of FUSE may end where a read was short, or failed. So the rest, if any, is read.
 */
static int copy_data(int in, int out, const atomic_bool *stop) {
    for (;;) {
        if (copy_stopped(stop))
            return -ECANCELED;
        ssize_t n = copy_file_range(in, NULL, out, NULL, COPY_STEP, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0 || (n < 0 && copy_needs_buffer(errno)))
            return copy_buffered(in, out, stop);
        if (n < 0)
            return -errno;
    }
}

/* Opens the source; the descriptor, or -errno with e set. */
static int copy_open_source(const struct fs_copy_file *c, struct stat *st, struct err *e) {
    _cleanup_close_ int fd = openat(c->source_dir, c->source, O_RDONLY | O_NOFOLLOW | COPY_FLAGS);
    if (fd < 0 || fstat(fd, st) < 0)
        return fs_fail(e, errno);
    return S_ISREG(st->st_mode) ? steal_fd(&fd) : fs_fail_as(e, FS_FAIL_COPY_KIND);
}

/*
 * The mode of a file with an access list is that list: its group bits alone are the list's mask,
 * and would give the group more than it had. Where the destination can have no list, each class
 * gets no more than anybody in it had. 0 or -errno.
 */
static int copy_mode(int fd, mode_t mode, const struct buf *acl) {
    int r = acl->len > 0 ? fs_attrs_set_acl(fd, acl) : 0;
    if (r == -EOPNOTSUPP)
        mode = fs_attrs_plain_mode(mode, acl);
    else if (r < 0)
        return r;
    return fchmod(fd, mode & 07777) < 0 ? -errno : 0;
}

/* Makes what was opened an empty file with the mode of the source. 0 or as
 * fs_copy_file_regular(). */
static int copy_prepare(int fd, const struct stat *source, const struct buf *acl, struct err *e) {
    struct stat st;
    if (fstat(fd, &st) < 0)
        return fs_fail(e, errno);
    if (S_ISFIFO(st.st_mode))
        return 1;
    if (st.st_dev == source->st_dev && st.st_ino == source->st_ino)
        return fs_fail_as(e, FS_FAIL_COPY_SELF);
    if (!S_ISREG(st.st_mode))
        return 0;
    if (st.st_size > 0 && ftruncate(fd, 0) < 0)
        return fs_fail(e, errno);
    return fs_fail_check(e, copy_mode(fd, source->st_mode, acl));
}

int fs_copy_file_regular(const struct fs_copy_file *c, const atomic_bool *stop, struct err *e) {
    struct stat st;
    _cleanup_close_ int in = copy_open_source(c, &st, e);
    if (in < 0)
        return in;
    _cleanup_buf_ struct buf acl = BUF_INIT(FS_ATTRS_VALUE_MAX);
    int r = fs_attrs_read_acl(in, &acl);
    if (r < 0)
        return fs_fail(e, -r);
    int flags = O_WRONLY | O_CREAT | COPY_FLAGS | (c->nofollow ? O_NOFOLLOW : 0);
    mode_t mode = st.st_mode & (acl.len > 0 ? COPY_PRIVATE : 07777);
    _cleanup_close_ int out = openat(c->destination_dir, c->destination, flags, mode);
    if (out < 0)
        return fs_fail(e, errno);
    r = copy_prepare(out, &st, &acl, e);
    if (r != 0)
        return r;
    return fs_fail_check(e, copy_data(in, out, stop));
}

int fs_copy_file_link(const struct fs_copy_file *c, struct err *e) {
    struct fs_link link;
    int r = fs_link_read_at(c->source_dir, c->source, &link);
    if (r < 0)
        return fs_fail(e, -r);
    if (symlinkat(link.target, c->destination_dir, c->destination) < 0)
        return fs_fail(e, errno);
    return 0;
}
