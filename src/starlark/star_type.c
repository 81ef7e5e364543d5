#include "starlark/star_internal.h"

enum type_kind { TYPE_PLAIN, TYPE_LIST, TYPE_DICT, TYPE_TUPLE, TYPE_UNION };

struct star_annotation {
    enum type_kind kind;
    enum star_type plain; /* TYPE_PLAIN */
    const char *name;
    struct star_value *a, *b; /* of items; of keys and values; of either side */
};

static const struct {
    const char *name;
    enum star_type type;
} type_names[] = {
    {"str", STAR_STRING},  {"int", STAR_INT},     {"bool", STAR_BOOL},
    {"float", STAR_FLOAT}, {"list", STAR_LIST},   {"dict", STAR_DICT},
    {"tuple", STAR_TUPLE}, {"bytes", STAR_BYTES}, {"range", STAR_RANGE},
};

static struct star_value *type_new(struct star *s, struct star_annotation a) {
    struct star_value *v = star_value_new(s, STAR_ANNOTATION);
    if (v == NULL || (v->annotation = star_alloc(s, sizeof a)) == NULL)
        return NULL;
    *v->annotation = a;
    return v;
}

static struct star_value *type_plain(struct star *s, const char *name, enum star_type type) {
    return type_new(s, (struct star_annotation){.kind = TYPE_PLAIN, .plain = type, .name = name});
}

struct star_value *star_type_of(struct star *s, struct star_value *v) {
    if (v->type == STAR_ANNOTATION)
        return v;
    if (v->type == STAR_NONE)
        return type_plain(s, "None", STAR_NONE);
    for (size_t i = 0; v->type == STAR_NATIVE && i < ARRAY_LEN(type_names); i++) {
        if (strcmp(v->native->name, type_names[i].name) == 0)
            return type_plain(s, type_names[i].name, type_names[i].type);
    }
    const char *kind = v->type == STAR_STRING ? "string literal" : star_value_type_name(v);
    return star_fail(s, "%s expression is not allowed in type expression", kind);
}

bool star_type_has(const struct star_value *type, const struct star_value *v) {
    const struct star_annotation *a = type->annotation;
    switch (a->kind) {
    case TYPE_PLAIN: return v->type == a->plain || (a->plain == STAR_FLOAT && v->type == STAR_INT);
    case TYPE_UNION: return star_type_has(a->a, v) || star_type_has(a->b, v);
    case TYPE_LIST:
    case TYPE_TUPLE:
        if (v->type != (a->kind == TYPE_LIST ? STAR_LIST : STAR_TUPLE))
            return false;
        for (size_t i = 0; i < v->list.n; i++) {
            if (!star_type_has(a->a, v->list.items[i]))
                return false;
        }
        return true;
    case TYPE_DICT:
        for (size_t i = 0; v->type == STAR_DICT && i < v->dict->n; i++) {
            if (!star_type_has(a->a, v->dict->entries[i].key) ||
                !star_type_has(a->b, v->dict->entries[i].value))
                return false;
        }
        return v->type == STAR_DICT;
    }
    return false;
}

bool star_type_check(struct star *s, const struct star_value *type, const struct star_value *v,
                     const char *what) {
    if (type == NULL || star_type_has(type, v))
        return true;
    const char *value = star_value_repr(s, v), *wanted = star_value_repr(s, type);
    return value != NULL && wanted != NULL &&
           star_fail(s, "Value `%s` of type `%s` does not match the type annotation `%s` for %s",
                     value, star_value_type_name(v), wanted, what);
}

struct star_value *star_type_index(struct star *s, struct star_value *v, struct star_value *key) {
    const char *name = v->native->name;
    bool pair = key->type == STAR_TUPLE && key->list.n == 2;
    struct star_value *a = star_type_of(s, pair ? key->list.items[0] : key);
    bool open = pair && key->list.items[1]->type == STAR_ELLIPSIS;
    struct star_value *b = a == NULL || !pair || open ? NULL : star_type_of(s, key->list.items[1]);
    if (s->failed)
        return NULL;
    if (strcmp(name, "list") == 0 && !pair)
        return type_new(s, (struct star_annotation){.kind = TYPE_LIST, .a = a});
    if (strcmp(name, "dict") == 0 && pair && !open)
        return type_new(s, (struct star_annotation){.kind = TYPE_DICT, .a = a, .b = b});
    if (strcmp(name, "tuple") == 0 && open)
        return type_new(s, (struct star_annotation){.kind = TYPE_TUPLE, .a = a});
    return star_fail(s, "Operation `[]` not supported for types `function` and `%s`",
                     star_value_type_name(key));
}

struct star_value *star_type_union(struct star *s, struct star_value *x, struct star_value *y) {
    struct star_value *a = star_type_of(s, x), *b = a == NULL ? NULL : star_type_of(s, y);
    return b == NULL ? NULL
                     : type_new(s, (struct star_annotation){.kind = TYPE_UNION, .a = a, .b = b});
}

bool star_type_put(struct star *s, struct buf *b, const struct star_value *type) {
    const struct star_annotation *a = type->annotation;
    switch (a->kind) {
    case TYPE_PLAIN: return buf_putz(b, a->name) == 0;
    case TYPE_UNION:
        return star_value_put(s, b, a->a, true) && buf_putz(b, " | ") == 0 &&
               star_value_put(s, b, a->b, true);
    case TYPE_LIST:
        return buf_putz(b, "list[") == 0 && star_value_put(s, b, a->a, true) &&
               buf_putc(b, ']') == 0;
    case TYPE_TUPLE:
        return buf_putz(b, "tuple[") == 0 && star_value_put(s, b, a->a, true) &&
               buf_putz(b, ", ...]") == 0;
    case TYPE_DICT:
        return buf_putz(b, "dict[") == 0 && star_value_put(s, b, a->a, true) &&
               buf_putz(b, ", ") == 0 && star_value_put(s, b, a->b, true) && buf_putc(b, ']') == 0;
    }
    return false;
}
