#pragma once
/* The command ls. */

#include "cli/cli.h"

/* The exit status. */
int cli_ls(struct cli *c);
