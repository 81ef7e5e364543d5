#include "sandbox/policy/access.h"

#include "base/placeholders.h"
#include "sandbox/policy/access_internal.h"
#include "sandbox/policy/casefold.h"
#include "sandbox/policy/emptydir.h"
#include "sandbox/policy/gitfile.h"

#include <errno.h>
#include <stdio.h>

/* An access being made. */
struct access_maker {
    struct access *x;
    const struct plan *plan;
    struct fault *f;
};

static int make_no_memory(const struct access_maker *m, const char *path) {
    return fault_os(m->f, FAULT_POLICY, ENOMEM, "%s", path);
}

static int make_crosses(const struct access_maker *m, const char *path) {
    return fault_text(m->f, FAULT_POLICY,
                      "cannot enforce sandbox read-only path %s because it crosses writable "
                      "symlink %s",
                      path, path);
}

/* Adds a rule; `st` NULL: nothing exists there. */
static struct rules_rule *make_rule(const struct access_maker *m, const char *path,
                                    enum plan_access access, const struct stat *st) {
    static const struct stat none;
    struct rules_rule *rule = rules_add(&m->x->rules, path, access, st != NULL ? st : &none);
    if (rule == NULL)
        make_no_memory(m, path);
    else
        rule->absent = st == NULL;
    return rule;
}

/* -- entries -- */

/* Nobody may write to the kernel's own file systems. */
static int make_refuse_kernel(const struct access_maker *m, const struct access_item *item) {
    static const char *const kernel[] = {"/proc", "/sys"};
    for (size_t i = 0; item->access == PLAN_WRITE && i < ARRAY_LEN(kernel); i++) {
        if (item->at.state == LOCATE_FOUND && locate_inside(item->at.path, kernel[i]))
            return fault_text(m->f, FAULT_POLICY,
                              "cannot grant write access to %s: %s is the kernel's", item->given,
                              kernel[i]);
    }
    return 0;
}

/* Whether another sandbox merely holds the place of the name: then nothing exists there. */
static bool make_is_placeholder(struct str path, const struct stat *st) {
    return placeholders_is_marked(st) && emptydir_path(path);
}

static void make_see_through(struct locate_result *at) {
    struct str reached = {at->path, at->existing};
    if (at->state == LOCATE_BLOCKED || at->existing == 1 || !make_is_placeholder(reached, &at->st))
        return;
    at->state = LOCATE_MISSING;
    while (at->existing > 1 && at->path[--at->existing] != '/')
        ;
    at->existing = MAX(at->existing, (size_t)1);
}

static int make_entry(const struct access_maker *m, const char *path, enum plan_access access) {
    struct access_item *item = &m->x->items[m->x->item_count];
    if (access != PLAN_WRITE && locate_inside(path, "/proc"))
        return 0; /* every sandbox gets a fresh one */
    *item = (struct access_item){.given = path, .access = access};
    int r = locate_path(path, m->x->a, &item->at);
    if (r == -ENOMEM || (r < 0 && access != PLAN_WRITE))
        return fault_os(m->f, FAULT_POLICY, -r, "%s", path);
    if (r < 0)
        return 0; /* there is nothing to grant */
    m->x->item_count++;
    make_see_through(&item->at);
    r = make_refuse_kernel(m, item);
    if (r < 0)
        return r;
    const struct locate_result *at = &item->at;
    const char *where = at->state == LOCATE_BLOCKED ? path : at->path;
    bool found = at->state == LOCATE_FOUND;
    return make_rule(m, where, access, found ? &at->st : NULL) == NULL ? -ENOMEM : 0;
}

static int make_daemon(const struct access_maker *m) {
    char path[PLAN_DAEMON_MAX];
    struct stat st;
    plan_daemon(path);
    if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode))
        return 0;
    const char *kept = arena_strdup(m->x->a, str_of(path));
    return kept == NULL ? make_no_memory(m, path) : make_entry(m, kept, PLAN_DENY);
}

/* The plan's entries and those that every sandbox has. */
static int make_entries(const struct access_maker *m) {
    const struct plan *p = m->plan;
    size_t platform = p->minimal && !p->full_read ? PLAN_PLATFORM : 0;
    m->x->items = arena_calloc(m->x->a, p->entry_count + platform + 2, sizeof *m->x->items);
    if (m->x->items == NULL)
        return make_no_memory(m, "entries");
    int r = 0;
    for (size_t i = 0; r == 0 && i < p->entry_count; i++)
        r = make_entry(m, p->entries[i].path, p->entries[i].access);
    for (size_t i = 0; r == 0 && i < platform; i++)
        r = make_entry(m, plan_platform[i], PLAN_READ);
    return r == 0 ? make_daemon(m) : r;
}

