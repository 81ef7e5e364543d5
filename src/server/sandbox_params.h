#pragma once
/* The `sandbox`, `managedNetwork` and `networkProxy` members of a start. */

#include "server/start.h"

/* Checks their shape. 0, or -EINVAL with -32602 in e. */
MUST_CHECK int sandbox_params_check(const struct start_params *p, struct err *e);

/* Refuses what this server cannot enforce: never run unsandboxed when a sandbox was asked for. */
MUST_CHECK int sandbox_params_refuse(const struct start_params *p, struct err *e);
