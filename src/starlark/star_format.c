#include "starlark/star_internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

/* -- the operator % -- */

static bool percent_int(struct star *s, struct buf *b, const struct star_value *v, char kind) {
    struct star_int i = v->integer;
    if (v->type == STAR_FLOAT && isfinite(v->real)) {
        if (star_int_from_double(&s->arena, v->real, &i) < 0)
            return star_alloc(s, SIZE_MAX) != NULL;
    } else if (v->type != STAR_INT) {
        return star_fail(s, "Operation `format(%%%c)` not supported on type `%s`", kind,
                         star_value_type_name(v));
    }
    size_t begin = b->len;
    unsigned base = kind == 'x' || kind == 'X' ? 16 : kind == 'o' ? 8 : 10;
    if (star_int_put(b, i, base) < 0)
        return star_take(s, b, -ENOMEM) != NULL;
    for (size_t k = begin; kind == 'X' && k < b->len; k++) {
        if (b->p[k] >= 'a' && b->p[k] <= 'z')
            b->p[k] = (char)(b->p[k] - 32);
    }
    return true;
}

static bool percent_float(struct star *s, struct buf *b, const struct star_value *v, char kind) {
    if (v->type != STAR_INT && v->type != STAR_FLOAT)
        return star_fail(s, "Operation `format(%%%c)` not supported on type `%s`", kind,
                         star_value_type_name(v));
    double d = star_value_to_real(v);
    int r = 0;
    switch (kind) {
    case 'e': r = buf_putf(b, "%e", d); break;
    case 'E': r = buf_putf(b, "%E", d); break;
    case 'f':
    case 'F': r = buf_putf(b, "%f", d); break;
    default: r = buf_putf(b, "%g", d); break;
    }
    return r == 0 || star_take(s, b, r) != NULL;
}

static bool percent_one(struct star *s, struct buf *b, struct star_value *v, char kind) {
    switch (kind) {
    case 's': return star_value_put(s, b, v, false);
    case 'r': return star_value_put(s, b, v, true);
    case 'd':
    case 'i':
    case 'o':
    case 'x':
    case 'X': return percent_int(s, b, v, kind);
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G': return percent_float(s, b, v, kind);
    default: return star_fail(s, "Unsupported format character: '%c'", kind);
    }
}

struct star_value *star_format_percent(struct star *s, struct str format, struct star_value *args) {
    _cleanup_buf_ struct buf b = BUF_INIT(STAR_MEMORY_MAX);
    bool tuple = args->type == STAR_TUPLE;
    size_t n = tuple ? args->list.n : 1, used = 0;
    for (size_t i = 0; i < format.n; i++) {
        if (format.p[i] != '%') {
            if (buf_putc(&b, format.p[i]) < 0)
                return star_take(s, &b, -ENOMEM);
            continue;
        }
        if (++i == format.n)
            return star_fail(s, "Unexpected end of format string");
        struct star_value *v = tuple && used < n ? args->list.items[used] : args;
        if (format.p[i] == '%') {
            if (buf_putc(&b, '%') < 0)
                return star_take(s, &b, -ENOMEM);
            continue;
        }
        if (used++ == n)
            return star_fail(s, "Not enough arguments for format string");
        if (!star_work(s, 1) || !percent_one(s, &b, v, format.p[i]))
            return NULL;
    }
    if (used < n)
        return star_fail(s, "Too many arguments for format string");
    return star_take(s, &b, 0);
}

/* -- "{}".format() -- */

struct format_state {
    const struct star_args *args;
    size_t next;            /* number of the next argument */
    bool counted, numbered; /* fields were {} or {0} */
};

static struct star_value *format_numbered(struct star *s, struct format_state *f, struct str name) {
    size_t i = 0;
    if (name.n == 0) {
        if (f->numbered)
            return star_fail(s, "Cannot mix manual field specification and automatic field "
                                "numbering in format string");
        f->counted = true;
        i = f->next++;
    } else {
        if (f->counted)
            return star_fail(s, "Cannot mix manual field specification and automatic field "
                                "numbering in format string");
        f->numbered = true;
        for (size_t k = 0; k < name.n && i < STAR_MEMORY_MAX; k++)
            i = i * 10 + (size_t)(name.p[k] - '0');
    }
    if (i >= f->args->rest->n)
        return star_fail(s, "Not enough parameters in format string");
    return f->args->rest->items[i];
}

static struct star_value *format_argument(struct star *s, struct format_state *f, struct str name) {
    bool digits = true;
    for (size_t i = 0; i < name.n; i++)
        digits &= name.p[i] >= '0' && name.p[i] <= '9';
    if (digits)
        return format_numbered(s, f, name);
    struct star_value key = {.type = STAR_STRING, .text = name};
    struct star_entry *e = star_dict_find(s, f->args->named, &key);
    if (e == NULL)
        return star_fail(s, "Key `%.*s` was not found", (int)name.n, name.p);
    return e->value;
}

static bool format_field(struct star *s, struct format_state *f, struct str field, struct buf *b) {
    const char *mark = field.n > 0 ? memchr(field.p, '!', field.n) : NULL;
    struct str name = {field.p, mark == NULL ? field.n : (size_t)(mark - field.p)};
    struct str how = {mark, mark == NULL ? 0 : field.n - name.n};
    if (how.n > 0 && !str_eqz(how, "!r") && !str_eqz(how, "!s"))
        return star_fail(s,
                         "'%.*s' is not a valid format string specifier, only 's' and 'r' are "
                         "valid specifiers",
                         (int)how.n - 1, how.p + 1);
    for (size_t i = 0; i < name.n; i++) {
        if (strchr(".[]!,", name.p[i]) != NULL)
            return star_fail(s, "Invalid character '%c' inside replacement field", name.p[i]);
    }
    struct star_value *v = format_argument(s, f, name);
    return v != NULL && star_value_put(s, b, v, str_eqz(how, "!r"));
}

struct star_value *star_format(struct star *s, const struct star_args *a) {
    _cleanup_buf_ struct buf b = BUF_INIT(STAR_MEMORY_MAX);
    struct format_state f = {.args = a};
    struct str text = a->self->text;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        bool doubled = (c == '{' || c == '}') && i + 1 < text.n && text.p[i + 1] == c;
        if (!star_work(s, 1))
            return NULL;
        if ((c != '{' && c != '}') || doubled) {
            i += doubled;
            if (buf_putc(&b, c) < 0)
                return star_take(s, &b, -ENOMEM);
            continue;
        }
        if (c == '}')
            return star_fail(s, "Standalone '}' in format string `%.*s`", (int)text.n, text.p);
        const char *close = memchr(text.p + i, '}', text.n - i);
        if (close == NULL)
            return star_fail(s, "Unmatched '{' in format string `%.*s`", (int)text.n, text.p);
        struct str field = {text.p + i + 1, (size_t)(close - text.p) - i - 1};
        if (!format_field(s, &f, field, &b))
            return NULL;
        i = (size_t)(close - text.p);
    }
    return star_take(s, &b, 0);
}
