#pragma once
/* What a process used. */

#include "proc/proc.h"

struct resources {
    uint64_t user_ms, system_ms, wall_ms;
    uint64_t peak_bytes;
    bool has_peak; /* peak_bytes is known */
};

/* So far while it runs, in all when it has exited. */
struct resources resources_of(const struct proc *p);

/*
 * Whether the peak of a command that ended is its own. Until exec it counts the server's memory, so
 * what is not above the server's peak says nothing.
 */
bool resources_peak_counts(const struct rusage *u);
