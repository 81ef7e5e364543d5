#include "rules/decide_internal.h"

#include "base/utf8.h"
#include "json/jsonw.h"
#include "rules/decide_requirements.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>

#define LAYERS_ARENA_MAX (32u << 20)

/* Notes the first error; a newline at its end is cut. */
static void layers_fail(struct decide_layers *l, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void layers_fail(struct decide_layers *l, const char *fmt, ...) {
    char *text = NULL;
    if (l->error != NULL)
        return;
    va_list ap;
    va_start(ap, fmt);
    int n = vasprintf(&text, fmt, ap);
    va_end(ap);
    while (n > 0 && text[n - 1] == '\n')
        n--;
    l->error = n < 0 ? NULL : arena_strdup(&l->arena, (struct str){text, (size_t)n});
    free(n < 0 ? NULL : text);
    if (l->error == NULL)
        l->error = "out of memory";
}

/* -- stamps -- */

static struct decide_stamp stamp_of(const char *path) {
    struct stat st;
    struct decide_stamp s = {.path = path, .exists = lstat(path, &st) == 0};
    if (s.exists) {
        s.mtime = st.st_mtim;
        s.ctime = st.st_ctim;
        s.size = st.st_size;
        s.ino = st.st_ino;
        s.dev = st.st_dev;
    }
    return s;
}

static bool stamp_same(const struct decide_stamp *a, const struct decide_stamp *b) {
    if (!a->exists || !b->exists)
        return a->exists == b->exists;
    return a->mtime.tv_sec == b->mtime.tv_sec && a->mtime.tv_nsec == b->mtime.tv_nsec &&
           a->ctime.tv_sec == b->ctime.tv_sec && a->ctime.tv_nsec == b->ctime.tv_nsec &&
           a->size == b->size && a->ino == b->ino && a->dev == b->dev;
}

/* Takes the stamp before the file is read: a change in between is found by the next look. */
static void layers_watch(struct decide_layers *l, const char *path) {
    struct decide_stamp *list = arena_grow(&l->arena, l->stamps, l->n, &l->cap, 16, sizeof *list);
    if (list == NULL) {
        layers_fail(l, "out of memory");
        return;
    }
    l->stamps = list;
    l->stamps[l->n++] = stamp_of(path);
}

bool decide_layers_changed(const struct decide_layers *l) {
    for (size_t i = 0; i < l->n; i++) {
        struct decide_stamp now = stamp_of(l->stamps[i].path);
        if (!stamp_same(&now, &l->stamps[i]))
            return true;
    }
    return false;
}

/* -- files -- */

static const char *layers_path(struct decide_layers *l, const char *dir, const char *name) {
    size_t n = strlen(dir) + strlen(name) + 2;
    char *path = arena_alloc(&l->arena, n);
    if (path == NULL)
        layers_fail(l, "out of memory");
    else
        snprintf(path, n, "%s/%s", dir, name);
    return path;
}

/* Reads a file. 0 or -errno. */
static int layers_slurp(const char *path, struct buf *b) {
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    for (;;) {
        int r = buf_reserve(b, 16384);
        if (r < 0)
            return r == -ENOBUFS ? -EFBIG : r;
        ssize_t n = read(fd, b->p + b->len, 16384);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : 0;
        b->len += (size_t)n;
    }
}

static void layers_add(struct decide_layers *l, const char *path, struct str text) {
    _cleanup_buf_ struct buf why = BUF_INIT(DECIDE_ERROR_MAX);
    int r = execpolicy_add(l->policy, path, text, &why);
    if (r == -EINVAL)
        layers_fail(l, "failed to parse rules file %s: %.*s", path, (int)why.len, why.p);
    else if (r < 0)
        layers_fail(l, "failed to parse rules file %s: out of memory", path);
}

static void layers_add_file(struct decide_layers *l, const char *path) {
    _cleanup_buf_ struct buf b = BUF_INIT(DECIDE_FILE_MAX + 16384);
    layers_watch(l, path);
    int r = layers_slurp(path, &b);
    if (r < 0)
        layers_fail(l, "failed to read rules file %s: %s (os error %d)", path, err_os_text(-r), -r);
    else if (!utf8_valid(b.p, b.len))
        layers_fail(l, "failed to read rules file %s: stream did not contain valid UTF-8", path);
    else if (l->error == NULL)
        layers_add(l, path, buf_str(&b));
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_rules_name(const char *name) {
    size_t n = strlen(name);
    return n >= 6 && strcmp(name + n - 6, ".rules") == 0;
}

/* The regular files of a directory whose names end in .rules, in an array of `*n`. */
static const char **layers_list(struct decide_layers *l, const char *dir, size_t *n) {
    const char **names = NULL;
    size_t cap = 0;
    DIR *d = opendir(dir);
    *n = 0;
    if (d == NULL && errno != ENOENT)
        layers_fail(l, "failed to read %s: %s (os error %d)", dir, err_os_text(errno), errno);
    if (d == NULL)
        return NULL;
    for (struct dirent *e; (e = readdir(d)) != NULL && l->error == NULL;) {
        struct stat st;
        if (!is_rules_name(e->d_name) ||
            fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
            continue;
        const char **more = arena_grow(&l->arena, names, *n, &cap, 16, sizeof *names);
        const char *path = layers_path(l, dir, e->d_name);
        if (more == NULL || path == NULL || *n == DECIDE_FILES_MAX) {
            layers_fail(l, "%s has too many files", dir);
            break;
        }
        names = more;
        names[(*n)++] = path;
    }
    closedir(d);
    return names;
}

static void layers_add_dir(struct decide_layers *l, const char *base) {
    const char *dir = layers_path(l, base, "rules");
    if (dir == NULL)
        return;
    layers_watch(l, dir);
    size_t n;
    const char **paths = layers_list(l, dir, &n);
    if (n > 0)
        qsort(paths, n, sizeof *paths, by_name);
    for (size_t i = 0; i < n && l->error == NULL; i++)
        layers_add_file(l, paths[i]);
}

/* The operator's requirements as rules; other files of settings only have to be TOML. */
static void layers_add_toml(struct decide_layers *l, const char *dir, const char *name,
                            bool requirements) {
    _cleanup_buf_ struct buf b = BUF_INIT(TOML_TEXT_MAX + 32768), rules = BUF_INIT(DECIDE_FILE_MAX);
    _cleanup_err_ struct err e = ERR_INIT;
    const char *path = layers_path(l, dir, name);
    if (path == NULL || l->error != NULL)
        return;
    layers_watch(l, path);
    int r = layers_slurp(path, &b);
    if (r == -ENOENT || r == -ENOTDIR)
        return;
    if (r < 0) {
        layers_fail(l, "failed to read %s: %s (os error %d)", path, err_os_text(-r), -r);
        return;
    }
    r = decide_requirements(path, buf_str(&b), requirements ? &rules : NULL, &e);
    if (r < 0)
        layers_fail(l, "%s", err_msg(&e));
    else if (requirements && rules.len > 0)
        layers_add(l, path, buf_str(&rules));
}

void decide_layers_read(struct decide_layers *l, const struct decide_options *o) {
    *l = (struct decide_layers){.arena = ARENA_INIT(LAYERS_ARENA_MAX)};
    l->policy = execpolicy_new();
    if (l->policy == NULL)
        layers_fail(l, "out of memory");
    layers_add_toml(l, o->system_dir, "managed_config.toml", false);
    layers_add_toml(l, o->system_dir, "config.toml", false);
    if (o->user_dir != NULL)
        layers_add_toml(l, o->user_dir, "config.toml", false);
    if (l->error == NULL)
        layers_add_dir(l, o->system_dir);
    if (l->error == NULL && o->user_dir != NULL)
        layers_add_dir(l, o->user_dir);
    layers_add_toml(l, o->system_dir, "requirements.toml", true);
}

void decide_layers_fini(struct decide_layers *l) {
    execpolicy_free(l->policy);
    arena_fini(&l->arena);
    *l = (struct decide_layers){0};
}
