#pragma once
/* What the files of cli_io share. */

#include "cli/cli_io.h"

/* Notes why the loop ends; the first reason counts. `why` is copied. */
void cli_io_set_end(struct cli_io *io, enum cli_end end, const char *why);

/* Takes all signals that have arrived (cli_io_signal.c). */
void cli_io_signal_take(struct cli_io *io);

/* The terminal is gone: as SIGHUP, which may or may not come as well (cli_io_signal.c). */
void cli_io_signal_hangup(struct cli_io *io);

/* The size is sent again, whatever was sent before: somebody else may have changed it while we were
 * stopped (cli_io_signal.c). */
void cli_io_signal_forget_size(struct cli_io *io);

/* Sends the size if it is due, new, and none is on its way (cli_io_signal.c). */
void cli_io_signal_send_size(struct cli_io *io);

/* Reads and sends one piece of input (cli_io_input.c). */
void cli_io_input_take(struct cli_io *io);

/* An event of the process (cli_io_output.c). */
int cli_io_output_event(struct xs_process *p, const struct xs_event *e, void *user);

/* An old event (cli_io_history.c): true if it is kept back or ends the history. `*r` is the result
 * of printing. */
bool cli_io_history_take(struct cli_io *io, const struct xs_event *e, int *r);
void cli_io_history_drop(struct cli_io *io);

/* What follows from a sink that failed with `r` (cli_io_output.c): 0 if the loop goes on without
 * it, else the end is noted and `r` returned. */
int cli_io_output_failed(struct cli_io *io, int r);

/* Prints output (cli_io_output.c): as cli_sink_put(). */
int cli_io_output_put(struct cli_io *io, const struct xs_event *e);
