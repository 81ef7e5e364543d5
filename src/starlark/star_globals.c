#include "starlark/star_internal.h"

#include <errno.h>
#include <math.h>

#include "base/utf8.h"

/* -- conversions -- */

static struct star_value *global_bool(struct star *s, const struct star_args *a) {
    return star_value_bool(s, a->v[0] != NULL && star_value_truth(a->v[0]));
}

static struct star_value *global_str(struct star *s, const struct star_args *a) {
    _cleanup_buf_ struct buf b = BUF_INIT(STAR_MEMORY_MAX);
    if (a->v[0]->type == STAR_STRING)
        return a->v[0];
    struct star_value *v = star_value_put(s, &b, a->v[0], false) ? star_take(s, &b, 0) : NULL;
    if (v != NULL && a->v[0]->type == STAR_BYTES) /* invalid UTF-8 becomes '?' */
        utf8_mend((char *)(uintptr_t)v->text.p, v->text.n);
    return v;
}

static struct star_value *global_repr(struct star *s, const struct star_args *a) {
    const char *text = star_value_repr(s, a->v[0]);
    return text == NULL ? NULL : star_value_string(s, str_of(text));
}

static struct star_value *global_type(struct star *s, const struct star_args *a) {
    return star_value_string(s, str_of(star_value_type_name(a->v[0])));
}

/* Parses an int() argument with its sign and prefix. */
static struct star_value *int_of_text(struct star *s, struct str text, unsigned base) {
    struct str t = text;
    bool negative = t.n > 0 && t.p[0] == '-';
    if (t.n > 0 && (t.p[0] == '-' || t.p[0] == '+'))
        str_take(&t, 1);
    int letter = t.n > 1 && t.p[0] == '0' ? t.p[1] | 0x20 : 0;
    unsigned marked = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
    bool prefixed = marked != 0 && (base == 0 || base == marked);
    if (prefixed)
        str_take(&t, 2);
    unsigned used = base != 0 ? base : prefixed ? marked : 10;
    struct star_int i;
    int r = star_work(s, t.n) ? star_int_parse(&s->arena, t, used, &i) : -ENOMEM;
    if (r == 0 && negative)
        r = star_int_sub(&s->arena, star_int_of(0), i, &i);
    if (r < 0)
        return star_fail(s, "Cannot parse `%.*s` as an integer in base %u", (int)text.n, text.p,
                         used);
    return star_value_integer(s, i);
}

static struct star_value *global_int(struct star *s, const struct star_args *a) {
    struct star_value *v = a->v[0];
    int64_t base = 10;
    struct star_int i;
    if (v == NULL)
        return star_value_number(s, 0);
    if (a->v[1] != NULL && !star_ops_small(s, a->v[1], &base))
        return NULL;
    switch ((int)v->type) {
    case STAR_INT: return v;
    case STAR_BOOL: return star_value_number(s, v->boolean);
    case STAR_FLOAT:
        if (!isfinite(v->real))
            return star_fail(s, "cannot convert float %s to integer",
                             isnan(v->real) ? "NaN" : "infinity");
        return star_int_from_double(&s->arena, v->real, &i) < 0 ? star_alloc(s, SIZE_MAX)
                                                                : star_value_integer(s, i);
    case STAR_STRING:
        if (base == 1 || base < 0 || base > 36)
            return star_fail(s, "%lld is not a valid base, int() base must be >= 2 and <= 36",
                             (long long)base);
        return int_of_text(s, v->text, (unsigned)base);
    default: break;
    }
    return star_value_want(s, v, STAR_INT, "bool | float | int | str", "a") ? v : NULL;
}

