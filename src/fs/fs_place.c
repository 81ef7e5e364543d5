#include "fs/fs_place.h"

#include <errno.h>
#include <fcntl.h>

void fs_place_fini(struct fs_place *p) {
    util_close_fd(&p->dir);
    util_close_fd(&p->object);
}

/* Length of the directory that the first n bytes of path, n > 0, are in; 0: the root. */
static size_t place_parent(const char *path, size_t n) {
    while (n > 0 && path[--n] != '/')
        ;
    return n;
}

int fs_place_fill(struct fs_place *p, bool parents) {
    size_t n = strlen(p->path);
    fs_place_fini(p);
    do {
        n = place_parent(p->path, n);
        p->dir = fs_open_dir(p->path, n);
    } while (p->dir == -ENOENT && parents && n > 0);
    if (p->dir < 0)
        return steal_fd(&p->dir);
    p->name = n + 1;
    p->mode = 0;
    struct stat st;
    if (!fs_place_is_leaf(p))
        return 0;
    if (fstatat(p->dir, fs_place_name(p), &st, AT_SYMLINK_NOFOLLOW) == 0)
        p->mode = st.st_mode;
    else if (errno != ENOENT) {
        int r = -errno;
        fs_place_fini(p);
        return r;
    }
    return 0;
}

int fs_place_open(const struct fs_place *p, int flags, mode_t mode) {
    int fd;
    do
        fd = openat(p->dir, fs_place_name(p), flags | O_NOFOLLOW | O_CLOEXEC, mode);
    while (fd < 0 && errno == EINTR);
    return fd < 0 ? -errno : fd;
}

int fs_place_dup(const struct fs_place *p) {
    int fd = fcntl(p->dir, F_DUPFD_CLOEXEC, 0);
    return fd < 0 ? -errno : fd;
}
