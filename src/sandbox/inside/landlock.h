#pragma once
/*
 * Landlock, the second layer: what the mounts allow once more as rules on directories, and what
 * mounts cannot stop: writing into FIFOs outside, mounting in nested namespaces, looking into
 * processes outside, signals and abstract sockets.
 */

#include "sandbox/policy/fault.h"
#include "sandbox/host/launch_request.h"
#include "sandbox/inside/layout.h"

/*
 * Makes the rules for a layout, as the paths are now: to be called inside the new view. *fd is -1
 * where Landlock is missing or of no use (the other layers hold), else a descriptor for
 * landlock_enter(). 0, or -errno with the fault noted.
 */
MUST_CHECK int landlock_make(const struct launch_request *q, const struct layout *l, int *fd,
                             struct fault *f);

/* Confines this process; no_new_privs must be set. 0 or -errno. */
MUST_CHECK int landlock_enter(int fd);
