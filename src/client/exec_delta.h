#pragma once
/*
 * Cuts output into deltas: at most EXEC_DELTA_MAX bytes each, never inside a code point, and at
 * most EXEC_DELTA_COUNT of them. A code point that is not complete yet waits for its other bytes.
 */

#include "base/str.h"

#include <stdbool.h>

#define EXEC_DELTA_MAX 8192
#define EXEC_DELTA_COUNT 10000

struct exec_delta {
    char held[4]; /* beginning of a code point */
    size_t held_n;
    unsigned count; /* deltas so far */
};

/*
 * Fills `out` with the next delta and takes its bytes from `in`; 0 = none for now. With `last`
 * nothing more comes after `in`, and an incomplete code point is a delta too. Call until it
 * returns 0: then `in` is empty. Beyond EXEC_DELTA_COUNT the answer is 0, and `in` is dropped.
 */
size_t exec_delta_next(struct exec_delta *d, struct str *in, bool last, char out[EXEC_DELTA_MAX]);