static struct star_value *global_float(struct star *s, const struct star_args *a) {
    struct star_value *v = a->v[0];
    if (v == NULL)
        return star_value_real(s, 0);
    if (v->type == STAR_FLOAT)
        return v;
    if (v->type == STAR_INT)
        return star_value_real(s, star_int_to_double(v->integer));
    if (v->type == STAR_BOOL)
        return star_value_real(s, v->boolean);
    if (v->type != STAR_STRING)
        return star_value_want(s, v, STAR_FLOAT, "bool | float | int | str", "a") ? v : NULL;
    char text[512], *end;
    if (v->text.n > 0 && v->text.n < sizeof text && !strchr(" \t\n", v->text.p[0])) {
        memcpy(text, v->text.p, v->text.n);
        text[v->text.n] = '\0';
        double d = strtod(text, &end);
        if (*end == '\0' && strpbrk(text, "xX(") == NULL)
            return star_value_real(s, d);
    }
    return star_fail(s, "string is not a valid number: %.*s", (int)v->text.n, v->text.p);
}

static struct star_value *sequence_of(struct star *s, const struct star_args *a,
                                      enum star_type type) {
    struct star_value *v = star_value_list(s, type, 0);
    if (v == NULL || a->v[0] == NULL)
        return v;
    return star_value_items(s, a->v[0], &v->list) ? v : NULL;
}

static struct star_value *global_list(struct star *s, const struct star_args *a) {
    return sequence_of(s, a, STAR_LIST);
}

static struct star_value *global_tuple(struct star *s, const struct star_args *a) {
    return sequence_of(s, a, STAR_TUPLE);
}

static struct star_value *global_bytes(struct star *s, const struct star_args *a) {
    struct star_value *v = a->v[0];
    struct star_list items;
    if (v->type == STAR_STRING || v->type == STAR_BYTES)
        return star_value_text(s, STAR_BYTES, v->text);
    if (!star_value_items(s, v, &items))
        return NULL;
    char *p = star_alloc(s, items.n + 1);
    for (size_t i = 0; p != NULL && i < items.n; i++) {
        int64_t byte;
        if (!star_ops_small(s, items.items[i], &byte))
            return NULL;
        if (byte < 0 || byte > 255)
            return star_fail(s, "bytes() needs integers from 0 to 255");
        p[i] = (char)byte;
    }
    return p == NULL ? NULL : star_value_text(s, STAR_BYTES, (struct str){p, items.n});
}

/* Adds pairs, a dictionary or named arguments to a dictionary. */
static bool dict_merge(struct star *s, struct star_dict *d, struct star_value *from) {
    struct star_list pairs, pair;
    if (from->type == STAR_DICT) {
        for (size_t i = 0; i < from->dict->n; i++) {
            if (!star_dict_set(s, d, from->dict->entries[i].key, from->dict->entries[i].value))
                return false;
        }
        return true;
    }
    if (!star_value_items(s, from, &pairs))
        return false;
    for (size_t i = 0; i < pairs.n; i++) {
        if (!star_value_items(s, pairs.items[i], &pair))
            return false;
        if (pair.n != 2)
            return star_fail(s, "Found an element of length %zu, expected 2", pair.n);
        if (!star_dict_set(s, d, pair.items[0], pair.items[1]))
            return false;
    }
    return true;
}

static bool dict_fill(struct star *s, struct star_dict *d, const struct star_args *a) {
    if (a->v[0] != NULL && !dict_merge(s, d, a->v[0]))
        return false;
    for (size_t i = 0; i < a->named->n; i++) {
        if (!star_dict_set(s, d, a->named->entries[i].key, a->named->entries[i].value))
            return false;
    }
    return true;
}

static struct star_value *global_dict(struct star *s, const struct star_args *a) {
    struct star_value *v = star_dict_new(s);
    return v != NULL && dict_fill(s, v->dict, a) ? v : NULL;
}

static struct star_value *dict_update(struct star *s, const struct star_args *a) {
    return dict_fill(s, a->self->dict, a) ? star_value_none(s) : NULL;
}

/* -- numbers -- */

static struct star_value *global_abs(struct star *s, const struct star_args *a) {
    struct star_value *v = a->v[0];
    if (v->type == STAR_FLOAT)
        return star_value_real(s, fabs(v->real));
    if (v->type != STAR_INT)
        return star_value_want(s, v, STAR_INT, "float | int", "x") ? v : NULL;
    return star_int_compare(v->integer, star_int_of(0)) < 0 ? star_ops_unary(s, T_MINUS, v) : v;
}

