#pragma once
/* Which version of Landlock the kernel has, and what that version can enforce. */

#include "sandbox/policy/plan.h"

#define LANDLOCK_ABI_MAX 7 /* the newest that sandbox/inside/landlock.c makes rules for */

/* The running kernel's ABI, at most `max`; 0 if it has no Landlock. */
unsigned landlock_abi(unsigned max);

/*
 * Whether LAUNCH_LANDLOCK can enforce the plan with the ABI; if not, *why is a constant text. True
 * is not final: protected names in a writable root turn up only when layout_build() looks.
 */
bool landlock_abi_suffices(const struct plan *p, unsigned abi, const char **why);
