#pragma once
/* Operands on servers: one connection for each server that a command names. */

#include "cli/cli_path.h"
#include "cli/cli.h"

#define CLI_PLACE_MAX 8 /* servers of one command */

struct cli_place_host {
    char *name; /* owned; "" is the selected one */
    struct xs_client *client;
    struct xs_fs *fs;
};

struct cli_places {
    struct cli *cli;
    struct cli_place_host hosts[CLI_PLACE_MAX];
    size_t n;
};

/* The connection for a host (empty: the selected server), made at the first use. 0 or an exit
 * status after a message. *out is borrowed. */
int cli_place_open(struct cli_places *p, struct str host, struct cli_place_host **out);

/* The same for an operand of a command whose operands are all there: `host:path`, or `path` on the
 * selected server. */
int cli_place_operand(struct cli_places *p, const char *operand, struct cli_place_host **out,
                      const char **path);

void cli_place_fini(struct cli_places *p);
#define _cleanup_cli_places_ __attribute__((cleanup(cli_place_fini)))
