#pragma once
/* The command ps: detached processes and what their servers say about them. */

#include "cli/cli.h"

int cli_ps(struct cli *c);
