#include "starlark/star_internal.h"

#include "base/utf8.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#define VALUE_DEPTH_MAX 200 /* nested values, for functions that recurse */
#define VALUE_TEXT_MAX STAR_MEMORY_MAX

/* -- making -- */

struct star_value *star_value_new(struct star *s, enum star_type type) {
    struct star_value *v = star_alloc(s, sizeof *v);
    if (v != NULL)
        v->type = type;
    return v;
}

struct star_value *star_value_none(struct star *s) {
    return &s->none;
}

struct star_value *star_value_bool(struct star *s, bool b) {
    return b ? &s->yes : &s->no;
}

struct star_value *star_value_integer(struct star *s, struct star_int i) {
    struct star_value *v = star_value_new(s, STAR_INT);
    if (v != NULL)
        v->integer = i;
    return v;
}

struct star_value *star_value_number(struct star *s, int64_t i) {
    return star_value_integer(s, star_int_of(i));
}

struct star_value *star_value_real(struct star *s, double d) {
    struct star_value *v = star_value_new(s, STAR_FLOAT);
    if (v != NULL)
        v->real = d;
    return v;
}

struct star_value *star_value_text(struct star *s, enum star_type type, struct str text) {
    struct star_value *v = star_value_new(s, type);
    if (v != NULL)
        v->text = text;
    return v;
}

struct star_value *star_value_string(struct star *s, struct str text) {
    return star_value_text(s, STAR_STRING, text);
}

static bool list_grow(struct star *s, struct star_list *l, size_t cap) {
    struct star_value **items = star_calloc(s, cap, sizeof(struct star_value *));
    if (items == NULL)
        return false;
    if (l->n > 0)
        memcpy(items, l->items, l->n * sizeof(struct star_value *));
    l->items = items;
    l->cap = cap;
    return true;
}

struct star_value *star_value_list(struct star *s, enum star_type type, size_t cap) {
    struct star_value *v = star_value_new(s, type);
    if (v == NULL || (cap > 0 && !list_grow(s, &v->list, cap)))
        return NULL;
    return v;
}

bool star_value_append(struct star *s, struct star_list *l, struct star_value *v) {
    if (l->n == l->cap && !list_grow(s, l, MAX((size_t)4, l->cap * 2)))
        return false;
    l->items[l->n++] = v;
    return star_work(s, 1);
}

void star_value_reverse(struct star_list *l) {
    for (size_t i = 0, k = l->n; i + 1 < k; i++) {
        struct star_value *x = l->items[i];
        l->items[i] = l->items[--k];
        l->items[k] = x;
    }
}

/* -- asking -- */

const char *star_value_type_name(const struct star_value *v) {
    switch (v->type) {
    case STAR_NONE: return "NoneType";
    case STAR_BOOL: return "bool";
    case STAR_INT: return "int";
    case STAR_FLOAT: return "float";
    case STAR_STRING: return "string";
    case STAR_BYTES: return "bytes";
    case STAR_LIST: return "list";
    case STAR_TUPLE: return "tuple";
    case STAR_DICT: return "dict";
    case STAR_RANGE: return "range";
    case STAR_ITERATOR: return "iterator";
    case STAR_FUNCTION:
    case STAR_NATIVE:
    case STAR_METHOD: return "function";
    case STAR_ELLIPSIS: return "ellipsis";
    case STAR_ANNOTATION: return "type";
    }
    return "?";
}

int64_t star_value_range_length(const struct star_range *r) {
    if (r->step > 0 ? r->start >= r->stop : r->start <= r->stop)
        return 0;
    int64_t span = r->step > 0 ? r->stop - r->start : r->start - r->stop;
    int64_t step = r->step > 0 ? r->step : -r->step;
    return (span + step - 1) / step;
}

size_t star_value_chars(struct str text) {
    size_t n = 0;
    for (size_t i = 0; i < text.n; i++)
        n += ((unsigned char)text.p[i] & 0xC0) != 0x80;
    return n;
}

size_t star_value_char_at(struct str text, size_t n) {
    size_t i = 0;
    for (; i < text.n; i++) {
        if (((unsigned char)text.p[i] & 0xC0) != 0x80 && n-- == 0)
            break;
    }
    return i;
}

int64_t star_value_length(const struct star_value *v) {
    switch ((int)v->type) {
    case STAR_STRING: return (int64_t)star_value_chars(v->text);
    case STAR_BYTES: return (int64_t)v->text.n;
    case STAR_LIST:
    case STAR_TUPLE: return (int64_t)v->list.n;
    case STAR_DICT: return (int64_t)v->dict->n;
    case STAR_RANGE: return star_value_range_length(&v->range);
    default: return -1;
    }
}

