#pragma once
/* CPU time and memory that a process used. */

#include "proc/proc.h"

struct resources {
    uint64_t user_ms, system_ms, wall_ms;
    uint64_t peak_bytes;
    bool has_peak; /* peak_bytes is known */
};

/* While it runs the use so far, after its exit the total. */
struct resources resources_of(const struct proc *p);

/*
 * Whether the peak of an ended command is its own. Until exec it includes the server's memory, so a
 * peak that is not above the server's says nothing.
 */
bool resources_peak_counts(const struct rusage *u);
