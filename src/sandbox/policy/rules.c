#include "sandbox/policy/rules.h"

#include "sandbox/policy/locate.h"

struct rules_rule *rules_add(struct rules *r, const char *path, enum plan_access access,
                             const struct stat *st) {
    if (r->count == RULES_MAX)
        return NULL;
    struct rules_rule *list = arena_grow(r->a, r->list, r->count, &r->cap, 64, sizeof *list);
    if (list == NULL)
        return NULL;
    r->list = list;
    struct rules_rule *rule = &r->list[r->count++];
    *rule = (struct rules_rule){
        .path = path,
        .access = access,
        .is_dir = S_ISDIR(st->st_mode),
        .dev = st->st_dev,
        .ino = st->st_ino,
    };
    return rule;
}

static int rules_compare(const void *x, const void *y) {
    const struct rules_rule *a = x, *b = y;
    int r = strcmp(a->path, b->path);
    return r != 0 ? r : (int)b->access - (int)a->access;
}

void rules_sort(struct rules *r) {
    size_t n = 0;
    if (r->count > 1)
        qsort(r->list, r->count, sizeof *r->list, rules_compare);
    for (size_t i = 0; i < r->count; i++) {
        if (n == 0 || strcmp(r->list[n - 1].path, r->list[i].path) != 0)
            r->list[n++] = r->list[i];
    }
    r->count = r->sorted = n;
}

/* The rule for the first n bytes of `path`. */
static struct rules_rule *rules_find(const struct rules *r, const char *path, size_t n) {
    size_t low = 0, high = r->sorted;
    while (low < high) {
        size_t mid = (low + high) / 2;
        const char *p = r->list[mid].path;
        int c = strncmp(p, path, n);
        if (c == 0)
            c = p[n] != '\0';
        if (c == 0)
            return &r->list[mid];
        if (c < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

struct rules_rule *rules_exact(const struct rules *r, const char *path) {
    return rules_find(r, path, strlen(path));
}

struct rules_rule *rules_above(const struct rules *r, const char *path) {
    size_t n = strlen(path);
    while (n > 1) {
        while (n > 0 && path[n - 1] != '/')
            n--;
        n = n > 1 ? n - 1 : 1;
        struct rules_rule *rule = rules_find(r, path, n);
        if (rule != NULL && !rule->dropped)
            return rule;
    }
    return NULL;
}

static enum rules_region rules_of(const struct rules *r, const struct rules_rule *rule) {
    if (rule == NULL)
        return r->full_read ? RULES_READ : RULES_INVISIBLE;
    switch (rule->access) {
    case PLAN_READ: return RULES_READ;
    case PLAN_WRITE: return RULES_WRITE;
    case PLAN_DENY: break;
    }
    return RULES_DENY;
}

enum rules_region rules_region(const struct rules *r, const char *path) {
    const struct rules_rule *rule = rules_exact(r, path);
    if (rule != NULL && !rule->dropped)
        return rules_of(r, rule);
    return rules_region_above(r, path);
}

enum rules_region rules_region_above(const struct rules *r, const char *path) {
    return rules_of(r, rules_above(r, path));
}

void rules_prune_reads(struct rules *r) {
    /* In path order a directory comes before its contents. */
    for (size_t i = 0; i < r->sorted; i++) {
        struct rules_rule *rule = &r->list[i];
        if (rule->access == PLAN_READ && rules_region_above(r, rule->path) == RULES_DENY)
            rule->dropped = true;
    }
}
