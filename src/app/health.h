#pragma once
/*
 * `exec-server health URL`: asks a server on this machine for /healthz, for health checks of
 * containers whose image has no other program.
 */

#include <stdbool.h>
#include <stdio.h>

#define HEALTH_SECONDS 5 /* for the connection and for each piece of the answer */

/* Whether the command line asks for it. */
bool health_is(int argc, char **argv);

/* The exit status: 0 if the server answers 200, 1 if not, 2 for a wrong command line. */
int health_run(int argc, char **argv, FILE *out, FILE *err);
