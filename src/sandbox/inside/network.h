#pragma once
/*
 * An empty network namespace for all sandboxes without a network. Making one takes longer than all
 * mounts together, and so does freeing it. Nothing in it can be used. Its users have no rights over
 * it: those belong to the user namespace it was made in.
 */

#include "base/util.h"
#include "sandbox/host/launch_request.h"

/* Makes one and moves this process into it; with a user namespace around it unless the backend is
 * LAUNCH_ROOT. A descriptor (close-on-exec) of it, or -errno. */
MUST_CHECK int network_make(enum launch_backend backend);

/* Moves this process into the namespace of `fd`, and into the user namespace around it. 0, or
 * -errno: then the sandbox needs one of its own. */
MUST_CHECK int network_join(int fd, enum launch_backend backend);
