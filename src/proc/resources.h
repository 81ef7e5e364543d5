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

/* The most memory a process has had since its exec, or 0. */
uint64_t resources_peak_of(pid_t pid);