static struct star_value *global_chr(struct star *s, const struct star_args *a) {
    int64_t c;
    if (!star_ops_small(s, a->v[0], &c))
        return NULL;
    if (c < 0)
        return star_fail(s, "chr() parameter value negative integer %lld", (long long)c);
    if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
        return star_fail(s, "chr() parameter value is 0x%llx which is not a valid UTF-8 codepoint",
                         (long long)c);
    char *p = star_alloc(s, 5);
    return p == NULL ? NULL : star_value_string(s, (struct str){p, utf8_encode(p, (unsigned)c)});
}

static struct star_value *global_ord(struct star *s, const struct star_args *a) {
    if (!star_value_want(s, a->v[0], STAR_STRING, "str", "a"))
        return NULL;
    struct str t = a->v[0]->text;
    if (star_value_chars(t) != 1)
        return star_fail(s, "ord(): %s is not a single character string",
                         star_value_repr(s, a->v[0]));
    uint32_t c;
    utf8_decode(t.p, t.n, &c);
    return star_value_number(s, c);
}

static struct star_value *global_hash(struct star *s, const struct star_args *a) {
    if (!star_value_want(s, a->v[0], STAR_STRING, "str", "a"))
        return NULL;
    struct str t = a->v[0]->text;
    uint32_t h = 0;
    for (size_t i = 0; i < t.n; i++)
        h = h * 31 + (unsigned char)t.p[i];
    return star_value_number(s, (int32_t)h);
}

static struct star_value *global_range(struct star *s, const struct star_args *a) {
    int64_t v[3] = {0, 0, 1};
    for (size_t i = 0; i < 3; i++) {
        if (a->v[i] != NULL && !star_ops_small(s, a->v[i], &v[i]))
            return NULL;
    }
    if (v[2] == 0)
        return star_fail(s, "Third argument of range (step) cannot be zero");
    struct star_value *r = star_value_new(s, STAR_RANGE);
    if (r != NULL)
        r->range = a->v[1] == NULL ? (struct star_range){0, v[0], 1}
                                   : (struct star_range){v[0], v[1], v[2]};
    return r;
}

/* -- sequences -- */

static struct star_value *global_len(struct star *s, const struct star_args *a) {
    int64_t n = star_value_length(a->v[0]);
    if (n >= 0)
        return star_value_number(s, n);
    s->call_count--; /* this error is one of the expression, not of a call */
    return star_fail(s, "Operation `len()` not supported on type `%s`",
                     star_value_type_name(a->v[0]));
}

static struct star_value *any_or_all(struct star *s, const struct star_args *a, bool any) {
    struct star_list items;
    if (!star_value_items(s, a->v[0], &items))
        return NULL;
    for (size_t i = 0; i < items.n; i++) {
        if (star_value_truth(items.items[i]) == any)
            return star_value_bool(s, any);
    }
    return star_value_bool(s, !any);
}

static struct star_value *global_any(struct star *s, const struct star_args *a) {
    return any_or_all(s, a, true);
}

static struct star_value *global_all(struct star *s, const struct star_args *a) {
    return any_or_all(s, a, false);
}

static struct star_value *pair_of(struct star *s, struct star_value *x, struct star_value *y) {
    struct star_value *v = star_value_list(s, STAR_TUPLE, 2);
    return v != NULL && star_value_append(s, &v->list, x) && star_value_append(s, &v->list, y)
               ? v
               : NULL;
}

static struct star_value *global_enumerate(struct star *s, const struct star_args *a) {
    struct star_list items;
    int64_t start = 0;
    struct star_value *v = star_value_list(s, STAR_LIST, 0);
    if (v == NULL || (a->v[1] != NULL && !star_ops_small(s, a->v[1], &start)) ||
        !star_value_items(s, a->v[0], &items))
        return NULL;
    for (size_t i = 0; i < items.n; i++) {
        struct star_value *n = star_value_number(s, start + (int64_t)i);
        struct star_value *pair = n == NULL ? NULL : pair_of(s, n, items.items[i]);
        if (pair == NULL || !star_value_append(s, &v->list, pair))
            return NULL;
    }
    return v;
}

