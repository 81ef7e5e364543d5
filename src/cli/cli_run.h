#pragma once
/* The commands run and shell. */

#include "cli/cli.h"

/* The exit status. */
int cli_run(struct cli *c);
