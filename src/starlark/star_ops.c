#include "starlark/star_internal.h"

#include <errno.h>
#include <math.h>

static const char *ops_name(enum star_token op) {
    switch ((int)op) {
    case T_PLUS: return "+";
    case T_MINUS: return "-";
    case T_STAR: return "*";
    case T_SLASH: return "/";
    case T_SLASHSLASH: return "//";
    case T_PERCENT: return "%";
    case T_AMP: return "&";
    case T_PIPE: return "|";
    case T_CARET: return "^";
    case T_SHL: return "<<";
    case T_SHR: return ">>";
    case T_TILDE: return "~";
    default: return "in";
    }
}

static struct star_value *ops_unsupported(struct star *s, enum star_token op,
                                          const struct star_value *x, const struct star_value *y) {
    return star_fail(s, "Operation `%s` not supported for types `%s` and `%s`", ops_name(op),
                     star_value_type_name(x), star_value_type_name(y));
}

static struct star_value *ops_mismatch(struct star *s, const char *expected,
                                       const struct star_value *v) {
    return star_fail(s, "Type of parameters mismatch, expected `%s`, actual `%s (repr: %s)`",
                     expected, star_value_type_name(v), star_value_repr(s, v));
}

bool star_ops_small(struct star *s, const struct star_value *v, int64_t *out) {
    if (v->type != STAR_INT)
        return star_fail(s, "Expected `int`, but got `%s (repr: %s)`", star_value_type_name(v),
                         star_value_repr(s, v));
    *out = v->integer.small;
    return (v->integer.big == NULL && *out >= INT32_MIN && *out <= INT32_MAX) ||
           star_fail(s, "Integer value is too big to fit in i32: %s", star_value_repr(s, v));
}

/* -- numbers -- */

static size_t ops_limbs(struct star_int i) {
    return i.big == NULL ? 1 : i.big->n;
}

static struct star_value *ops_zero(struct star *s, enum star_token op, const struct star_value *x,
                                   const struct star_value *y) {
    bool real = x->type == STAR_FLOAT || y->type == STAR_FLOAT;
    const char *left = star_value_repr(s, x), *right = star_value_repr(s, y);
    if (left == NULL || right == NULL)
        return NULL;
    if (op == T_SLASH) { /* whole floats lose their point here */
        size_t n = strlen(left), m = strlen(right);
        n -= n > 2 && strcmp(left + n - 2, ".0") == 0 ? 2 : 0;
        m -= m > 2 && strcmp(right + m - 2, ".0") == 0 ? 2 : 0;
        return star_fail(s, "float division by zero: %.*s / %.*s", (int)n, left, (int)m, right);
    }
    if (real)
        return star_fail(s, "Cannot divide by zero");
    return star_fail(s, "%s by zero: %s %s %s", op == T_PERCENT ? "Modulo" : "Floor division", left,
                     ops_name(op), right);
}

static int ops_int(struct star *s, enum star_token op, struct star_int x, struct star_int y,
                   struct star_int *out) {
    struct arena *a = &s->arena;
    switch ((int)op) {
    case T_PLUS: return star_int_add(a, x, y, out);
    case T_MINUS: return star_int_sub(a, x, y, out);
    case T_STAR: return star_int_mul(a, x, y, out);
    case T_SLASHSLASH: return star_int_divmod(a, x, y, out, NULL);
    case T_PERCENT: return star_int_divmod(a, x, y, NULL, out);
    case T_SHL: return star_int_shift(a, x, y, true, out);
    case T_SHR: return star_int_shift(a, x, y, false, out);
    default: return star_int_bits(a, ops_name(op)[0], x, y, out);
    }
}

static struct star_value *ops_ints(struct star *s, enum star_token op, struct star_value *x,
                                   struct star_value *y) {
    struct star_int out;
    size_t product = ops_limbs(x->integer) * ops_limbs(y->integer);
    bool divides = op == T_SLASHSLASH || op == T_PERCENT;
    if (!star_work(s, divides ? product * 32 : product / 8))
        return NULL;
    int r = ops_int(s, op, x->integer, y->integer, &out);
    if (r == 0)
        return star_value_integer(s, out);
    if (r == -ENOMEM)
        return star_alloc(s, SIZE_MAX);
    if (r == -EDOM && divides)
        return ops_zero(s, op, x, y);
    if (r == -EDOM)
        return star_fail(s, "Negative %s shift", op == T_SHL ? "left" : "right");
    return star_fail(s, "Integer overflow computing %s",
                     op == T_SHL ? "left shift" : "a result of more than 131072 bits");
}

