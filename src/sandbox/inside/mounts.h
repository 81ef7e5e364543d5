#pragma once
/*
 * Builds a layout's view of the file system in a mount namespace of its own.
 *
 * If everything is readable, the root stays the host's: one call makes it read-only, and mounts are
 * laid over it. Otherwise the root is a new, read-only tmpfs. No path is opened across a symbolic
 * link, and each place is compared with what layout_build() found.
 */

#include "sandbox/policy/fault.h"
#include "sandbox/host/launch_request.h"
#include "sandbox/inside/layout.h"

/* Call it in the first process of the namespaces (it mounts /proc), with capabilities. Afterwards
 * the root and the current directory are the new ones. 0, or -errno with the fault noted. */
MUST_CHECK int mounts_build(const struct launch_request *q, const struct layout *l,
                            struct fault *f);
