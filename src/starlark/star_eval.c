#include "starlark/star_internal.h"

#include <errno.h>

/* How a statement ended. */
enum eval_flow { FLOW_NEXT, FLOW_BREAK, FLOW_CONTINUE, FLOW_RETURN, FLOW_FAILED };

static enum eval_flow eval_run(struct star *s, const struct star_node *n);

/* -- loops -- */

struct eval_loop {
    struct star_value *v;
    size_t at;
    int64_t count; /* of a range */
};

static unsigned *loop_guard(struct star_value *v) {
    if (v->type == STAR_LIST)
        return &v->list.iterating;
    return v->type == STAR_DICT ? &v->dict->iterating : NULL;
}

static bool loop_begin(struct star *s, struct star_value *v, struct eval_loop *l) {
    unsigned *guard = loop_guard(v);
    *l = (struct eval_loop){.v = v};
    if (guard == NULL && v->type != STAR_TUPLE && v->type != STAR_RANGE && v->type != STAR_ITERATOR)
        return star_fail(s, "Operation `(iter)` not supported on type `%s`",
                         star_value_type_name(v));
    if (guard != NULL)
        ++*guard;
    if (v->type == STAR_RANGE)
        l->count = star_value_range_length(&v->range);
    return true;
}

/* The next item; NULL at the end or after a failure. */
static struct star_value *loop_next(struct star *s, struct eval_loop *l) {
    const struct star_value *v = l->v;
    size_t i = l->at++;
    if (!star_work(s, 1))
        return NULL;
    if (v->type == STAR_DICT)
        return i < v->dict->n ? v->dict->entries[i].key : NULL;
    if (v->type == STAR_RANGE)
        return (int64_t)i < l->count
                   ? star_value_number(s, v->range.start + (int64_t)i * v->range.step)
                   : NULL;
    return i < v->list.n ? v->list.items[i] : NULL;
}

static void loop_end(struct eval_loop *l) {
    unsigned *guard = loop_guard(l->v);
    if (guard != NULL)
        --*guard;
}

/* -- names and targets -- */

static struct star_value **eval_slot(struct star *s, const struct star_node *n) {
    struct star_frame *f = s->frame;
    for (unsigned i = 0; i < n->up; i++)
        f = f->up;
    return &f->slots[n->slot];
}

static struct star_value *eval_name(struct star *s, const struct star_node *n) {
    if (n->value != NULL)
        return n->value;
    struct star_value *v = *eval_slot(s, n);
    if (v == NULL)
        return star_fail_at(s, n->span, "Local variable `%.*s` referenced before assignment",
                            (int)n->name.n, n->name.p);
    return v;
}

static bool eval_unpack(struct star *s, const struct star_node *target, struct star_value *v) {
    struct star_list items;
    int64_t n = star_value_length(v);
    if (n < 0 || v->type == STAR_STRING || v->type == STAR_BYTES) {
        star_fail(s, "Operation `%s` not supported on type `%s`", n < 0 ? "len()" : "(iter)",
                  star_value_type_name(v));
        star_locate(s, target->span);
        return false;
    }
    if ((size_t)n != target->n)
        return star_fail_at(s, target->span, "Unpacked %lld values but expected %zu", (long long)n,
                            target->n);
    if (!star_value_items(s, v, &items))
        return false;
    for (size_t i = 0; i < target->n; i++) {
        if (!star_eval_assign(s, target->items[i], items.items[i]))
            return false;
    }
    return true;
}

bool star_eval_assign(struct star *s, const struct star_node *target, struct star_value *v) {
    struct star_value *object, *key;
    switch ((int)target->kind) {
    case N_NAME: *eval_slot(s, target) = v; return true;
    case N_INDEX:
        object = star_eval(s, target->a);
        key = object == NULL ? NULL : star_eval(s, target->b);
        if (key == NULL)
            return false;
        if (!star_ops_set_index(s, object, key, v)) {
            star_locate(s, target->span);
            return false;
        }
        return true;
    case N_DOT:
        object = star_eval(s, target->a);
        if (object == NULL)
            return false;
        return star_fail_at(s, target->span, "Operation `.%.*s=` not supported on type `%s`",
                            (int)target->name.n, target->name.p, star_value_type_name(object));
    default: return eval_unpack(s, target, v);
    }
}

