#pragma once
/* How many blocks of a transfer to keep in flight: twice what the path holds, 2 to 16. */

#include "base/util.h"

#include <stdint.h>

#define PACE_MIN 2
#define PACE_MAX 16

struct pace {
    uint64_t round_ns;        /* the shortest time of a block, slowly forgotten; 0: unknown */
    uint64_t since_ns, bytes; /* of the sample that is being taken */
    double rate;              /* bytes per second */
    unsigned window;
};

void pace_init(struct pace *p);

/* A block of n bytes was sent at sent_ns and answered at now_ns (CLOCK_MONOTONIC). */
void pace_block(struct pace *p, uint64_t sent_ns, uint64_t now_ns, size_t n);
