#pragma once
/* One call of xs_exec_command() or xs_exec_write_stdin(). */

#include "client/exec_session.h"

/* The end function of its op. */
void exec_turn_end(struct op *op);

/* Ends it with an error. */
void exec_turn_fail(struct exec_turn *t, int code, const char *text);

/* Sends the start of a session's command. 0, or a negative error that xs_client_error() has. */
MUST_CHECK int exec_turn_start(struct exec_turn *t);

/* It is the first of its session's queue: writes its input, or begins to collect. */
void exec_turn_begin(struct exec_turn *t);

/* The answer to its errand: `result`, of a start with the process. Callbacks of the caller may run;
 * everything may be gone afterwards. */
void exec_turn_answered(struct exec_turn *t, int result, struct xs_process *p);

/* The process has ended: nothing more will come. */
void exec_turn_process_ended(struct exec_turn *t);

/* Gives its result to the caller. Appends its input to `told` if xs_exec_events.interaction is due,
 * and returns whether it is. */
MUST_CHECK bool exec_turn_finish(struct exec_turn *t, struct buf *told);
