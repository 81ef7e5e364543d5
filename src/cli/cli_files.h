#pragma once
/* The commands about files there, but cp. Each returns the exit status. */

#include "cli/cli.h"

int cli_files_ls(struct cli *c);
int cli_files_cat(struct cli *c);
int cli_files_write(struct cli *c);
int cli_files_stat(struct cli *c);
int cli_files_rm(struct cli *c);
int cli_files_mkdir(struct cli *c);
int cli_files_mv(struct cli *c);
int cli_files_chmod(struct cli *c);
int cli_files_watch(struct cli *c);
