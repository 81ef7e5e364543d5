#include "sandbox/layout_model.h"

#include "sandbox/glob.h"

#include <errno.h>

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

/* The directory of a group; 0 with *dir NULL: there is none. */
static int globs_dir(struct layout_maker *m, const struct plan_glob *g, const char **dir) {
    struct layout_item item = {.access = PLAN_DENY};
    item.given = arena_strdup(m->a, (struct str){g->pattern, MAX(g->fixed, 1u)});
    if (item.given == NULL)
        return fault_os(m->f, FAULT_GLOB, ENOMEM, "%s", g->pattern);
    int r = locate_path(item.given, m->a, &item.at);
    if (r == 0)
        r = layout_check_links(m, &item);
    if (r < 0)
        return fault_os(m->f, FAULT_GLOB, -r, "%s", item.given);
    bool found = item.at.state == LOCATE_FOUND && S_ISDIR(item.at.st.st_mode);
    *dir = found ? item.at.path : NULL;
    return 0;
}

static int globs_group(struct layout_maker *m, const struct plan_glob **globs, size_t n,
                       struct layout_glob *list) {
    int r = 0;
    for (size_t i = 0, next; r == 0 && i < n; i = next) {
        struct layout_glob *out = &list[m->out->glob_count];
        *out = (struct layout_glob){.max_depth = globs[i]->max_depth};
        for (next = i; r == 0 && next < n && globs_compare(&globs[i], &globs[next]) == 0; next++)
            r = globs_add(m, &out->set, globs[next]);
        if (r == 0)
            r = globs_dir(m, globs[i], &out->dir);
        if (r == 0 && out->dir != NULL)
            m->out->glob_count++;
        else
            glob_set_fini(&out->set);
    }
    return r;
}

int layout_globs(struct layout_maker *m) {
    size_t n = m->plan->glob_count;
    if (n == 0 || m->q->mode != LAUNCH_COMMAND)
        return 0;
    const struct plan_glob **globs = arena_calloc(m->a, n, sizeof(struct plan_glob *));
    struct layout_glob *list = arena_calloc(m->a, n, sizeof *list);
    if (globs == NULL || list == NULL)
        return fault_os(m->f, FAULT_GLOB, ENOMEM, "patterns");
    for (size_t i = 0; i < n; i++)
        globs[i] = &m->plan->globs[i];
    qsort(globs, n, sizeof(struct plan_glob *), globs_compare);
    m->out->globs = list;
    return globs_group(m, globs, n, list);
}