/* -- displays -- */

static struct star_value *eval_items(struct star *s, const struct star_node *n,
                                     enum star_type type) {
    struct star_value *v = star_value_list(s, type, n->n);
    for (size_t i = 0; v != NULL && i < n->n; i++) {
        struct star_value *item = star_eval(s, n->items[i]);
        if (item == NULL || !star_value_append(s, &v->list, item))
            return NULL;
    }
    return v;
}

static void eval_fail_repeated(struct star *s, const struct star_value *key) {
    star_fail(s, "Dictionary key repeated for `%s`", star_value_repr(s, key));
}

static struct star_value *eval_dict(struct star *s, const struct star_node *n) {
    struct star_value *v = star_dict_new(s);
    for (size_t i = 0; v != NULL && i < n->n; i += 2) {
        struct star_value *key = star_eval(s, n->items[i]);
        struct star_value *value = key == NULL ? NULL : star_eval(s, n->items[i + 1]);
        if (value == NULL)
            return NULL;
        struct star_entry *e = star_dict_find(s, v->dict, key);
        if (e != NULL)
            eval_fail_repeated(s, key);
        if (s->failed || !star_dict_set(s, v->dict, key, value)) {
            star_locate(s, n->items[i]->span);
            return NULL;
        }
    }
    return v;
}

/* Runs the clauses from number i on; adds their results. */
static bool eval_clauses(struct star *s, const struct star_node *n, size_t i,
                         struct star_value *out) {
    if (i == n->n) {
        struct star_value *a = star_eval(s, n->a);
        if (a == NULL || n->kind == N_LISTCOMP)
            return a != NULL && star_value_append(s, &out->list, a);
        struct star_value *b = star_eval(s, n->b);
        if (b == NULL)
            return false;
        if (star_dict_set(s, out->dict, a, b))
            return true;
        star_locate(s, n->a->span);
        return false;
    }
    const struct star_node *clause = n->items[i];
    struct star_value *v = star_eval(s, clause->kind == N_FOR_CLAUSE ? clause->b : clause->a);
    if (v == NULL)
        return false;
    if (clause->kind == N_IF_CLAUSE)
        return !star_value_truth(v) || eval_clauses(s, n, i + 1, out);
    struct eval_loop l;
    if (!loop_begin(s, v, &l)) {
        star_locate(s, clause->b->span);
        return false;
    }
    for (struct star_value *item; (item = loop_next(s, &l)) != NULL;) {
        if (!star_eval_assign(s, clause->a, item) || !eval_clauses(s, n, i + 1, out))
            break;
    }
    loop_end(&l);
    return !s->failed;
}

static struct star_value *eval_comprehension(struct star *s, const struct star_node *n) {
    struct star_value *out =
        n->kind == N_LISTCOMP ? star_value_list(s, STAR_LIST, 0) : star_dict_new(s);
    return out != NULL && eval_clauses(s, n, 0, out) ? out : NULL;
}

static struct star_value *eval_fstring(struct star *s, const struct star_node *n) {
    _cleanup_buf_ struct buf b = BUF_INIT(STAR_MEMORY_MAX);
    for (size_t i = 0; i < n->n; i++) {
        const struct star_node *part = n->items[i];
        struct star_value *v = part->kind == N_FIELD ? star_eval(s, part->a) : part->value;
        if (v == NULL || !star_value_put(s, &b, v, part->op == T_NOT))
            return NULL;
    }
    return star_take(s, &b, 0);
}

/* -- functions -- */

/* The type an annotation names; NULL without one, or after a failure. */
static struct star_value *eval_type(struct star *s, const struct star_node *n) {
    struct star_value *v = n == NULL ? NULL : star_eval(s, n);
    struct star_value *type = v == NULL ? NULL : star_type_of(s, v);
    if (v != NULL && type == NULL)
        star_locate(s, n->span);
    return type;
}

