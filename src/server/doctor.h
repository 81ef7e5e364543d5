#pragma once
/* `exec-server doctor`: what this host can enforce, for somebody who wonders why it does not. */

#include <stdio.h>

/* Tries every backend and prints what came of it. The exit status: 0 when any policy can be
 * enforced, else 1. */
int doctor_run(FILE *out);
