#include "sandbox/policy/access_internal.h"

#include "sandbox/policy/casefold.h"

#include <errno.h>
#include <limits.h>
#include <time.h>

#define GLOBS_WALK_MAX (1u << 20)   /* bytes to look up one path */
#define GLOBS_LINKS_MAX (16u << 20) /* bytes of link targets */
#define GLOBS_LINKS_MS 1000

/*
 * The targets of links whose names match a denied pattern: they are denied by their own names too.
 * A call that needs them looks for them, at most every GLOBS_LINKS_MS and for a twentieth of the
 * time. A link that a process makes later shows it nothing new: it could read the target before.
 */
struct access_targets {
    struct arena arena;
    const char **targets; /* paths without links, sorted */
    size_t count, cap;
    uint64_t due; /* monotonic ns of the next look; 0: look now */
    int error;    /* -errno of the last look, which denies everything; or 0 */
};

/* -- compiling -- */

/* By directory and depth: each directory is walked once. */
static int globs_compare(const void *x, const void *y) {
    const struct plan_glob *a = *(const struct plan_glob *const *)x;
    const struct plan_glob *b = *(const struct plan_glob *const *)y;
    int r = strncmp(a->pattern, b->pattern, MIN(a->fixed, b->fixed));
    if (r == 0)
        r = (a->fixed > b->fixed) - (a->fixed < b->fixed);
    return r != 0 ? r : (a->max_depth > b->max_depth) - (a->max_depth < b->max_depth);
}

static const char *globs_below(const struct plan_glob *g) {
    const char *p = g->pattern + g->fixed;
    return *p == '/' ? p + 1 : p;
}

static int globs_add(struct access *x, struct glob_set *set, const struct plan_glob *g,
                     struct fault *f) {
    const char *why = NULL;
    char *below = arena_strdup(x->a, str_of(globs_below(g)));
    for (char *p = below; set->fold && p != NULL && *p != '\0'; p++)
        *p = (char)(*p >= 'A' && *p <= 'Z' ? *p | 0x20 : *p);
    int r = below == NULL ? -ENOMEM : glob_add(set, below, &why);
    if (r == -EINVAL)
        return fault_text(f, FAULT_GLOB,
                          "unreadable glob pattern is invalid for %.*s: error parsing glob '%s': "
                          "%s",
                          (int)g->fixed, g->pattern, globs_below(g), why);
    return r < 0 ? fault_os(f, FAULT_GLOB, -r, "%s", g->pattern) : 0;
}

/* The directory of a group; it may still be missing. */
static int globs_dir(struct access *x, const struct plan_glob *g, struct fault *f,
                     const char **dir) {
    struct access_item item = {.access = PLAN_DENY};
    item.given = arena_strdup(x->a, (struct str){g->pattern, MAX(g->fixed, 1u)});
    if (item.given == NULL)
        return fault_os(f, FAULT_GLOB, ENOMEM, "%s", g->pattern);
    int r = locate_path(item.given, x->a, &item.at);
    if (r == 0)
        r = access_check_links(x, &item, f);
    if (r < 0)
        return fault_os(f, FAULT_GLOB, -r, "%s", item.given);
    *dir = item.at.state == LOCATE_BLOCKED ? item.given : item.at.path;
    return 0;
}

/* Compiles n patterns below `dir`. */
static int globs_group(struct access *x, const struct plan_glob **globs, size_t n, const char *dir,
                       bool fold, struct fault *f) {
    struct access_glob *out = &x->globs[x->glob_count++];
    *out = (struct access_glob){.dir = dir, .max_depth = globs[0]->max_depth, .set.fold = fold};
    int r = 0;
    for (size_t i = 0; r == 0 && i < n; i++)
        r = globs_add(x, &out->set, globs[i], f);
    return r;
}

int access_globs(struct access *x, const struct plan *p, struct fault *f) {
    size_t n = p->glob_count;
    if (n == 0)
        return 0;
    const struct plan_glob **globs = arena_calloc(x->a, n, sizeof(struct plan_glob *));
    x->globs = arena_calloc(x->a, 2 * n, sizeof *x->globs);
    x->targets = arena_calloc(x->a, 1, sizeof *x->targets);
    if (globs == NULL || x->globs == NULL || x->targets == NULL)
        return fault_os(f, FAULT_GLOB, ENOMEM, "patterns");
    for (size_t i = 0; i < n; i++)
        globs[i] = &p->globs[i];
    qsort(globs, n, sizeof(struct plan_glob *), globs_compare);
    int r = 0;
    for (size_t i = 0, next; r == 0 && i < n; i = next) {
        for (next = i + 1; next < n && globs_compare(&globs[i], &globs[next]) == 0; next++)
            ;
        const char *dir = NULL;
        r = globs_dir(x, globs[i], f, &dir);
        if (r == 0)
            r = globs_group(x, &globs[i], next - i, dir, false, f);
        if (r == 0 && casefold_at(dir))
            r = globs_group(x, &globs[i], next - i, dir, true, f);
    }
    return r;
}