static struct star_value *ops_reals(struct star *s, enum star_token op, struct star_value *x,
                                    struct star_value *y) {
    double a = star_value_to_real(x), b = star_value_to_real(y), rest;
    switch ((int)op) {
    case T_PLUS: return star_value_real(s, a + b);
    case T_MINUS: return star_value_real(s, a - b);
    case T_STAR: return star_value_real(s, a * b);
    case T_SLASH: return b == 0 ? ops_zero(s, op, x, y) : star_value_real(s, a / b);
    case T_SLASHSLASH: return b == 0 ? ops_zero(s, op, x, y) : star_value_real(s, floor(a / b));
    case T_PERCENT:
        if (b == 0)
            return ops_zero(s, op, x, y);
        rest = fmod(a, b);
        return star_value_real(s, rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);
    default: return ops_unsupported(s, op, x, y);
    }
}

static struct star_value *ops_numbers(struct star *s, enum star_token op, struct star_value *x,
                                      struct star_value *y) {
    bool ints = x->type == STAR_INT && y->type == STAR_INT;
    return ints && op != T_SLASH ? ops_ints(s, op, x, y) : ops_reals(s, op, x, y);
}

/* -- sequences -- */

static struct star_value *ops_concat(struct star *s, struct star_value *x, struct star_value *y) {
    if (x->type == STAR_LIST || x->type == STAR_TUPLE) {
        struct star_value *v = star_value_list(s, x->type, x->list.n + y->list.n);
        for (size_t i = 0; v != NULL && i < x->list.n + y->list.n; i++) {
            struct star_value *item =
                i < x->list.n ? x->list.items[i] : y->list.items[i - x->list.n];
            if (!star_value_append(s, &v->list, item))
                return NULL;
        }
        return v;
    }
    size_t n = x->text.n + y->text.n;
    char *text = star_work(s, n / 64) ? star_alloc(s, n + 1) : NULL;
    if (text == NULL)
        return NULL;
    if (x->text.n > 0)
        memcpy(text, x->text.p, x->text.n);
    if (y->text.n > 0)
        memcpy(text + x->text.n, y->text.p, y->text.n);
    return star_value_text(s, x->type, (struct str){text, n});
}

static struct star_value *ops_repeat(struct star *s, struct star_value *v, struct star_value *by) {
    int64_t times;
    if (!star_ops_small(s, by, &times))
        return NULL;
    size_t k = times < 0 ? 0 : (size_t)times, total;
    bool text = v->type == STAR_STRING || v->type == STAR_BYTES;
    size_t n = text ? v->text.n : v->list.n;
    if (__builtin_mul_overflow(n, k, &total) || total > STAR_MEMORY_MAX)
        return star_alloc(s, SIZE_MAX);
    if (!text) {
        struct star_value *out = star_value_list(s, v->type, total);
        for (size_t i = 0; out != NULL && i < total; i++) {
            if (!star_value_append(s, &out->list, v->list.items[i % n]))
                return NULL;
        }
        return out;
    }
    char *p = star_work(s, total / 64) ? star_alloc(s, total + 1) : NULL;
    for (size_t i = 0; p != NULL && n > 0 && i < k; i++)
        memcpy(p + i * n, v->text.p, n);
    return p == NULL ? NULL : star_value_text(s, v->type, (struct str){p, total});
}

static bool ops_is_sequence(const struct star_value *v) {
    return v->type == STAR_STRING || v->type == STAR_BYTES || v->type == STAR_LIST ||
           v->type == STAR_TUPLE;
}

static struct star_value *ops_union(struct star *s, const struct star_value *x,
                                    const struct star_value *y) {
    struct star_value *v = star_dict_new(s);
    const struct star_dict *from[2] = {x->dict, y->dict};
    for (size_t k = 0; v != NULL && k < 2; k++) {
        for (size_t i = 0; i < from[k]->n; i++) {
            if (!star_dict_set(s, v->dict, from[k]->entries[i].key, from[k]->entries[i].value))
                return NULL;
        }
    }
    return v;
}

