#pragma once
/*
 * Landlock, the second layer. Repeats the mounts' grants as rules on directories, and stops what
 * mounts cannot: writes into FIFOs outside, mounts in nested namespaces, access to processes
 * outside, signals and abstract sockets.
 */

#include "sandbox/policy/fault.h"
#include "sandbox/host/launch_request.h"
#include "sandbox/inside/layout.h"

/*
 * Makes the rules for a layout; call it inside the new view. *fd is a descriptor for
 * landlock_enter(), or -1 if Landlock is missing or useless here (the other layers hold). 0, or
 * -errno with the fault noted.
 */
MUST_CHECK int landlock_make(const struct launch_request *q, const struct layout *l, int *fd,
                             struct fault *f);

/* Confines this process; no_new_privs must be set. 0 or -errno. */
MUST_CHECK int landlock_enter(int fd);

/*
 * Confines this process to reading files at or below the paths, symbolic links followed; missing
 * paths are skipped. no_new_privs must be set. 0, also without Landlock; or -errno.
 */
MUST_CHECK int landlock_read_only(const char *const *paths, size_t n);
