#pragma once
/* Members of params by which a client asks for confinement. A request must fail if nobody enforces
 * its confinement. So refuse a name that sounds like one and that the method does not know. */

#include "json/jsondec.h"

/*
 * Checks the members of `params`, an object decoded by `known`. *sandbox is the node of the
 * `sandbox` member, or NULL; `sandbox` itself is NULL where no older spelling can be enforced. A
 * `sandboxPolicy` beside the other members, the shape of early April 2026, sets *sandbox to
 * `params` for profile_decode(), if `known` has a `sandbox`. 0, or -EINVAL with -32602: a member
 * asks for a confinement that the method does not have, or both `sandbox` and `sandboxPolicy` are
 * given. Members that are null or false, and those for Windows, ask for nothing.
 */
MUST_CHECK int sandbox_members_check(const struct json_node *params,
                                     const struct jsondec_struct *known,
                                     const struct json_node **sandbox, struct err *e);
