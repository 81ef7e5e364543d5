#pragma once
/*
 * Integers of any size. What fits 64 bits is kept as such; larger numbers are sign and magnitude.
 * Memory comes from an arena, results never share it with their operands' owner.
 */

#include "base/arena.h"
#include "base/buf.h"

#include <stdint.h>

#define STAR_INT_BITS_MAX 131072 /* of a magnitude: what a shift or a product may reach */

struct star_big {
    bool negative;
    size_t n; /* limbs, the least significant first; the last is not 0 */
    uint32_t limb[];
};

struct star_int {
    int64_t small;              /* valid when big is NULL */
    const struct star_big *big; /* a number that does not fit */
};

static inline struct star_int star_int_of(int64_t v) {
    return (struct star_int){.small = v};
}

/* 0; -ENOMEM; -EOVERFLOW above STAR_INT_BITS_MAX; -EDOM: division by zero, negative shift. */
MUST_CHECK int star_int_add(struct arena *a, struct star_int x, struct star_int y,
                            struct star_int *out);
MUST_CHECK int star_int_sub(struct arena *a, struct star_int x, struct star_int y,
                            struct star_int *out);
MUST_CHECK int star_int_mul(struct arena *a, struct star_int x, struct star_int y,
                            struct star_int *out);
/* Rounded down; the remainder has the sign of y. Either of quotient and remainder may be NULL. */
MUST_CHECK int star_int_divmod(struct arena *a, struct star_int x, struct star_int y,
                               struct star_int *quotient, struct star_int *remainder);
MUST_CHECK int star_int_shift(struct arena *a, struct star_int x, struct star_int by, bool left,
                              struct star_int *out);
/* op: '&', '|' or '^', as of two's complement. */
MUST_CHECK int star_int_bits(struct arena *a, char op, struct star_int x, struct star_int y,
                             struct star_int *out);

int star_int_compare(struct star_int x, struct star_int y);
bool star_int_is_zero(struct star_int x);
double star_int_to_double(struct star_int x);

/* Of a finite number, cut off at the point. */
MUST_CHECK int star_int_from_double(struct arena *a, double d, struct star_int *out);

/* Appends the number in base 2 to 36. 0 or as buf_reserve(). */
MUST_CHECK int star_int_put(struct buf *b, struct star_int x, unsigned base);

/* Parses digits without a sign. 0, -EINVAL, -ENOMEM or -EOVERFLOW. */
MUST_CHECK int star_int_parse(struct arena *a, struct str digits, unsigned base,
                              struct star_int *out);
