#pragma once
/*
 * console/resources: CPU time and memory of processes with all that they have started, read from
 * /proc in a thread. Maxima: CONSOLE_USAGE_MAX processes a request, CONSOLE_USAGE_FILES files read
 * for them; beyond that the sums lack the youngest descendants.
 */

#define CONSOLE_USAGE_MAX 64
#define CONSOLE_USAGE_FILES 4096
