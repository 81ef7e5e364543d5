#include "starlark/star_int.h"

#include <errno.h>
#include <math.h>

#define INT_LIMBS_MAX (STAR_INT_BITS_MAX / 32)

/* A number as sign and magnitude, whatever its size. */
struct int_view {
    bool negative;
    size_t n;
    const uint32_t *limb;
    uint32_t room[2];
};

static void int_view(struct star_int x, struct int_view *v) {
    if (x.big != NULL) {
        *v = (struct int_view){.negative = x.big->negative, .n = x.big->n, .limb = x.big->limb};
        return;
    }
    uint64_t m = x.small < 0 ? -(uint64_t)x.small : (uint64_t)x.small;
    v->negative = x.small < 0;
    v->room[0] = (uint32_t)m;
    v->room[1] = (uint32_t)(m >> 32);
    v->limb = v->room;
    v->n = m == 0 ? 0 : m >> 32 ? 2 : 1;
}

static struct star_big *int_new(struct arena *a, size_t n) {
    return arena_alloc(a, sizeof(struct star_big) + n * sizeof(uint32_t));
}

/* Takes a magnitude of at most b->n limbs as the result. */
static int int_result(struct star_big *b, bool negative, struct star_int *out) {
    while (b->n > 0 && b->limb[b->n - 1] == 0)
        b->n--;
    b->negative = negative;
    if (b->n > INT_LIMBS_MAX)
        return -EOVERFLOW;
    uint64_t m = b->n == 0 ? 0 : b->limb[0] | (b->n > 1 ? (uint64_t)b->limb[1] << 32 : 0);
    bool fits = b->n <= 2 && (m <= INT64_MAX || (negative && m == (uint64_t)INT64_MAX + 1));
    if (fits)
        *out = star_int_of(negative ? (int64_t)-m : (int64_t)m);
    else
        *out = (struct star_int){.big = b};
    return 0;
}

/* -- magnitudes -- */

static int mag_compare(const struct int_view *x, const struct int_view *y) {
    if (x->n != y->n)
        return x->n < y->n ? -1 : 1;
    for (size_t i = x->n; i-- > 0;) {
        if (x->limb[i] != y->limb[i])
            return x->limb[i] < y->limb[i] ? -1 : 1;
    }
    return 0;
}

