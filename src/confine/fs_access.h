#pragma once
/*
 * Asks the policy (sandbox/policy/access.h) for a helper in a sandbox what mounts cannot express:
 * protected names and denied paths that do not exist yet, files that match a denied pattern at the
 * moment of the call, and places that are the sandbox's own, where a change would succeed and then
 * vanish.
 */

#include "fs/fs_call.h"
#include "sandbox/policy/access.h"

/* The gate of calls that asks `x`, which is not taken over. */
struct fs_call_access fs_access_calls(struct access *x);
