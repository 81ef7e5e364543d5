#pragma once
/* `exec-server execpolicy check`: what `.rules` files say about a command. */

#include <stdbool.h>
#include <stdio.h>

/* Whether the command line is one of `execpolicy`. */
bool execpolicy_cmd_is(int argc, char **argv);

/* Runs it. The exit status: 0; 1 for an error in a file; 2 for one in the command line. */
int execpolicy_cmd_run(int argc, char **argv, FILE *out, FILE *err);
