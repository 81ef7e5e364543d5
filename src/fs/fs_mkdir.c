#include "fs/fs_mkdir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>

#define MKDIR_MODE 0777

static bool mkdir_is_dir(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* 0 also if the directory exists already, or is a link to one. */
static int mkdir_one(const char *path) {
    if (mkdir(path, MKDIR_MODE) == 0)
        return 0;
    int num = errno;
    return num != ENOENT && mkdir_is_dir(path) ? 0 : -num;
}

/* Up to the first parent that is there, then down again. */
static int mkdir_all(const char *path) {
    int r = mkdir_one(path);
    if (r != -ENOENT)
        return r;
    _cleanup_free_ char *z = strdup(path);
    if (z == NULL)
        return -ENOMEM;
    size_t n = strlen(z), len = n;
    while (r == -ENOENT) {
        while (len > 0 && z[len] != '/')
            len--;
        if (len == 0)
            return r;
        z[len] = '\0';
        r = mkdir_one(z);
    }
    while (r == 0 && len < n) {
        z[len] = '/';
        len = strlen(z);
        r = mkdir_one(z);
    }
    return r;
}

/* Moves *dir down to its directory `name`; with `make` makes it if missing. Passes no link. */
static int mkdir_enter(int *dir, const char *name, bool make) {
    const int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(*dir, name, flags);
    if (fd < 0 && errno == ENOENT && make) {
        if (mkdirat(*dir, name, MKDIR_MODE) < 0 && errno != EEXIST)
            return -errno;
        fd = openat(*dir, name, flags);
    }
    if (fd < 0)
        return -errno;
    close(*dir);
    *dir = fd;
    return 0;
}

/*
 * Moves *dir down the components of `path` from `at` on, and makes those that are missing; passes
 * no link. With a check it asks before each one, and makes only what was missing then: the answer
 * was about what existed. 0 or -errno.
 */
static int mkdir_down(int *dir, char *path, size_t at, const struct fs_place_check *check) {
    int r = 0;
    for (char *name = path + at; r == 0 && *name != '\0';) {
        char *slash = strchrnul(name, '/');
        bool last = *slash == '\0';
        struct stat st = {.st_mode = 0};
        *slash = '\0';
        if (check != NULL) {
            if (fstatat(*dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                st.st_mode = 0;
            r = check->ask(check->arg, FS_MAKES, path, st.st_mode);
        }
        if (r == 0)
            r = mkdir_enter(dir, name, st.st_mode == 0);
        *slash = last ? '\0' : '/';
        name = last ? slash : slash + 1;
    }
    return r;
}

static int mkdir_all_nofollow(const char *path) {
    _cleanup_close_ int dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return -errno;
    _cleanup_free_ char *z = strdup(path);
    return z == NULL ? -ENOMEM : mkdir_down(&dir, z, 1, NULL);
}

static int mkdir_nofollow(const char *path, struct err *e) {
    _cleanup_close_ int dir = -1;
    const char *leaf;
    if (path[1] == '\0')
        return fs_fail_as(e, FS_FAIL_MKDIR_ROOT);
    int r = fs_parent_open(path, &dir, &leaf, e);
    if (r < 0)
        return r;
    return mkdirat(dir, leaf, MKDIR_MODE) < 0 ? fs_fail(e, errno) : 0;
}

int fs_mkdir(const char *path, bool recursive, bool follow, struct err *e) {
    if (recursive)
        return fs_fail_check(e, follow ? mkdir_all(path) : mkdir_all_nofollow(path));
    if (!follow)
        return mkdir_nofollow(path, e);
    return mkdir(path, MKDIR_MODE) < 0 ? fs_fail(e, errno) : 0;
}

int fs_mkdir_at(const struct fs_place *p) {
    if (p->mode != 0) /* the decision was about what existed, which may be gone by now */
        return -EEXIST;
    return mkdirat(p->dir, fs_place_name(p), MKDIR_MODE) < 0 ? -errno : 0;
}

int fs_mkdir_all_at(const struct fs_place *p, const struct fs_place_check *check) {
    char path[PATH_MAX];
    _cleanup_close_ int dir = fs_place_dup(p);
    if (dir < 0)
        return dir;
    strcpy(path, p->path);
    int r = mkdir_down(&dir, path, p->name, check);
    return r < 0 ? r : steal_fd(&dir);
}
