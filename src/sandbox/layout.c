#include "sandbox/layout.h"

#include "sandbox/gitfile.h"
#include "sandbox/layout_model.h"
#include "sandbox/synth.h"
#include "sandbox/sys.h"

#include <errno.h>
#include <stdio.h>

/* -- looking entries up -- */

static struct layout_item *layout_item(struct layout_maker *m, const char *path,
                                       enum plan_access access) {
    struct layout_item *item = &m->items[m->item_count];
    *item = (struct layout_item){.given = path, .access = access};
    int r = locate_path(path, m->a, &item->at);
    if (r == -ENOMEM || (r < 0 && access != PLAN_WRITE)) {
        fault_os(m->f, FAULT_POLICY, -r, "%s", path);
        return NULL;
    }
    if (r == 0)
        m->item_count++;
    else
        item->at.state = LOCATE_BLOCKED; /* there is nothing to grant */
    return item;
}

/* The kernel's own file systems are not for granting. */
static int layout_refuse_kernel(struct layout_maker *m, const struct layout_item *item) {
    static const char *const kernel[] = {"/proc", "/sys"};
    for (size_t i = 0; item->access == PLAN_WRITE && i < ARRAY_LEN(kernel); i++) {
        if (item->at.state == LOCATE_FOUND && locate_inside(item->at.path, kernel[i]))
            return fault_text(m->f, FAULT_POLICY,
                              "cannot grant write access to %s: %s is the "
                              "kernel's",
                              item->given, kernel[i]);
    }
    return 0;
}

/* What is just a place held by another sandbox does not exist. */
static void layout_see_through(struct locate_result *at) {
    struct str reached = {at->path, at->existing};
    if (at->state == LOCATE_BLOCKED || at->existing == 1 || !synth_is_place(reached, &at->st))
        return;
    at->state = LOCATE_MISSING;
    while (at->existing > 1 && at->path[--at->existing] != '/')
        ;
    at->existing = MAX(at->existing, (size_t)1);
}

static int layout_entry(struct layout_maker *m, const char *path, enum plan_access access) {
    if (access != PLAN_WRITE && locate_inside(path, "/proc"))
        return 0; /* there is always a fresh one */
    struct layout_item *item = layout_item(m, path, access);
    if (item == NULL)
        return -EINVAL;
    layout_see_through(&item->at);
    int r = layout_refuse_kernel(m, item);
    if (r < 0 || item->at.state != LOCATE_FOUND)
        return r;
    if (rules_add(&m->rules, item->at.path, access, &item->at.st) == NULL)
        return fault_os(m->f, FAULT_POLICY, ENOMEM, "%s", path);
    return 0;
}

static int layout_daemon(struct layout_maker *m) {
    char path[PLAN_DAEMON_MAX];
    struct stat st;
    plan_daemon(path);
    if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode))
        return 0;
    const char *kept = arena_strdup(m->a, str_of(path));
    return kept == NULL ? fault_os(m->f, FAULT_POLICY, ENOMEM, "%s", path)
                        : layout_entry(m, kept, PLAN_DENY);
}

static int layout_entries(struct layout_maker *m) {
    const struct plan *p = m->plan;
    size_t platform = p->minimal && !p->full_read ? PLAN_PLATFORM : 0;
    m->items = arena_calloc(m->a, p->entry_count + platform + 2, sizeof *m->items);
    if (m->items == NULL)
        return fault_os(m->f, FAULT_POLICY, ENOMEM, "entries");
    int r = 0;
    for (size_t i = 0; r == 0 && i < p->entry_count; i++)
        r = layout_entry(m, p->entries[i].path, p->entries[i].access);
    for (size_t i = 0; r == 0 && i < platform; i++)
        r = layout_entry(m, plan_platform[i], PLAN_READ);
    if (r == 0)
        r = layout_daemon(m);
    return r;
}

/* -- links -- */

/* The directory a path is in. */
static const char *layout_parent(struct layout_maker *m, const char *path) {
    const char *slash = strrchr(path, '/');
    size_t n = slash == path ? 1 : (size_t)(slash - path);
    return arena_strdup(m->a, (struct str){path, n});
}

/* Where a link can be replaced by the command, it must not decide what the next one may do. */
int layout_check_links(struct layout_maker *m, const struct layout_item *item) {
    static const char *const kinds[] = {
        [PLAN_READ] = "cannot enforce sandbox read-only path",
        [PLAN_WRITE] = "cannot grant sandbox writable path",
        [PLAN_DENY] = "cannot enforce sandbox deny-read path",
    };
    for (size_t i = 0; i < item->at.link_count; i++) {
        const char *place = item->at.links[i].place;
        if (rules_region_above(&m->rules, place) == RULES_WRITE)
            return fault_text(m->f, FAULT_POLICY, "%s %s because it crosses writable symlink %s",
                              kinds[item->access], item->given, place);
    }
    if (item->at.state != LOCATE_BLOCKED || item->access == PLAN_WRITE)
        return 0;
    const char *reached = arena_strdup(m->a, (struct str){item->at.path, item->at.existing});
    if (reached == NULL)
        return fault_os(m->f, FAULT_POLICY, ENOMEM, "%s", item->given);
    if (rules_region(&m->rules, reached) == RULES_WRITE) /* which could be opened up later */
        return fault_os(m->f, FAULT_POLICY, EACCES, "%s", item->given);
    return 0;
}

