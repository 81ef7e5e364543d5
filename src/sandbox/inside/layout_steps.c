#include "sandbox/inside/layout_internal.h"

#include <errno.h>

/* Steps being collected. */
struct steps {
    struct layout_maker *m;
    struct layout_step *list;
    size_t count, cap;
};

static struct layout_step *steps_add(struct steps *s, enum layout_kind kind, const char *path) {
    struct layout_step *list = arena_grow(s->m->a, s->list, s->count, &s->cap, 64, sizeof *list);
    if (list == NULL)
        return NULL;
    s->list = list;
    struct layout_step *step = &s->list[s->count++];
    *step = (struct layout_step){.kind = kind, .path = path, .depth = locate_depth(path)};
    return step;
}

/* Whether a path lies in our own /dev, which lacks the host's files. */
static bool steps_in_dev(const struct layout_maker *m, const char *path) {
    const struct rules_rule *above = rules_above(m->rules, path);
    bool granted =
        above != NULL && above->access == PLAN_WRITE && locate_inside(above->path, "/dev");
    return !granted && locate_inside(path, "/dev");
}

static struct layout_step *steps_rule(struct steps *s, enum layout_kind kind,
                                      const struct rules_rule *rule) {
    struct layout_step *step = steps_add(s, kind, rule->path);
    if (step == NULL)
        return NULL;
    step->is_dir = rule->is_dir;
    step->dev = rule->dev;
    step->ino = rule->ino;
    step->known = true;
    step->fold = rule->fold;
    enum rules_region above = rules_region_above(s->m->rules, rule->path);
    step->ours = above == RULES_INVISIBLE || above == RULES_DENY || steps_in_dev(s->m, rule->path);
    return step;
}

/*
 * Pins the directories between a writable root and the mounts below it. If the command could rename
 * one, it could put another in its place with any contents; and a denied path would have another
 * name when the next command starts.
 */
static int steps_pin(struct steps *s, const struct rules_rule *rule) {
    const struct rules_rule *root = rules_above(s->m->rules, rule->path);
    if (root == NULL || root->access != PLAN_WRITE || steps_in_dev(s->m, rule->path))
        return 0;
    const char *p = rule->path + (strcmp(root->path, "/") == 0 ? 0 : strlen(root->path));
    while ((p = strchr(p + 1, '/')) != NULL) {
        const char *dir = arena_strdup(s->m->a, (struct str){rule->path, (size_t)(p - rule->path)});
        if (dir == NULL || steps_add(s, LAYOUT_PIN, dir) == NULL)
            return -ENOMEM;
    }
    return 0;
}

/* Whether the rule is for the root itself, or part of our /dev: then it needs no mount. */
static bool steps_is_base(const struct rules_rule *rule) {
    return strcmp(rule->path, "/") == 0 ||
           (strcmp(rule->path, "/dev") == 0 && rule->access != PLAN_DENY);
}

static int steps_of_rule(struct steps *s, const struct rules_rule *rule) {
    enum rules_region above = rules_region_above(s->m->rules, rule->path);
    if (rule->dropped || rule->absent || steps_is_base(rule) ||
        (rule->access == PLAN_DENY && above == RULES_INVISIBLE)) /* invisible anyway */
        return 0;
    bool ok = true;
    switch (rule->empty ? PLAN_READ : rule->access) {
    case PLAN_DENY: ok = steps_rule(s, LAYOUT_DENY, rule) != NULL; break;
    case PLAN_WRITE: ok = steps_rule(s, LAYOUT_WRITE, rule) != NULL; break;
    case PLAN_READ:
        if (above == RULES_READ)
            return 0;
        ok = steps_rule(s, rule->empty ? LAYOUT_EMPTY : LAYOUT_READ, rule) != NULL;
        break;
    }
    return ok ? steps_pin(s, rule) : -ENOMEM;
}

/* Shallow ones first. One pin per path is enough. */
static int steps_compare(const void *x, const void *y) {
    const struct layout_step *a = x, *b = y;
    if (a->depth != b->depth)
        return a->depth < b->depth ? -1 : 1;
    int r = strcmp(a->path, b->path);
    return r != 0 ? r : (int)a->kind - (int)b->kind;
}

