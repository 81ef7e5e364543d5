#pragma once
/* What `run` and `shell` start: the command line as options of a start. */

#include "cli/cli.h"

/* The streams of a start. */
struct cli_launch {
    bool tty;   /* a terminal there */
    bool input; /* our standard input is connected */
    bool spool; /* the server cannot close stdin: input goes through a file there */
};

/* Decides about terminal and input, once the client is connected. */
void cli_launch_streams(struct cli *c, struct xs_client *client, struct cli_launch *l);

/* The options of the start. `spool` names the file with the input, or is NULL. NULL after a
 * message, with the exit status in *status. To be freed. */
struct xs_options *cli_launch_options(struct cli *c, struct xs_client *client,
                                      const struct cli_launch *l, const char *spool, int *status);

/* The command for people, to be freed; NULL without memory. */
char *cli_launch_command(const struct cli *c);