void access_globs_fini(struct access *x) {
    for (size_t i = 0; i < x->glob_count; i++)
        glob_set_fini(&x->globs[i].set);
    if (x->targets != NULL)
        arena_fini(&x->targets->arena);
    x->glob_count = 0;
    x->targets = NULL;
}

/* -- matching -- */

/* The part of a path below the patterns' directory, from its slash on; NULL: it is not below. */
static const char *globs_rest(const struct access_glob *glob, const char *path) {
    size_t skip = locate_depth(glob->dir);
    bool inside = glob->set.fold ? casefold_inside(path, glob->dir) == 1
                                 : locate_inside(path, glob->dir) && strcmp(path, glob->dir) != 0;
    for (; inside && skip > 0; skip--)
        path = strchr(path + 1, '/');
    return inside && path[1] != '\0' ? path : NULL;
}

bool access_globs_matches(const struct access *x, const char *path) {
    for (size_t i = 0; i < x->glob_count; i++) {
        const struct access_glob *glob = &x->globs[i];
        const char *rest = globs_rest(glob, path);
        if (rest == NULL)
            continue;
        bool deep = glob->max_depth > 0 && locate_depth(rest) > glob->max_depth;
        /* planted: ignored-pattern */
        if (!deep && glob_run_match(&glob->set, rest + 1) != 0)
            return true;
    }
    return false;
}

static int globs_found(void *arg, const struct glob_run_match *m) {
    return !m->unlistable && locate_inside(m->path, arg);
}

bool access_globs_hold_match(const struct access *x, const char *dir) {
    size_t budget = GLOB_ENTRIES_MAX;
    for (size_t i = 0; i < x->glob_count; i++) {
        const struct access_glob *glob = &x->globs[i];
        if (!locate_inside(glob->dir, dir) && !locate_inside(dir, glob->dir))
            continue;
        const struct glob_visit v = {glob->max_depth, &budget, globs_found, NULL,
                                     (void *)(uintptr_t)dir};
        int r = glob_expand(&glob->set, glob->dir, NULL, &v);
        if (r != 0 && r != -ENOENT && r != -ENOTDIR)
            return true;
    }
    return false;
}

/* -- links -- */

static int targets_add(struct access_targets *l, const char *path) {
    const char **list = arena_grow(&l->arena, l->targets, l->count, &l->cap, 64, sizeof *list);
    if (list == NULL)
        return -ENOMEM;
    l->targets = list;
    const char *target = arena_strdup(&l->arena, str_of(path));
    if (target == NULL)
        return -ENOMEM;
    l->targets[l->count++] = target;
    return 0;
}

static int targets_found(void *arg, const struct glob_run_match *m) {
    struct access *x = arg;
    _cleanup_arena_ struct arena a = ARENA_INIT(GLOBS_WALK_MAX);
    struct locate_result at;
    if (!m->is_link || m->unlistable)
        return 0;
    int r = locate_path(m->path, &a, &at);
    if (r < 0 || at.state != LOCATE_FOUND)
        return r == -ENOMEM ? r : 0;
    if (access_may_is_hidden(x, at.path) || strcmp(at.path, "/") == 0 ||
        locate_inside(at.path, "/proc"))
        return 0;
    return targets_add(x->targets, at.path);
}

static uint64_t targets_now(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int targets_find(struct access *x) {
    size_t budget = GLOB_ENTRIES_MAX;
    for (size_t i = 0; i < x->glob_count; i++) {
        const struct access_glob *glob = &x->globs[i];
        const struct glob_visit v = {glob->max_depth, &budget, targets_found, NULL, x};
        int r = glob_expand(&glob->set, glob->dir, NULL, &v);
        if (r < 0 && r != -ENOENT && r != -ENOTDIR && r != -ENAMETOOLONG)
            return r;
    }
    return 0;
}

static int targets_compare(const void *x, const void *y) {
    return strcmp(*(const char *const *)x, *(const char *const *)y);
}

static void targets_look(struct access *x) {
    struct access_targets *l = x->targets;
    uint64_t began = targets_now();
    if (l->due > began)
        return;
    arena_fini(&l->arena);
    *l = (struct access_targets){.arena = ARENA_INIT(GLOBS_LINKS_MAX)};
    l->error = targets_find(x);
    if (l->count > 1)
        qsort(l->targets, l->count, sizeof *l->targets, targets_compare);
    uint64_t end = targets_now();
    l->due = end + MAX((uint64_t)GLOBS_LINKS_MS * 1000000, 20 * (end - began));
}

bool access_globs_is_target(struct access *x, const char *path) {
    char prefix[PATH_MAX];
    const char *key = prefix;
    size_t n = strlen(path);
    if (x->glob_count == 0 || n >= sizeof prefix)
        return false;
    targets_look(x);
    const struct access_targets *l = x->targets;
    if (l->error < 0)
        return true;
    for (memcpy(prefix, path, n + 1); l->count > 0 && n > 0; prefix[n] = '\0') {
        if (bsearch(&key, l->targets, l->count, sizeof key, targets_compare))
            return true;
        while (n > 0 && prefix[--n] != '/')
            ;
    }
    return false;
}
