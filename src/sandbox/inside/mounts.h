#pragma once
/*
 * Builds the view of the file system that a layout describes, in a mount namespace of its own.
 *
 * Where the whole tree is readable, the root stays the host's, made read-only in one go, and mounts
 * are laid over it; otherwise the root is a new, read-only tmpfs. No path is opened over a symbolic
 * link, and each place is compared with what was found when the plan was looked at.
 */

#include "sandbox/policy/fault.h"
#include "sandbox/host/launch_request.h"
#include "sandbox/inside/layout.h"

/*
 * To be called by the first process of the namespaces (it mounts /proc), with capabilities. The
 * root and the current directory are the new ones afterwards. 0, or -errno with the fault noted.
 */
MUST_CHECK int mounts_build(const struct launch_request *q, const struct layout *l,
                            struct fault *f);
