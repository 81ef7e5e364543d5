#pragma once
/* `exec-server execpolicy`: `check` applies `.rules` files to a command, `allow` adds a rule. */

#include <stdbool.h>
#include <stdio.h>

/* Whether the command line asks for `execpolicy`. */
bool execpolicy_cmd_is(int argc, char **argv);

/* Runs the subcommand. The exit status: 0; 1: error in a file; 2: error in the command line. */
int execpolicy_cmd_run(int argc, char **argv, FILE *out, FILE *err);