static void steps_sort(struct steps *s) {
    size_t n = 0;
    if (s->count > 1)
        qsort(s->list, s->count, sizeof *s->list, steps_compare);
    for (size_t i = 0; i < s->count; i++) {
        if (n > 0 && s->list[i].kind == LAYOUT_PIN &&
            strcmp(s->list[n - 1].path, s->list[i].path) == 0)
            continue;
        s->list[n++] = s->list[i];
    }
    s->count = n;
}

/* Whether `w` is a writable path that must stay reachable below the denied directory. */
static bool steps_reopens(struct steps *s, const struct layout_step *deny,
                          const struct layout_step *w) {
    return w->kind == LAYOUT_WRITE && locate_inside(w->path, deny->path) &&
           strcmp(rules_above(s->m->rules, w->path)->path, deny->path) == 0;
}

static int steps_reopen(struct steps *s, struct layout_step *deny) {
    size_t n = 0;
    for (size_t i = 0; i < s->count; i++)
        n += steps_reopens(s, deny, &s->list[i]);
    if (n == 0)
        return 0;
    deny->reopened = arena_calloc(s->m->a, n, sizeof(struct layout_step *));
    if (deny->reopened == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < s->count; i++) {
        if (steps_reopens(s, deny, &s->list[i]))
            deny->reopened[deny->reopened_count++] = &s->list[i];
    }
    return 0;
}

static int steps_reopen_all(struct steps *s) {
    size_t writable = 0;
    for (size_t i = 0; i < s->count; i++)
        writable += s->list[i].kind == LAYOUT_WRITE;
    int r = 0;
    for (size_t i = 0; r == 0 && writable > 0 && i < s->count; i++) {
        if (s->list[i].kind == LAYOUT_DENY && s->list[i].is_dir)
            r = steps_reopen(s, &s->list[i]);
    }
    return r;
}

/* Whether the view contains nothing at a place but what we make there. */
static bool steps_is_bare(const struct layout_maker *m, const char *place) {
    const struct rules_rule *rule = rules_above(m->rules, place);
    if (rule != NULL && rule->access == PLAN_DENY)
        return rules_region_above(m->rules, rule->path) == RULES_INVISIBLE;
    return rules_region_above(m->rules, place) == RULES_INVISIBLE;
}

/* Collects the links that lead to granted paths, where the view has nothing else. */
static int steps_links(struct layout_maker *m) {
    struct layout *out = m->out;
    const struct access *x = out->access;
    struct locate_link *links = arena_calloc(m->a, x->item_count * LOCATE_LINKS_MAX, sizeof *links);
    if (links == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < x->item_count; i++) {
        const struct access_item *item = &x->items[i];
        for (size_t k = 0; item->at.state == LOCATE_FOUND && k < item->at.link_count; k++) {
            const char *place = item->at.links[k].place;
            if (steps_is_bare(m, place) && item->access != PLAN_DENY &&
                !locate_inside(place, "/dev"))
                links[out->link_count++] = item->at.links[k];
        }
    }
    out->links = links;
    return 0;
}

/* Decides what the root consists of. */
static void steps_base(struct layout_maker *m) {
    struct layout *out = m->out;
    const struct rules *rules = m->rules;
    const struct rules_rule *dev = rules_exact(rules, "/dev");
    enum rules_region root = rules_region(rules, "/");
    out->artificial = root == RULES_INVISIBLE;
    out->root_write = root == RULES_WRITE;
    out->host_dev = dev != NULL && dev->access == PLAN_WRITE;
    out->private_tmp =
        out->artificial && m->q->mode == LAUNCH_COMMAND && rules_exact(rules, "/tmp") == NULL;
}

int layout_steps(struct layout_maker *m) {
    struct steps s = {.m = m};
    int r = 0;
    steps_base(m);
    for (size_t i = 0; r == 0 && i < m->rules->sorted; i++)
        r = steps_of_rule(&s, &m->rules->list[i]);
    if (r == 0) {
        steps_sort(&s);
        r = steps_reopen_all(&s);
    }
    if (r == 0 && m->out->artificial)
        r = steps_links(m);
    if (r < 0)
        return fault_os(m->f, FAULT_POLICY, -r, "steps");
    m->out->steps = s.list;
    m->out->step_count = s.count;
    return 0;
}