static void mag_add(struct star_big *out, const struct int_view *x, const struct int_view *y) {
    uint64_t carry = 0;
    for (size_t i = 0; i < out->n; i++) {
        carry += (uint64_t)(i < x->n ? x->limb[i] : 0) + (i < y->n ? y->limb[i] : 0);
        out->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
}

/* x - y, where x is not the smaller one. */
static void mag_sub(struct star_big *out, const struct int_view *x, const struct int_view *y) {
    int64_t borrow = 0;
    for (size_t i = 0; i < x->n; i++) {
        int64_t d = (int64_t)x->limb[i] - (i < y->n ? y->limb[i] : 0) - borrow;
        borrow = d < 0;
        out->limb[i] = (uint32_t)d;
    }
}

static int int_add_views(struct arena *a, struct int_view *x, struct int_view *y,
                         struct star_int *out) {
    struct star_big *b = int_new(a, MAX(x->n, y->n) + 1);
    if (b == NULL)
        return -ENOMEM;
    b->n = MAX(x->n, y->n) + 1;
    if (x->negative == y->negative) {
        mag_add(b, x, y);
        return int_result(b, x->negative, out);
    }
    bool swap = mag_compare(x, y) < 0;
    mag_sub(b, swap ? y : x, swap ? x : y);
    return int_result(b, swap ? y->negative : x->negative, out);
}

int star_int_add(struct arena *a, struct star_int x, struct star_int y, struct star_int *out) {
    int64_t sum;
    if (x.big == NULL && y.big == NULL && !__builtin_add_overflow(x.small, y.small, &sum)) {
        *out = star_int_of(sum);
        return 0;
    }
    struct int_view vx, vy;
    int_view(x, &vx);
    int_view(y, &vy);
    return int_add_views(a, &vx, &vy, out);
}

int star_int_sub(struct arena *a, struct star_int x, struct star_int y, struct star_int *out) {
    int64_t difference;
    if (x.big == NULL && y.big == NULL && !__builtin_sub_overflow(x.small, y.small, &difference)) {
        *out = star_int_of(difference);
        return 0;
    }
    struct int_view vx, vy;
    int_view(x, &vx);
    int_view(y, &vy);
    vy.negative = !vy.negative;
    return int_add_views(a, &vx, &vy, out);
}

int star_int_mul(struct arena *a, struct star_int x, struct star_int y, struct star_int *out) {
    int64_t product;
    if (x.big == NULL && y.big == NULL && !__builtin_mul_overflow(x.small, y.small, &product)) {
        *out = star_int_of(product);
        return 0;
    }
    struct int_view vx, vy;
    int_view(x, &vx);
    int_view(y, &vy);
    if (vx.n + vy.n > INT_LIMBS_MAX + 1)
        return -EOVERFLOW;
    struct star_big *b = int_new(a, vx.n + vy.n);
    if (b == NULL)
        return -ENOMEM;
    b->n = vx.n + vy.n;
    for (size_t i = 0; i < vx.n; i++) {
        uint64_t carry = 0;
        for (size_t k = 0; k < vy.n; k++) {
            carry += (uint64_t)vx.limb[i] * vy.limb[k] + b->limb[i + k];
            b->limb[i + k] = (uint32_t)carry;
            carry >>= 32;
        }
        b->limb[i + vy.n] = (uint32_t)carry;
    }
    return int_result(b, vx.negative != vy.negative, out);
}

/* -- division -- */

/* Divides the magnitude in place by one limb; the remainder. */
static uint32_t mag_divide_small(uint32_t *limb, size_t n, uint32_t by) {
    uint64_t rest = 0;
    for (size_t i = n; i-- > 0;) {
        rest = rest << 32 | limb[i];
        limb[i] = (uint32_t)(rest / by);
        rest %= by;
    }
    return (uint32_t)rest;
}

/* One bit of a long division: shifts `bit` into the remainder and subtracts y if that goes. */
static bool mag_divide_bit(struct star_big *rest, const struct int_view *y, unsigned bit) {
    uint32_t carry = bit;
    for (size_t i = 0; i < rest->n; i++) {
        uint32_t next = rest->limb[i] >> 31;
        rest->limb[i] = rest->limb[i] << 1 | carry;
        carry = next;
    }
    struct int_view r = {.n = rest->n, .limb = rest->limb};
    while (r.n > 0 && r.limb[r.n - 1] == 0)
        r.n--;
    if (mag_compare(&r, y) < 0)
        return false;
    mag_sub(rest, &r, y);
    return true;
}

static int mag_divide(struct arena *a, const struct int_view *x, const struct int_view *y,
                      struct star_big **quotient, struct star_big **rest) {
    *quotient = int_new(a, x->n + 1);
    *rest = int_new(a, y->n + 1);
    if (*quotient == NULL || *rest == NULL)
        return -ENOMEM;
    (*quotient)->n = x->n;
    (*rest)->n = y->n + 1;
    if (y->n == 1) {
        memcpy((*quotient)->limb, x->limb, x->n * sizeof(uint32_t));
        (*rest)->limb[0] = mag_divide_small((*quotient)->limb, x->n, y->limb[0]);
        return 0;
    }
    for (size_t i = x->n * 32; i-- > 0;) {
        if (mag_divide_bit(*rest, y, x->limb[i / 32] >> (i % 32) & 1))
            (*quotient)->limb[i / 32] |= 1u << (i % 32);
    }
    return 0;
}

/* Turns a truncating division into one that rounds down. */
static int int_floor(struct arena *a, struct star_int y, bool apart, struct star_int *q,
                     struct star_int *r) {
    if (!apart || star_int_is_zero(*r))
        return 0;
    int e = star_int_sub(a, *q, star_int_of(1), q);
    return e < 0 ? e : star_int_add(a, *r, y, r);
}

int star_int_divmod(struct arena *a, struct star_int x, struct star_int y,
                    struct star_int *quotient, struct star_int *remainder) {
    struct star_int q, r;
    int e = 0;
    if (star_int_is_zero(y))
        return -EDOM;
    bool min = x.small == INT64_MIN && y.small == -1;
    struct int_view vx, vy;
    int_view(x, &vx);
    int_view(y, &vy);
    if (x.big == NULL && y.big == NULL && !min) {
        q = star_int_of(x.small / y.small);
        r = star_int_of(x.small % y.small);
    } else {
        struct star_big *bq, *br;
        e = mag_divide(a, &vx, &vy, &bq, &br);
        if (e == 0)
            e = int_result(bq, vx.negative != vy.negative, &q);
        if (e == 0)
            e = int_result(br, vx.negative, &r);
    }
    if (e == 0)
        e = int_floor(a, y, vx.negative != vy.negative, &q, &r);
    if (e == 0 && quotient != NULL)
        *quotient = q;
    if (e == 0 && remainder != NULL)
        *remainder = r;
    return e;
}

/* -- bits -- */

static int int_shift_left(struct arena *a, struct star_int x, uint64_t by, struct star_int *out) {
    struct int_view v;
    int_view(x, &v);
    if (v.n == 0) {
        *out = x;
        return 0;
    }
    if (by > STAR_INT_BITS_MAX)
        return -EOVERFLOW;
    size_t limbs = (size_t)by / 32, bits = (size_t)by % 32;
    struct star_big *b = int_new(a, v.n + limbs + 1);
    if (b == NULL)
        return -ENOMEM;
    b->n = v.n + limbs + 1;
    for (size_t i = 0; i < v.n; i++) {
        uint64_t wide = (uint64_t)v.limb[i] << bits;
        b->limb[i + limbs] |= (uint32_t)wide;
        b->limb[i + limbs + 1] = (uint32_t)(wide >> 32);
    }
    return int_result(b, v.negative, out);
}

/* Rounds down: a negative number that loses bits ends one lower. */
static int int_shift_right(struct arena *a, struct star_int x, uint64_t by, struct star_int *out) {
    struct int_view v;
    int_view(x, &v);
    size_t limbs = (size_t)MIN(by / 32, (uint64_t)v.n), bits = (size_t)by % 32;
    struct star_big *b = int_new(a, v.n - limbs + 1);
    if (b == NULL)
        return -ENOMEM;
    b->n = v.n - limbs + 1;
    bool lost = false;
    for (size_t i = 0; i < limbs; i++)
        lost |= v.limb[i] != 0;
    for (size_t i = limbs; i < v.n; i++) {
        uint64_t wide = (uint64_t)v.limb[i] << 32 >> bits;
        b->limb[i - limbs] |= (uint32_t)(wide >> 32);
        if (i > limbs)
            b->limb[i - limbs - 1] |= (uint32_t)wide;
        else
            lost |= (uint32_t)wide != 0;
    }
    int e = int_result(b, v.negative, out);
    return e == 0 && v.negative && lost ? star_int_sub(a, *out, star_int_of(1), out) : e;
}

int star_int_shift(struct arena *a, struct star_int x, struct star_int by, bool left,
                   struct star_int *out) {
    struct int_view v;
    int_view(by, &v);
    if (v.negative)
        return -EDOM;
    uint64_t n = by.big != NULL ? UINT64_MAX : (uint64_t)by.small;
    if (left)
        return int_shift_left(a, x, n, out);
    return int_shift_right(a, x, n, out);
}

/* Limb i of the number in two's complement. `carry` goes from limb to limb, 1 at first. */
static uint32_t int_twos(const struct int_view *v, size_t i, uint32_t *carry) {
    uint32_t limb = i < v->n ? v->limb[i] : 0;
    if (!v->negative)
        return limb;
    uint64_t wide = (uint64_t)(uint32_t)~limb + *carry;
    *carry = (uint32_t)(wide >> 32);
    return (uint32_t)wide;
}

int star_int_bits(struct arena *a, char op, struct star_int x, struct star_int y,
                  struct star_int *out) {
    struct int_view vx, vy;
    int_view(x, &vx);
    int_view(y, &vy);
    size_t n = MAX(vx.n, vy.n) + 1;
    struct star_big *b = int_new(a, n);
    if (b == NULL)
        return -ENOMEM;
    b->n = n;
    uint32_t cx = 1, cy = 1;
    for (size_t i = 0; i < n; i++) {
        uint32_t lx = int_twos(&vx, i, &cx), ly = int_twos(&vy, i, &cy);
        b->limb[i] = op == '&' ? lx & ly : op == '|' ? lx | ly : lx ^ ly;
    }
    bool negative = b->limb[n - 1] >> 31;
    uint64_t carry = 1;
    for (size_t i = 0; negative && i < n; i++) {
        carry += (uint32_t)~b->limb[i];
        b->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    return int_result(b, negative, out);
}

/* -- the rest -- */

bool star_int_is_zero(struct star_int x) {
    return x.big == NULL && x.small == 0;
}

int star_int_compare(struct star_int x, struct star_int y) {
    struct int_view vx, vy;
    if (x.big == NULL && y.big == NULL)
        return (x.small > y.small) - (x.small < y.small);
    int_view(x, &vx);
    int_view(y, &vy);
    if (vx.negative != vy.negative)
        return vx.negative ? -1 : 1;
    return vx.negative ? -mag_compare(&vx, &vy) : mag_compare(&vx, &vy);
}

double star_int_to_double(struct star_int x) {
    if (x.big == NULL)
        return (double)x.small;
    double d = 0;
    for (size_t i = x.big->n; i-- > 0;)
        d = d * 4294967296.0 + x.big->limb[i];
    return x.big->negative ? -d : d;
}

int star_int_from_double(struct arena *a, double d, struct star_int *out) {
    double whole = trunc(fabs(d));
    int exponent;
    frexp(whole, &exponent);
    size_t n = (size_t)MAX(exponent, 0) / 32 + 1;
    struct star_big *b = int_new(a, n);
    if (b == NULL)
        return -ENOMEM;
    b->n = n;
    for (size_t i = 0; i < n; i++) {
        b->limb[i] = (uint32_t)fmod(whole, 4294967296.0);
        whole = trunc(whole / 4294967296.0);
    }
    return int_result(b, d < 0, out);
}

int star_int_put(struct buf *b, struct star_int x, unsigned base) {
    struct int_view v;
    int_view(x, &v);
    if (v.n == 0)
        return buf_putc(b, '0');
    _cleanup_free_ uint32_t *limb = malloc(v.n * sizeof *limb);
    if (limb == NULL)
        return -ENOMEM;
    memcpy(limb, v.limb, v.n * sizeof *limb);
    int r = v.negative ? buf_putc(b, '-') : 0;
    size_t begin = b->len;
    for (size_t n = v.n; r == 0 && n > 0;) {
        r = buf_putc(b, "0123456789abcdefghijklmnopqrstuvwxyz"[mag_divide_small(limb, n, base)]);
        while (n > 0 && limb[n - 1] == 0)
            n--;
    }
    for (size_t i = begin, k = b->len; i + 1 < k; i++) {
        char c = b->p[i];
        b->p[i] = b->p[--k];
        b->p[k] = c;
    }
    return r;
}

static int int_digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'Z' ? c - 'A' + 10 : 99;
}

int star_int_parse(struct arena *a, struct str digits, unsigned base, struct star_int *out) {
    size_t bits = 1; /* that a digit takes at most */
    while ((1u << bits) < base)
        bits++;
    if (digits.n == 0)
        return -EINVAL;
    if (digits.n > STAR_INT_BITS_MAX / bits)
        return -EOVERFLOW;
    struct star_big *b = int_new(a, digits.n * bits / 32 + 1);
    if (b == NULL)
        return -ENOMEM;
    size_t used = 0;
    for (size_t i = 0; i < digits.n; i++) {
        int digit = int_digit(digits.p[i]);
        if (digit >= (int)base)
            return -EINVAL;
        uint64_t carry = (uint64_t)digit;
        for (size_t k = 0; k < used; k++) {
            carry += (uint64_t)b->limb[k] * base;
            b->limb[k] = (uint32_t)carry;
            carry >>= 32;
        }
        if (carry > 0)
            b->limb[used++] = (uint32_t)carry;
    }
    b->n = used;
    return int_result(b, false, out);
}
