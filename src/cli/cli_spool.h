#pragma once
/* Standard input as a file there, for a server that cannot close the stdin of a command. */

#include "cli/cli_io.h"

/* Copies our standard input to a new file that only the user there can read. 0 and the path (to be
 * freed), or an exit status after a message. */
int cli_spool(struct cli_io *io, char **path);
