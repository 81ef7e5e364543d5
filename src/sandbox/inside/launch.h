#pragma once
/* The launcher itself; sandbox/host/launcher.h describes its input and its reports. */

#include "sandbox/host/launcher.h"
#include "sandbox/inside/layout.h"

/* Runs instead of a command (LAUNCH_HELPER); returns the exit status. */
typedef int launch_helper_fn(const struct layout *l, int channel);

/* Runs the launcher, with `helper` for LAUNCH_HELPER. Does not return. */
_Noreturn void launch_main(launch_helper_fn *helper);
