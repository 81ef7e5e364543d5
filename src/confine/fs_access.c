#include "confine/fs_access.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/statvfs.h>

#define FS_ACCESS_WALK_MAX (1u << 20) /* bytes to look up one path */
#define FS_ACCESS_TRIES 8             /* attempts at a path that keeps changing */

/* The subject of a question to the policy. */
struct fs_access_ask {
    enum fs_need need;
    struct fs_place *at;
};

static enum access_need fs_access_need(enum fs_need need) {
    switch (need) {
    case FS_READS: return ACCESS_READ;
    case FS_MAKES: return ACCESS_MAKE;
    case FS_TAKES: return ACCESS_TAKE;
    case FS_GETS: return ACCESS_GET;
    case FS_CHANGES: break;
    }
    return ACCESS_CHANGE;
}

/* -- deciding -- */

/* Opens the deepest part of a path that exists; -1: none. For a call that will be refused. */
static int fs_access_open_deepest(const char *path) {
    size_t n = strlen(path);
    int fd = -1;
    while (fd < 0 && n > 0) {
        while (n > 0 && path[--n] != '/')
            ;
        fd = fs_open_dir(path, n);
    }
    return fd;
}

/* Whether the place to change is on a read-only mount: then the kernel refuses by itself, or finds
 * another error first. Asks through the descriptor that the call will act on. */
static bool fs_access_is_readonly(void *arg) {
    const struct fs_access_ask *ask = arg;
    struct fs_place *at = ask->at;
    struct statvfs v;
    if (ask->need == FS_CHANGES && at->dir >= 0 && at->mode != 0 && !S_ISLNK(at->mode)) {
        util_close_fd(&at->object);
        int object = fs_place_open(at, O_PATH, 0);
        at->object = MAX(object, -1);
    }
    _cleanup_close_ int deepest = at->dir < 0 ? fs_access_open_deepest(at->path) : -1;
    int fd = at->object >= 0 ? at->object : at->dir >= 0 ? at->dir : deepest;
    return fd >= 0 && fstatvfs(fd, &v) == 0 && (v.f_flag & ST_RDONLY);
}

static int fs_access_decide(struct access *x, const struct fs_call_path *p, struct fs_place *at) {
    struct fs_access_ask ask = {p->need, at};
    const struct access_query q = {.need = fs_access_need(p->need),
                                   .path = at->path,
                                   .mode = at->mode,
                                   .tree = p->tree,
                                   .is_readonly = fs_access_is_readonly,
                                   .arg = &ask};
    return access_may(x, &q);
}

/* -- paths -- */

/* Whether a dangling link is in the way of making directories. */
static bool fs_access_dangles(const char *path) {
    char prefix[PATH_MAX];
    struct stat st;
    size_t n = strlen(path);
    memcpy(prefix, path, n + 1);
    while (lstat(prefix, &st) < 0 && n > 1) {
        while (n > 1 && prefix[n - 1] != '/')
            n--;
        n -= n > 1;
        prefix[n] = '\0';
    }
    return S_ISLNK(st.st_mode) && stat(prefix, &st) < 0;
}

/* The result of a call on a path that does not fully exist. 0 or -errno. */
static int fs_access_place(const struct fs_call_path *p, const struct locate_result *at) {
    if (at->state == LOCATE_FOUND)
        return 0;
    if (at->state == LOCATE_BLOCKED)
        return -EACCES;
    if (!S_ISDIR(at->st.st_mode))
        return -ENOTDIR;
    if (at->lost)
        return -ENOENT;
    if (p->need == FS_MAKES && at->link_count > 0 && fs_access_dangles(p->path))
        return -EEXIST;
    return at->path[locate_first_missing(at)] != '\0' && !p->parents ? -ENOENT : 0;
}

/* Whether a link on the way has a denied name: then its target is denied. */
static bool fs_access_crosses(struct access *x, const struct locate_result *at) {
    for (size_t i = 0; i < at->link_count; i++) {
        if (access_globs_matches(x, at->links[i].place))
            return true;
    }
    return false;
}

/* Whether the kernel would follow the links too: it refuses some links of other users. */
static bool fs_access_may_follow(const char *path, const struct locate_result *at) {
    if (at->link_count == 0 || at->state != LOCATE_FOUND)
        return true;
    _cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);
    return fd >= 0 || errno != EACCES;
}

/* Resolves the links of `path` into at->path. fs_place_fill() then opens that text without passing
 * a link, so later changes of the links do not matter. */
static int fs_access_locate(struct access *x, const struct fs_call_path *p, const char *path,
                            struct fs_place *at) {
    _cleanup_arena_ struct arena a = ARENA_INIT(FS_ACCESS_WALK_MAX);
    struct locate_result found;
    int r = locate_path(path, &a, &found);
    if (r == 0 && (r = fs_access_place(p, &found)) == -ENOENT)
        r = access_may_missing(x, fs_access_need(p->need), found.path, found.existing);
    if (r == 0 && (fs_access_crosses(x, &found) || !fs_access_may_follow(path, &found)))
        r = -EACCES;
    if (r == 0 && strlen(found.path) >= PATH_MAX)
        r = -ENAMETOOLONG;
    if (r == 0)
        strcpy(at->path, found.path);
    return r;
}

