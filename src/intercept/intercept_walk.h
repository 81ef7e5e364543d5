#pragma once
/* Opens a path as another process would: by the kernel if it can, else component by component. */

#include "base/util.h"

#include <stdbool.h>
#include <sys/types.h>

/* Where the walk happens; descriptors are O_PATH. */
struct intercept_walk {
    pid_t tid, tgid; /* whom /proc/self means */
    int root, start; /* start: where a relative path begins */
    bool nofollow;   /* a symbolic link at the end is -ELOOP */
};

/* From the kernel's caches alone: a descriptor (O_PATH), -EAGAIN if that does not suffice, or
 * -errno. */
MUST_CHECK int intercept_walk_cached(const struct intercept_walk *w, const char *path);

/* A descriptor (O_PATH) or -errno. May block. */
MUST_CHECK int intercept_walk_open(const struct intercept_walk *w, const char *path);