static struct star_value *global_zip(struct star *s, const struct star_args *a) {
    struct star_value *v = star_value_list(s, STAR_LIST, 0);
    size_t n = a->rest->n, least = SIZE_MAX;
    struct star_list *lists = star_calloc(s, n + 1, sizeof *lists);
    if (v == NULL || lists == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        if (!star_value_items(s, a->rest->items[i], &lists[i]))
            return NULL;
        least = MIN(least, lists[i].n);
    }
    for (size_t k = 0; n > 0 && k < least; k++) {
        struct star_value *tuple = star_value_list(s, STAR_TUPLE, n);
        for (size_t i = 0; tuple != NULL && i < n; i++) {
            if (!star_value_append(s, &tuple->list, lists[i].items[k]))
                return NULL;
        }
        if (tuple == NULL || !star_value_append(s, &v->list, tuple))
            return NULL;
    }
    return v;
}

static struct star_value *global_reversed(struct star *s, const struct star_args *a) {
    struct star_value *v = star_value_list(s, STAR_LIST, 0);
    if (v == NULL || !star_value_items(s, a->v[0], &v->list))
        return NULL;
    star_value_reverse(&v->list);
    return v;
}

/* The result of a `key` function for a value, or the value itself. */
static struct star_value *key_of(struct star *s, struct star_value *fn, struct star_value *v) {
    if (fn == NULL || fn->type == STAR_NONE)
        return v;
    struct star_list one = {.items = &v, .n = 1, .cap = 1};
    struct star_dict none = {0};
    return star_call(s, fn, &one, &none);
}

/* Merges two sorted halves; equal ones keep their order. */
static bool sort_range(struct star *s, struct star_entry *list, struct star_entry *room, size_t n,
                       bool reverse) {
    if (n < 2)
        return true;
    size_t half = n / 2;
    if (!sort_range(s, list, room, half, reverse) ||
        !sort_range(s, list + half, room, n - half, reverse))
        return false;
    for (size_t i = 0, x = 0, y = half; i < n; i++) {
        int c = 0;
        if (x < half && y < n &&
            (!star_work(s, 1) || !star_value_compare(s, list[y].key, list[x].key, &c)))
            return false;
        bool second = x == half || (y < n && (reverse ? c > 0 : c < 0));
        room[i] = list[second ? y++ : x++];
    }
    memcpy(list, room, n * sizeof *list);
    return true;
}

static struct star_value *global_sorted(struct star *s, const struct star_args *a) {
    struct star_value *v = star_value_list(s, STAR_LIST, 0);
    if (v == NULL || !star_value_items(s, a->v[0], &v->list))
        return NULL;
    size_t n = v->list.n;
    struct star_entry *list = star_calloc(s, 2 * n + 1, sizeof *list);
    if (list == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        list[i].value = v->list.items[i];
        if ((list[i].key = key_of(s, a->v[1], list[i].value)) == NULL)
            return NULL;
    }
    if (!sort_range(s, list, list + n, n, a->v[2] != NULL && star_value_truth(a->v[2])))
        return NULL;
    for (size_t i = 0; i < n; i++)
        v->list.items[i] = list[i].value;
    return v;
}

static struct star_value *extreme(struct star *s, const struct star_args *a, bool most) {
    struct star_list items = *a->rest;
    struct star_value *best = NULL, *best_key = NULL;
    if (items.n == 1 && !star_value_items(s, a->rest->items[0], &items))
        return NULL;
    if (items.n == 0)
        return star_fail(s, "Argument is an empty iterable, %s() expect a non empty iterable",
                         most ? "max" : "min");
    for (size_t i = 0; i < items.n; i++) {
        struct star_value *key = key_of(s, a->v[0], items.items[i]);
        int c = 0;
        if (key == NULL || (best != NULL && !star_value_compare(s, key, best_key, &c)))
            return NULL;
        if (best != NULL && (most ? c <= 0 : c >= 0))
            continue;
        best = items.items[i];
        best_key = key;
    }
    return best;
}