static struct star_value *eval_function(struct star *s, const struct star_node *n) {
    struct star_value *v = star_value_new(s, STAR_FUNCTION);
    struct star_function *f = v == NULL ? NULL : star_alloc(s, sizeof *f);
    if (f == NULL)
        return NULL;
    v->function = f;
    f->name = star_text(s, "%.*s", (int)n->name.n, n->name.p);
    f->node = n;
    f->frame = s->frame;
    f->defaults = star_calloc(s, n->n + 1, sizeof(struct star_value *));
    f->types = star_calloc(s, n->n + 1, sizeof(struct star_value *));
    if (f->name == NULL || f->defaults == NULL || f->types == NULL)
        return NULL;
    for (size_t i = 0; i < n->n; i++) {
        f->types[i] = eval_type(s, n->items[i]->b);
        if (n->items[i]->a != NULL)
            f->defaults[i] = star_eval(s, n->items[i]->a);
        if (s->failed)
            return NULL;
    }
    if (n->kind == N_DEF)
        f->types[n->n] = eval_type(s, n->a);
    return s->failed ? NULL : v;
}

/* Adds named arguments from a dictionary. */
static bool eval_spread_named(struct star *s, struct star_value *v, struct star_dict *named) {
    if (v->type != STAR_DICT)
        return star_fail(s, "The argument provided for **kwargs is not a dictionary");
    for (size_t k = 0; k < v->dict->n; k++) {
        struct star_entry *e = &v->dict->entries[k];
        if (e->key->type != STAR_STRING)
            return star_fail(s, "The argument provided for **kwargs contains a non-string key");
        if (star_dict_find(s, named, e->key) != NULL)
            return star_fail(s, "Argument `%.*s` occurs more than once", (int)e->key->text.n,
                             e->key->text.p);
        if (!star_dict_set(s, named, e->key, e->value))
            return false;
    }
    return true;
}

/* Separates positional from named arguments. */
static bool eval_args(struct star *s, const struct star_node *n, const struct star_list *values,
                      struct star_list *positional, struct star_dict *named) {
    for (size_t i = 0; i < n->n; i++) {
        const struct star_node *arg = n->items[i];
        struct star_value *v = values->items[i], *name;
        struct star_list more = {.items = &v, .n = 1};
        switch ((int)arg->op) {
        case T_NAME:
            name = star_value_string(s, arg->name);
            if (name == NULL || !star_dict_set(s, named, name, v))
                return false;
            continue;
        case T_STARSTAR:
            if (!eval_spread_named(s, v, named))
                return false;
            continue;
        case T_STAR:
            if (!star_value_items(s, v, &more))
                return false;
            break;
        default: break;
        }
        for (size_t k = 0; k < more.n; k++) {
            if (!star_value_append(s, positional, more.items[k]))
                return false;
        }
    }
    return true;
}

/* A traceback shows a call only after the evaluation of its arguments. */
static struct star_value *eval_call(struct star *s, const struct star_node *n) {
    struct star_list values = {0}, positional = {0};
    struct star_dict named = {0};
    struct star_value *fn = star_eval(s, n->a);
    if (fn == NULL)
        return NULL;
    for (size_t i = 0; i < n->n; i++) {
        struct star_value *v = star_eval(s, n->items[i]->a);
        if (v == NULL || !star_value_append(s, &values, v))
            return NULL;
    }
    if (s->call_count == STAR_CALLS_MAX)
        return star_fail_at(s, n->span, "Starlark call stack overflow");
    s->calls[s->call_count++] = (struct star_call){n->span, s->where};
    bool ready = eval_args(s, n, &values, &positional, &named);
    struct star_value *v = ready ? star_call(s, fn, &positional, &named) : NULL;
    if (v == NULL) {
        star_locate(s, n->span);
        return NULL;
    }
    s->call_count--;
    return v;
}

/* -- expressions -- */

static struct star_value *eval_binary(struct star *s, const struct star_node *n) {
    struct star_value *x = star_eval(s, n->a), *y = x == NULL ? NULL : star_eval(s, n->b);
    return y == NULL ? NULL : star_ops_binary(s, n->op, x, y);
}

