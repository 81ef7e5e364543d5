#include "client/localtree.h"

#include "client/partnote.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#define SECOND 1000000000LL

struct localtree {
    int root;
    int last;        /* the directory last asked for, -1 if none */
    char *last_name; /* its name; owned */
    bool no_openat2; /* the kernel has none, or a filter refuses it */
};

struct localtree *localtree_new(int root) {
    struct localtree *t = calloc(1, sizeof(*t));
    if (t == NULL) {
        close(root);
        return NULL;
    }
    t->root = root;
    t->last = -1;
    return t;
}

static void forget(struct localtree *t) {
    util_close_fd(&t->last);
    free(steal_ptr(&t->last_name));
}

void localtree_free(struct localtree *t) {
    if (t == NULL)
        return;
    forget(t);
    util_close_fd(&t->root);
    free(t);
}

int localtree_root(const struct localtree *t) {
    return t->root;
}

/* Whether each part of a name is one. */
static bool is_relative(const char *name) {
    for (const char *p = name;;) {
        size_t n = strcspn(p, "/");
        if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
            return false;
        if (p[n] == '\0')
            return true;
        p += n + 1;
    }
}

/* Opens a directory part by part, for names above PATH_MAX and kernels without openat2. */
static int open_parts(int root, const char *name) {
    int fd = fcntl(root, F_DUPFD_CLOEXEC, 0);
    for (const char *p = name; fd >= 0 && *p != '\0';) {
        char part[PARTNOTE_NAME_MAX + 1];
        size_t n = strcspn(p, "/");
        if (n >= sizeof(part)) {
            close(fd);
            return -ENAMETOOLONG;
        }
        memcpy(part, p, n);
        part[n] = '\0';
        int next = openat(fd, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int saved = errno;
        close(fd);
        errno = saved;
        fd = next;
        p += n + (p[n] == '/');
    }
    return fd < 0 ? -errno : fd;
}

static int open_below(struct localtree *t, const char *name) {
    struct open_how how = {
        .flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    if (!t->no_openat2) {
        int fd = (int)syscall(SYS_openat2, t->root, name, &how, sizeof(how));
        if (fd >= 0)
            return fd;
        if (errno == ENOSYS || errno == EPERM)
            t->no_openat2 = true;
        else if (errno != EAGAIN && errno != ENAMETOOLONG)
            return -errno;
    }
    return open_parts(t->root, name);
}

/* The directory whose name is the first n bytes of `name`; borrowed until the next call. */
static int directory(struct localtree *t, const char *name, size_t n) {
    if (n == 0)
        return t->root;
    if (t->last >= 0 && strlen(t->last_name) == n && memcmp(t->last_name, name, n) == 0)
        return t->last;
    forget(t);
    t->last_name = strndup(name, n);
    if (t->last_name == NULL)
        return -ENOMEM;
    int fd = open_below(t, t->last_name);
    if (fd < 0) {
        forget(t);
        return fd;
    }
    t->last = fd;
    return fd;
}

int localtree_parent(struct localtree *t, const char *name, int *fd, const char **leaf) {
    if (!is_relative(name))
        return -EINVAL;
    const char *slash = strrchr(name, '/');
    int r = directory(t, name, slash == NULL ? 0 : (size_t)(slash - name));
    if (r < 0)
        return r;
    *fd = r;
    *leaf = slash == NULL ? name : slash + 1;
    return 0;
}

int localtree_mkdir(struct localtree *t, const char *name) {
    int fd;
    const char *leaf;
    int r = localtree_parent(t, name, &fd, &leaf);
    if (r < 0)
        return r;
    if (mkdirat(fd, leaf, 0700) == 0)
        return 0;
    if (errno != EEXIST)
        return -errno;
    struct stat st;
    if (fstatat(fd, leaf, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    return S_ISDIR(st.st_mode) ? 1 : -EEXIST;
}

int localtree_symlink(struct localtree *t, const char *name, const char *target) {
    int fd;
    const char *leaf;
    int r = localtree_parent(t, name, &fd, &leaf);
    if (r < 0)
        return r;
    if (symlinkat(target, fd, leaf) == 0)
        return 0;
    if (errno != EEXIST)
        return -errno;
    struct stat st;
    if (fstatat(fd, leaf, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
        return -EISDIR;
    char token[PARTNOTE_TOKEN_LEN + 1], part[PARTNOTE_NAME_MAX + 1];
    partnote_token(token);
    partnote_part_name((struct str){leaf, strlen(leaf)}, token, part);
    if (symlinkat(target, fd, part) < 0)
        return -errno;
    if (renameat(fd, part, fd, leaf) == 0)
        return 0;
    r = -errno;
    unlinkat(fd, part, 0);
    return r;
}

struct timespec localtree_time(int64_t ns) {
    int64_t s = ns / SECOND, rest = ns % SECOND;
    if (rest < 0) {
        s--;
        rest += SECOND;
    }
    return (struct timespec){.tv_sec = s, .tv_nsec = (long)rest};
}

int64_t localtree_ns(struct timespec t) {
    int64_t ns;
    if (__builtin_mul_overflow((int64_t)t.tv_sec, SECOND, &ns) ||
        __builtin_add_overflow(ns, (int64_t)t.tv_nsec, &ns))
        return t.tv_sec < 0 ? INT64_MIN : INT64_MAX;
    return ns;
}

int localtree_set(int fd, const struct localtree_traits *traits) {
    if (traits->has_mode && fchmod(fd, traits->mode & 07777) < 0)
        return -errno;
    if (!traits->has_time)
        return 0;
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, localtree_time(traits->modified_ns)};
    return futimens(fd, times) < 0 ? -errno : 0;
}

int localtree_set_directory(struct localtree *t, const char *name,
                            const struct localtree_traits *traits) {
    int parent = t->root;
    const char *leaf = ".";
    if (name[0] != '\0') {
        int r = localtree_parent(t, name, &parent, &leaf);
        if (r < 0)
            return r;
    }
    _cleanup_close_ int fd =
        openat(parent, leaf, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    return fd < 0 ? -errno : localtree_set(fd, traits);
}

int localtree_set_link(struct localtree *t, const char *name,
                       const struct localtree_traits *traits) {
    int fd;
    const char *leaf;
    int r = localtree_parent(t, name, &fd, &leaf);
    if (r < 0 || !traits->has_time)
        return r;
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, localtree_time(traits->modified_ns)};
    return utimensat(fd, leaf, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

mode_t localtree_umask(void) {
    FILE *f = fopen("/proc/self/status", "re");
    unsigned long mask = 022;
    char line[256];
    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        if (strncmp(line, "Umask:", 6) != 0)
            continue;
        mask = strtoul(line + 6, NULL, 8); /* sscanf() would make the static xs 40 kB larger */
        break;
    }
    if (f != NULL)
        fclose(f);
    return (mode_t)mask & 0777;
}