static struct star_value *global_max(struct star *s, const struct star_args *a) {
    return extreme(s, a, true);
}

static struct star_value *global_min(struct star *s, const struct star_args *a) {
    return extreme(s, a, false);
}

/* -- attributes, failing -- */

static struct star_value *global_dir(struct star *s, const struct star_args *a) {
    struct star_value *v = star_value_list(s, STAR_LIST, 0);
    for (const struct star_native *f = star_call_methods(a->v[0]); f != NULL && f->name != NULL;
         f++) {
        struct star_value *name = star_value_string(s, str_of(f->name));
        if (v == NULL || name == NULL || !star_value_append(s, &v->list, name))
            return NULL;
    }
    return v;
}

static const struct star_native *method_of(const struct star_value *v, struct str name) {
    const struct star_native *f = star_call_methods(v);
    while (f != NULL && f->name != NULL && !str_eqz(name, f->name))
        f++;
    return f != NULL && f->name != NULL ? f : NULL;
}

static struct star_value *global_getattr(struct star *s, const struct star_args *a) {
    if (!star_value_want(s, a->v[1], STAR_STRING, "str", "attr"))
        return NULL;
    if (method_of(a->v[0], a->v[1]->text) != NULL)
        return star_call_attribute(s, a->v[0], a->v[1]->text);
    if (a->v[2] != NULL)
        return a->v[2];
    return star_fail(s, "Operation `.%.*s` not supported on type `%s`", (int)a->v[1]->text.n,
                     a->v[1]->text.p, star_value_type_name(a->v[0]));
}

static struct star_value *global_hasattr(struct star *s, const struct star_args *a) {
    if (!star_value_want(s, a->v[1], STAR_STRING, "str", "attr"))
        return NULL;
    return star_value_bool(s, method_of(a->v[0], a->v[1]->text) != NULL);
}

static struct star_value *global_fail(struct star *s, const struct star_args *a) {
    _cleanup_buf_ struct buf b = BUF_INIT(STAR_ERROR_MAX);
    for (size_t i = 0; i < a->rest->n; i++) {
        struct star_value *v = a->rest->items[i];
        if (buf_putc(&b, ' ') < 0 || !star_value_put(s, &b, v, v->type == STAR_BYTES))
            return star_take(s, &b, -ENOMEM);
    }
    return star_fail(s, "fail:%.*s", (int)b.len, b.len > 0 ? b.p : "");
}

const struct star_native star_globals[] = {
    {"abs", "x /", global_abs},
    {"all", "x /", global_all},
    {"any", "x /", global_any},
    {"bool", "x? /", global_bool},
    {"bytes", "x /", global_bytes},
    {"chr", "i /", global_chr},
    {"dict", "x? / **kwargs", global_dict},
    {"dir", "x /", global_dir},
    {"enumerate", "it start? /", global_enumerate},
    {"fail", "*args", global_fail},
    {"float", "a? /", global_float},
    {"getattr", "a attr default? /", global_getattr},
    {"hasattr", "a attr /", global_hasattr},
    {"hash", "a /", global_hash},
    {"int", "a? / base?", global_int},
    {"len", "a /", global_len},
    {"list", "a? /", global_list},
    {"max", "*args key?", global_max},
    {"min", "*args key?", global_min},
    {"ord", "a /", global_ord},
    {"range", "a1 a2? a3? /", global_range},
    {"repr", "a /", global_repr},
    {"reversed", "a /", global_reversed},
    {"sorted", "x / * key? reverse?", global_sorted},
    {"str", "a /", global_str},
    {"tuple", "a? /", global_tuple},
    {"type", "a /", global_type},
    {"zip", "*args", global_zip},
    {NULL, NULL, NULL},
};

/* -- methods of lists -- */

static struct star_value *list_append(struct star *s, const struct star_args *a) {
    struct star_list *l = &a->self->list;
    return star_value_may_change(s, l->iterating) && star_value_append(s, l, a->v[0])
               ? star_value_none(s)
               : NULL;
}