static struct star_value *eval_slice(struct star *s, const struct star_node *n) {
    const struct star_node *parts[3] = {n->b, n->c, n->d};
    struct star_value *v = star_eval(s, n->a), *bounds[3] = {NULL, NULL, NULL};
    for (size_t i = 0; i < 3 && v != NULL; i++) {
        if (parts[i] != NULL && (bounds[i] = star_eval(s, parts[i])) == NULL)
            return NULL;
    }
    return v == NULL ? NULL : star_ops_slice(s, v, bounds);
}

static struct star_value *eval_choose(struct star *s, const struct star_node *n) {
    struct star_value *x = star_eval(s, n->kind == N_CHOICE ? n->b : n->a);
    if (x == NULL)
        return NULL;
    bool truth = star_value_truth(x);
    switch ((int)n->kind) {
    case N_NOT: return star_value_bool(s, !truth);
    case N_CHOICE: return star_eval(s, truth ? n->a : n->c);
    case N_AND: return truth ? star_eval(s, n->b) : x;
    default: return truth ? x : star_eval(s, n->b);
    }
}

static struct star_value *eval_expression(struct star *s, const struct star_node *n) {
    struct star_value *x, *y;
    switch ((int)n->kind) {
    case N_NAME: return eval_name(s, n);
    case N_LITERAL: return n->value;
    case N_LIST: return eval_items(s, n, STAR_LIST);
    case N_TUPLE: return eval_items(s, n, STAR_TUPLE);
    case N_DICT: return eval_dict(s, n);
    case N_UNARY: x = star_eval(s, n->a); return x == NULL ? NULL : star_ops_unary(s, n->op, x);
    case N_BINARY: return eval_binary(s, n);
    case N_AND:
    case N_OR:
    case N_NOT:
    case N_CHOICE: return eval_choose(s, n);
    case N_CALL: return eval_call(s, n);
    case N_INDEX:
        x = star_eval(s, n->a);
        y = x == NULL ? NULL : star_eval(s, n->b);
        return y == NULL ? NULL : star_ops_index(s, x, y);
    case N_SLICE: return eval_slice(s, n);
    case N_DOT:
        x = star_eval(s, n->a);
        return x == NULL ? NULL : star_call_attribute(s, x, n->name);
    case N_LAMBDA: return eval_function(s, n);
    case N_LISTCOMP:
    case N_DICTCOMP: return eval_comprehension(s, n);
    case N_FSTRING: return eval_fstring(s, n);
    default: return star_fail(s, "unknown expression");
    }
}

struct star_value *star_eval(struct star *s, const struct star_node *n) {
    struct star_value *v = star_work(s, 1) ? eval_expression(s, n) : NULL;
    if (v == NULL)
        star_locate(s, n->span);
    return v;
}

/* -- statements -- */

static enum eval_flow eval_flow(bool good) {
    return good ? FLOW_NEXT : FLOW_FAILED;
}

static enum eval_flow eval_for(struct star *s, const struct star_node *n) {
    struct star_value *v = star_eval(s, n->b);
    struct eval_loop l;
    enum eval_flow flow = FLOW_NEXT;
    if (v == NULL)
        return FLOW_FAILED;
    if (!loop_begin(s, v, &l)) {
        star_locate(s, n->span);
        return FLOW_FAILED;
    }
    for (struct star_value *item; (item = loop_next(s, &l)) != NULL;) {
        flow = star_eval_assign(s, n->a, item) ? eval_run(s, n->c) : FLOW_FAILED;
        if (flow != FLOW_NEXT && flow != FLOW_CONTINUE)
            break;
        flow = FLOW_NEXT;
    }
    loop_end(&l);
    if (s->failed)
        return FLOW_FAILED;
    return flow == FLOW_BREAK ? FLOW_NEXT : flow;
}

static enum eval_flow eval_assignment(struct star *s, const struct star_node *n) {
    struct star_value *type = eval_type(s, n->c);
    struct star_value *v = s->failed ? NULL : star_eval(s, n->b);
    if (v == NULL)
        return FLOW_FAILED;
    if (!star_type_check(s, type, v, "return type")) {
        star_locate(s, n->c->span);
        return FLOW_FAILED;
    }
    return eval_flow(star_eval_assign(s, n->a, v));
}

