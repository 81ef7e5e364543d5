#pragma once
/*
 * The third layer: system calls a confined program may not make. Everything else is allowed.
 * Programs for another architecture (32-bit ones; x32) are killed with SIGSYS.
 */

#include "base/util.h"
#include "sandbox/host/launch_request.h"

/*
 * Installs the filter for a plan and backend on this process; no_new_privs must be set. 0 or
 * -errno.
 */
MUST_CHECK int seccomp_enter(const struct plan *p, enum launch_backend backend);
