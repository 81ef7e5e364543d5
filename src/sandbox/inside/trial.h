#pragma once
/*
 * What a sandbox that was set up for a trial really does: the process that it confines tries what
 * its plan forbids, and what it grants.
 */

#include "sandbox/policy/fault.h"
#include "sandbox/host/launch_request.h"

/*
 * To be called by a confined process. 0, or -EINVAL with the fault noted. Leaves nothing behind.
 * What the plan of a trial names exists; in a directory to write to plan_protected[0] does, too.
 */
MUST_CHECK int trial_check(const struct launch_request *q, struct fault *f);
