#pragma once
/*
 * Asks the policy (sandbox/policy/access.h) for a file helper what mounts cannot express: protected
 * names and denied paths that do not exist yet, files that match a denied pattern at the moment of
 * the call, and the sandbox's own places, where a change would succeed and then vanish.
 */

#include "fs/fs_call.h"
#include "sandbox/policy/access.h"

/* The access decisions of `x`, which is borrowed, for file calls. */
struct fs_call_access fs_access_calls(struct access *x);