static struct star_value *ops_contains(struct star *s, struct star_value *x, struct star_value *y,
                                       bool negated) {
    int found = 0;
    struct star_list items;
    switch ((int)y->type) {
    case STAR_STRING:
        if (x->type != STAR_STRING)
            return ops_mismatch(s, "str", x);
        found = x->text.n == 0 ||
                memmem(y->text.n > 0 ? y->text.p : "", y->text.n, x->text.p, x->text.n) != NULL;
        if (!star_work(s, y->text.n / 64))
            return NULL;
        break;
    case STAR_BYTES:
        if (x->type != STAR_INT && x->type != STAR_BYTES)
            return ops_unsupported(s, T_IN, x, y);
        found = x->type == STAR_INT
                    ? x->integer.big == NULL && y->text.n > 0 && x->integer.small >= 0 &&
                          memchr(y->text.p, (int)x->integer.small, y->text.n) != NULL
                    : x->text.n == 0 || (y->text.n > 0 && memmem(y->text.p, y->text.n, x->text.p,
                                                                 x->text.n) != NULL);
        break;
    case STAR_DICT:
        found = star_dict_find(s, y->dict, x) != NULL;
        if (s->failed)
            return NULL;
        break;
    case STAR_LIST:
    case STAR_TUPLE:
    case STAR_RANGE:
        if (!star_value_items(s, y, &items))
            return NULL;
        for (size_t i = 0; found == 0 && i < items.n; i++)
            found = star_value_equal(s, items.items[i], x);
        if (found < 0)
            return NULL;
        break;
    default: return ops_unsupported(s, T_IN, x, y);
    }
    return star_value_bool(s, (found != 0) != negated);
}

static struct star_value *ops_order(struct star *s, enum star_token op, struct star_value *x,
                                    struct star_value *y) {
    int c;
    if (op == T_EQ || op == T_NE) {
        c = star_value_equal(s, x, y);
        return c < 0 ? NULL : star_value_bool(s, (c == 1) == (op == T_EQ));
    }
    if (!star_value_compare(s, x, y, &c))
        return NULL;
    return star_value_bool(s, op == T_LT   ? c < 0
                              : op == T_LE ? c <= 0
                              : op == T_GT ? c > 0
                                           : c >= 0);
}

static bool ops_is_type(const struct star_value *v) {
    return v->type == STAR_NATIVE || v->type == STAR_ANNOTATION || v->type == STAR_NONE;
}

struct star_value *star_ops_binary(struct star *s, enum star_token op, struct star_value *x,
                                   struct star_value *y) {
    bool numbers = (x->type == STAR_INT || x->type == STAR_FLOAT) &&
                   (y->type == STAR_INT || y->type == STAR_FLOAT);
    if (op >= T_EQ && op <= T_GE)
        return ops_order(s, op, x, y);
    if (op == T_IN || op == T_NOT)
        return ops_contains(s, x, y, op == T_NOT);
    if (numbers)
        return ops_numbers(s, op, x, y);
    if (op == T_PLUS && x->type == y->type && ops_is_sequence(x))
        return ops_concat(s, x, y);
    if (op == T_STAR && ops_is_sequence(x) && y->type == STAR_INT)
        return ops_repeat(s, x, y);
    if (op == T_STAR && x->type == STAR_INT && ops_is_sequence(y))
        return ops_repeat(s, y, x);
    if (op == T_PERCENT && x->type == STAR_STRING)
        return star_format_percent(s, x->text, y);
    if (op == T_PIPE && x->type == STAR_DICT && y->type == STAR_DICT)
        return ops_union(s, x, y);
    if (op == T_PIPE && ops_is_type(x) && ops_is_type(y) && x->type != STAR_NONE)
        return star_type_union(s, x, y);
    return ops_unsupported(s, op, x, y);
}

struct star_value *star_ops_unary(struct star *s, enum star_token op, struct star_value *x) {
    if (x->type == STAR_FLOAT && op != T_TILDE)
        return star_value_real(s, op == T_MINUS ? -x->real : x->real);
    if (x->type != STAR_INT)
        return star_fail(s, "Operation `%s` not supported on type `%s`", ops_name(op),
                         star_value_type_name(x));
    if (op == T_PLUS)
        return x;
    struct star_int out;
    int r = star_int_sub(&s->arena, star_int_of(op == T_TILDE ? -1 : 0), x->integer, &out);
    return r < 0 ? star_alloc(s, SIZE_MAX) : star_value_integer(s, out);
}

/* -- subscripts -- */

/* An index from the front; false after a failure. */
static bool ops_position(struct star *s, const struct star_value *key, int64_t n, int64_t *out) {
    if (!star_ops_small(s, key, out))
        return false;
    int64_t i = *out < 0 ? *out + n : *out;
    if (i < 0 || i >= n)
        return star_fail(s, "Index `%lld` is out of bound", (long long)*out);
    *out = i;
    return true;
}

static struct star_value *ops_char(struct star *s, struct str text, size_t i) {
    size_t begin = star_value_char_at(text, i);
    struct str rest = {text.p + begin, text.n - begin};
    return star_value_string(s, (struct str){rest.p, star_value_char_at(rest, 1)});
}