/* A link that the command can replace must not decide what the next command may do. */
int access_check_links(const struct access *x, const struct access_item *item, struct fault *f) {
    static const char *const kinds[] = {
        [PLAN_READ] = "cannot enforce sandbox read-only path",
        [PLAN_WRITE] = "cannot grant sandbox writable path",
        [PLAN_DENY] = "cannot enforce sandbox deny-read path",
    };
    for (size_t i = 0; i < item->at.link_count; i++) {
        const char *place = item->at.links[i].place;
        if (rules_region_above(&x->rules, place) == RULES_WRITE)
            return fault_text(f, FAULT_POLICY, "%s %s because it crosses writable symlink %s",
                              kinds[item->access], item->given, place);
    }
    if (item->at.state != LOCATE_BLOCKED || item->access == PLAN_WRITE)
        return 0;
    const char *reached = arena_strdup(x->a, (struct str){item->at.path, item->at.existing});
    if (reached == NULL)
        return fault_os(f, FAULT_POLICY, ENOMEM, "%s", item->given);
    if (rules_region(&x->rules, reached) == RULES_WRITE) /* the command could open it up later */
        return fault_os(f, FAULT_POLICY, EACCES, "%s", item->given);
    return 0;
}

/* -- protected names -- */

/* Protects the directory that a .git file names too, where the command could write to it. */
static int make_gitdir(const struct access_maker *m, const char *root, const char *gitfile) {
    char path[GITFILE_PATH_MAX];
    if (gitfile_read(root, gitfile, path) < 0)
        return 0;
    struct access_item item = {.given = gitfile, .access = PLAN_READ};
    int r = locate_path(path, m->x->a, &item.at);
    if (r == -ENOMEM)
        return make_no_memory(m, gitfile);
    if (r < 0 || item.at.state != LOCATE_FOUND ||
        rules_region(&m->x->rules, item.at.path) != RULES_WRITE)
        return 0;
    r = access_check_links(m->x, &item, m->f);
    if (r < 0)
        return r;
    struct rules_rule *rule = make_rule(m, item.at.path, PLAN_READ, &item.at.st);
    if (rule == NULL)
        return -ENOMEM;
    rule->guard = true;
    return 0;
}

/* Guards a path in a writable root: against changes, or without `st` against being made. */
static int make_guard(const struct access_maker *m, const char *path, const struct stat *st) {
    struct rules_rule *rule = make_rule(m, path, PLAN_READ, st);
    if (rule == NULL)
        return -ENOMEM;
    rule->guard = true;
    return 0;
}

static int make_protect(const struct access_maker *m, const char *root, const char *name) {
    struct stat st;
    char *path = arena_alloc(m->x->a, strlen(root) + strlen(name) + 2);
    if (path == NULL)
        return make_no_memory(m, root);
    sprintf(path, "%s/%s", strcmp(root, "/") == 0 ? "" : root, name);
    const struct rules_rule *named = rules_exact(&m->x->rules, path);
    if (named != NULL && named->access == PLAN_WRITE)
        return 0;
    int error = lstat(path, &st) < 0 ? errno : 0;
    bool gitfile = error == 0 && S_ISREG(st.st_mode) && strcmp(name, ".git") == 0;
    if (named != NULL) /* the entry itself does the rest */
        return gitfile ? make_gitdir(m, root, path) : 0;
    /* planted: unprotected-name */
    if (error == ENOENT || (error == 0 && make_is_placeholder(str_of(path), &st)))
        return make_guard(m, path, NULL);
    if (error != 0) { /* another user owns it: the command cannot open it up either */
        bool ours = stat(root, &st) < 0 || st.st_uid == geteuid();
        return ours ? fault_os(m->f, FAULT_PROTECT, error, "%s", path) : 0;
    }
    if (S_ISLNK(st.st_mode))
        return make_crosses(m, path);
    int r = make_guard(m, path, &st);
    return r == 0 && gitfile ? make_gitdir(m, root, path) : r;
}

