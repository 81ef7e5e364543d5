#pragma once
/*
 * `exec-server doctor`: tells what this host can enforce, why not more, and what would change that.
 * It sets up a real sandbox for every statement about a policy.
 */

#include <stdbool.h>
#include <stdio.h>

/* Exit statuses; 2 is for a wrong command line. */
enum doctor_status {
    DOCTOR_ALL = 0,  /* every policy can be enforced */
    DOCTOR_SOME = 1, /* only some can; or the report could not be written */
    DOCTOR_NONE = 3, /* none can: the server refuses every sandboxed start */
};

/* Tries every kind of policy with every backend and prints the results. The exit status. */
int doctor_run(bool json, FILE *out);
