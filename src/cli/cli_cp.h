#pragma once
/* The command cp. */

#include "cli/cli.h"

/* The exit status. */
int cli_cp(struct cli *c);
