#include "fs/fs_link.h"

#include <errno.h>
#include <fcntl.h>

int fs_link_read_at(int dir, const char *name, struct fs_link *link) {
    ssize_t n = readlinkat(dir, name, link->target, sizeof link->target);
    if (n < 0)
        return -errno;
    if ((size_t)n == sizeof link->target)
        return -ENAMETOOLONG;
    link->n = (size_t)n;
    link->target[n] = '\0';
    return 0;
}

/* The kernel says EINVAL for what is no link. */
static int link_fail(int r, struct err *e) {
    return r == -EINVAL ? fs_fail_as(e, FS_FAIL_NOT_LINK) : fs_fail_check(e, r);
}

int fs_link_read(const char *path, struct fs_link *link, struct err *e) {
    return link_fail(fs_link_read_at(AT_FDCWD, path, link), e);
}

int fs_link_read_place(const struct fs_place *p, struct fs_link *link, struct err *e) {
    if (p->mode == 0)
        return fs_fail(e, ENOENT);
    if (!S_ISLNK(p->mode))
        return fs_fail_as(e, FS_FAIL_NOT_LINK);
    return link_fail(fs_link_read_at(p->dir, fs_place_name(p), link), e);
}

int fs_link_make(const char *path, const char *target, struct err *e) {
    return symlink(target, path) < 0 ? fs_fail(e, errno) : 0;
}

int fs_link_make_place(const struct fs_place *p, const char *target, struct err *e) {
    return symlinkat(target, p->dir, fs_place_name(p)) < 0 ? fs_fail(e, errno) : 0;
}