/* x += y changes a list in place, for all who share it. */
static struct star_value *eval_augmented(struct star *s, const struct star_node *n,
                                         struct star_value *x, struct star_value *y) {
    struct star_list more;
    if (x->type == STAR_LIST && n->op == T_PLUS) {
        if (!star_value_may_change(s, x->list.iterating) || !star_value_items(s, y, &more))
            return NULL;
        for (size_t i = 0; i < more.n; i++) {
            if (!star_value_append(s, &x->list, more.items[i]))
                return NULL;
        }
        return x;
    }
    if (x->type == STAR_DICT && n->op == T_PIPE && y->type == STAR_DICT) {
        for (size_t i = 0; i < y->dict->n; i++) {
            if (!star_dict_set(s, x->dict, y->dict->entries[i].key, y->dict->entries[i].value))
                return NULL;
        }
        return x;
    }
    return star_ops_binary(s, n->op, x, y);
}

static enum eval_flow eval_augment(struct star *s, const struct star_node *n) {
    struct star_value *x;
    if (n->a->kind == N_NAME) { /* an unset name is an error of the whole statement */
        struct star_value **slot = eval_slot(s, n->a);
        x = *slot != NULL
                ? *slot
                : star_fail_at(s, n->span, "Local variable `%.*s` referenced before assignment",
                               (int)n->a->name.n, n->a->name.p);
    } else {
        x = star_eval(s, n->a);
    }
    struct star_value *y = x == NULL ? NULL : star_eval(s, n->b);
    struct star_value *v = y == NULL ? NULL : eval_augmented(s, n, x, y);
    if (v == NULL) {
        star_locate(s, n->span);
        return FLOW_FAILED;
    }
    return eval_flow(star_eval_assign(s, n->a, v));
}

static enum eval_flow eval_return(struct star *s, const struct star_node *n) {
    s->result = n->a == NULL ? &s->none : star_eval(s, n->a);
    s->returned = n->span;
    return s->result == NULL ? FLOW_FAILED : FLOW_RETURN;
}

static enum eval_flow eval_block(struct star *s, const struct star_node *n) {
    enum eval_flow flow = FLOW_NEXT;
    for (size_t i = 0; flow == FLOW_NEXT && i < n->n; i++)
        flow = eval_run(s, n->items[i]);
    return flow;
}

static enum eval_flow eval_run(struct star *s, const struct star_node *n) {
    struct star_value *v;
    if (!star_work(s, 1)) {
        star_locate(s, n->span);
        return FLOW_FAILED;
    }
    switch ((int)n->kind) {
    case N_BLOCK: return eval_block(s, n);
    case N_EXPR: return eval_flow(star_eval(s, n->a) != NULL);
    case N_ASSIGN: return eval_assignment(s, n);
    case N_AUGMENT: return eval_augment(s, n);
    case N_DEF:
        v = eval_function(s, n);
        if (v != NULL)
            s->frame->slots[n->slot] = v;
        return eval_flow(v != NULL);
    case N_RETURN: return eval_return(s, n);
    case N_BREAK: return FLOW_BREAK;
    case N_CONTINUE: return FLOW_CONTINUE;
    case N_IF:
        v = star_eval(s, n->a);
        if (v == NULL)
            return FLOW_FAILED;
        return star_value_truth(v) ? eval_run(s, n->b)
               : n->c != NULL      ? eval_run(s, n->c)
                                   : FLOW_NEXT;
    case N_FOR: return eval_for(s, n);
    default: return FLOW_NEXT;
    }
}

struct star_value *star_eval_body(struct star *s, const struct star_node *n) {
    s->returned = n->span;
    if (n->kind == N_LAMBDA)
        return star_eval(s, n->a);
    switch (eval_run(s, n->b)) {
    case FLOW_FAILED: return NULL;
    case FLOW_RETURN: return s->result;
    case FLOW_NEXT:
    case FLOW_BREAK:
    case FLOW_CONTINUE: break;
    }
    return &s->none;
}

bool star_eval_module(struct star *s, const struct star_node *module, size_t slots) {
    struct star_frame frame = {.slots = star_calloc(s, slots + 1, sizeof(struct star_value *))};
    if (frame.slots == NULL)
        return false;
    s->frame = &frame;
    bool good = eval_run(s, module) != FLOW_FAILED;
    s->frame = NULL;
    return good;
}
