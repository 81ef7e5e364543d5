#include "intercept/intercept_walk.h"

#include "intercept/intercept_look.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20
#endif

#define WALK_PROC_ROOT 1 /* inode of the root of every /proc */

int intercept_walk_cached(const struct intercept_walk *w, const char *path) {
    /* Below these "self" means us, not the caller. */
    if (strncmp(path, "/proc/", 6) == 0 || strncmp(path, "/dev/", 5) == 0)
        return -EAGAIN;
    struct open_how how = {.flags = O_PATH | O_CLOEXEC | (w->nofollow ? O_NOFOLLOW : 0),
                           .resolve = RESOLVE_CACHED | RESOLVE_NO_MAGICLINKS |
                                      (path[0] == '/' ? RESOLVE_IN_ROOT : RESOLVE_BENEATH)};
    int fd = (int)syscall(SYS_openat2, path[0] == '/' ? w->root : w->start, path, &how, sizeof how);
    if (fd >= 0)
        return fd;
    bool sure = errno == ENOENT || errno == ENOTDIR || errno == EACCES || errno == ENAMETOOLONG;
    return sure ? -errno : -EAGAIN;
}

/* The state of a walk. `rest` is what is left of the path. */
struct walk {
    const struct intercept_walk *w;
    int at;
    int links;
    size_t len;
    char rest[2 * PATH_MAX];
};

static bool walk_is_proc(int fd) {
    struct statfs f;
    return fstatfs(fd, &f) == 0 && f.f_type == PROC_SUPER_MAGIC;
}

static bool walk_is_same(int a, int b) {
    struct stat sa, sb;
    return fstat(a, &sa) == 0 && fstat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
           sa.st_ino == sb.st_ino;
}

static void walk_to(struct walk *k, int fd) {
    close(k->at);
    k->at = fd;
}

/* Puts a link's target before the rest. */
static int walk_prepend(struct walk *k, const char *text, size_t n) {
    if (n + 1 + k->len >= sizeof k->rest)
        return -ENAMETOOLONG;
    memmove(k->rest + n + 1, k->rest, k->len + 1);
    memcpy(k->rest, text, n);
    k->rest[n] = '/';
    k->len += n + 1;
    if (k->len == n + 1) /* nothing follows: the end may be a file */
        k->rest[--k->len] = '\0';
    if (text[0] != '/')
        return 0;
    int fd = fcntl(k->w->root, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    walk_to(k, fd);
    return 0;
}

/* A symbolic link in /proc: the caller's own entry, or one that only the kernel can follow. */
static int walk_proc_link(struct walk *k, const char *name, int link) {
    char path[64];
    struct stat st;
    int fd;
    if (fstat(k->at, &st) < 0)
        return -errno;
    if (st.st_ino != WALK_PROC_ROOT) {
        fd = openat(k->at, name, O_PATH | O_CLOEXEC);
    } else if (strcmp(name, "self") == 0) {
        snprintf(path, sizeof path, "/proc/%d", (int)k->w->tgid);
        fd = open(path, O_PATH | O_CLOEXEC);
    } else if (strcmp(name, "thread-self") == 0) {
        snprintf(path, sizeof path, "/proc/%d/task/%d", (int)k->w->tgid, (int)k->w->tid);
        fd = open(path, O_PATH | O_CLOEXEC);
    } else { /* mounts, net: texts */
        char target[64];
        ssize_t n = readlinkat(link, "", target, sizeof target);
        return n < 0 ? -errno : walk_prepend(k, target, (size_t)n);
    }
    if (fd < 0)
        return -errno;
    walk_to(k, fd);
    return 0;
}

static int walk_link(struct walk *k, const char *name, int link) {
    if (++k->links > INTERCEPT_LINKS_MAX || (k->w->nofollow && k->len == 0))
        return -ELOOP;
    if (walk_is_proc(link))
        return walk_proc_link(k, name, link);
    char target[PATH_MAX];
    ssize_t n = readlinkat(link, "", target, sizeof target);
    if (n < 0)
        return -errno;
    return n == 0 ? -ENOENT : walk_prepend(k, target, (size_t)n);
}

/* Follows one component. */
static int walk_step(struct walk *k, const char *name) {
    if (strcmp(name, ".") == 0 || (strcmp(name, "..") == 0 && walk_is_same(k->at, k->w->root)))
        return 0;
    _cleanup_close_ int fd = openat(k->at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (S_ISLNK(st.st_mode))
        return walk_link(k, name, fd);
    if (k->len > 0 && !S_ISDIR(st.st_mode))
        return -ENOTDIR;
    walk_to(k, steal_fd(&fd));
    return 0;
}

/* Takes the first component off the rest. -ENOENT: there is none. */
static int walk_take(struct walk *k, char name[NAME_MAX + 1]) {
    size_t skip = strspn(k->rest, "/"), n = strcspn(k->rest + skip, "/");
    if (n > NAME_MAX)
        return -ENAMETOOLONG;
    memcpy(name, k->rest + skip, n);
    name[n] = '\0';
    k->len -= skip + n;
    memmove(k->rest, k->rest + skip + n, k->len + 1);
    return n == 0 ? -ENOENT : 0;
}

static int walk_run(struct walk *k) {
    char name[NAME_MAX + 1];
    int r = 0;
    while (r == 0 && k->len > 0) {
        r = walk_take(k, name);
        if (r == -ENOENT) { /* slashes at the end */
            struct stat st;
            return fstat(k->at, &st) == 0 && S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
        }
        if (r == 0)
            r = walk_step(k, name);
    }
    return r;
}

int intercept_walk_open(const struct intercept_walk *w, const char *path) {
    struct walk k = {.w = w, .len = strlen(path)};
    if (k.len == 0)
        return -ENOENT;
    if (k.len >= PATH_MAX)
        return -ENAMETOOLONG;
    memcpy(k.rest, path, k.len + 1);
    k.at = fcntl(path[0] == '/' ? w->root : w->start, F_DUPFD_CLOEXEC, 0);
    if (k.at < 0)
        return -errno;
    int r = walk_run(&k);
    if (r == 0)
        return k.at;
    close(k.at);
    return r;
}