bool star_value_truth(const struct star_value *v) {
    switch ((int)v->type) {
    case STAR_NONE: return false;
    case STAR_BOOL: return v->boolean;
    case STAR_INT: return !star_int_is_zero(v->integer);
    case STAR_FLOAT: return v->real != 0;
    default: return star_value_length(v) != 0;
    }
}

bool star_value_items(struct star *s, struct star_value *v, struct star_list *out) {
    *out = (struct star_list){0};
    switch ((int)v->type) {
    case STAR_LIST:
    case STAR_TUPLE:
    case STAR_ITERATOR:
        if (v->list.n > 0 && !list_grow(s, out, v->list.n))
            return false;
        if (v->list.n > 0)
            memcpy(out->items, v->list.items, v->list.n * sizeof(struct star_value *));
        out->n = v->list.n;
        return star_work(s, out->n);
    case STAR_DICT:
        for (size_t i = 0; i < v->dict->n; i++) {
            if (!star_value_append(s, out, v->dict->entries[i].key))
                return false;
        }
        return true;
    case STAR_RANGE:
        for (int64_t i = 0, n = star_value_range_length(&v->range); i < n; i++) {
            struct star_value *item = star_value_number(s, v->range.start + i * v->range.step);
            if (item == NULL || !star_value_append(s, out, item))
                return false;
        }
        return true;
    default:
        return star_fail(s, "Operation `(iter)` not supported on type `%s`",
                         star_value_type_name(v));
    }
}

bool star_value_want(struct star *s, const struct star_value *v, enum star_type type,
                     const char *expected, const char *name) {
    return v->type == type ||
           star_fail(s,
                     "Type of parameter `%s` doesn't match, expected `%s`, actual `%s (repr: %s)`",
                     name, expected, star_value_type_name(v), star_value_repr(s, v));
}

bool star_value_may_change(struct star *s, unsigned iterating) {
    return iterating == 0 ||
           star_fail(s, "This operation mutates an iterable for an iterator while iterating.");
}

/* -- comparing -- */

static bool value_is_number(const struct star_value *v) {
    return v->type == STAR_INT || v->type == STAR_FLOAT;
}

double star_value_to_real(const struct star_value *v) {
    return v->type == STAR_FLOAT ? v->real : star_int_to_double(v->integer);
}

static bool value_enter(struct star *s) {
    if (s->depth < VALUE_DEPTH_MAX && star_work(s, 1)) {
        s->depth++;
        return true;
    }
    return star_fail(s, "Starlark call stack overflow");
}

static int value_compare_text(struct str x, struct str y) {
    int c = memcmp(x.n > 0 ? x.p : "", y.n > 0 ? y.p : "", MIN(x.n, y.n));
    return c != 0 ? c : (x.n > y.n) - (x.n < y.n);
}

static int value_equal_dicts(struct star *s, const struct star_dict *x, const struct star_dict *y) {
    int r = x->n == y->n;
    for (size_t i = 0; r == 1 && i < x->n; i++) {
        struct star_entry *e = star_dict_find(s, y, x->entries[i].key);
        if (s->failed)
            return -1;
        r = e == NULL ? 0 : star_value_equal(s, x->entries[i].value, e->value);
    }
    return r;
}

static int value_equal_inside(struct star *s, const struct star_value *x,
                              const struct star_value *y) {
    int r = 1;
    switch ((int)x->type) {
    case STAR_LIST:
    case STAR_TUPLE:
        if (x->list.n != y->list.n)
            return 0;
        for (size_t i = 0; r == 1 && i < x->list.n; i++)
            r = star_value_equal(s, x->list.items[i], y->list.items[i]);
        return r;
    case STAR_DICT: return value_equal_dicts(s, x->dict, y->dict);
    case STAR_RANGE: {
        int64_t n = star_value_range_length(&x->range);
        return n == star_value_range_length(&y->range) &&
               (n == 0 || x->range.start == y->range.start) &&
               (n < 2 || x->range.step == y->range.step);
    }
    default: return 0;
    }
}

int star_value_equal(struct star *s, const struct star_value *x, const struct star_value *y) {
    if (x == y)
        return 1;
    if (x->type == STAR_INT && y->type == STAR_INT)
        return star_int_compare(x->integer, y->integer) == 0;
    if (value_is_number(x) && value_is_number(y))
        return star_value_to_real(x) == star_value_to_real(y);
    if (x->type != y->type)
        return 0;
    if (x->type == STAR_STRING || x->type == STAR_BYTES)
        return str_eq(x->text, y->text);
    if (x->type == STAR_NATIVE)
        return x->native == y->native;
    if (!value_enter(s))
        return -1;
    int r = value_equal_inside(s, x, y);
    s->depth--;
    return r;
}

