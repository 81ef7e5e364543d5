#include "sandbox/inside/layout.h"

#include "sandbox/inside/layout_internal.h"
#include "sandbox/host/placeholder.h"
#include "sandbox/policy/emptydir.h"
#include "sandbox/policy/sys.h"

#include <errno.h>
#include <stdio.h>

/* The directory of a path. */
static const char *layout_parent(struct layout_maker *m, const char *path) {
    const char *slash = strrchr(path, '/');
    size_t n = slash == path ? 1 : (size_t)(slash - path);
    return arena_strdup(m->a, (struct str){path, n});
}

/* -- guarded paths -- */

/* Holds the place of a missing path in a directory that the command may write to. */
static int layout_hold_place(struct layout_maker *m, struct rules_rule *rule) {
    struct stat st = {0};
    const char *dir = layout_parent(m, rule->path);
    if (dir == NULL)
        return fault_os(m->f, FAULT_PROTECT, ENOMEM, "%s", rule->path);
    int r = placeholder_make(m->list, dir, strrchr(rule->path, '/') + 1, &st);
    rule->empty = r > 0;
    if (r == -EEXIST) /* but not -EAGAIN: without a lock somebody may remove it under our mount */
        r = lstat(rule->path, &st) < 0 ? -errno : 1;
    if (r < 0)
        return fault_os(m->f, FAULT_PROTECT, -r, "%s", rule->path);
    if (r > 0 && S_ISLNK(st.st_mode))
        return fault_text(m->f, FAULT_POLICY,
                          "cannot enforce sandbox read-only path %s because "
                          "it crosses writable symlink %s",
                          rule->path, rule->path);
    rule->absent = r == 0; /* 0: nobody can make it anyway */
    rule->is_dir = S_ISDIR(st.st_mode);
    rule->dev = st.st_dev;
    rule->ino = st.st_ino;
    return 0;
}

static int layout_guards(struct layout_maker *m) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < m->rules->sorted; i++) {
        struct rules_rule *rule = &m->rules->list[i];
        if (!rule->guard || rule->dropped)
            continue;
        if (m->q->backend == LAUNCH_LANDLOCK)
            return fault_text(m->f, FAULT_POLICY,
                              "Landlock alone cannot protect %s in a writable directory",
                              rule->path);
        if (rule->absent &&
            m->q->mode == LAUNCH_COMMAND) /* the policy tells a helper what not to make */
            r = layout_hold_place(m, rule);
    }
    return r;
}

/* -- directories that somebody may remove -- */

/* Whether somebody could remove the directory under our mount. It may be another sandbox's
 * placeholder that is not marked yet, or lies on a file system that does not store the mark. */
static bool layout_is_removable(const char *path, const struct stat *st) {
    return S_ISDIR(st->st_mode) && st->st_nlink <= 2 && emptydir_path(str_of(path));
}

static int layout_hold_rule(struct layout_maker *m, struct rules_rule *rule) {
    struct stat st;
    if (lstat(rule->path, &st) == 0 && !layout_is_removable(rule->path, &st))
        return 0;
    const char *dir = layout_parent(m, rule->path);
    int r =
        dir == NULL ? -ENOMEM : placeholder_make(m->list, dir, strrchr(rule->path, '/') + 1, &st);
    if (r == -EEXIST) /* it has entries by now, so nobody can remove it */
        return 0;
    if (r <= 0)
        return fault_os(m->f, FAULT_PROTECT, r < 0 ? -r : EACCES, "%s", rule->path);
    rule->dev = st.st_dev;
    rule->ino = st.st_ino;
    return 0;
}

static int layout_hold_rules(struct layout_maker *m) {
    int r = 0;
    bool needed = m->q->mode == LAUNCH_COMMAND && m->q->backend != LAUNCH_LANDLOCK;
    for (size_t i = 0; r == 0 && needed && i < m->rules->sorted; i++) {
        struct rules_rule *rule = &m->rules->list[i];
        if (rule->access != PLAN_WRITE && rule->is_dir && !rule->empty && !rule->dropped &&
            rules_region_above(m->rules, rule->path) == RULES_WRITE)
            r = layout_hold_rule(m, rule);
    }
    return r;
}

static int layout_cwd(struct layout_maker *m) {
    struct locate_result at;
    int r = locate_path(m->plan->cwd, m->a, &at);
    if (r == 0 && at.state == LOCATE_BLOCKED)
        r = -EACCES;
    if (r == 0 && at.state == LOCATE_MISSING)
        r = S_ISDIR(at.st.st_mode) ? -ENOENT : -ENOTDIR;
    if (r == 0 && !S_ISDIR(at.st.st_mode))
        r = -ENOTDIR;
    if (r < 0)
        return fault_os(m->f, FAULT_CWD, -r, "%s", m->plan->cwd);
    m->out->cwd = at.path;
    return 0;
}

static int layout_files(struct layout_maker *m) {
    int r = layout_guards(m);
    if (r == 0)
        r = layout_kernel_mounts(m);
    if (r == 0)
        r = layout_hold_rules(m);
    return r == 0 ? layout_steps(m) : r;
}

int layout_build(const struct launch_request *q, struct placeholders *list, struct arena *a,
                 struct layout *out, struct fault *f) {
    const struct plan *p = &q->plan;
    *out = (struct layout){.access = arena_alloc(a, sizeof *out->access)};
    if (out->access == NULL)
        return fault_os(f, FAULT_POLICY, ENOMEM, "policy");
    struct layout_maker m = {
        .q = q, .plan = p, .list = list, .a = a, .out = out, .f = f, .rules = &out->access->rules};
    int r = layout_cwd(&m);
    if (r == 0)
        r = access_build(out->access, p, a, f);
    if (r < 0)
        return r;
    out->confine = p->confine_files || p->network == PLAN_NET_MANAGED;
    if (p->confine_files)
        return layout_files(&m);
    out->root_write = true;
    return 0;
}
