#include "fs/fs_list.h"

#include <errno.h>

void fs_list_begin(struct fs_list *l, int *fd) {
    fs_list_close(l);
    l->fd = steal_fd(fd);
    l->off = 0;
}

void fs_list_close(struct fs_list *l) {
    util_close_fd(&l->fd);
    l->pos = l->len = 0;
}

void fs_list_fini(struct fs_list *l) {
    fs_list_close(l);
    free(steal_ptr(&l->buf));
}

/* Fills the buffer: 1, 0 at the end, or -errno. */
static int list_fill(struct fs_list *l) {
    if (l->buf == NULL) {
        l->buf = malloc(FS_LIST_BUF);
        if (l->buf == NULL)
            return -ENOMEM;
    }
    ssize_t n = getdents64(l->fd, l->buf, FS_LIST_BUF);
    if (n < 0 && errno != ENOENT)
        return -errno;
    l->pos = 0;
    l->len = n > 0 ? (size_t)n : 0;
    return n > 0;
}

int fs_list_next(struct fs_list *l, struct fs_entry *entry) {
    for (;;) {
        if (l->pos == l->len) {
            int r = list_fill(l);
            if (r <= 0)
                return r;
        }
        const struct dirent64 *d = (const void *)(l->buf + l->pos);
        l->pos += d->d_reclen;
        l->off = d->d_off;
        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
            continue;
        *entry = (struct fs_entry){d->d_name, strlen(d->d_name), d->d_type};
        return 1;
    }
}

int fs_list_seek(struct fs_list *l, int64_t off) {
    l->pos = l->len = 0;
    l->off = off;
    return lseek(l->fd, off, SEEK_SET) < 0 ? -errno : 0;
}