static bool value_compare_lists(struct star *s, const struct star_value *x,
                                const struct star_value *y, int *out) {
    if (!value_enter(s))
        return false;
    *out = 0;
    for (size_t i = 0; *out == 0 && i < x->list.n && i < y->list.n; i++) {
        if (!star_value_compare(s, x->list.items[i], y->list.items[i], out))
            return false;
    }
    s->depth--;
    if (*out == 0)
        *out = (x->list.n > y->list.n) - (x->list.n < y->list.n);
    return true;
}

/* The reference's name of the comparison that a type lacks. */
static const char *value_comparison(const struct star_value *v) {
    switch ((int)v->type) {
    case STAR_BOOL: return "<>";
    case STAR_STRING:
    case STAR_BYTES:
    case STAR_LIST:
    case STAR_TUPLE: return "cmp()";
    default: return "compare";
    }
}

bool star_value_compare(struct star *s, const struct star_value *x, const struct star_value *y,
                        int *out) {
    if (x->type == STAR_INT && y->type == STAR_INT) {
        *out = star_int_compare(x->integer, y->integer);
        return true;
    }
    if (value_is_number(x) && value_is_number(y)) {
        double a = star_value_to_real(x), b = star_value_to_real(y); /* NaN is above all others */
        *out = isnan(a) || isnan(b) ? isnan(a) - isnan(b) : (a > b) - (a < b);
        return true;
    }
    if (x->type == y->type) {
        switch ((int)x->type) {
        case STAR_STRING:
        case STAR_BYTES: *out = value_compare_text(x->text, y->text); return true;
        case STAR_BOOL: *out = x->boolean - y->boolean; return true;
        case STAR_LIST:
        case STAR_TUPLE: return value_compare_lists(s, x, y, out);
        default: break;
        }
    }
    return star_fail(s, "Operation `%s` not supported for types `%s` and `%s`", value_comparison(x),
                     star_value_type_name(x), star_value_type_name(y));
}

bool star_value_hash(struct star *s, const struct star_value *v, uint64_t *out) {
    uint64_t h = v->type;
    switch ((int)v->type) {
    case STAR_INT:
    case STAR_FLOAT: {
        double d = star_value_to_real(v);
        memcpy(out, &d, sizeof d);
        h = d == 0 ? 0 : *out * 0x9E3779B97F4A7C15u;
        break;
    }
    case STAR_STRING:
    case STAR_BYTES:
        for (size_t i = 0; i < v->text.n; i++)
            h = (h ^ (unsigned char)v->text.p[i]) * 0x100000001B3u;
        if (!star_work(s, v->text.n / 64))
            return false;
        break;
    case STAR_TUPLE:
        if (!value_enter(s))
            return false;
        for (size_t i = 0; i < v->list.n; i++) {
            uint64_t item;
            if (!star_value_hash(s, v->list.items[i], &item))
                return false;
            h = (h ^ item) * 0x100000001B3u;
        }
        s->depth--;
        break;
    case STAR_BOOL: h = v->boolean ? 7 : 11; break;
    case STAR_NONE:
    case STAR_NATIVE:
    case STAR_ELLIPSIS: break;
    case STAR_FUNCTION: h = (uintptr_t)v->function >> 4; break;
    default: return star_fail(s, "Value of type `%s` is not hashable", star_value_type_name(v));
    }
    *out = h ^ h >> 29;
    return true;
}

/* -- showing -- */

/* A float as the dialect shows it: short, with a point or an exponent. */
static int value_put_float(struct buf *b, double d) {
    char text[64];
    if (isnan(d))
        return buf_putz(b, "nan");
    if (isinf(d))
        return buf_putz(b, d < 0 ? "-inf" : "+inf");
    if (d != 0 && (fabs(d) >= 1e6 || fabs(d) < 1e-5)) { /* the exponent form has six digits */
        snprintf(text, sizeof text, "%.6e", d);
        char *e = strchr(text, 'e'), *end = e;
        while (end[-1] == '0')
            end--;
        end -= end[-1] == '.';
        return buf_putf(b, "%.*s%s", (int)(end - text), text, e);
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, d);
        if (strtod(text, NULL) == d)
            break;
    }
    if (strchr(text, 'e') != NULL) /* 1e+05, 1e-05 */
        snprintf(text, sizeof text, "%.*f", fabs(d) >= 1 ? 1 : 5, d);
    return buf_putf(b, "%s%s", text, strchr(text, '.') == NULL ? ".0" : "");
}

static int value_put_escaped(struct buf *b, unsigned c) {
    switch (c) {
    case '\n': return buf_putz(b, "\\n");
    case '\r': return buf_putz(b, "\\r");
    case '\t': return buf_putz(b, "\\t");
    case '\\': return buf_putz(b, "\\\\");
    case '"': return buf_putz(b, "\\\"");
    default: break;
    }
    if (c >= 0x20 && c < 0x7F)
        return buf_putc(b, (char)c);
    return buf_putf(b, c <= 0xFF ? "\\x%02x" : c <= 0xFFFF ? "\\u%04x" : "\\U%08x", c);
}

