#pragma once
/* Capabilities of this process. Each returns 0 or -errno. */

#include "base/util.h"

#include <stdbool.h>

/* Makes the permitted capabilities effective, or none: permitted ones can be taken up again. */
MUST_CHECK int caps_effective(bool on);

/* Gives up all capabilities, also those that a program could bring along, and checks that. */
MUST_CHECK int caps_drop(void);

/* Whether `cap` (CAP_...) is permitted. */
bool caps_has(int cap);