/* The place of a path whose last component is followed. */
static int fs_access_fill_followed(struct access *x, const struct fs_call_path *p,
                                   struct fs_place *at) {
    strcpy(at->path, p->path);
    int r = fs_place_fill(at, false); /* most paths cross no link: two calls find out */
    for (int i = 0; i < FS_ACCESS_TRIES && (r < 0 || S_ISLNK(at->mode)); i++) {
        r = fs_access_locate(x, p, p->path, at);
        if (r < 0)
            return r;
        r = fs_place_fill(at, p->parents);
        if (r < 0 && r != -ENOENT && r != -ENOTDIR) /* else it has changed since */
            return r;
    }
    return r == 0 && S_ISLNK(at->mode) ? -ELOOP : r;
}

/* Resolves the links in a name's directory. 0 or -errno. */
static int fs_access_locate_dir(struct access *x, const struct fs_call_path *p, const char *dir,
                                struct fs_place *at) {
    int r = fs_access_locate(x, p, dir, at);
    if (r == 0)
        r = fs_place_fill(at, false);
    if (r < 0)
        return r;
    if (at->mode == 0)
        r = p->need == FS_GETS && fs_access_decide(x, p, at) == -EROFS ? -EROFS : -ENOENT;
    else if (!S_ISDIR(at->mode))
        r = -ENOTDIR;
    fs_place_fini(at);
    return r;
}

/* The place of a path whose last component is not followed. */
static int fs_access_fill_name(struct access *x, const struct fs_call_path *p,
                               struct fs_place *at) {
    char dir[PATH_MAX];
    const char *slash = strrchr(p->path, '/');
    size_t n = slash == p->path ? 1 : (size_t)(slash - p->path);
    memcpy(dir, p->path, n);
    dir[n] = '\0';
    strcpy(at->path, p->path);
    int r = fs_place_fill(at, false);
    for (int i = 0; i < FS_ACCESS_TRIES && r < 0; i++) {
        r = fs_access_locate_dir(x, p, dir, at);
        if (r < 0)
            return r;
        n = strcmp(at->path, "/") == 0 ? 0 : strlen(at->path);
        if (n + strlen(slash) >= PATH_MAX)
            return -ENAMETOOLONG;
        strcpy(at->path + n, slash);
        r = fs_place_fill(at, false);
        if (r < 0 && r != -ENOENT && r != -ENOTDIR)
            return r;
    }
    return r;
}

/* The place of a path that must not cross a link. */
static int fs_access_fill_plain(struct access *x, const struct fs_call_path *p,
                                struct fs_place *at) {
    strcpy(at->path, p->path);
    int r = fs_place_fill(at, p->parents);
    if (r < 0)
        at->mode = 0;
    if (at->mode == 0 && access_may_is_unseen(x, p->path))
        return -EACCES;
    return r;
}

static int fs_access_pass(void *arg, const struct fs_call_path *p, struct fs_place *out) {
    struct access *x = arg;
    if (strlen(p->path) >= PATH_MAX)
        return -ENAMETOOLONG;
    fs_place_fini(out);
    int r;
    if (!p->follow || strcmp(p->path, "/") == 0) {
        r = fs_access_fill_plain(x, p, out);
        if (r < 0 && r != -EACCES) { /* a refusal by the policy goes first */
            int refused = fs_access_decide(x, p, out);
            r = refused < 0 ? refused : r;
        } else if (r == 0) {
            r = fs_access_decide(x, p, out);
        }
    } else {
        r = p->leaf ? fs_access_fill_followed(x, p, out) : fs_access_fill_name(x, p, out);
        if (r == 0)
            r = fs_access_decide(x, p, out);
    }
    if (r < 0)
        fs_place_fini(out);
    return r;
}

static int fs_access_check(void *arg, enum fs_need need, const char *path, mode_t mode) {
    const struct access_query q = {.need = fs_access_need(need), .path = path, .mode = mode};
    return access_may(arg, &q);
}

static bool fs_access_hidden(void *arg, const char *path) {
    const struct access *x = arg;
    _cleanup_arena_ struct arena a = ARENA_INIT(FS_ACCESS_WALK_MAX);
    struct locate_result at;
    return locate_path(path, &a, &at) < 0 || access_may_is_hidden(x, at.path);
}

struct fs_call_access fs_access_calls(struct access *x) {
    return (struct fs_call_access){
        .arg = x, .pass = fs_access_pass, .check = fs_access_check, .hidden = fs_access_hidden};
}