static int value_put_quoted(struct buf *b, const struct star_value *v) {
    bool bytes = v->type == STAR_BYTES;
    int r = buf_putz(b, bytes ? "b\"" : "\"");
    for (size_t i = 0, n = 1; r == 0 && i < v->text.n; i += n) {
        uint32_t c = (unsigned char)v->text.p[i];
        if (!bytes)
            n = utf8_decode(v->text.p + i, v->text.n - i, &c);
        r = value_put_escaped(b, c);
    }
    return r < 0 ? r : buf_putc(b, '"');
}

static bool value_put_items(struct star *s, struct buf *b, const struct star_value *v) {
    bool tuple = v->type == STAR_TUPLE;
    if (buf_putc(b, tuple ? '(' : '[') < 0)
        return false;
    for (size_t i = 0; i < v->list.n; i++) {
        if ((i > 0 && buf_putz(b, ", ") < 0) || !star_value_put(s, b, v->list.items[i], true))
            return false;
    }
    return buf_putz(b, tuple ? (v->list.n == 1 ? ",)" : ")") : "]") == 0;
}

static bool value_put_dict(struct star *s, struct buf *b, const struct star_dict *d) {
    if (buf_putc(b, '{') < 0)
        return false;
    for (size_t i = 0; i < d->n; i++) {
        if ((i > 0 && buf_putz(b, ", ") < 0) || !star_value_put(s, b, d->entries[i].key, true) ||
            buf_putz(b, ": ") < 0 || !star_value_put(s, b, d->entries[i].value, true))
            return false;
    }
    return buf_putc(b, '}') == 0;
}

static int value_put_range(struct buf *b, const struct star_range *r) {
    if (r->step != 1)
        return buf_putf(b, "range(%lld, %lld, %lld)", (long long)r->start, (long long)r->stop,
                        (long long)r->step);
    if (r->start != 0)
        return buf_putf(b, "range(%lld, %lld)", (long long)r->start, (long long)r->stop);
    return buf_putf(b, "range(%lld)", (long long)r->stop);
}

/* Shows a value that holds no others. */
static int value_put_plain(const struct star *s, struct buf *b, const struct star_value *v) {
    switch ((int)v->type) {
    case STAR_NONE: return buf_putz(b, "None");
    case STAR_BOOL: return buf_putz(b, v->boolean ? "True" : "False");
    case STAR_INT: return star_int_put(b, v->integer, 10);
    case STAR_FLOAT: return value_put_float(b, v->real);
    case STAR_RANGE: return value_put_range(b, &v->range);
    case STAR_FUNCTION: return buf_putf(b, "%s.%s", s->source->file, v->function->name);
    case STAR_NATIVE: return buf_putz(b, v->native->name);
    case STAR_METHOD: return buf_putz(b, v->method.native->name);
    case STAR_ELLIPSIS: return buf_putz(b, "Ellipsis");
    default: return buf_putz(b, "iterator");
    }
}

static bool value_put(struct star *s, struct buf *b, const struct star_value *v, bool repr) {
    switch ((int)v->type) {
    case STAR_STRING:
    case STAR_BYTES: return (repr ? value_put_quoted(b, v) : buf_put(b, v->text.p, v->text.n)) == 0;
    case STAR_LIST:
    case STAR_TUPLE: return value_put_items(s, b, v);
    case STAR_DICT: return value_put_dict(s, b, v->dict);
    case STAR_ANNOTATION: return star_type_put(s, b, v);
    default: return value_put_plain(s, b, v) == 0;
    }
}

bool star_value_put(struct star *s, struct buf *b, const struct star_value *v, bool repr) {
    bool inside = v->type == STAR_LIST || v->type == STAR_DICT;
    unsigned *mark = v->type == STAR_DICT ? &v->dict->iterating
                     : inside             ? (unsigned *)(uintptr_t)&v->list.iterating
                                          : NULL;
    if (mark != NULL && *mark & STAR_SHOWN)
        return buf_putz(b, v->type == STAR_DICT ? "{...}" : "[...]") == 0;
    if (!value_enter(s))
        return false;
    if (mark != NULL)
        *mark |= STAR_SHOWN;
    bool good = value_put(s, b, v, repr);
    if (mark != NULL)
        *mark &= ~STAR_SHOWN;
    s->depth--;
    return good || s->failed ? good : star_take(s, b, -ENOMEM) != NULL;
}

const char *star_value_repr(struct star *s, const struct star_value *v) {
    _cleanup_buf_ struct buf b = BUF_INIT(VALUE_TEXT_MAX);
    struct star_value *text = star_value_put(s, &b, v, true) ? star_take(s, &b, 0) : NULL;
    return text == NULL ? NULL : text->text.p;
}