/* -- protected names -- */

int layout_carve(struct layout_maker *m, const char *path, const struct stat *st, bool empty) {
    if (m->q->backend == LAUNCH_LANDLOCK)
        return fault_text(m->f, FAULT_POLICY,
                          "Landlock alone cannot protect %s in a writable directory", path);
    struct rules_rule *rule = rules_add(&m->rules, path, PLAN_READ, st);
    if (rule == NULL)
        return fault_os(m->f, FAULT_POLICY, ENOMEM, "%s", path);
    rule->empty = empty;
    return 0;
}

/* Holds the place of a path that does not exist, in a directory that the command may write to. */
static int layout_hold_place(struct layout_maker *m, const char *path) {
    struct stat st = {0};
    if (m->q->backend == LAUNCH_LANDLOCK)
        return layout_carve(m, path, &st, true);
    if (m->q->mode != LAUNCH_COMMAND)
        return 0; /* it knows what it must not make */
    const char *dir = layout_parent(m, path);
    if (dir == NULL)
        return fault_os(m->f, FAULT_PROTECT, ENOMEM, "%s", path);
    int r = synth_make(m->list, dir, strrchr(path, '/') + 1, &st);
    bool empty = r > 0;
    if (r == -EEXIST) /* but not -EAGAIN: what nobody holds for us may be removed under our mount */
        r = lstat(path, &st) < 0 ? -errno : 1;
    if (r < 0)
        return fault_os(m->f, FAULT_PROTECT, -r, "%s", path);
    if (r > 0 && S_ISLNK(st.st_mode))
        return fault_text(m->f, FAULT_POLICY,
                          "cannot enforce sandbox read-only path %s because "
                          "it crosses writable symlink %s",
                          path, path);
    return r > 0 ? layout_carve(m, path, &st, empty) : 0;
}

/* The directory that a .git file names is protected too, where the command could write to it. */
static int layout_gitdir(struct layout_maker *m, const char *root, const char *gitfile) {
    char path[GITFILE_PATH_MAX];
    if (gitfile_read(root, gitfile, path) < 0)
        return 0;
    struct layout_item item = {.given = gitfile, .access = PLAN_READ};
    int r = locate_path(path, m->a, &item.at);
    if (r == -ENOMEM)
        return fault_os(m->f, FAULT_POLICY, ENOMEM, "%s", gitfile);
    if (r < 0 || item.at.state != LOCATE_FOUND ||
        rules_region(&m->rules, item.at.path) != RULES_WRITE)
        return 0;
    r = layout_check_links(m, &item);
    return r == 0 ? layout_carve(m, item.at.path, &item.at.st, false) : r;
}

/* Whether an entry grants exactly this path, although it does not exist. */
static bool layout_granted_missing(const struct layout_maker *m, const char *path) {
    for (size_t i = 0; i < m->item_count; i++) {
        const struct layout_item *item = &m->items[i];
        if (item->access == PLAN_WRITE && item->at.state == LOCATE_MISSING &&
            strcmp(item->at.path, path) == 0)
            return true;
    }
    return false;
}

static int layout_protect(struct layout_maker *m, const struct rules_rule *root, const char *name) {
    struct stat st;
    char *path = arena_alloc(m->a, strlen(root->path) + strlen(name) + 2);
    if (path == NULL)
        return fault_os(m->f, FAULT_POLICY, ENOMEM, "%s", root->path);
    sprintf(path, "%s/%s", strcmp(root->path, "/") == 0 ? "" : root->path, name);
    const struct rules_rule *named = rules_exact(&m->rules, path);
    if ((named != NULL && named->access == PLAN_WRITE) || layout_granted_missing(m, path))
        return 0;
    int error = lstat(path, &st) < 0 ? errno : 0;
    bool gitfile = error == 0 && S_ISREG(st.st_mode) && strcmp(name, ".git") == 0;
    if (named != NULL) /* the entry does the rest */
        return gitfile ? layout_gitdir(m, root->path, path) : 0;
    if (error == ENOENT || (error == 0 && synth_is_place(str_of(path), &st)))
        return layout_hold_place(m, path);
    if (error != 0) { /* what belongs to somebody else cannot be opened up by the command either */
        bool ours = stat(root->path, &st) < 0 || st.st_uid == geteuid();
        return ours ? fault_os(m->f, FAULT_PROTECT, error, "%s", path) : 0;
    }
    if (S_ISLNK(st.st_mode))
        return fault_text(m->f, FAULT_POLICY,
                          "cannot enforce sandbox read-only path %s because "
                          "it crosses writable symlink %s",
                          path, path);
    int r = layout_carve(m, path, &st, false);
    return r == 0 && gitfile ? layout_gitdir(m, root->path, path) : r;
}

