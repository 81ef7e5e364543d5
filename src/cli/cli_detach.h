#pragma once
/* Processes that go on without xs: the state file, and leaving a session. */

#include "cli/cli_io.h"
#include "cli/cli_state.h"

#define CLI_DETACH_MS (24 * INT64_C(3600000)) /* asked of the server */

/* Asks for a session that outlives the connection, in the options of a client. */
MUST_CHECK int cli_detach_ask(struct xs_options *o);

/* Why this server or connection cannot keep a detached process, or NULL. */
const char *cli_detach_refusal(struct xs_client *client);

/* The directory of the state files, to be freed; NULL after a message. */
char *cli_detach_directory(struct cli *c);

/* Fills *s for a process of this session and writes its file; the name is --name or made up. 0 or
 * an exit status after a message. */
int cli_detach_record(struct cli *c, struct xs_client *client, const char *process, bool tty,
                      struct cli_state *s);
/* Removes the file of a process that did not start. */
void cli_detach_forget(struct cli *c, const struct cli_state *s);

/* Lets the process print without anybody reading, then leaves the session. 0 or a negative error.
 * The client is of no use afterwards. */
int cli_detach_leave(struct cli_io *io, const char *process);

/* The same for a session that has not been asked to outlive us: connects once more to ask. 0 or an
 * exit status after a message; the name is printed. Ends the loop (cli_io_fini). */
int cli_detach_now(struct cli_io *io);

/* Prints the name of a detached process. */
int cli_detach_print(struct cli *c, const struct cli_state *s);