static struct star_value *list_clear(struct star *s, const struct star_args *a) {
    if (!star_value_may_change(s, a->self->list.iterating))
        return NULL;
    a->self->list.n = 0;
    return star_value_none(s);
}

static struct star_value *list_extend(struct star *s, const struct star_args *a) {
    struct star_list more;
    if (!star_value_may_change(s, a->self->list.iterating) || !star_value_items(s, a->v[0], &more))
        return NULL;
    for (size_t i = 0; i < more.n; i++) {
        if (!star_value_append(s, &a->self->list, more.items[i]))
            return NULL;
    }
    return star_value_none(s);
}

/* The index of an equal item from `begin` to `end`; -1: none, or a failure. */
static int64_t list_find(struct star *s, const struct star_list *l, const struct star_value *v,
                         size_t begin, size_t end) {
    for (size_t i = begin; i < end && i < l->n; i++) {
        int r = star_work(s, 1) ? star_value_equal(s, l->items[i], v) : -1;
        if (r != 0)
            return r < 0 ? -1 : (int64_t)i;
    }
    return -1;
}

static struct star_value *list_index(struct star *s, const struct star_args *a) {
    const struct star_list *l = &a->self->list;
    int64_t begin = 0, end = (int64_t)l->n;
    if ((a->v[1] != NULL && a->v[1]->type != STAR_NONE && !star_ops_small(s, a->v[1], &begin)) ||
        (a->v[2] != NULL && a->v[2]->type != STAR_NONE && !star_ops_small(s, a->v[2], &end)))
        return NULL;
    begin = begin < 0 ? MAX(begin + (int64_t)l->n, 0) : begin;
    end = end < 0 ? MAX(end + (int64_t)l->n, 0) : end;
    int64_t at = list_find(s, l, a->v[0], (size_t)begin, (size_t)end);
    if (at >= 0 || s->failed)
        return at < 0 ? NULL : star_value_number(s, at);
    const char *item = star_value_repr(s, a->v[0]), *list = star_value_repr(s, a->self);
    return star_fail(s, "Element '%s' not found in '%s'", item, list);
}

static struct star_value *list_insert(struct star *s, const struct star_args *a) {
    struct star_list *l = &a->self->list;
    int64_t at;
    if (!star_value_may_change(s, l->iterating) || !star_ops_small(s, a->v[0], &at))
        return NULL;
    int64_t n = (int64_t)l->n;
    at = at < 0 ? MAX(at + n, 0) : MIN(at, n);
    if (!star_value_append(s, l, a->v[1]) || !star_work(s, (size_t)n / 64))
        return NULL;
    memmove(l->items + at + 1, l->items + at, (size_t)(n - at) * sizeof(struct star_value *));
    l->items[at] = a->v[1];
    return star_value_none(s);
}

static void list_take_out(struct star_list *l, size_t i) {
    memmove(l->items + i, l->items + i + 1, (l->n - i - 1) * sizeof(struct star_value *));
    l->n--;
}

static struct star_value *list_pop(struct star *s, const struct star_args *a) {
    struct star_list *l = &a->self->list;
    int64_t at = -1;
    if (!star_value_may_change(s, l->iterating) ||
        (a->v[0] != NULL && !star_ops_small(s, a->v[0], &at)))
        return NULL;
    int64_t i = at < 0 && a->v[0] == NULL ? (int64_t)l->n - 1 : at < 0 ? at + (int64_t)l->n : at;
    if (i < 0 || i >= (int64_t)l->n)
        return star_fail(s, "Index `%lld` is out of bound", (long long)at);
    struct star_value *v = l->items[i];
    list_take_out(l, (size_t)i);
    return v;
}

static struct star_value *list_remove(struct star *s, const struct star_args *a) {
    struct star_list *l = &a->self->list;
    if (!star_value_may_change(s, l->iterating))
        return NULL;
    int64_t at = list_find(s, l, a->v[0], 0, l->n);
    if (at < 0) {
        const char *item = star_value_repr(s, a->v[0]), *list = star_value_repr(s, a->self);
        return star_fail(s, "Element '%s' not found in list '%s'", item, list);
    }
    list_take_out(l, (size_t)at);
    return star_value_none(s);
}

