#include "sandbox/layout_model.h"

#include "sandbox/glob.h"

#include <errno.h>

/* One directory to expand patterns in. */
struct globs_group {
    struct layout_maker *m;
    const char *dir;
    size_t count; /* matches so far */
};

static int globs_keep(struct layout_maker *m, const char *path) {
    if (m->match_count == m->match_cap) {
        size_t cap = MAX((size_t)64, m->match_cap * 2);
        const char **list = arena_calloc(m->a, cap, sizeof *list);
        if (list == NULL)
            return -ENOMEM;
        if (m->match_count > 0)
            memcpy(list, m->matches, m->match_count * sizeof *list);
        m->matches = list;
        m->match_cap = cap;
    }
    m->matches[m->match_count] = arena_strdup(m->a, str_of(path));
    return m->matches[m->match_count++] == NULL ? -ENOMEM : 0;
}

/* Masks what a link leads to, once, and not the link. */
static int globs_found(void *arg, const char *path, bool is_link, bool unlistable) {
    struct globs_group *g = arg;
    (void)unlistable; /* then the whole directory is masked */
    if (++g->count > GLOB_MATCHES_MAX)
        return fault_text(g->m->f, FAULT_GLOB,
                          "unreadable glob expansion for %s matched more than %d paths", g->dir,
                          GLOB_MATCHES_MAX);
    struct locate_result at;
    if (is_link) {
        int r = locate_path(path, g->m->a, &at);
        if (r == -ENOMEM)
            return r;
        if (r < 0 || at.state != LOCATE_FOUND || locate_inside(at.path, "/proc"))
            return 0;
        path = at.path;
    }
    enum rules_region region = rules_region(&g->m->rules, path);
    if (region == RULES_INVISIBLE || region == RULES_DENY || strcmp(path, "/") == 0)
        return 0;
    return globs_keep(g->m, path);
}

/* By directory and depth, so that each directory is walked once. */
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

static int globs_add(struct layout_maker *m, struct glob_set *set, const struct plan_glob *g) {
    const char *why = NULL;
    int r = glob_add(set, globs_below(g), &why);
    if (r == -EINVAL)
        return fault_text(m->f, FAULT_GLOB,
                          "unreadable glob pattern is invalid for %.*s: error parsing glob '%s': "
                          "%s",
                          (int)g->fixed, g->pattern, globs_below(g), why);
    return r < 0 ? fault_os(m->f, FAULT_GLOB, -r, "%s", g->pattern) : 0;
}

/* Expands a set of patterns below one directory. */
static int globs_expand(struct layout_maker *m, const struct glob_set *set,
                        const struct plan_glob *g, size_t *budget) {
    struct layout_item item = {.access = PLAN_DENY};
    item.given = arena_strdup(m->a, (struct str){g->pattern, MAX(g->fixed, 1u)});
    if (item.given == NULL)
        return fault_os(m->f, FAULT_GLOB, ENOMEM, "%s", g->pattern);
    int r = locate_path(item.given, m->a, &item.at);
    if (r == 0)
        r = layout_check_links(m, &item);
    if (r < 0)
        return fault_os(m->f, FAULT_GLOB, -r, "%s", item.given);
    if (item.at.state != LOCATE_FOUND || !S_ISDIR(item.at.st.st_mode))
        return 0;
    struct globs_group group = {.m = m, .dir = item.given};
    r = glob_expand(set, item.at.path, g->max_depth, budget, globs_found, &group);
    return r < 0 ? fault_os(m->f, FAULT_GLOB, -r, "%s", item.given) : 0;
}

static int globs_run(struct layout_maker *m, const struct plan_glob **globs, size_t n) {
    size_t budget = GLOB_ENTRIES_MAX;
    int r = 0;
    for (size_t i = 0, next; r == 0 && i < n; i = next) {
        struct glob_set set = {0};
        for (next = i; r == 0 && next < n && globs_compare(&globs[i], &globs[next]) == 0; next++)
            r = globs_add(m, &set, globs[next]);
        if (r == 0)
            r = globs_expand(m, &set, globs[i], &budget);
        glob_set_fini(&set);
    }
    return r;
}

static int globs_order(const void *x, const void *y) {
    return strcmp(*(const char *const *)x, *(const char *const *)y);
}

/* Leaves each path once, and none below another. */
static void globs_unique(struct layout_maker *m) {
    size_t n = 0;
    qsort(m->matches, m->match_count, sizeof *m->matches, globs_order);
    for (size_t i = 0; i < m->match_count; i++) {
        if (n == 0 || !locate_inside(m->matches[i], m->matches[n - 1]))
            m->matches[n++] = m->matches[i];
    }
    m->match_count = n;
}

int layout_globs(struct layout_maker *m) {
    size_t n = m->plan->glob_count;
    if (n == 0 || m->q->mode != LAUNCH_COMMAND)
        return 0;
    const struct plan_glob **globs = arena_calloc(m->a, n, sizeof(struct plan_glob *));
    if (globs == NULL)
        return fault_os(m->f, FAULT_GLOB, ENOMEM, "patterns");
    for (size_t i = 0; i < n; i++)
        globs[i] = &m->plan->globs[i];
    qsort(globs, n, sizeof(struct plan_glob *), globs_compare);
    int r = globs_run(m, globs, n);
    if (r == 0 && m->match_count > 0)
        globs_unique(m);
    return r;
}
