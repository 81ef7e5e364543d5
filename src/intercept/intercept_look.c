#include "intercept/intercept_look.h"

#include "intercept/intercept_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/vfs.h>

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

/* Opens what a link of /proc/TID leads to. */
static int look_proc(pid_t tid, const char *name) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)tid, name);
    int fd = open(path, O_PATH | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int look_fd(pid_t tid, int fd) {
    char name[32];
    snprintf(name, sizeof name, "fd/%d", fd);
    int r = look_proc(tid, name);
    return r == -ENOENT ? -EBADF : r;
}

/* Whether opening and reading a file of this file system needs no other machine or program. */
static bool look_is_local(int fd) {
    struct statfs f;
    if (fstatfs(fd, &f) < 0)
        return false;
    switch ((unsigned long)f.f_type) {
    case EXT4_SUPER_MAGIC:
    case XFS_SUPER_MAGIC:
    case BTRFS_SUPER_MAGIC:
    case TMPFS_MAGIC:
    case OVERLAYFS_SUPER_MAGIC:
    case SQUASHFS_MAGIC:
    case RAMFS_MAGIC: return true;
    default: return false;
    }
}

/* Reads the start of the file. -EAGAIN: it is not in memory; -EACCES: we may not. */
static ssize_t look_head(int fd, bool cached, char *to, size_t n) {
    char path[64];
    if (cached && !look_is_local(fd))
        return -EAGAIN;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    _cleanup_close_ int in = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (in < 0)
        return errno == EPERM ? -EACCES : -errno;
    struct iovec iov = {to, n};
    ssize_t got = preadv2(in, &iov, 1, 0, cached ? RWF_NOWAIT : 0);
    if (got < 0 && errno == EOPNOTSUPP && cached)
        return -EAGAIN;
    return got < 0 ? -errno : got;
}

/* The name of an open file. */
static const char *look_name(struct arena *a, int fd) {
    char path[64], text[PATH_MAX];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(path, text, sizeof text);
    return n < 0 ? NULL : arena_strdup(a, (struct str){text, (size_t)n});
}

/* What the kernel refuses before it reads the file. */
static int look_mode(const struct stat *st) {
    if (!S_ISREG(st->st_mode))
        return S_ISLNK(st->st_mode) ? -ELOOP : -EACCES;
    return (st->st_mode & 0111) == 0 ? -EACCES : 0;
}

bool intercept_look_line(char line[INTERCEPT_LINE_MAX + 1], size_t n, char **name, char **arg) {
    line[n] = '\0';
    char *end = memchr(line, '\n', n);
    if (end == NULL && n < INTERCEPT_LINE_MAX)
        end = line + n;
    char *p = line + 2;
    p += strspn(p, " \t");
    *name = p;
    p += strcspn(p, " \t\n");
    if (*name == p || (end == NULL && *p == '\0'))
        return false; /* none, or it may be cut */
    if (end == NULL)
        end = line + n;
    *end = '\0';
    *arg = NULL;
    if (p >= end || *p == '\0') /* a NUL ends the kernel's search too */
        return true;
    *p++ = '\0';
    p += strspn(p, " \t");
    while (end > p && (end[-1] == ' ' || end[-1] == '\t'))
        *--end = '\0';
    *arg = *p == '\0' ? NULL : p;
    return true;
}

/* What is being looked at: the file first, then each interpreter. */
struct look_at {
    int fd;
    bool cached;
    const struct intercept_walk *walk;
    char line[INTERCEPT_LINE_MAX + 1];
    ssize_t got;
};

/* Opens the interpreter of the line and notes it. */
static int look_interpreter(struct intercept_look *l, struct look_at *at) {
    char *name, *arg;
    if (!intercept_look_line(at->line, (size_t)at->got, &name, &arg))
        return -ENOEXEC;
    if (l->interpreter_count == INTERCEPT_SCRIPTS_MAX)
        return -ELOOP;
    struct intercept_walk w = *at->walk;
    _cleanup_close_ int cwd = name[0] == '/' ? -1 : look_proc(l->tid, "cwd");
    w.nofollow = false;
    w.start = cwd;
    _cleanup_close_ int fd =
        at->cached ? intercept_walk_cached(&w, name) : intercept_walk_open(&w, name);
    struct stat st;
    if (fd < 0)
        return fd;
    int r = fstat(fd, &st) < 0 ? -errno : look_mode(&st);
    if (r < 0)
        return r;
    struct intercept_interpreter *i = &l->interpreters[l->interpreter_count++];
    *i = (struct intercept_interpreter){
        .path = arena_strdup(l->arena, (struct str){name, strlen(name)}),
        .file = look_name(l->arena, fd),
        .arg = arg == NULL ? NULL : arena_strdup(l->arena, (struct str){arg, strlen(arg)}),
        .dev = st.st_dev,
        .ino = st.st_ino};
    if (i->path == NULL || i->file == NULL || (arg != NULL && i->arg == NULL))
        return -ENOMEM;
    close(at->fd);
    at->fd = steal_fd(&fd);
    return 0;
}

/* Follows `#!` lines. */
static int look_scripts(struct intercept_look *l, struct look_at *at) {
    for (;;) {
        at->got = look_head(at->fd, at->cached, at->line, INTERCEPT_LINE_MAX);
        if (at->got == -EAGAIN && at->cached)
            return -EAGAIN;
        if (at->got < 0) {
            l->unreadable = true;
            return 0;
        }
        if (at->got < 2 || memcmp(at->line, "#!", 2) != 0) {
            l->text =
                l->interpreter_count == 0 && (at->got < 4 || memcmp(at->line, "\177ELF", 4) != 0);
            return 0;
        }
        int r = look_interpreter(l, at);
        if (r < 0)
            return r;
    }
}

/* Whether the file was read before and is a program. */
static bool look_is_known(const struct intercept_known *k, const struct stat *st) {
    return k->dev == st->st_dev && k->ino == st->st_ino &&
           k->changed.tv_sec == st->st_ctim.tv_sec && k->changed.tv_nsec == st->st_ctim.tv_nsec;
}

static int look_text(struct intercept_look *l, struct look_at *at, const struct stat *st) {
    struct intercept_known *k = l->known == NULL ? NULL : &l->known[st->st_ino % INTERCEPT_KNOWN];
    if (k != NULL && look_is_known(k, st))
        return 0;
    int r = look_scripts(l, at);
    if (r == 0 && k != NULL && l->interpreter_count == 0 && !l->text && !l->unreadable)
        *k = (struct intercept_known){st->st_dev, st->st_ino, st->st_ctim};
    return r;
}

/* The name of a memfd, or NULL. */
static int look_memfd(struct intercept_look *l, const struct stat *st) {
    static const char head[] = "/memfd:", tail[] = " (deleted)";
    size_t n = strlen(l->file), h = sizeof head - 1, t = sizeof tail - 1;
    if (st->st_nlink > 0 || n < h + t || memcmp(l->file, head, h) != 0)
        return 0;
    l->memfd = arena_strdup(l->arena, (struct str){l->file + h, n - h - t});
    return l->memfd == NULL ? -ENOMEM : 0;
}

static int look_file(struct intercept_look *l, struct look_at *at) {
    struct stat st;
    int r = fstat(at->fd, &st) < 0 ? -errno : look_mode(&st);
    if (r < 0)
        return r;
    l->dev = st.st_dev;
    l->ino = st.st_ino;
    l->file = look_name(l->arena, at->fd);
    r = l->file == NULL ? -ENOMEM : look_memfd(l, &st);
    return r < 0 ? r : look_text(l, at, &st);
}

static int look_open(const struct intercept_look *l, const struct intercept_walk *w, bool cached) {
    if (l->at_fd && l->dirfd == AT_FDCWD)
        return -EACCES; /* a directory */
    if (l->at_fd)
        return look_fd(l->tid, l->dirfd);
    return cached ? intercept_walk_cached(w, l->path) : intercept_walk_open(w, l->path);
}

int intercept_look(struct intercept_look *l, bool cached) {
    l->interpreter_count = 0;
    l->file = l->memfd = NULL;
    l->unreadable = l->text = false;
    _cleanup_close_ int root = look_proc(l->tid, "root");
    if (root < 0)
        return root;
    _cleanup_close_ int start = -1;
    if (!l->at_fd && l->path[0] != '/') {
        start = l->dirfd == AT_FDCWD ? look_proc(l->tid, "cwd") : look_fd(l->tid, l->dirfd);
        if (start < 0)
            return start;
    }
    struct intercept_walk w = {
        .tid = l->tid, .tgid = l->tgid, .root = root, .start = start, .nofollow = l->nofollow};
    struct look_at at = {.cached = cached, .walk = &w, .fd = look_open(l, &w, cached)};
    int r = at.fd < 0 ? at.fd : look_file(l, &at);
    util_close_fd(&at.fd);
    return r;
}

int intercept_look_program(pid_t pid, uint64_t *dev, uint64_t *ino) {
    char path[64];
    struct statx st;
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_INO, &st) < 0)
        return -errno;
    *dev = makedev(st.stx_dev_major, st.stx_dev_minor);
    *ino = st.stx_ino;
    return 0;
}
