#include "fs/fs_watch_scan.h"

#include "fs/fs_list.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <sys/inotify.h>

/* One mask for all: a directory that two watches share has one entry in the kernel. */
#define SCAN_MASK                                                                                  \
    (IN_ATTRIB | IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_DELETE_SELF | IN_MODIFY |             \
     IN_MOVE_SELF | IN_MOVED_FROM | IN_MOVED_TO)

void fs_watch_scan_init(struct fs_watch_scan *s, int fd) {
    *s = (struct fs_watch_scan){.fd = fd, .names = BUF_INIT(FS_WATCH_NAMES_MAX)};
}

void fs_watch_scan_fini(struct fs_watch_scan *s) {
    free(s->drop);
    free(s->dir);
    free(s->entry);
    free(s->root);
    buf_fini(&s->names);
    fs_watch_scan_init(s, -1);
}

int fs_watch_scan_instance(void) {
    int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int scan_put_name(struct fs_watch_scan *s, const char *name, size_t *at) {
    *at = s->names.len;
    return buf_put(&s->names, name, strlen(name) + 1);
}

/* Appends a directory; `parent` SIZE_MAX: one to begin with. */
static int scan_put_dir(struct fs_watch_scan *s, size_t parent, const char *name,
                        struct fs_watch_dir *node) {
    if (s->dirs == s->cap) {
        size_t cap = s->cap ? s->cap * 2 : 16;
        struct fs_watch_found *dir = reallocarray(s->dir, cap, sizeof *dir);
        if (dir == NULL)
            return -ENOMEM;
        s->dir = dir;
        s->cap = cap;
    }
    struct fs_watch_found *f = &s->dir[s->dirs];
    *f = (struct fs_watch_found){
        .parent = parent == SIZE_MAX ? s->dirs : parent, .wd = -1, .node = node};
    int r = scan_put_name(s, name, &f->name);
    s->dirs += r == 0;
    return r;
}

int fs_watch_scan_add(struct fs_watch_scan *s, const char *path, struct fs_watch_dir *node) {
    return scan_put_dir(s, SIZE_MAX, path, node);
}

/*
 * Writes the path of directory i to the end of buf, fit for system calls ("//x" for an x in "/").
 * NULL: too long for any.
 */
static const char *scan_path(const struct fs_watch_scan *s, size_t i, char buf[PATH_MAX]) {
    size_t at = PATH_MAX - 1;
    buf[at] = '\0';
    for (;; i = s->dir[i].parent) {
        bool first = s->dir[i].parent == i;
        struct str name = str_of(s->names.p + s->dir[i].name);
        if (name.n + !first > at)
            return NULL;
        at -= name.n;
        memcpy(buf + at, name.p, name.n);
        if (first)
            return buf + at;
        buf[--at] = '/';
    }
}

static bool scan_is_dir(const struct fs_list *l, const struct fs_entry *entry) {
    struct stat st;
    if (entry->type != DT_UNKNOWN)
        return entry->type == DT_DIR;
    return fstatat(l->fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static int scan_put_entry(struct fs_watch_scan *s, size_t i, const char *name) {
    if (s->entries == FS_WATCH_PATHS_MAX)
        return -ENOBUFS;
    if (s->entry == NULL && (s->entry = calloc(FS_WATCH_PATHS_MAX, sizeof *s->entry)) == NULL)
        return -ENOMEM;
    struct fs_watch_entry *ent = &s->entry[s->entries];
    ent->dir = i;
    int r = scan_put_name(s, name, &ent->name);
    s->entries += r == 0;
    return r;
}

/* Takes in one entry of directory i. 0; -ENOBUFS: too much was found; or -errno. */
static int scan_take(struct fs_watch_scan *s, size_t i, const struct fs_list *l,
                     const struct fs_entry *entry) {
    if (entry->n > NAME_MAX)
        return -ENAMETOOLONG;
    int r = s->fresh ? scan_put_entry(s, i, entry->name) : 0;
    if (!s->recursive || !scan_is_dir(l, entry))
        return r;
    if (s->room == 0)
        return -ENOBUFS;
    s->room--;
    int r2 = scan_put_dir(s, i, entry->name, NULL);
    return r2 < 0 ? r2 : r;
}

/* Whether this errno is an expected reason not to watch a directory. */
static bool scan_excused(int num) {
    return num == ENOENT || num == ENOTDIR || num == EACCES || num == EPERM;
}

/* Reads directory i. 0; or -errno of the first failure, after which it reads on if that helps. */
static int scan_read(struct fs_watch_scan *s, size_t i, const char *path) {
    _cleanup_list_ struct fs_list list = FS_LIST_NONE;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return scan_excused(errno) ? 0 : -errno;
    fs_list_begin(&list, &fd);
    int first = 0;
    while (!atomic_load_explicit(&s->stop, memory_order_relaxed)) {
        struct fs_entry entry;
        int got = fs_list_next(&list, &entry), r = got;
        if (got > 0)
            r = scan_take(s, i, &list, &entry);
        if (first == 0)
            first = r;
        if (got <= 0 || r == -ENOMEM || (r == -ENOBUFS && s->room == 0))
            break;
    }
    return first;
}

/* Watches directory i and reads it if need be. 0 or -errno. */
static int scan_one(struct fs_watch_scan *s, size_t i) {
    char buf[PATH_MAX];
    const char *path = scan_path(s, i, buf);
    if (path == NULL)
        return -ENAMETOOLONG;
    s->dir[i].wd = inotify_add_watch(s->fd, path, SCAN_MASK | IN_ONLYDIR | IN_DONT_FOLLOW);
    if (s->dir[i].wd < 0)
        return -errno;
    return s->recursive || s->fresh ? scan_read(s, i, path) : 0;
}

static void scan_drop(struct fs_watch_scan *s) {
    for (size_t i = 0; i < s->drops; i++)
        (void)inotify_rm_watch(s->fd, s->drop[i]); /* EINVAL: the kernel was faster */
    s->drops = 0;
}

void fs_watch_scan(struct fs_watch_scan *s) {
    scan_drop(s);
    for (size_t i = 0; i < s->dirs && !atomic_load(&s->stop); i++) {
        int r = scan_one(s, i);
        s->missed |= r < 0 && !scan_excused(-r);
    }
}

/* The directory to watch for the root: itself, or the one it lies in. */
static int scan_add_root(struct fs_watch_scan *s) {
    if (s->directory)
        return fs_watch_scan_add(s, s->root, NULL);
    char *slash = strrchr(s->root, '/');
    size_t at = slash == s->root ? 1 : (size_t)(slash - s->root);
    char kept = s->root[at];
    s->root[at] = '\0';
    int r = fs_watch_scan_add(s, s->root, NULL);
    s->root[at] = kept;
    s->recursive = false;
    return r;
}

int fs_watch_scan_open_root(struct fs_watch_scan *s, const char *path, struct err *e) {
    struct stat st;
    scan_drop(s);
    s->root = realpath(path, NULL);
    if (s->root == NULL || lstat(s->root, &st) < 0)
        return fs_fail(e, errno);
    s->directory = S_ISDIR(st.st_mode);
    int r = scan_add_root(s);
    if (r < 0)
        return fs_fail(e, -r);
    for (size_t i = 0; i < s->dirs && !atomic_load(&s->stop); i++) {
        r = scan_one(s, i);
        if (r == -ENOBUFS)
            return fs_fail_as(e, FS_FAIL_WATCH_DIRS);
        if (r < 0 && (i == 0 || !scan_excused(-r)))
            return fs_fail(e, -r);
    }
    /* Anything else was looked at before the watch existed: look again. */
    return s->directory || lstat(s->root, &st) == 0 ? 0 : fs_fail(e, errno);
}
