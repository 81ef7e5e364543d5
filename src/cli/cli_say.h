#pragma once
/* Messages on standard error, one line each: `xs: WHAT: WHY`. Foreign text is shown with escapes,
 * so no server can drive the terminal. */

#include "cli/cli.h"

/* An error; returns `status`, for `return cli_say_error(...)`. */
int cli_say_error(struct cli *c, int status, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* What a user should know (not with -q), and what -v and -vv ask for. */
void cli_say_warning(struct cli *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
void cli_say_note(struct cli *c, int level, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* An error of the library about WHAT (NULL: the error says it), and the exit status for it: 255
 * for a lost or missing connection, else `otherwise`. */
int cli_say_failure(struct cli *c, const struct xs_error *e, const char *what, int otherwise);

/* The exit status for an error code of the library. */
int cli_say_status(int err, int otherwise);

/* Foreign text for standard output: with escapes if it is a terminal, else as it is. */
void cli_say_text(FILE *out, struct str s);
