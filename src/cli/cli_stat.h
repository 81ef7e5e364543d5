#pragma once
/* What is known about a file, for people and as JSON. */

#include "cli/cli_json.h"
#include "execserver.h"

#include <stdio.h>

/* `-rw-r--r--`; `?` where the mode is unknown. */
void cli_stat_mode(const struct xs_stat *st, char out[11]);

/* UTC, `2026-11-19 16:20Z`: time zones take 100 kB of a static program. `-` if unknown. */
void cli_stat_time(int64_t ms, char out[32]);

/* Some lines about a path. */
void cli_stat_print(FILE *out, const char *path, const struct xs_stat *st);

/* The members, in the words of the protocol. */
void cli_stat_json(struct cli_json *j, const struct xs_stat *st);
