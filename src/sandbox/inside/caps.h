#pragma once
/* This process's capabilities. Each call returns 0 or -errno. */

#include "base/util.h"

#include <stdbool.h>

/* Makes all permitted capabilities effective, or none; permitted ones can become effective again.
 * */
MUST_CHECK int caps_effective(bool on);

/* Drops all capabilities, also those that a program file could bring, and checks the result. */
MUST_CHECK int caps_drop(void);

/* Whether `cap` (CAP_...) is permitted. */
bool caps_has(int cap);
