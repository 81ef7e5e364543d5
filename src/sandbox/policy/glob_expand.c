#include "sandbox/policy/glob_run.h"

#include "sandbox/policy/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPAND_PATH_MAX 4096

struct glob_walk {
    struct glob_run run;
    const struct glob_visit *v;
    char path[EXPAND_PATH_MAX]; /* of the current entry */
};

static int walk_found(struct glob_walk *w, int dir, const char *name, bool is_link,
                      bool unlistable) {
    const struct glob_run_match m = {dir, name, w->path, is_link, unlistable};
    return w->v->found(w->v->arg, &m);
}

static int walk_dir(struct glob_walk *w, int dir_fd, size_t len, uint32_t depth,
                    const struct glob_at *at);

/* 1: a directory, 0: something else. */
static int walk_is_dir(int dir, const struct dirent *d, bool *is_link) {
    struct stat st;
    *is_link = d->d_type == DT_LNK;
    if (d->d_type != DT_UNKNOWN)
        return d->d_type == DT_DIR;
    if (fstatat(dir, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    *is_link = S_ISLNK(st.st_mode);
    return S_ISDIR(st.st_mode);
}

/* Whether names in an open directory can be looked up. */
static bool walk_is_searchable(int fd) {
    struct stat st;
    return fstatat(fd, ".", &st, 0) == 0 || errno != EACCES;
}

/* A directory that can be entered, or that its owner can open later, but cannot be listed may hide
 * anything. One that can be listed but not searched may too: its entries cannot be masked. */
static int walk_unreadable(struct glob_walk *w, int dir, const char *name, int error) {
    struct stat st;
    if (error == ENOENT || error == ENOTDIR || error == ELOOP)
        return 0; /* it has changed since */
    if (error != EACCES)
        return -error;
    bool ours = fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid == geteuid();
    bool enters = faccessat(dir, name, X_OK, AT_EACCESS) == 0;
    return ours || enters ? walk_found(w, dir, name, false, true) : 0;
}

static int walk_subdir(struct glob_walk *w, int dir, const char *name, size_t len, uint32_t depth) {
    glob_run_read(&w->run, "/");
    if (!glob_run_alive(&w->run) || (w->v->max_depth != 0 && depth >= w->v->max_depth))
        return 0;
    struct glob_at at;
    int r = glob_run_save(&w->run, &at);
    if (r < 0)
        return r;
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && !walk_is_searchable(fd)) {
        close(fd);
        r = walk_unreadable(w, dir, name, EACCES);
    } else if (fd < 0) {
        r = walk_unreadable(w, dir, name, errno);
    } else {
        r = walk_dir(w, fd, len, depth + 1, &at);
    }
    free(at.nodes);
    return r;
}

static int walk_entry(struct glob_walk *w, int dir, const struct dirent *d, size_t len,
                      uint32_t depth, const struct glob_at *at) {
    size_t n = strlen(d->d_name);
    if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
        return 0;
    if (*w->v->budget == 0)
        return -E2BIG;
    (*w->v->budget)--;
    if (len + 1 + n + 1 > sizeof w->path)
        return -ENAMETOOLONG;
    w->path[len] = '/';
    memcpy(w->path + len + 1, d->d_name, n + 1);
    glob_run_load(&w->run, at);
    glob_run_read(&w->run, d->d_name);
    bool is_link;
    if (!glob_run_alive(&w->run))
        return 0;
    if (walk_is_dir(dir, d, &is_link))
        return walk_subdir(w, dir, d->d_name, len + 1 + n, depth);
    return glob_run_matched(&w->run) ? walk_found(w, dir, d->d_name, is_link, false) : 0;
}

/* Takes dir_fd over. */
static int walk_dir(struct glob_walk *w, int dir_fd, size_t len, uint32_t depth,
                    const struct glob_at *at) {
    w->path[len > 0 ? len : 1] = '\0';
    int r = w->v->enter != NULL ? w->v->enter(w->v->arg, dir_fd, w->path) : 0;
    if (r != 0) {
        close(dir_fd);
        return MIN(r, 0);
    }
    DIR *dir = fdopendir(dir_fd);
    if (dir == NULL) {
        close(dir_fd);
        return -ENOMEM;
    }
    for (const struct dirent *d; r == 0 && (errno = 0, d = readdir(dir)) != NULL;)
        r = walk_entry(w, dirfd(dir), d, len, depth, at);
    if (r == 0 && errno != 0)
        r = -errno;
    closedir(dir);
    return r;
}

/* Reads the path down to `below` as if it had been walked; returns the depth there. */
static uint32_t walk_skip(struct glob_walk *w, const char *below) {
    uint32_t depth = 1;
    glob_run_start(&w->run);
    if (below == NULL || *below == '\0')
        return depth;
    glob_run_read(&w->run, below);
    glob_run_read(&w->run, "/");
    for (depth++; (below = strchr(below, '/')) != NULL; below++)
        depth++;
    return depth;
}

/* Takes fd over; w->path, of `len` bytes, is its path. */
static int walk_begin(struct glob_walk *w, const struct glob_set *s, const char *below, int fd,
                      size_t len) {
    struct glob_at at;
    int r = glob_run_init(&w->run, s);
    if (r < 0) {
        close(fd);
        return r;
    }
    uint32_t depth = walk_skip(w, below);
    bool deep = w->v->max_depth != 0 && depth > w->v->max_depth;
    if (deep || !glob_run_alive(&w->run) || (r = glob_run_save(&w->run, &at)) < 0) {
        close(fd);
    } else {
        r = walk_dir(w, fd, len == 1 ? 0 : len, depth, &at);
        free(at.nodes);
    }
    glob_run_fini(&w->run);
    return r;
}

int glob_expand(const struct glob_set *s, const char *dir, const char *below,
                const struct glob_visit *v) {
    struct glob_walk w = {.v = v};
    bool all = below == NULL || *below == '\0';
    int len = snprintf(w.path, sizeof w.path, "%s%s%s", dir, all || dir[1] == '\0' ? "" : "/",
                       all ? "" : below);
    if (len >= (int)sizeof w.path)
        return -ENAMETOOLONG;
    int fd = sys_openat2(AT_FDCWD, w.path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK,
                         all ? 0 : RESOLVE_NO_SYMLINKS);
    if (fd < 0 && errno == ENOSYS)
        fd = open(w.path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return walk_unreadable(&w, AT_FDCWD, w.path, errno);
    if (!walk_is_searchable(fd)) {
        close(fd);
        return walk_unreadable(&w, AT_FDCWD, w.path, EACCES);
    }
    return walk_begin(&w, s, below, fd, (size_t)len);
}
