#pragma once
/* The `sandbox`, `managedNetwork` and `networkProxy` members of a start. */

#include "base/arena.h"
#include "sandbox/policy/profile.h"

/* Bytes that one policy may take: a profile and its plan. */
#define SANDBOX_PARAMS_ARENA_MAX (2 * PROFILE_ARENA_MAX)

struct start_params;

/* How to confine a start; lives in the arena of its params. */
struct sandbox_policy {
    struct profile *profile; /* NULL: the client asked for no sandbox */
    bool confined;           /* there is something to enforce */
    bool managed;            /* enforceManagedNetwork */
    bool all_unix_sockets;
    const uint16_t *ports;
    size_t port_count;
};

/* Decodes the members into p->policy. 0; -EINVAL with -32602 or -ENOMEM with -32603 in e. */
MUST_CHECK int sandbox_params_decode(struct start_params *p, struct err *e);

/* Checks a `sandbox` member alone (struct jsondec_field). */
int sandbox_params_check_profile(const struct json_node *v, struct err *e);

/* The plan of a confined policy; memory and errors as for profile_plan(). */
MUST_CHECK int sandbox_params_plan(const struct sandbox_policy *policy,
                                   const struct profile_context *c, struct arena *a,
                                   struct plan *plan, struct err *e);
