#include "sandbox/policy/access_internal.h"

#include "sandbox/policy/casefold.h"

#include <errno.h>

/* The deepest rule that restricts a path when case is ignored; or NULL. */
static const struct rules_rule *folded_rule(const struct access *x, const char *path) {
    const struct rules_rule *found = NULL;
    for (size_t i = 0; x->folds && i < x->rules.sorted; i++) {
        const struct rules_rule *rule = &x->rules.list[i];
        if (rule->fold && !rule->dropped && casefold_inside(path, rule->path) > 0 &&
            (found == NULL || locate_depth(rule->path) > locate_depth(found->path) ||
             rule->access == PLAN_DENY))
            found = rule;
    }
    return found;
}

enum rules_region access_may_region(const struct access *x, const char *path) {
    enum rules_region region = rules_region(&x->rules, path);
    const struct rules_rule *folded = folded_rule(x, path);
    if (folded == NULL || region == RULES_DENY)
        return region;
    const struct rules_rule *rule = rules_exact(&x->rules, path);
    if (rule == NULL || rule->dropped)
        rule = rules_above(&x->rules, path);
    if (rule != NULL && locate_depth(rule->path) > locate_depth(folded->path))
        return region;
    return folded->access == PLAN_DENY ? RULES_DENY : RULES_READ;
}

/* Whether there is a rule for a path itself. */
static bool has_own_rule(const struct access *x, const char *path) {
    if (rules_exact(&x->rules, path) != NULL)
        return true;
    const struct rules_rule *folded = folded_rule(x, path);
    return folded != NULL && casefold_inside(path, folded->path) == 2;
}

/* Whether a path lies on the sandbox's own /dev or /proc: a file there would vanish with the
 * sandbox. */
static bool is_private_mount(const struct access *x, const char *path, mode_t mode) {
    const struct rules_rule *rule = rules_exact(&x->rules, path);
    if (rule == NULL)
        rule = rules_above(&x->rules, path);
    bool writable = rule != NULL && rule->access == PLAN_WRITE;
    if (locate_inside(path, "/proc"))
        return true;
    if (!locate_inside(path, "/dev") || S_ISCHR(mode))
        return false;
    return !writable || !(locate_inside(rule->path, "/dev") || locate_inside(path, "/dev/shm"));
}

/* Whether something below a path is mounted, or must not be made. */
static bool has_rule_below(const struct access *x, const char *path) {
    for (size_t i = 0; i < x->rules.sorted; i++) {
        const struct rules_rule *rule = &x->rules.list[i];
        if (rule->dropped || (rule->absent && rule->access == PLAN_WRITE))
            continue;
        if ((locate_inside(rule->path, path) && strcmp(rule->path, path) != 0) ||
            (rule->fold && casefold_inside(rule->path, path) == 1))
            return true;
    }
    return false;
}

/* Whether a denied directory leads to a writable one below. */
static bool leads_to_grant(const struct access *x, const char *path) {
    if (rules_exact(&x->rules, path) != NULL || rules_region(&x->rules, path) != RULES_DENY)
        return false;
    for (size_t i = 0; i < x->rules.sorted; i++) {
        const struct rules_rule *rule = &x->rules.list[i];
        if (rule->access == PLAN_WRITE && !rule->absent && locate_inside(rule->path, path))
            return true;
    }
    return false;
}

/* Whether the path, or its directory, leads to a writable one below. */
static bool is_on_way_to_grant(const struct access *x, const char *path) {
    char dir[LOCATE_PATH_MAX];
    size_t n = (size_t)(strrchr(path, '/') - path);
    if (leads_to_grant(x, path))
        return true;
    if (n == 0 || n >= sizeof dir)
        return false;
    memcpy(dir, path, n);
    dir[n] = '\0';
    return leads_to_grant(x, dir);
}

/* A mount point, or a guarded name, keeps its name. */
static int check_take(const struct access *x, const struct access_query *q) {
    bool above = rules_region_above(&x->rules, q->path) == RULES_WRITE;
    if (has_own_rule(x, q->path))
        return above && access_may_region(x, q->path) == RULES_WRITE ? -EBUSY : -EROFS;
    if (!q->tree || !S_ISDIR(q->mode))
        return 0;
    if (has_rule_below(x, q->path))
        return -EBUSY;
    return access_globs_hold_match(x, q->path) ? -EACCES : 0;
}

/* Whether the call fails without us: the directory exists already, or there is nothing to take. */
static bool kernel_will_refuse(const struct access_query *q) {
    return (q->need == ACCESS_MAKE && q->mode != 0) || (q->need == ACCESS_TAKE && q->mode == 0);
}

static int check_change(const struct access *x, const struct access_query *q) {
    if (kernel_will_refuse(q))
        return 0;
    if (is_private_mount(x, q->path, q->mode))
        return -EROFS;
    if (locate_inside(q->path, "/dev"))
        return 0;
    switch (access_may_region(x, q->path)) {
    case RULES_READ: {
        bool file = S_ISREG(q->mode) && has_own_rule(x, q->path);
        return !file && q->is_readonly != NULL && q->is_readonly(q->arg) ? 0 : -EROFS;
    }
    case RULES_DENY: return is_on_way_to_grant(x, q->path) ? -EROFS : -EACCES;
    case RULES_INVISIBLE: /* the root is read-only */
    case RULES_WRITE: break;
    }
    return 0;
}

static int check_read(const struct access *x, const struct access_query *q) {
    if (access_may_region(x, q->path) != RULES_DENY)
        return 0;
    if (S_ISDIR(q->mode) && leads_to_grant(x, q->path))
        return 0; /* it lists only names that lead to granted paths */
    return q->mode != 0 ? -EACCES : -ENOENT;
}

int access_may(struct access *x, const struct access_query *q) {
    int r = q->need == ACCESS_READ ? check_read(x, q) : check_change(x, q);
    if (r == 0 && q->need == ACCESS_TAKE && q->mode != 0)
        r = check_take(x, q);
    if (r < 0 || kernel_will_refuse(q))
        return r;
    if (!S_ISDIR(q->mode) && q->need != ACCESS_MAKE && access_globs_matches(x, q->path))
        return -EACCES;
    return access_globs_is_target(x, q->path) ? -EACCES : 0;
}

bool access_may_is_unseen(const struct access *x, const char *path) {
    const struct rules_rule *rule = rules_exact(&x->rules, path);
    if (rule == NULL)
        rule = rules_above(&x->rules, path);
    return rule != NULL && rule->access == PLAN_DENY &&
           rules_region_above(&x->rules, rule->path) == RULES_INVISIBLE &&
           !has_rule_below(x, rule->path);
}

bool access_may_is_hidden(const struct access *x, const char *path) {
    enum rules_region region = access_may_region(x, path);
    return region == RULES_INVISIBLE || region == RULES_DENY;
}

int access_may_missing(const struct access *x, enum access_need need, const char *path,
                       size_t existing) {
    const struct rules_rule *rule = rules_above(&x->rules, path);
    const struct rules_rule *folded = folded_rule(x, path);
    if (folded != NULL && (rule == NULL || locate_depth(folded->path) > locate_depth(rule->path)))
        rule = folded;
    bool change = need != ACCESS_READ;
    if (access_may_is_unseen(x, path))
        return -EACCES;
    if (!change || need == ACCESS_TAKE || rule == NULL || rule->access == PLAN_WRITE ||
        strlen(rule->path) <= existing)
        return -ENOENT;
    return rule->access == PLAN_DENY ? -EACCES : -EROFS;
}
