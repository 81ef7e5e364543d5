#include "fs/fs_cursor.h"

#include <errno.h>
#include <fcntl.h>

int fs_cursor_id_of(int fd, struct fs_id *id) {
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    *id = (struct fs_id){st.st_dev, st.st_ino};
    return 0;
}

struct fs_cursor fs_cursor_init(bool peers) {
    return (struct fs_cursor){
        .levels = BUF_INIT(FS_CURSOR_BYTES),
        .names = BUF_INIT(FS_CURSOR_BYTES),
        .peers = peers,
    };
}

void fs_cursor_fini(struct fs_cursor *l) {
    while (fs_cursor_depth(l) > 0)
        fs_cursor_pop(l);
    buf_fini(&l->levels);
    buf_fini(&l->names);
}

size_t fs_cursor_depth(const struct fs_cursor *l) {
    return l->levels.len / sizeof(struct fs_level);
}

struct fs_level *fs_cursor_at(const struct fs_cursor *l, size_t i) {
    return (struct fs_level *)(void *)l->levels.p + i;
}

struct fs_level *fs_cursor_last(const struct fs_cursor *l) {
    return fs_cursor_at(l, fs_cursor_depth(l) - 1);
}

const char *fs_cursor_name(const struct fs_cursor *l, size_t i) {
    return l->names.p + fs_cursor_at(l, i)->name;
}

/* Closes the level that is FS_CURSOR_OPEN above the last one, unless it is the top. 0 or -errno. */
static int levels_close_far(struct fs_cursor *l) {
    size_t depth = fs_cursor_depth(l);
    if (depth < FS_CURSOR_OPEN + 1)
        return 0;
    struct fs_level *far = fs_cursor_at(l, depth - FS_CURSOR_OPEN);
    if (far->list.fd < 0)
        return 0;
    int r = fs_cursor_id_of(far->list.fd, &far->id);
    if (r == 0 && l->peers)
        r = fs_cursor_id_of(far->peer, &far->peer_id);
    if (r < 0)
        return r;
    fs_list_fini(&far->list);
    util_close_fd(&far->peer);
    return 0;
}

int fs_cursor_push(struct fs_cursor *l, const char *name, int *fd, int *peer) {
    struct fs_level level = {.list = FS_LIST_NONE, .name = l->names.len};
    fs_list_begin(&level.list, fd);
    level.peer = steal_fd(peer);
    int r = levels_close_far(l);
    if (r == 0)
        r = buf_reserve(&l->levels, sizeof level);
    if (r == 0)
        r = buf_put(&l->names, name, strlen(name) + 1);
    if (r == 0)
        r = buf_put(&l->levels, &level, sizeof level);
    if (r == 0)
        return 0;
    fs_list_fini(&level.list);
    util_close_fd(&level.peer);
    return r == -ENOBUFS ? -ENAMETOOLONG : r;
}

void fs_cursor_pop(struct fs_cursor *l) {
    struct fs_level *last = fs_cursor_last(l);
    fs_list_fini(&last->list);
    util_close_fd(&last->peer);
    l->names.len = last->name;
    l->levels.len -= sizeof *last;
}

/* Returns fd if it is the wanted directory; else closes it: -ESTALE. Passes errors on. */
static int levels_accept(int fd, struct fs_id want) {
    _cleanup_close_ int own = fd;
    struct fs_id id;
    int r = fd < 0 ? -errno : fs_cursor_id_of(fd, &id);
    if (r == 0 && !fs_id_eq(id, want))
        r = -ESTALE;
    return r < 0 ? r : steal_fd(&own);
}

/* Opens level i by the names from the top. A descriptor or -errno. */
static int levels_by_names(const struct fs_cursor *l, size_t i, int flags, bool peer) {
    struct fs_level *top = fs_cursor_at(l, 0);
    int dir = peer ? top->peer : top->list.fd;
    _cleanup_close_ int own = -1;
    for (size_t k = 1; k <= i; k++) {
        int fd = openat(dir, fs_cursor_name(l, k), flags);
        if (fd < 0)
            return -errno;
        util_close_fd(&own);
        own = dir = fd;
    }
    return steal_fd(&own);
}

/* Opens the closed level i > 0, whose child is open. A descriptor or -errno. */
static int levels_reopen(const struct fs_cursor *l, size_t i, bool peer) {
    int flags = O_DIRECTORY | O_CLOEXEC | (peer ? O_PATH : O_RDONLY | O_NOFOLLOW);
    struct fs_level *level = fs_cursor_at(l, i), *child = level + 1;
    struct fs_id want = peer ? level->peer_id : level->id;
    int fd = levels_accept(openat(peer ? child->peer : child->list.fd, "..", flags), want);
    if (fd >= 0)
        return fd;
    fd = levels_by_names(l, i, flags, peer);
    if (fd < 0)
        return fd == -EMFILE || fd == -ENFILE ? fd : -ESTALE;
    return levels_accept(fd, want);
}

int fs_cursor_open_parent(struct fs_cursor *l) {
    if (fs_cursor_depth(l) < 2)
        return 0;
    size_t i = fs_cursor_depth(l) - 2;
    struct fs_level *level = fs_cursor_at(l, i);
    if (level->list.fd >= 0)
        return 0;
    _cleanup_close_ int fd = levels_reopen(l, i, false);
    _cleanup_close_ int peer = l->peers && fd >= 0 ? levels_reopen(l, i, true) : -1;
    if (fd < 0 || (l->peers && peer < 0))
        return fd < 0 ? fd : peer;
    int64_t off = level->list.off;
    fs_list_begin(&level->list, &fd);
    level->peer = steal_fd(&peer);
    return fs_list_seek(&level->list, off);
}

int fs_cursor_put_path(const struct fs_cursor *l, const char *top, const char *name,
                       struct buf *b) {
    int r = top[1] != '\0' ? buf_putz(b, top) : 0;
    for (size_t i = 1; r == 0 && i < fs_cursor_depth(l); i++)
        r = buf_putf(b, "/%s", fs_cursor_name(l, i));
    if (r == 0)
        r = buf_putf(b, "/%s", name);
    if (r == 0)
        r = buf_putc(b, '\0');
    return r == -ENOBUFS ? -ENAMETOOLONG : r;
}