const struct star_native star_list_methods[] = {
    {"append", "el /", list_append},       {"clear", "", list_clear},
    {"extend", "other /", list_extend},    {"index", "needle start? end? /", list_index},
    {"insert", "index el /", list_insert}, {"pop", "index? /", list_pop},
    {"remove", "needle /", list_remove},   {NULL, NULL, NULL},
};

/* -- methods of dictionaries -- */

static struct star_value *dict_clear(struct star *s, const struct star_args *a) {
    if (!star_value_may_change(s, a->self->dict->iterating))
        return NULL;
    *a->self->dict = (struct star_dict){0};
    return star_value_none(s);
}

static struct star_value *dict_get(struct star *s, const struct star_args *a) {
    struct star_entry *e = star_dict_find(s, a->self->dict, a->v[0]);
    if (s->failed)
        return NULL;
    return e != NULL ? e->value : a->v[1] != NULL ? a->v[1] : star_value_none(s);
}

static struct star_value *dict_list(struct star *s, const struct star_args *a, char what) {
    struct star_value *v = star_value_list(s, STAR_LIST, a->self->dict->n);
    for (size_t i = 0; v != NULL && i < a->self->dict->n; i++) {
        const struct star_entry *e = &a->self->dict->entries[i];
        struct star_value *item = what == 'k'   ? e->key
                                  : what == 'v' ? e->value
                                                : pair_of(s, e->key, e->value);
        if (item == NULL || !star_value_append(s, &v->list, item))
            return NULL;
    }
    return v;
}

static struct star_value *dict_items(struct star *s, const struct star_args *a) {
    return dict_list(s, a, 'i');
}

static struct star_value *dict_keys(struct star *s, const struct star_args *a) {
    return dict_list(s, a, 'k');
}

static struct star_value *dict_values(struct star *s, const struct star_args *a) {
    return dict_list(s, a, 'v');
}

static struct star_value *dict_pop(struct star *s, const struct star_args *a) {
    struct star_dict *d = a->self->dict;
    if (!star_value_may_change(s, d->iterating) || !star_work(s, d->n / 8))
        return NULL;
    struct star_entry *e = star_dict_find(s, d, a->v[0]);
    if (s->failed)
        return NULL;
    if (e == NULL && a->v[1] != NULL)
        return a->v[1];
    if (e == NULL) {
        const char *key = star_value_repr(s, a->v[0]), *dict = star_value_repr(s, a->self);
        return star_fail(s, "Key `%s` not found in dictionary `%s`", key, dict);
    }
    struct star_value *v = e->value;
    star_dict_remove(d, e);
    return v;
}

static struct star_value *dict_popitem(struct star *s, const struct star_args *a) {
    struct star_dict *d = a->self->dict;
    if (!star_value_may_change(s, d->iterating) || !star_work(s, d->n / 8))
        return NULL;
    if (d->n == 0)
        return star_fail(s, "Cannot .popitem() on an empty dictionary");
    struct star_entry e = d->entries[0];
    star_dict_remove(d, &d->entries[0]);
    return pair_of(s, e.key, e.value);
}

static struct star_value *dict_setdefault(struct star *s, const struct star_args *a) {
    struct star_entry *e = star_dict_find(s, a->self->dict, a->v[0]);
    struct star_value *v = a->v[1] != NULL ? a->v[1] : star_value_none(s);
    if (s->failed)
        return NULL;
    if (e != NULL)
        return e->value;
    return star_dict_set(s, a->self->dict, a->v[0], v) ? v : NULL;
}

const struct star_native star_dict_methods[] = {
    {"clear", "", dict_clear},
    {"get", "key default? /", dict_get},
    {"items", "", dict_items},
    {"keys", "", dict_keys},
    {"pop", "key default? /", dict_pop},
    {"popitem", "", dict_popitem},
    {"setdefault", "key default? /", dict_setdefault},
    {"update", "pairs? / **kwargs", dict_update},
    {"values", "", dict_values},
    {NULL, NULL, NULL},
};
