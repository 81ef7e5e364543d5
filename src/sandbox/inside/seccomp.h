#pragma once
/* The third layer: system calls that a confined program must not make; all others are allowed.
 * SIGSYS kills programs of another architecture (32-bit, x32). */

#include "base/util.h"
#include "sandbox/host/launch_request.h"

/* Installs the filter for a plan and backend in this process; no_new_privs must be set. 0 or
 * -errno. */
MUST_CHECK int seccomp_enter(const struct plan *p, enum launch_backend backend);

/* Installs the filter of the HTTP program in this process and its future threads; else as
 * seccomp_enter(). It denies exec, new processes, changes of files, and servers. */
MUST_CHECK int seccomp_enter_http(void);
