#pragma once
/* The commands attach, logs, wait and kill. Each returns the exit status. */

#include "cli/cli.h"

int cli_attach(struct cli *c);
int cli_attach_logs(struct cli *c);
int cli_attach_wait(struct cli *c);
int cli_attach_kill(struct cli *c);
