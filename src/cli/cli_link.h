#pragma once
/* Connections: which server, with which token. */

#include "cli/cli.h"

/*
 * The options of a client. `host` is a name or URL of an operand or a state file; empty or NULL is
 * the selected server: -H, $XS_HOST, environments.toml, $CODEX_EXEC_SERVER_URL. A token of the
 * command line or of $XS_TOKEN goes to the selected server alone. NULL after a message, with the
 * exit status in *status. To be freed.
 */
struct xs_options *cli_link_options(struct cli *c, const char *host, int *status);

/* A client whose log goes to our messages. 0 or an exit status. */
int cli_link_new(struct cli *c, const struct xs_options *o, struct xs_client **out);

/* Makes a client and connects it; blocks, signals end xs. 0 or an exit status. */
int cli_link_open(struct cli *c, const char *host, struct xs_client **out);

/* What -H or $XS_HOST says, or NULL. */
const char *cli_link_selected(const struct cli *c);

void cli_link_free_options(struct xs_options **o);
#define _cleanup_cli_options_ __attribute__((cleanup(cli_link_free_options)))
void cli_link_free_client(struct xs_client **client);
#define _cleanup_cli_client_ __attribute__((cleanup(cli_link_free_client)))
