#pragma once
/* Standard input as files there, for a server that cannot close the stdin of a command. */

#include "cli/cli_io.h"

/*
 * Copies our standard input to a new directory that only the user there can read, in pieces: the
 * script of cli_launch.c joins them. Pieces are written whole, which every server can, and again
 * after a cut. 0 and the path (to be freed), or an exit status after a message.
 */
int cli_spool(struct cli_io *io, char **path);

/* Removes io->spool, if there is one: its command did not start. */
void cli_spool_drop(struct cli_io *io);
