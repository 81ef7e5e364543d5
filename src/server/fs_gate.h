#pragma once
/*
 * What a helper in a sandbox refuses by itself, beyond what mounts can express: protected names and
 * denied paths that do not exist yet, files that match a denied pattern at the moment of the call,
 * and places that are the sandbox's own, where a change would succeed and then vanish.
 */

#include "fs/fs_call.h"
#include "sandbox/plan.h"

struct fs_gate;

/* Made once, inside the sandbox; never given back. NULL without memory. */
struct fs_gate *fs_gate_new(const struct plan *p);

/* As a gate of calls. */
struct fs_call_gate fs_gate_calls(struct fs_gate *g);
