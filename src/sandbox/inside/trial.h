#pragma once
/* Tests a sandbox from the inside: the confined process tries what its plan forbids and what it
 * grants. */

#include "sandbox/policy/fault.h"
#include "sandbox/host/launch_request.h"

/* Call it in a confined process. 0, or -EINVAL with the fault noted. Leaves nothing behind. The
 * paths of the plan must exist, and plan_protected[0] in each writable directory. */
MUST_CHECK int trial_check(const struct launch_request *q, struct fault *f);
