#pragma once
/* The end of the loop around a process: what becomes of the process, and the exit status. */

#include "cli/cli_io.h"

/* After cli_io_run(), for every end but CLI_END_DETACH: ends the process if it may run, tells why,
 * restores the terminal (cli_io_fini). Returns the exit status. */
int cli_finish(struct cli_io *io);

/* A start or adoption failed: the message and the exit status. `program` is what was to run. */
int cli_finish_start(struct cli_io *io, int err, const char *program);

/* The connection could not be made, or a signal came first. */
int cli_finish_connect(struct cli_io *io, int err);
