#include "fs/fs_dir.h"

#include "base/utf8.h"
#include "fs/fs_list.h"
#include "json/jsonw.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>

#define DIR_TAIL_MAX 64 /* bytes of an item's text around its name */

struct dir_read {
    struct fs_list list;
    size_t path_len;
    struct buf *result;
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
    return fs_list_type(st.st_mode);
}

/* Appends {"fileName":…,"isDirectory":…,"isFile":…}. */
static int dir_put(struct dir_read *d, struct str name, unsigned char type) {
    static const struct str tails[] = {
        STR_LIT(",\"isDirectory\":false,\"isFile\":false}"),
        STR_LIT(",\"isDirectory\":false,\"isFile\":true}"),
        STR_LIT(",\"isDirectory\":true,\"isFile\":false}"),
    };
    int r = 0;
    if (!utf8_valid(name.p, name.n)) {
        d->lossy.len = 0;
        r = fs_put_lossy(&d->lossy, name);
        name = buf_str(&d->lossy);
    }
    struct buf *b = d->result;
    if (r == 0)
        r = buf_reserve(b, jsonw_str_len(name) + DIR_TAIL_MAX);
    if (r < 0)
        return r;
    struct str head = STR_LIT(",{\"fileName\":");
    size_t skip = d->count == 0; /* the comma of the first */
    struct str tail = tails[type == DT_DIR ? 2 : type == DT_REG];
    char *p = mempcpy(b->p + b->len, head.p + skip, head.n - skip);
    p += jsonw_str_to(p, name);
    p = mempcpy(p, tail.p, tail.n);
    b->len = (size_t)(p - b->p);
    return 0;
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
            break;
        d->count++;
    }
    return r;
}

static int dir_fail(const struct dir_read *d, int r, struct err *e) {
    if (d->count > FS_ENTRIES_MAX) {
        err_set(e, ERR_INTERNAL, "fs/readDirectory returned %zu entries; limit is %d", d->count,
                FS_ENTRIES_MAX);
        return -E2BIG;
    }
    if (r != -ENOBUFS)
        return fs_fail(e, -r);
    err_set(e, ERR_INTERNAL, "fs/readDirectory result exceeds %zu bytes", d->result->max);
    return r;
}

static int dir_read(struct dir_read *d, const atomic_bool *stop) {
    int r = buf_putz(d->result, "{\"entries\":[");
    if (r == 0)
        r = dir_entries(d, stop);
    if (r == 0 && d->count > FS_ENTRIES_MAX)
        r = -E2BIG;
    if (r == 0)
        r = buf_putz(d->result, "]}");
    return r;
}

/* Takes fd over; `path` is for the length of names below it. */
static int dir_list(int *fd, const char *path, const atomic_bool *stop, struct buf *result,
                    struct err *e) {
    struct dir_read d = {
        .list = FS_LIST_NONE,
        .path_len = path[1] != '\0' ? strlen(path) : 0,
        .result = result,
        .lossy = BUF_INIT(3 * FS_NAME_MAX),
    };
    fs_list_begin(&d.list, fd);
    size_t start = result->len;
    int r = dir_read(&d, stop);
    if (r < 0) {
        result->len = start;
        r = dir_fail(&d, r, e);
    }
    buf_fini(&d.lossy);
    fs_list_fini(&d.list);
    return r;
}

int fs_read_directory(const char *path, const atomic_bool *stop, struct buf *result,
                      struct err *e) {
    _cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? fs_fail(e, errno) : dir_list(&fd, path, stop, result, e);
}

int fs_dir_read_at(const struct fs_place *p, const char *path, const atomic_bool *stop,
                   struct buf *result, struct err *e) {
    _cleanup_close_ int fd = fs_place_open(p, O_RDONLY | O_DIRECTORY, 0);
    return fd < 0 ? fs_fail(e, -fd) : dir_list(&fd, path, stop, result, e);
}
