#pragma once
/* The `sandbox`, `managedNetwork` and `networkProxy` members of a start. */

#include "base/arena.h"
#include "sandbox/policy/profile.h"
#include "process/start.h"

/* What memory one policy may take: a profile, and the plans made of it. */
#define SANDBOX_PARAMS_ARENA_MAX (2 * PROFILE_ARENA_MAX)

/* How a start is to be confined; lives in the arena it was decoded into. */
struct sandbox_policy {
    struct profile *profile; /* NULL: no sandbox was asked for */
    bool confined;           /* there is something to enforce */
    bool managed;            /* enforceManagedNetwork */
    bool all_unix_sockets;
    const uint16_t *ports;
    size_t port_count;
};

/* Decodes and checks the shape. 0; -EINVAL with -32602 or -ENOMEM with -32603 in e. */
MUST_CHECK int sandbox_params_decode(const struct start_params *p, struct arena *a,
                                     struct sandbox_policy *out, struct err *e);

/* The same for the check alone; and for the `sandbox` member alone. */
MUST_CHECK int sandbox_params_check(const struct start_params *p, struct err *e);
int sandbox_params_check_profile(const struct json_node *v, struct err *e);

/*
 * The plan of a confined start; `c` as of profile_plan(), its `cwd` may be NULL while only the
 * errors are of interest.
 */
MUST_CHECK int sandbox_params_plan(const struct sandbox_policy *policy,
                                   const struct profile_context *c, struct arena *a,
                                   struct plan *plan, struct err *e);