static int layout_protect_all(struct layout_maker *m) {
    int r = 0;
    size_t sorted = m->rules.sorted;
    for (size_t i = 0; r == 0 && i < sorted; i++) {
        struct rules_rule root = m->rules.list[i]; /* a copy: the list may move */
        if (root.access != PLAN_WRITE || root.dropped || !root.is_dir)
            continue;
        for (size_t k = 0; r == 0 && k < PLAN_PROTECTED; k++)
            r = layout_protect(m, &root, plan_protected[k]);
    }
    rules_sort(&m->rules);
    return r;
}

/* -- carve-outs that do not exist -- */

static int layout_missing(struct layout_maker *m, const struct layout_item *item) {
    const struct locate_result *at = &item->at;
    if (item->access == PLAN_WRITE || at->state != LOCATE_MISSING)
        return 0;
    const char *reached = arena_strdup(m->a, (struct str){at->path, at->existing});
    const char *first = arena_strdup(m->a, (struct str){at->path, locate_first_missing(at)});
    if (reached == NULL || first == NULL)
        return fault_os(m->f, FAULT_POLICY, ENOMEM, "%s", item->given);
    if (rules_region(&m->rules, reached) != RULES_WRITE)
        return 0;
    if (S_ISDIR(at->st.st_mode))
        return rules_exact(&m->rules, first) == NULL ? layout_hold_place(m, first) : 0;
    /* A file stands in the way: it must stay there. */
    return rules_exact(&m->rules, reached) == NULL ? layout_carve(m, reached, &at->st, false) : 0;
}

static int layout_carve_outs(struct layout_maker *m) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < m->item_count; i++)
        r = layout_missing(m, &m->items[i]);
    rules_sort(&m->rules);
    return r;
}

/* -- carve-outs that may go away -- */

/* Holds the directory of a rule if it may be another sandbox's place that is not marked yet. */
static int layout_hold_rule(struct layout_maker *m, struct rules_rule *rule) {
    struct stat st;
    if (lstat(rule->path, &st) == 0 && !synth_may_be_place(str_of(rule->path), &st))
        return 0;
    const char *dir = layout_parent(m, rule->path);
    int r = dir == NULL ? -ENOMEM : synth_make(m->list, dir, strrchr(rule->path, '/') + 1, &st);
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
    for (size_t i = 0; r == 0 && needed && i < m->rules.sorted; i++) {
        struct rules_rule *rule = &m->rules.list[i];
        if (rule->access != PLAN_WRITE && rule->is_dir && !rule->empty && !rule->dropped &&
            rules_region_above(&m->rules, rule->path) == RULES_WRITE)
            r = layout_hold_rule(m, rule);
    }
    return r;
}

/* -- all of it -- */

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
    int r = layout_entries(m);
    if (r < 0)
        return r;
    rules_sort(&m->rules);
    rules_prune(&m->rules);
    for (size_t i = 0; r == 0 && i < m->item_count; i++)
        r = layout_check_links(m, &m->items[i]);
    if (r == 0)
        r = layout_protect_all(m);
    if (r == 0)
        r = layout_kernel_mounts(m);
    if (r == 0)
        r = layout_carve_outs(m);
    if (r == 0)
        r = layout_hold_rules(m);
    if (r == 0)
        r = layout_globs(m);
    return r == 0 ? layout_steps(m) : r;
}

int layout_build(const struct launch_request *q, struct synthlist *list, struct arena *a,
                 struct layout *out, struct fault *f) {
    const struct plan *p = &q->plan;
    struct layout_maker m = {
        .q = q,
        .plan = p,
        .list = list,
        .a = a,
        .out = out,
        .f = f,
        .rules = {.a = a, .full_read = p->full_read},
    };
    *out = (struct layout){0};
    int r = layout_cwd(&m);
    if (r < 0)
        return r;
    out->confine = p->confine_files || p->network == PLAN_NET_MANAGED;
    struct rules *rules = arena_alloc(a, sizeof *rules);
    if (rules == NULL)
        return fault_os(f, FAULT_POLICY, ENOMEM, "rules");
    if (p->confine_files)
        r = layout_files(&m);
    *rules = m.rules;
    out->rules = rules;
    if (p->confine_files)
        return r;
    out->root_write = true;
    return 0;
}
