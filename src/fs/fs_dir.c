#include "fs/fs_dir.h"

#include "base/utf8.h"
#include "fs/fs_list.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>

struct dir_read {
    struct fs_list list;
    size_t path_len;
    const struct fs_sink *sink;
    struct buf lossy; /* a name with its bad bytes replaced */
    size_t count;     /* entries so far, those beyond FS_ENTRIES_MAX included */
};

/*
 * The type an entry is listed with: of what a link leads to; DT_LNK for a link that leads nowhere,
 * as for one whose path is too long to be followed by name.
 */
static unsigned char dir_type(const struct dir_read *d, const struct fs_entry *entry) {
    if (entry->type != DT_LNK && entry->type != DT_UNKNOWN)
        return entry->type;
    struct stat st;
    int flags = entry->type == DT_UNKNOWN ? AT_SYMLINK_NOFOLLOW : 0;
    if (flags == 0 && d->path_len + 1 + entry->n >= PATH_MAX)
        return DT_LNK;
    if (fstatat(d->list.fd, entry->name, &st, flags) < 0)
        return DT_LNK;
    if (S_ISLNK(st.st_mode))
        return dir_type(d, &(struct fs_entry){entry->name, entry->n, DT_LNK});
    return FS_LIST_TYPE(st.st_mode);
}

static int dir_put(struct dir_read *d, struct str name, unsigned char type) {
    struct fs_item item = {type == DT_DIR   ? FS_ITEM_DIR
                           : type == DT_REG ? FS_ITEM_FILE
                                            : FS_ITEM_OTHER,
                           .name = name};
    if (!utf8_valid(name.p, name.n)) {
        d->lossy.len = 0;
        int r = fs_put_lossy(&d->lossy, name);
        if (r < 0)
            return r;
        item.name = buf_str(&d->lossy);
    }
    return d->sink->put(d->sink->arg, &item);
}

/* All entries; those beyond the maximum are only counted. 0 or -errno. */
static int dir_entries(struct dir_read *d, const atomic_bool *stop) {
    struct fs_entry entry;
    int r;
    while ((r = fs_list_next(&d->list, &entry)) > 0) {
        if (atomic_load_explicit(stop, memory_order_relaxed))
            return -ECANCELED;
        unsigned char type = dir_type(d, &entry);
        if (type == DT_LNK)
            continue;
        if (d->count < FS_ENTRIES_MAX)
            r = dir_put(d, (struct str){entry.name, entry.n}, type);
        if (r < 0)
            return r;
        d->count++;
    }
    return r;
}

/* Takes fd over; `path` is for the length of names below it. */
static int dir_list(int *fd, const char *path, const atomic_bool *stop, const struct fs_sink *sink,
                    struct err *e) {
    struct dir_read d = {
        .list = FS_LIST_NONE,
        .path_len = path[1] != '\0' ? strlen(path) : 0,
        .sink = sink,
        .lossy = BUF_INIT(3 * FS_NAME_MAX),
    };
    fs_list_begin(&d.list, fd);
    int r = dir_entries(&d, stop);
    buf_fini(&d.lossy);
    fs_list_fini(&d.list);
    if (d.count > FS_ENTRIES_MAX)
        return fs_fail_entries(e, d.count);
    if (r == -ENOBUFS)
        return fs_fail_as(e, FS_FAIL_LIST_SIZE);
    return fs_fail_check(e, r);
}

int fs_dir_read(const char *path, const atomic_bool *stop, const struct fs_sink *sink,
                struct err *e) {
    _cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? fs_fail(e, errno) : dir_list(&fd, path, stop, sink, e);
}

int fs_dir_read_at(const struct fs_place *p, const char *path, const atomic_bool *stop,
                   const struct fs_sink *sink, struct err *e) {
    _cleanup_close_ int fd = fs_place_open(p, O_RDONLY | O_DIRECTORY, 0);
    return fd < 0 ? fs_fail(e, -fd) : dir_list(&fd, path, stop, sink, e);
}
