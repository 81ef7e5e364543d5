#pragma once
/* The help, made from the table. */

#include "cli/cli_table.h"

#include <stdio.h>

/* The help of a command, or of the program (CLI_COMMANDS). */
void cli_help_print(FILE *out, enum cli_command command);

/* The line with the version. */
void cli_help_version(FILE *out);

/* What xs(1) must contain, one item per line: `command NAME`, `option COMMAND NAME LETTER`. */
void cli_help_list(FILE *out);
