#pragma once
/* Operands as scp takes them: NAME:PATH and :PATH are there, everything else is here. */

#include "base/str.h"

struct cli_path {
    bool remote;
    struct str host;  /* remote; empty: the selected server. Borrowed */
    const char *path; /* borrowed; "" of a remote one is made "." */
};

/*
 * Tells where an operand is. What stands before the first colon is a host, unless there is a slash
 * in it (`./a:b`) or the colon belongs to a URL: `ws://127.0.0.1:8080:/tmp/x` has the host
 * `ws://127.0.0.1:8080`. A URL ends at the first `:` before `/`, or before the end, that follows
 * its authority.
 */
struct cli_path cli_path_parse(const char *operand);

/* The last component of a path, without slashes at its end; borrowed. Empty for "/" and "". */
struct str cli_path_base(const char *path);

/* `directory`/`name`, to be freed; NULL without memory. */
char *cli_path_join(const char *directory, struct str name);
