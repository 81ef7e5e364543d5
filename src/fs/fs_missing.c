#include "fs/fs_missing.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdint.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#define MISSING_SELF (IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF)
#define MISSING_NAMES (IN_ATTRIB | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO)

#define MISSING_DRAIN 16384 /* bytes of events read at a time */

#define MISSING_ZFS_MAGIC 0x2FC12FC1
#define MISSING_BCACHEFS_MAGIC 0xCA451A4E

/*
 * Whether everything that changes the file system passes through this kernel, which tells of it:
 * not so where other hosts, a daemon or the kernel itself can change it.
 */
static bool missing_tells_all(const char *path) {
    static const uint32_t known[] = {
        EXT4_SUPER_MAGIC,      XFS_SUPER_MAGIC,  BTRFS_SUPER_MAGIC, TMPFS_MAGIC,
        OVERLAYFS_SUPER_MAGIC, F2FS_SUPER_MAGIC, MISSING_ZFS_MAGIC, MISSING_BCACHEFS_MAGIC,
    };
    struct statfs st;
    if (statfs(path, &st) < 0)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if ((uint32_t)st.f_type == known[i])
            return true;
    }
    return false;
}

static bool missing_same_dir(const struct fs_missing *m, const struct fs_missing_dir *d,
                             const char *path, size_t n) {
    return d->n == n && memcmp(m->path[d->of], path, n) == 0;
}

/* Lists the directories above all paths, each after the one it lies in. */
static int missing_list_dirs(struct fs_missing *m) {
    for (size_t i = 0; i < m->count; i++) {
        const char *path = m->path[i];
        for (const char *s = path; s != NULL; s = strchr(s + 1, '/')) {
            size_t n = (size_t)(s - path), k = 0;
            while (k < m->dirs && !missing_same_dir(m, &m->dir[k], path, n))
                k++;
            if (k == FS_MISSING_DIRS_MAX)
                return -E2BIG;
            if (k == m->dirs)
                m->dir[m->dirs++] = (struct fs_missing_dir){.wd = -1, .of = i, .n = n};
        }
    }
    return 0;
}

/* Whether the present path lies in the directory. */
static bool missing_holds_present(const struct fs_missing *m, const struct fs_missing_dir *d) {
    if (!m->present)
        return false;
    const char *path = m->path[m->count - 1];
    return missing_same_dir(m, d, path, (size_t)(strrchr(path, '/') - path));
}

static int missing_watch_dir(struct fs_missing *m, struct fs_missing_dir *d) {
    char path[PATH_MAX] = "/";
    if (d->n >= sizeof path)
        return -ENAMETOOLONG;
    memcpy(path, m->path[d->of], d->n);
    /* Two paths may lead to one directory (a bind mount): the masks add up. */
    uint32_t mask = IN_ONLYDIR | IN_DONT_FOLLOW | IN_MASK_ADD | MISSING_SELF | MISSING_NAMES;
    if (missing_holds_present(m, d))
        mask |= IN_MODIFY;
    d->wd = inotify_add_watch(m->fd, path, mask);
    if (d->wd < 0)
        return errno == ENOENT ? 0 : -errno;
    return missing_tells_all(path) ? 0 : -EOPNOTSUPP;
}

static int missing_check_path(const char *path, bool present) {
    struct stat st;
    if (lstat(path, &st) < 0)
        return errno == ENOENT && !present ? 0 : -errno;
    if (!present)
        return -EEXIST;
    return S_ISLNK(st.st_mode) ? -ELOOP : 0;
}

/* Forgets the events of an earlier watch. */
static void missing_drain(int fd) {
    char buf[MISSING_DRAIN];
    while (read(fd, buf, sizeof buf) > 0)
        ;
}

