#include "starlark/star_internal.h"

#define CALL_PARAMS_MAX 16 /* of a native */

/* -- functions of the file -- */

static struct star_value *call_collect(struct star *s, struct star_list *from, size_t begin) {
    struct star_value *rest = star_value_list(s, STAR_TUPLE, 0);
    for (size_t i = begin; rest != NULL && i < from->n; i++) {
        if (!star_value_append(s, &rest->list, from->items[i]))
            return NULL;
    }
    return rest;
}

/* Fails: arguments are left that no parameter took. */
static bool call_fail_extra(struct star *s, const char *name, size_t extra,
                            const struct star_dict *named) {
    _cleanup_buf_ struct buf b = BUF_INIT(4096);
    if (extra > 0)
        return star_fail(s, "Found %zu extra positional argument(s) for call to %s", extra, name);
    int r = 0;
    for (size_t i = 0; r == 0 && i < named->n; i++) {
        struct str key = named->entries[i].key->text;
        r = buf_putf(&b, "%s`%.*s`", i > 0 ? " " : "", (int)key.n, key.p);
    }
    return star_fail(s, "Found %.*s extra named parameter(s) for call to %s", (int)b.len,
                     b.len > 0 ? b.p : "", name);
}

/* Takes a named argument for a parameter out of the table. */
static struct star_value *call_take(struct star *s, struct star_dict *named, struct str name) {
    struct star_value key = {.type = STAR_STRING, .text = name};
    struct star_entry *e = star_dict_find(s, named, &key);
    struct star_value *v = e == NULL ? NULL : e->value;
    if (e != NULL && !star_work(s, named->n / 8))
        return NULL;
    if (e != NULL)
        star_dict_remove(named, e);
    return v;
}

/* The value of an ordinary parameter; NULL after a failure. */
static struct star_value *call_param(struct star *s, const struct star_function *f, size_t i,
                                     bool by_position, struct star_value *given,
                                     struct star_dict *named) {
    const struct star_node *param = f->node->items[i];
    struct star_value *by_name = call_take(s, named, param->name);
    if (given != NULL && by_name != NULL)
        return star_fail(s, "Argument `%.*s` occurs more than once", (int)param->name.n,
                         param->name.p);
    struct star_value *v = given != NULL ? given : by_name != NULL ? by_name : f->defaults[i];
    if (v == NULL && !s->failed)
        star_fail(s, "Missing %sparameter `%.*s` for call to `%s.%s`",
                  by_position ? "" : "named-only ", (int)param->name.n, param->name.p,
                  s->source->file, f->name);
    return v;
}

static bool call_bind(struct star *s, const struct star_function *f, struct star_list *positional,
                      struct star_dict *named, struct star_value **slots) {
    const struct star_node *n = f->node;
    size_t used = 0;
    bool starred = false;
    const struct star_node *rest = NULL, *others = NULL;
    for (size_t i = 0; i < n->n; i++) {
        const struct star_node *param = n->items[i];
        if (param->op == T_STAR) {
            starred = true;
            rest = param->name.n > 0 ? param : NULL;
            continue;
        }
        if (param->op == T_STARSTAR) {
            others = param;
            continue;
        }
        struct star_value *given =
            !starred && used < positional->n ? positional->items[used++] : NULL;
        struct star_value *v = call_param(s, f, i, !starred, given, named);
        const char *what =
            v == NULL ? NULL : star_text(s, "argument `%.*s`", (int)param->name.n, param->name.p);
        if (what == NULL || !star_type_check(s, f->types[i], v, what))
            return false;
        slots[param->slot] = v;
    }
    if ((rest == NULL && used < positional->n) || (others == NULL && named->n > 0)) {
        const char *name = star_text(s, "%s.%s", s->source->file, f->name);
        return name != NULL &&
               call_fail_extra(s, name, rest == NULL ? positional->n - used : 0, named);
    }
    if (rest != NULL && (slots[rest->slot] = call_collect(s, positional, used)) == NULL)
        return false;
    struct star_value *table = others == NULL ? NULL : star_dict_new(s);
    if (others == NULL)
        return true;
    if (table == NULL)
        return false;
    *table->dict = *named;
    slots[others->slot] = table;
    return true;
}

static struct star_value *call_function(struct star *s, const struct star_function *f,
                                        struct star_list *positional, struct star_dict *named) {
    struct star_frame *frame = star_alloc(s, sizeof *frame);
    if (frame == NULL)
        return NULL;
    frame->up = f->frame;
    frame->slots = star_calloc(s, f->node->slots + 1, sizeof(struct star_value *));
    if (frame->slots == NULL || !call_bind(s, f, positional, named, frame->slots))
        return NULL;
    struct star_frame *outer = s->frame;
    const char *where = s->where;
    s->frame = frame;
    s->where = f->name;
    struct star_value *v = star_eval_body(s, f->node);
    s->frame = outer;
    s->where = where;
    if (v == NULL || star_type_check(s, f->types[f->node->n], v, "return type"))
        return v;
    star_locate(s, s->returned);
    return NULL;
}

/* -- natives -- */

