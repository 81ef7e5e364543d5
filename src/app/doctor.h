#pragma once
/*
 * `exec-server doctor`: what this host can enforce, why not more, and what would change that. Each
 * statement about a policy comes from a sandbox that was set up with it.
 */

#include <stdbool.h>
#include <stdio.h>

/* Exit statuses; 2 is for a wrong command line. */
enum doctor_status {
    DOCTOR_ALL = 0,  /* every policy can be enforced */
    DOCTOR_SOME = 1, /* some can, others are refused; or the report could not be written */
    DOCTOR_NONE = 3, /* every start that asks for a sandbox is refused */
};

/* Tries every kind of policy with every backend and prints what came of it. The exit status. */
int doctor_run(bool json, FILE *out);
