#include "starlark/star_internal.h"

#include "base/editdist.h"

#define SCOPE_SLOTS_MAX 65536u

struct scope_name {
    struct str name;
    uint32_t slot;
};

/* The names of one function, or of the module. */
struct scope {
    struct star *s;
    struct scope *up; /* of the function around it */
    struct scope_name *names;
    size_t n, cap;
    uint32_t slots;
};

static bool scope_visit(struct scope *c, struct star_node *n);

/* -- names -- */

static const struct scope_name *scope_find(const struct scope *c, struct str name) {
    for (size_t i = c->n; i-- > 0;) {
        if (str_eq(c->names[i].name, name))
            return &c->names[i];
    }
    return NULL;
}

/* Adds a name with a slot of its own; it hides others. */
static bool scope_push(struct scope *c, struct str name, uint32_t *slot) {
    if (c->n == c->cap) {
        size_t cap = MAX((size_t)16, c->cap * 2);
        struct scope_name *names = star_calloc(c->s, cap, sizeof *names);
        if (names == NULL)
            return false;
        if (c->n > 0)
            memcpy(names, c->names, c->n * sizeof *names);
        c->names = names;
        c->cap = cap;
    }
    if (c->slots == SCOPE_SLOTS_MAX || !star_work(c->s, c->n / 16))
        return star_fail(c->s, "a function has too many variables");
    c->names[c->n++] = (struct scope_name){name, c->slots};
    if (slot != NULL)
        *slot = c->slots;
    c->slots++;
    return true;
}

static bool scope_add(struct scope *c, struct str name) {
    if (!star_work(c->s, c->n / 16))
        return false;
    return scope_find(c, name) != NULL || scope_push(c, name, NULL);
}

static struct star_value *scope_builtin(struct star *s, struct str name) {
    const struct star_native *list[2] = {star_globals, s->natives};
    if (str_eqz(name, "None"))
        return &s->none;
    if (str_eqz(name, "True") || str_eqz(name, "False"))
        return star_value_bool(s, name.p[0] == 'T');
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; k == 0 ? list[0][i].name != NULL : i < s->native_count; i++) {
            if (!str_eqz(name, list[k][i].name))
                continue;
            struct star_value *v = star_value_new(s, STAR_NATIVE);
            if (v != NULL)
                v->native = &list[k][i];
            return v;
        }
    }
    return NULL;
}

/* -- suggestions -- */

struct scope_guess {
    struct str wanted, best;
    size_t distance;
};

static void scope_guess(struct scope_guess *g, struct str name) {
    size_t d = editdist(g->wanted, name);
    if (d < g->distance && d <= MAX(g->wanted.n, name.n) / 2 + (MAX(g->wanted.n, name.n) == 1)) {
        g->distance = d;
        g->best = name;
    }
}

static bool scope_fail(struct scope *c, const struct star_node *n) {
    struct star *s = c->s;
    struct scope_guess g = {.wanted = n->name, .distance = 3};
    for (const struct scope *at = c; at != NULL; at = at->up) {
        for (size_t i = 0; i < at->n && i < 1000; i++)
            scope_guess(&g, at->names[i].name);
    }
    for (const struct star_native *f = star_globals; f->name != NULL; f++)
        scope_guess(&g, str_of(f->name));
    for (size_t i = 0; i < s->native_count; i++)
        scope_guess(&g, str_of(s->natives[i].name));
    if (g.best.p == NULL)
        return star_fail_at(s, n->span, "Variable `%.*s` not found", (int)n->name.n, n->name.p);
    return star_fail_at(s, n->span, "Variable `%.*s` not found, did you mean `%.*s`?",
                        (int)n->name.n, n->name.p, (int)g.best.n, g.best.p);
}

/* -- what a function assigns -- */

static bool scope_collect_target(struct scope *c, const struct star_node *n) {
    if (n->kind == N_NAME)
        return scope_add(c, n->name);
    for (size_t i = 0; (n->kind == N_TUPLE || n->kind == N_LIST) && i < n->n; i++) {
        if (!scope_collect_target(c, n->items[i]))
            return false;
    }
    return true;
}