/* One word of a native's parameters. */
struct call_word {
    struct str name;
    bool optional, star, starstar, slash;
};

static bool call_word(const char **p, struct call_word *w) {
    while (**p == ' ')
        ++*p;
    if (**p == '\0')
        return false;
    struct str word = {*p, strcspn(*p, " ")};
    *p += word.n;
    *w = (struct call_word){0};
    w->slash = str_eqz(word, "/");
    w->starstar = word.n > 1 && word.p[0] == '*' && word.p[1] == '*';
    w->star = !w->starstar && word.p[0] == '*';
    w->optional = word.p[word.n - 1] == '?';
    w->name = (struct str){word.p, word.n - w->optional};
    return true;
}

/* Parameters before a "/" are known by position alone. */
static size_t call_nameless(const char *params) {
    const char *slash = strstr(params, "/");
    size_t n = 0;
    struct call_word w;
    for (const char *p = params; slash != NULL && p < slash && call_word(&p, &w);)
        n += !w.slash;
    return n;
}

static bool call_fail_count(struct star *s, const char *params, size_t got) {
    size_t least = 0, most = 0;
    struct call_word w;
    for (const char *p = params; call_word(&p, &w);) {
        most += !w.slash;
        least += !w.slash && !w.optional;
    }
    if (least == most)
        return star_fail(s, "Wrong number of positional arguments, expected %zu, got %zu", most,
                         got);
    return star_fail(s,
                     "Wrong number of positional arguments, expected between %zu and %zu, got %zu",
                     least, most, got);
}

static bool call_bind_native(struct star *s, const struct star_native *f,
                             struct star_list *positional, struct star_dict *named,
                             struct star_args *out) {
    size_t used = 0, n = 0, nameless = call_nameless(f->params);
    bool starred = false, rest = false, others = false, only = nameless > 0;
    struct call_word w;
    for (const char *p = f->params; call_word(&p, &w);) {
        if (w.slash || w.star || w.starstar) {
            starred |= w.star;
            rest |= w.star && w.name.n > 1;
            others |= w.starstar;
            only &= w.slash;
            continue;
        }
        only &= n < nameless;
        struct star_value *v = !starred && used < positional->n ? positional->items[used++] : NULL;
        struct star_value *by_name = n < nameless ? NULL : call_take(s, named, w.name);
        if (v != NULL && by_name != NULL)
            return star_fail(s, "Argument `%.*s` occurs more than once", (int)w.name.n, w.name.p);
        v = v != NULL ? v : by_name;
        if (v == NULL && !w.optional) {
            if (only && named->n > 0)
                return call_fail_extra(s, "function", 0, named);
            if (only)
                return call_fail_count(s, f->params, positional->n);
            return star_fail(s, "Missing parameter `%.*s` for call to `%s`", (int)w.name.n,
                             w.name.p, f->name);
        }
        out->v[n++] = v;
    }
    if (!rest && used < positional->n && only && named->n == 0)
        return call_fail_count(s, f->params, positional->n);
    if ((!rest && used < positional->n) || (!others && named->n > 0))
        return call_fail_extra(s, only ? "function" : f->name, rest ? 0 : positional->n - used,
                               named);
    if (rest) {
        struct star_value *tuple = call_collect(s, positional, used);
        out->rest = tuple == NULL ? NULL : &tuple->list;
    }
    out->named = named;
    return !s->failed;
}

static struct star_value *call_native(struct star *s, const struct star_native *f,
                                      struct star_value *self, struct star_list *positional,
                                      struct star_dict *named) {
    struct star_value *v[CALL_PARAMS_MAX] = {NULL};
    struct star_args args = {.self = self, .v = v};
    return call_bind_native(s, f, positional, named, &args) ? f->fn(s, &args) : NULL;
}

struct star_value *star_call(struct star *s, struct star_value *fn, struct star_list *positional,
                             struct star_dict *named) {
    switch ((int)fn->type) {
    case STAR_FUNCTION: return call_function(s, fn->function, positional, named);
    case STAR_NATIVE: return call_native(s, fn->native, NULL, positional, named);
    case STAR_METHOD: return call_native(s, fn->method.native, fn->method.self, positional, named);
    default:
        return star_fail(s, "Operation `call()` not supported on type `%s`",
                         star_value_type_name(fn));
    }
}

/* -- attributes -- */

const struct star_native *star_call_methods(const struct star_value *v) {
    switch ((int)v->type) {
    case STAR_STRING: return star_string_methods;
    case STAR_BYTES: return star_bytes_methods;
    case STAR_LIST: return star_list_methods;
    case STAR_DICT: return star_dict_methods;
    default: return NULL;
    }
}

struct star_value *star_call_attribute(struct star *s, struct star_value *v, struct str name) {
    for (const struct star_native *f = star_call_methods(v); f != NULL && f->name != NULL; f++) {
        if (!str_eqz(name, f->name))
            continue;
        struct star_value *method = star_value_new(s, STAR_METHOD);
        if (method != NULL)
            method->method = (struct star_method){v, f};
        return method;
    }
    return star_fail(s, "Object of type `%s` has no attribute `%.*s`", star_value_type_name(v),
                     (int)name.n, name.p);
}
