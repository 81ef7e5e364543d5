#pragma once
/*
 * Limits of one command. If the server has controllers of a cgroup v2 subtree, memory, pids, cpu
 * weight and cpu time hold for the whole tree of the command (cgroup.h). Else memory and pids
 * become resource limits: memory bounds the address space of each process, pids counts all
 * processes of the user and does not bind root. A start whose limits the host cannot enforce is
 * refused.
 */

#include "base/err.h"
#include "proc/cgroup.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

enum limits_kind {
    LIMITS_MEMORY,
    LIMITS_PIDS,
    LIMITS_OPEN_FILES,
    LIMITS_NICE,
    LIMITS_OOM,
    LIMITS_CPU_WEIGHT,
    LIMITS_CPU, /* percent of one CPU */
};
#define LIMITS_KINDS 7

/* The limits of a request; value[k] counts if given[k]. */
struct limits {
    bool given[LIMITS_KINDS];
    int64_t value[LIMITS_KINDS];
};

/* The steps of the command's process before exec; an error names the limit. */
struct limits_steps {
    struct rlimit memory, pids, open_files;
    bool set_memory, set_pids, set_open_files, set_nice, set_oom;
    int nice;
    char oom[12]; /* decimal text */
    size_t oom_len;
    bool join;     /* join a cgroup */
    int cgroup_fd; /* its cgroup.procs; valid while `join` is set */
};

/* The member of `limits` on the wire: "memoryBytes", ... */
const char *limits_name(enum limits_kind k);

/* Checks ranges. 0, or -EINVAL with ERR_INVALID_PARAMS in e. */
MUST_CHECK int limits_check(const struct limits *l, struct err *e);

/*
 * Decides how to enforce each limit; makes a cgroup in *g if it can serve. 0, or -EINVAL with
 * ERR_INVALID_REQUEST in e: "limits.X cannot be enforced on this host: why".
 */
MUST_CHECK int limits_plan(const struct limits *l, struct cgroup_host *h, struct cgroup *g,
                           struct limits_steps *out, struct err *e);

/* Closes the descriptor of the cgroup. Call after the start. */
void limits_steps_fini(struct limits_steps *s);
