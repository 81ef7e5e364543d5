#pragma once
/*
 * Cgroups v2: one child cgroup per limited command, if a subtree is delegated to the server.
 *
 * At the first use the server finds its own cgroup and the controllers it may pass on. A cgroup
 * with controllers in use has no processes of its own: the server moves itself and its commands to
 * a leaf, then enables the controllers. Any failure means "no cgroups here", never an error of the
 * server.
 */

#include "base/util.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum cgroup_controller { CGROUP_MEMORY = 1, CGROUP_PIDS = 2, CGROUP_CPU = 4 };

struct cgroup_host {
    bool probed;
    unsigned controllers; /* enum cgroup_controller bits that can be used */
    char *base;           /* owned: directory of the delegated subtree; NULL = none */
    uint64_t next;        /* number of the next child */
};

/* One child; dir NULL = none. */
struct cgroup {
    char *dir; /* owned */
};

/* Probes once; `mount` is normally "/sys/fs/cgroup", `self` "/proc/self/cgroup". */
void cgroup_probe(struct cgroup_host *h, const char *mount, const char *self);
void cgroup_host_fini(struct cgroup_host *h);

/* Makes a child cgroup. 0 or -errno. */
MUST_CHECK int cgroup_make(struct cgroup_host *h, struct cgroup *g);

/* Writes a number to one of its files. 0 or -errno. */
MUST_CHECK int cgroup_set(const struct cgroup *g, const char *file, int64_t value);

/* Opens cgroup.procs: a process that writes "0" to it joins. A descriptor (CLOEXEC) or -errno. */
int cgroup_open_procs(const struct cgroup *g);

/* Removes it; its processes must be gone. Harmless on an empty one. */
void cgroup_remove(struct cgroup *g);