int fs_missing_open(struct fs_missing *m) {
    int r = missing_list_dirs(m);
    if (r < 0)
        return r;
    if (m->fd >= 0)
        missing_drain(m->fd);
    else if ((m->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) < 0)
        return -errno;
    m->mounts = open("/proc/self/mounts", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (m->mounts < 0)
        return -errno;
    for (size_t i = 0; r == 0 && i < m->dirs; i++)
        r = missing_watch_dir(m, &m->dir[i]);
    for (size_t i = 0; r == 0 && i < m->count; i++)
        r = missing_check_path(m->path[i], m->present && i == m->count - 1);
    return r;
}

void fs_missing_stop(struct fs_missing *m) {
    for (size_t i = 0; i < m->dirs; i++) {
        if (m->dir[i].wd >= 0)
            (void)inotify_rm_watch(m->fd, m->dir[i].wd); /* EINVAL: the directory is gone */
    }
    m->dirs = 0;
}

void fs_missing_fini(struct fs_missing *m) {
    util_close_fd(&m->fd);
    util_close_fd(&m->mounts);
    for (size_t i = 0; i < m->count; i++)
        free(m->path[i]);
    m->count = m->dirs = 0;
}

static bool missing_is_ascii(struct str s) {
    for (size_t i = 0; i < s.n; i++) {
        if ((unsigned char)s.p[i] >= 0x80)
            return false;
    }
    return true;
}

/*
 * Whether two names may be one. There are directories that do not tell upper from lower case;
 * beyond ASCII it depends on the file system what they take for the same.
 */
static bool missing_same_name(struct str a, struct str b) {
    if (a.n == b.n && strncasecmp(a.p, b.p, a.n) == 0)
        return true;
    return !missing_is_ascii(a) || !missing_is_ascii(b);
}

/* Takes the next name off a path; n 0 at its end. */
static struct str missing_next_name(struct str *path) {
    if (path->n > 0) { /* the slash */
        path->p++;
        path->n--;
    }
    const char *slash = memchr(path->p, '/', path->n);
    struct str name = {path->p, slash != NULL ? (size_t)(slash - path->p) : path->n};
    path->p += name.n;
    path->n -= name.n;
    return name;
}

/* Whether `name` in the directory may be the path or lie above it. */
static bool missing_leads_to(struct str dir, struct str name, struct str path) {
    for (struct str in; (in = missing_next_name(&dir)).n > 0;) {
        if (!missing_same_name(in, missing_next_name(&path)))
            return false;
    }
    struct str next = missing_next_name(&path);
    return next.n > 0 && missing_same_name(name, next);
}

static bool missing_wants(const struct fs_missing *m, const struct fs_missing_dir *d,
                          struct str name) {
    for (size_t i = 0; i < m->count; i++) {
        if (missing_leads_to((struct str){m->path[d->of], d->n}, name, str_of(m->path[i])))
            return true;
    }
    return false;
}

static bool missing_event_fires(const struct fs_missing *m, const struct inotify_event *ev,
                                struct str name) {
    if ((ev->mask & IN_Q_OVERFLOW) != 0)
        return true;
    uint32_t wanted =
        name.n == 0 ? MISSING_SELF | IN_UNMOUNT | IN_IGNORED : MISSING_NAMES | IN_MODIFY;
    if ((ev->mask & wanted) == 0 || ev->wd < 0)
        return false;
    for (size_t i = 0; i < m->dirs; i++) {
        if (m->dir[i].wd == ev->wd && (name.n == 0 || missing_wants(m, &m->dir[i], name)))
            return true;
    }
    return false;
}

bool fs_missing_fires(const struct fs_missing *m, const void *events, size_t n) {
    const char *p = events;
    for (struct inotify_event ev; n > 0; p += ev.len, n -= ev.len) {
        if (n < sizeof ev)
            return true; /* the kernel gives whole events: better once too often */
        memcpy(&ev, p, sizeof ev);
        p += sizeof ev;
        n -= sizeof ev;
        if (ev.len > n || missing_event_fires(m, &ev, (struct str){p, strnlen(p, ev.len)}))
            return true;
    }
    return false;
}
