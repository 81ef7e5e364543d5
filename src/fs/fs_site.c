#include "fs/fs_site.h"

#include "fs/fs.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/sysmacros.h>

#define SITE_LINKS_MAX 40 /* as the kernel's */
#define SITE_LOCAL (1ull << 62)
#define SITE_KNOWN (1ull << 63) /* set in every site, so that none is 0 */

/* Remote file systems do not know this attribute (see device_of_file()). */
uint64_t fs_site(const struct statx *st) {
    uint64_t local = st->stx_attributes_mask & STATX_ATTR_NODUMP ? SITE_LOCAL : 0;
    return makedev(st->stx_dev_major, st->stx_dev_minor) | local | SITE_KNOWN;
}

bool fs_site_enter_known(struct pool_job *j, uint64_t site) {
    return pool_enter(j, site, site & SITE_LOCAL ? FS_SITE_LOCAL : FS_SITE_REMOTE);
}

/* Reads cached facts only: a file system that hangs must not be asked. */
static int site_look(int fd, struct statx *st) {
    return fs_statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, st);
}

bool fs_site_enter_fd(struct pool_job *j, int fd) {
    struct statx st;
    return site_look(fd, &st) < 0 || fs_site_enter_known(j, fs_site(&st));
}

/* The rest of a path, after a link was found on it. */
struct site_way {
    char rest[PATH_MAX];
    int links;
    bool follow; /* the last component too */
};

/* Cuts the first component off; NULL at the end. Points into `rest`. */
static char *site_next(char **rest) {
    char *name = *rest + strspn(*rest, "/");
    size_t n = strcspn(name, "/");
    *rest = name + n;
    if (**rest != '\0')
        *(*rest)++ = '\0';
    return n > 0 ? name : NULL;
}

/* Puts the text of the link fd in front of what is left. False: it cannot be followed. */
static bool site_follow(struct site_way *w, int fd, const char *left) {
    char text[PATH_MAX], whole[PATH_MAX];
    ssize_t n = readlinkat(fd, "", text, sizeof text);
    if (n <= 0 || n == (ssize_t)sizeof text || ++w->links > SITE_LINKS_MAX)
        return false;
    int len = snprintf(whole, sizeof whole, "%.*s%s%s", (int)n, text, *left ? "/" : "", left);
    if (len < 0 || (size_t)len >= sizeof whole)
        return false;
    memcpy(w->rest, whole, (size_t)len + 1);
    return true;
}

/* Walks the rest from the directory *dir, which it replaces. False as pool_enter(). */
static bool site_walk(struct pool_job *j, struct site_way *w, int *dir) {
    char *rest = w->rest;
    if (!fs_site_enter_fd(j, *dir))
        return false;
    for (char *name; (name = site_next(&rest)) != NULL;) {
        struct statx st;
        _cleanup_close_ int fd = openat(*dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || site_look(fd, &st) < 0)
            return true;
        if (!S_ISLNK(st.stx_mode)) {
            if (!fs_site_enter_known(j, fs_site(&st)))
                return false;
            util_close_fd(dir);
            *dir = steal_fd(&fd);
            continue;
        }
        if ((*rest == '\0' && !w->follow) || !site_follow(w, fd, rest))
            return true;
        rest = w->rest;
        if (*rest == '/') {
            util_close_fd(dir);
            *dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
            if (*dir < 0 || !fs_site_enter_fd(j, *dir))
                return *dir < 0;
        }
    }
    return true;
}

/* Opens the parent if that is cached, else "/"; *left is the path from there. */
static int site_start(const char *path, const char **left) {
    char parent[PATH_MAX];
    const char *slash = strrchr(path, '/');
    if (slash != NULL && slash > path && (size_t)(slash - path) < sizeof parent) {
        memcpy(parent, path, (size_t)(slash - path));
        parent[slash - path] = '\0';
        *left = slash + 1;
        int fd = fs_try_open_path(parent, O_DIRECTORY);
        if (fd >= 0)
            return fd;
    }
    *left = path;
    return open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

bool fs_site_enter(struct pool_job *j, const char *path, bool follow) {
    _cleanup_close_ int fd = fs_try_open_path(path, follow ? 0 : O_NOFOLLOW);
    if (fd >= 0)
        return fs_site_enter_fd(j, fd);
    const char *left;
    struct site_way way = {.follow = follow};
    _cleanup_close_ int dir = site_start(path, &left);
    size_t n = strnlen(left, sizeof way.rest);
    if (dir < 0 || n == sizeof way.rest)
        return true;
    memcpy(way.rest, left, n + 1);
    return site_walk(j, &way, &dir);
}

bool fs_site_enter_all(struct pool_job *j, const char *const *path, size_t n, bool follow) {
    uint64_t remote = 0;
    for (size_t i = 0; i < n; i++) {
        if (path[i] == NULL)
            continue;
        if (!fs_site_enter(j, path[i], follow))
            return false;
        if (remote == 0 && !(j->site & SITE_LOCAL))
            remote = j->site;
    }
    return remote == 0 || fs_site_enter_known(j, remote);
}