struct star_value *star_ops_index(struct star *s, struct star_value *v, struct star_value *key) {
    int64_t i;
    if (v->type == STAR_NATIVE)
        return star_type_index(s, v, key);
    if (v->type == STAR_DICT) {
        struct star_entry *e = star_dict_find(s, v->dict, key);
        return e != NULL ? e->value
                         : star_fail(s, "Key `%s` was not found", star_value_repr(s, key));
    }
    int64_t n = star_value_length(v);
    if (n < 0)
        return star_fail(s, "Operation `[]` not supported for types `%s` and `%s`",
                         star_value_type_name(v), star_value_type_name(key));
    if (v->type == STAR_STRING && key->type != STAR_INT)
        return ops_mismatch(s, "int", key);
    if (!ops_position(s, key, n, &i))
        return NULL;
    switch ((int)v->type) {
    case STAR_STRING: return star_work(s, v->text.n / 64) ? ops_char(s, v->text, (size_t)i) : NULL;
    case STAR_BYTES: return star_value_number(s, (unsigned char)v->text.p[i]);
    case STAR_RANGE: return star_value_number(s, v->range.start + i * v->range.step);
    default: return v->list.items[i];
    }
}

bool star_ops_set_index(struct star *s, struct star_value *v, struct star_value *key,
                        struct star_value *to) {
    int64_t i;
    if (v->type == STAR_DICT)
        return star_dict_set(s, v->dict, key, to);
    if (v->type != STAR_LIST)
        return star_fail(s, "Immutable");
    if (!star_value_may_change(s, v->list.iterating) ||
        !ops_position(s, key, (int64_t)v->list.n, &i))
        return false;
    v->list.items[i] = to;
    return true;
}

/* A bound of a slice, moved into the range; `otherwise` when it is left out. */
static bool ops_bound(struct star *s, const struct star_value *v, int64_t n, int64_t low,
                      int64_t high, int64_t otherwise, int64_t *out) {
    if (v == NULL || v->type == STAR_NONE) {
        *out = otherwise;
        return true;
    }
    if (!star_ops_small(s, v, out))
        return false;
    if (*out < 0)
        *out += n;
    *out = *out < low ? low : *out > high ? high : *out;
    return true;
}

static struct star_value *ops_slice_text(struct star *s, struct star_value *v, int64_t start,
                                         int64_t count, int64_t step) {
    _cleanup_buf_ struct buf b = BUF_INIT(STAR_MEMORY_MAX);
    struct str text = v->text;
    bool bytes = v->type == STAR_BYTES;
    int r = 0;
    if (!star_work(s, text.n / 64 + (step == 1 ? 0 : (size_t)count * (text.n / 64 + 1))))
        return NULL;
    if (step == 1) { /* one piece */
        size_t begin = bytes ? (size_t)start : star_value_char_at(text, (size_t)start);
        struct str rest = {text.p + begin, text.n - begin};
        size_t n = bytes ? (size_t)count : star_value_char_at(rest, (size_t)count);
        return star_value_text(s, v->type, (struct str){rest.p, n});
    }
    for (int64_t i = 0; r == 0 && i < count; i++) {
        size_t k = (size_t)(start + i * step);
        size_t begin = bytes ? k : star_value_char_at(text, k);
        struct str rest = {text.p + begin, text.n - begin};
        r = buf_put(&b, rest.p, bytes ? 1 : star_value_char_at(rest, 1));
    }
    struct star_value *out = star_take(s, &b, r);
    if (out != NULL)
        out->type = v->type;
    return out;
}

struct star_value *star_ops_slice(struct star *s, struct star_value *v,
                                  struct star_value *const b[3]) {
    int64_t n = star_value_length(v), step = 1, start, stop;
    if (n < 0 || v->type == STAR_DICT)
        return star_fail(s, "Operation `[::]` not supported on type `%s`", star_value_type_name(v));
    if (b[2] != NULL && b[2]->type != STAR_NONE && !star_ops_small(s, b[2], &step))
        return NULL;
    if (step == 0)
        return star_fail(s, "Index `0` is out of bound");
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
    if (!ops_bound(s, b[0], n, low, high, step > 0 ? 0 : n - 1, &start) ||
        !ops_bound(s, b[1], n, low, high, step > 0 ? n : -1, &stop))
        return NULL;
    int64_t count = star_value_range_length(&(struct star_range){start, stop, step});
    if (v->type == STAR_RANGE) {
        struct star_value *out = star_value_new(s, STAR_RANGE);
        if (out != NULL)
            out->range =
                (struct star_range){v->range.start + start * v->range.step,
                                    v->range.start + stop * v->range.step, v->range.step * step};
        return out;
    }
    if (v->type == STAR_STRING || v->type == STAR_BYTES)
        return ops_slice_text(s, v, start, count, step);
    struct star_value *out = star_value_list(s, v->type, (size_t)count);
    for (int64_t i = 0; out != NULL && i < count; i++) {
        if (!star_value_append(s, &out->list, v->list.items[start + i * step]))
            return NULL;
    }
    return out;
}