static bool scope_collect(struct scope *c, const struct star_node *n) {
    if (n == NULL)
        return true;
    switch ((int)n->kind) {
    case N_BLOCK:
        for (size_t i = 0; i < n->n; i++) {
            if (!scope_collect(c, n->items[i]))
                return false;
        }
        return true;
    case N_ASSIGN:
    case N_AUGMENT: return scope_collect_target(c, n->a);
    case N_DEF: return scope_add(c, n->name);
    case N_IF: return scope_collect(c, n->b) && scope_collect(c, n->c);
    case N_FOR: return scope_collect_target(c, n->a) && scope_collect(c, n->c);
    default: return true;
    }
}

/* -- uses -- */

static bool scope_use(struct scope *c, struct star_node *n) {
    struct star *s = c->s;
    unsigned up = 0;
    for (const struct scope *at = c; at != NULL; at = at->up, up++) {
        const struct scope_name *name = star_work(s, at->n / 16) ? scope_find(at, n->name) : NULL;
        if (s->failed)
            return false;
        if (name == NULL)
            continue;
        n->up = up;
        n->slot = name->slot;
        return true;
    }
    n->value = scope_builtin(s, n->name);
    return n->value != NULL || (!s->failed && scope_fail(c, n));
}

static bool scope_visit_items(struct scope *c, struct star_node *n) {
    for (size_t i = 0; i < n->n; i++) {
        if (!scope_visit(c, n->items[i]))
            return false;
    }
    return true;
}

/* A def or a lambda: defaults and types belong outside. */
static bool scope_visit_function(struct scope *c, struct star_node *n) {
    struct scope inner = {.s = c->s, .up = c};
    for (size_t i = 0; i < n->n; i++) {
        struct star_node *param = n->items[i];
        if (!scope_visit(c, param->a) || !scope_visit(c, param->b))
            return false;
        if (param->name.n > 0 && !scope_push(&inner, param->name, &param->slot))
            return false;
    }
    if (n->kind == N_DEF && !scope_visit(c, n->a))
        return false;
    struct star_node *body = n->kind == N_DEF ? n->b : n->a;
    if ((n->kind == N_DEF && !scope_collect(&inner, body)) || !scope_visit(&inner, body))
        return false;
    n->slots = inner.slots;
    return true;
}

/* A comprehension owns its variables; its first iterable belongs to the outer scope. */
static bool scope_push_targets(struct scope *c, const struct star_node *n) {
    if (n->kind == N_NAME)
        return scope_push(c, n->name, NULL);
    for (size_t i = 0; (n->kind == N_TUPLE || n->kind == N_LIST) && i < n->n; i++) {
        if (!scope_push_targets(c, n->items[i]))
            return false;
    }
    return true;
}

static bool scope_visit_comprehension(struct scope *c, struct star_node *n) {
    size_t names = c->n;
    if (!scope_visit(c, n->items[0]->b))
        return false;
    for (size_t i = 0; i < n->n; i++) {
        if (n->items[i]->kind == N_FOR_CLAUSE && !scope_push_targets(c, n->items[i]->a))
            return false;
    }
    for (size_t i = 0; i < n->n; i++) {
        struct star_node *clause = n->items[i];
        if (!scope_visit(c, clause->a) || (i > 0 && !scope_visit(c, clause->b)))
            return false;
    }
    if (!scope_visit(c, n->a) || !scope_visit(c, n->b))
        return false;
    c->n = names;
    return true;
}

static bool scope_visit(struct scope *c, struct star_node *n) {
    if (n == NULL)
        return true;
    switch ((int)n->kind) {
    case N_NAME: return scope_use(c, n);
    case N_LAMBDA: return scope_visit_function(c, n);
    case N_LISTCOMP:
    case N_DICTCOMP: return scope_visit_comprehension(c, n);
    case N_DEF: {
        const struct scope_name *name = scope_find(c, n->name);
        n->slot = name->slot;
        return scope_visit_function(c, n);
    }
    case N_LOAD:
        return star_fail_at(c->s, n->span,
                            "No imports are available, you tried `%.*s` (no call to "
                            "`Evaluator.set_loader`)",
                            (int)n->name.n, n->name.p);
    default: break;
    }
    return scope_visit(c, n->a) && scope_visit(c, n->b) && scope_visit(c, n->c) &&
           scope_visit(c, n->d) && scope_visit_items(c, n);
}

int star_scope(struct star *s, struct star_node *module) {
    struct scope c = {.s = s};
    if (!scope_collect(&c, module) || !scope_visit(&c, module))
        return -1;
    return (int)c.slots;
}
