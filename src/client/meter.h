#pragma once
/* Counts a transfer and says when its caller is to hear of it: at most ten times a second. */

#include <stdbool.h>
#include <stdint.h>

#define METER_PERIOD_NS 100000000

struct meter {
    uint64_t bytes, total;
    uint64_t files, files_total;
    double rate; /* bytes per second, lately */
    uint64_t told_ns, sample_ns, sample_bytes;
    bool changed; /* since it was told */
};

/* n more bytes are there, at now_ns (CLOCK_MONOTONIC). `sent` false: they were there before, and
 * are none of the rate. */
void meter_bytes(struct meter *m, uint64_t now_ns, uint64_t n, bool sent);

/* Whether to tell now; then it counts as told. */
bool meter_is_due(struct meter *m, uint64_t now_ns);
