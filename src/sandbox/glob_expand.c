#include "sandbox/glob_run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPAND_PATH_MAX 4096

struct glob_walk {
    struct glob_run run;
    uint32_t max_depth;
    size_t *budget;
    glob_found_fn *found;
    void *arg;
    char path[EXPAND_PATH_MAX]; /* of the entry being looked at */
};

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

/* A directory that cannot be listed may hide anything, if it can be entered, or opened by its owner
 * later. */
static int walk_unreadable(struct glob_walk *w, int dir, const char *name, int error) {
    struct stat st;
    if (error == ENOENT || error == ENOTDIR || error == ELOOP)
        return 0; /* it has changed meanwhile */
    if (error != EACCES)
        return -error;
    bool ours = fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid == geteuid();
    bool enters = faccessat(dir, name, X_OK, AT_EACCESS) == 0;
    return ours || enters ? w->found(w->arg, w->path, false, true) : 0;
}

static int walk_subdir(struct glob_walk *w, int dir, const char *name, size_t len, uint32_t depth) {
    glob_run_read(&w->run, "/");
    if (!glob_run_alive(&w->run) || (w->max_depth != 0 && depth >= w->max_depth))
        return 0;
    struct glob_at at;
    int r = glob_run_save(&w->run, &at);
    if (r < 0)
        return r;
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        r = walk_unreadable(w, dir, name, errno);
    else
        r = walk_dir(w, fd, len, depth + 1, &at);
    free(at.nodes);
    return r;
}

static int walk_entry(struct glob_walk *w, int dir, const struct dirent *d, size_t len,
                      uint32_t depth, const struct glob_at *at) {
    size_t n = strlen(d->d_name);
    if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
        return 0;
    if (*w->budget == 0)
        return -E2BIG;
    (*w->budget)--;
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
    return glob_run_matched(&w->run) ? w->found(w->arg, w->path, is_link, false) : 0;
}

/* Takes dir_fd over. */
static int walk_dir(struct glob_walk *w, int dir_fd, size_t len, uint32_t depth,
                    const struct glob_at *at) {
    DIR *dir = fdopendir(dir_fd);
    if (dir == NULL) {
        close(dir_fd);
        return -ENOMEM;
    }
    int r = 0;
    for (const struct dirent *d; r == 0 && (errno = 0, d = readdir(dir)) != NULL;)
        r = walk_entry(w, dirfd(dir), d, len, depth, at);
    if (r == 0 && errno != 0)
        r = -errno;
    closedir(dir);
    return r;
}

int glob_expand(const struct glob_set *s, const char *dir, uint32_t max_depth, size_t *budget,
                glob_found_fn *found, void *arg) {
    struct glob_walk w = {.max_depth = max_depth, .budget = budget, .found = found, .arg = arg};
    size_t len = strlen(dir);
    if (len >= sizeof w.path)
        return -ENAMETOOLONG;
    memcpy(w.path, dir, len + 1);
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return walk_unreadable(&w, AT_FDCWD, dir, errno);
    struct glob_at at;
    int r = glob_run_init(&w.run, s);
    if (r == 0) {
        glob_run_start(&w.run);
        r = glob_run_save(&w.run, &at);
        if (r == 0) {
            r = walk_dir(&w, fd, len == 1 ? 0 : len, 1, &at);
            fd = -1;
            free(at.nodes);
        }
        glob_run_fini(&w.run);
    }
    util_close_fd(&fd);
    return r;
}
