#pragma once
/*
 * Limits of one command. Where controllers of a cgroup v2 subtree are delegated to the server,
 * memory, pids and cpu weight hold for the whole tree of the command (cgroup.h). Elsewhere memory
 * and pids become resource limits: memory is the address space of each process, pids counts all
 * processes of the user (and does not bind root). What the host cannot enforce is refused before
 * the start.
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
};
#define LIMITS_KINDS 6

/* What was asked for; value[k] counts where given[k]. */
struct limits {
    bool given[LIMITS_KINDS];
    int64_t value[LIMITS_KINDS];
};

/* What the command's process does before exec; an error names the limit. */
struct limits_steps {
    struct rlimit memory, pids, open_files;
    bool set_memory, set_pids, set_open_files, set_nice, set_oom;
    int nice;
    char oom[12]; /* decimal text */
    size_t oom_len;
    bool join;     /* a cgroup, by: */
    int cgroup_fd; /* its cgroup.procs; only while `join` is set */
};

/* The member of `limits` on the wire: "memoryBytes", ... */
const char *limits_name(enum limits_kind k);

/* Checks ranges. 0, or -EINVAL with ERR_INVALID_PARAMS in e. */
MUST_CHECK int limits_check(const struct limits *l, struct err *e);

/*
 * Decides how each limit is enforced, making a cgroup in *g where one serves. 0, or -EINVAL with
 * ERR_INVALID_REQUEST in e: "limits.X cannot be enforced on this host: why".
 */
MUST_CHECK int limits_plan(const struct limits *l, struct cgroup_host *h, struct cgroup *g,
                           struct limits_steps *out, struct err *e);

/* Closes the descriptor of the cgroup; after the start. */
void limits_steps_fini(struct limits_steps *s);
