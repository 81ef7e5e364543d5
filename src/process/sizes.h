#pragma once
/*
 * The sizes that a terminal has had, each with the number of the last event before it, so that a
 * viewer draws every event at the size for which it was written. Noted while somebody may watch
 * (ledger.h). Maximum: SIZES_MAX, older ones are forgotten.
 */

#include "base/buf.h"
#include "base/util.h"

#include <stdint.h>

#define SIZES_MAX 64

struct sizes {
    struct sizes_one {
        uint64_t seq;
        uint16_t rows, cols;
    } * one;              /* owned; number n is at n % SIZES_MAX; NULL: none */
    uint64_t first, next; /* numbers [first, next) are kept */
};

void sizes_fini(struct sizes *s);

/* Notes a size; without memory it is lost. */
void sizes_add(struct sizes *s, uint64_t seq, unsigned rows, unsigned cols);

/* Number n, which is kept. */
const struct sizes_one *sizes_at(const struct sizes *s, uint64_t n);

/* Appends them as JSON: [{"seq":..,"rows":..,"cols":..}]. 0 or as buf_reserve(). */
MUST_CHECK int sizes_put(const struct sizes *s, struct buf *b);
