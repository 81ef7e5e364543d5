#pragma once
/* The commands about servers: info, ping, env, completion. Each returns the exit status. */

#include "cli/cli.h"

int cli_server_info(struct cli *c);
int cli_server_ping(struct cli *c);
int cli_server_env(struct cli *c);
int cli_server_completion(struct cli *c);