static int make_protect_all(const struct access_maker *m) {
    struct rules *rules = &m->x->rules;
    int r = 0;
    size_t sorted = rules->sorted;
    for (size_t i = 0; r == 0 && i < sorted; i++) {
        struct rules_rule root = rules->list[i]; /* a copy: the list may move */
        if (root.access != PLAN_WRITE || root.dropped || !root.is_dir)
            continue;
        for (size_t k = 0; r == 0 && k < PLAN_PROTECTED; k++)
            r = make_protect(m, root.path, plan_protected[k]);
    }
    rules_sort(rules);
    return r;
}

/* -- missing paths -- */

/* Guards the first missing component of a denied or read-only path, so that nobody can make it. */
static int make_missing(const struct access_maker *m, const struct access_item *item) {
    const struct locate_result *at = &item->at;
    if (item->access == PLAN_WRITE || at->state != LOCATE_MISSING)
        return 0;
    const char *reached = arena_strdup(m->x->a, (struct str){at->path, at->existing});
    const char *first = arena_strdup(m->x->a, (struct str){at->path, locate_first_missing(at)});
    if (reached == NULL || first == NULL)
        return make_no_memory(m, item->given);
    struct rules *rules = &m->x->rules;
    if (rules_region(rules, reached) != RULES_WRITE)
        return 0;
    if (!S_ISDIR(at->st.st_mode)) /* a file stands in the way: it must stay */
        return rules_exact(rules, reached) == NULL ? make_guard(m, reached, &at->st) : 0;
    struct rules_rule *rule = rules_exact(rules, first);
    if (rule == NULL)
        return make_guard(m, first, NULL);
    rule->guard |= rule->absent && rule->access != PLAN_WRITE;
    return 0;
}

/* Each step sees the rules of the steps before. */
static int make_all_missing(const struct access_maker *m) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < m->x->item_count; i++) {
        r = make_missing(m, &m->x->items[i]);
        if (m->x->rules.count > m->x->rules.sorted)
            rules_sort(&m->x->rules);
    }
    return r;
}

/* Drops a grant of a missing path whose directory is not writable: the path cannot be made. */
static void make_drop_vain_grants(const struct access_maker *m) {
    for (size_t i = 0; i < m->x->rules.sorted; i++) {
        struct rules_rule *rule = &m->x->rules.list[i];
        enum rules_region above = rules_region_above(&m->x->rules, rule->path);
        if (rule->access == PLAN_WRITE && rule->absent)
            rule->dropped = above == RULES_READ || above == RULES_DENY;
    }
}

/* -- where case is ignored -- */

/* The deepest existing directory above a path. */
static void make_existing_dir(const char *path, char out[LOCATE_PATH_MAX]) {
    struct stat st;
    size_t n = MIN(strlen(path), (size_t)LOCATE_PATH_MAX - 1);
    memcpy(out, path, n);
    do {
        while (n > 0 && out[--n] != '/')
            ;
        n = MAX(n, (size_t)1);
        out[n] = '\0';
    } while (n > 1 && (lstat(out, &st) < 0 || !S_ISDIR(st.st_mode)));
}

static void make_folds(const struct access_maker *m) {
    char dir[LOCATE_PATH_MAX], last[LOCATE_PATH_MAX] = "";
    bool folds = false;
    for (size_t i = 0; i < m->x->rules.sorted; i++) {
        struct rules_rule *rule = &m->x->rules.list[i];
        if (rule->access == PLAN_WRITE || rule->dropped)
            continue;
        make_existing_dir(rule->path, dir);
        if (strcmp(dir, last) != 0)
            folds = casefold_at(dir);
        strcpy(last, dir);
        rule->fold = folds;
        m->x->folds |= folds;
    }
}

int access_build(struct access *x, const struct plan *p, struct arena *a, struct fault *f) {
    const struct access_maker m = {.x = x, .plan = p, .f = f};
    *x = (struct access){.a = a, .rules = {.a = a, .full_read = p->full_read}};
    if (!p->confine_files)
        return 0;
    int r = make_entries(&m);
    rules_sort(&x->rules);
    rules_prune_reads(&x->rules);
    for (size_t i = 0; r == 0 && i < x->item_count; i++)
        r = access_check_links(x, &x->items[i], f);
    if (r == 0)
        r = make_protect_all(&m);
    if (r == 0)
        r = make_all_missing(&m);
    make_drop_vain_grants(&m);
    if (r == 0)
        make_folds(&m);
    return r == 0 ? access_globs(x, p, f) : r;
}

void access_fini(struct access *x) {
    access_globs_fini(x);
}
