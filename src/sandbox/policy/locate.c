#include "sandbox/policy/locate.h"

#include "sandbox/policy/sys.h"

#include <errno.h>

/* A walk: the directory reached and the components left. */
struct locate_walk {
    struct arena *a;
    struct locate_result *out;
    int fd;                     /* of the directory reached */
    char done[LOCATE_PATH_MAX]; /* its path; "" for the root */
    size_t done_len;
    char rest[2 * LOCATE_PATH_MAX]; /* components not walked yet */
    size_t rest_at;
};

size_t locate_depth(const char *path) {
    size_t n = 0;
    for (const char *p = path; *p != '\0'; p++)
        n += *p == '/' && p[1] != '\0';
    return n;
}

bool locate_inside(const char *path, const char *dir) {
    size_t n = strcmp(dir, "/") == 0 ? 0 : strlen(dir);
    return strncmp(path, dir, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

size_t locate_first_missing(const struct locate_result *r) {
    size_t at = r->existing == 1 ? 1 : r->existing + 1;
    const char *end = strchrnul(r->path + MIN(at, strlen(r->path)), '/');
    return (size_t)(end - r->path);
}

/* The next component, NUL-terminated inside `rest`; NULL at the end. */
static char *walk_next(struct locate_walk *w, size_t *len) {
    char *p = w->rest + w->rest_at;
    while (*p == '/')
        p++;
    if (*p == '\0')
        return NULL;
    *len = strcspn(p, "/");
    w->rest_at = (size_t)(p - w->rest) + *len;
    if (p[*len] == '/') {
        p[*len] = '\0';
        w->rest_at++;
    }
    return p;
}

/* Appends a component to the path walked. */
static int walk_push(struct locate_walk *w, const char *name, size_t len) {
    if (w->done_len + len + 2 > sizeof w->done)
        return -ENAMETOOLONG;
    w->done[w->done_len++] = '/';
    memcpy(w->done + w->done_len, name, len + 1);
    w->done_len += len;
    return 0;
}

static int walk_to_root(struct locate_walk *w) {
    util_close_fd(&w->fd);
    w->done[w->done_len = 0] = '\0';
    w->fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return w->fd < 0 ? -errno : 0;
}

/* Puts n bytes of text before the components left. */
static int walk_prepend(struct locate_walk *w, const char *text, size_t n) {
    size_t left = strlen(w->rest + w->rest_at);
    if (n + 1 + left + 1 > sizeof w->rest)
        return -ENAMETOOLONG;
    memmove(w->rest + n + 1, w->rest + w->rest_at, left + 1);
    memcpy(w->rest, text, n);
    w->rest[n] = '/';
    w->rest_at = 0;
    return 0;
}

/* Walks to the parent by its path: ".." of a directory that somebody has just moved would lead
 * elsewhere. */
static int walk_up(struct locate_walk *w) {
    while (w->done_len > 0 && w->done[--w->done_len] != '/')
        ;
    int r = walk_prepend(w, w->done, w->done_len);
    return r < 0 ? r : walk_to_root(w);
}

/* Continues at the target of the link `name`, open as fd. */
static int walk_link(struct locate_walk *w, int fd, const char *name) {
    struct locate_result *out = w->out;
    char text[LOCATE_PATH_MAX], place[LOCATE_PATH_MAX];
    if (out->link_count == LOCATE_LINKS_MAX)
        return -ELOOP;
    ssize_t n = readlinkat(fd, "", text, sizeof text - 1);
    if (n < 0)
        return -errno;
    text[n] = '\0';
    size_t at = w->done_len, len = strlen(name);
    if (at + len + 2 > sizeof place)
        return -ENAMETOOLONG;
    memcpy(place, w->done, at);
    place[at] = '/';
    memcpy(place + at + 1, name, len + 1);
    struct locate_link *l = &out->links[out->link_count++];
    l->place = arena_strdup(w->a, str_of(place));
    l->text = arena_strdup(w->a, str_of(text));
    if (l->place == NULL || l->text == NULL)
        return -ENOMEM;

    int r = walk_prepend(w, text, (size_t)n);
    return r == 0 && text[0] == '/' ? walk_to_root(w) : r;
}

/* Ends a walk early; keeps the rest, which does not exist, as a path without dot segments. */
static int walk_stop(struct locate_walk *w, const char *name, enum locate_state state) {
    struct locate_result *out = w->out;
    char whole[LOCATE_PATH_MAX + sizeof w->rest];
    size_t n = w->done_len;
    memcpy(whole, w->done, n);
    out->existing = MAX(n, (size_t)1);
    for (size_t len = strlen(name); name != NULL && !out->lost; name = walk_next(w, &len)) {
        if (strcmp(name, ".") == 0)
            continue;
        out->lost = strcmp(name, "..") == 0;
        if (out->lost)
            break;
        if (n + 1 + strlen(name) + 1 > LOCATE_PATH_MAX)
            return -ENAMETOOLONG;
        whole[n++] = '/';
        memcpy(whole + n, name, strlen(name));
        n += strlen(name);
    }
    out->state = state;
    out->path = arena_strdup(w->a, (struct str){whole, n});
    if (out->path == NULL)
        return -ENOMEM;
    return fstat(w->fd, &out->st) < 0 ? -errno : 0;
}

/* Walks one component. 1: the walk is over. */
static int walk_step(struct locate_walk *w, char *name, size_t len) {
    if (strcmp(name, ".") == 0)
        return 0;
    if (strcmp(name, "..") == 0)
        return walk_up(w);
    _cleanup_close_ int fd = openat(w->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT && errno != ENOTDIR && errno != EACCES)
        return -errno;
    if (fd < 0) {
        int r = walk_stop(w, name, errno == EACCES ? LOCATE_BLOCKED : LOCATE_MISSING);
        return r < 0 ? r : 1;
    }
    if (fstat(fd, &w->out->st) < 0)
        return -errno;
    if (S_ISLNK(w->out->st.st_mode))
        return walk_link(w, fd, name);
    util_close_fd(&w->fd);
    w->fd = steal_fd(&fd);
    return walk_push(w, name, len);
}

static int walk_run(struct locate_walk *w) {
    int r = walk_to_root(w);
    size_t len = 0;
    for (char *name; r == 0 && (name = walk_next(w, &len)) != NULL;)
        r = walk_step(w, name, len);
    if (r != 0)
        return MIN(r, 0);
    struct locate_result *out = w->out;
    out->state = LOCATE_FOUND;
    out->path = arena_strdup(w->a, w->done_len > 0 ? str_of(w->done) : STR_LIT("/"));
    if (out->path == NULL)
        return -ENOMEM;
    out->existing = strlen(out->path);
    return fstat(w->fd, &out->st) < 0 ? -errno : 0;
}

/* Whether no component is "", "." or "..". */
static bool locate_is_normal(const char *path) {
    for (const char *p = strchr(path, '/'); p != NULL; p = strchr(p + 1, '/')) {
        size_t n = strcspn(p + 1, "/");
        bool dots = (n == 1 && p[1] == '.') || (n == 2 && p[1] == '.' && p[2] == '.');
        if (dots || (n == 0 && path[1] != '\0'))
            return false;
    }
    return true;
}

int locate_path(const char *path, struct arena *a, struct locate_result *out) {
    out->link_count = 0;
    out->lost = false;
    if (strlen(path) >= LOCATE_PATH_MAX)
        return -ENAMETOOLONG;
    /* Most paths cross no link: one call finds out. */
    _cleanup_close_ int fd = -1;
    if (locate_is_normal(path))
        fd = sys_openat2(AT_FDCWD, path, O_PATH | O_NOFOLLOW, RESOLVE_NO_SYMLINKS);
    if (fd >= 0 && fstat(fd, &out->st) == 0 && !S_ISLNK(out->st.st_mode)) {
        out->state = LOCATE_FOUND;
        out->existing = strlen(path);
        out->path = arena_strdup(a, str_of(path));
        return out->path == NULL ? -ENOMEM : 0;
    }
    struct locate_walk w = {.a = a, .out = out, .fd = -1};
    memcpy(w.rest, path, strlen(path) + 1);
    int r = walk_run(&w);
    util_close_fd(&w.fd);
    return r;
}
