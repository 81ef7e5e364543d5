#pragma once
/* One question to the server of a detached process: what has become of it. Does not block. */

#include "cli/cli.h"
#include "cli/cli_state.h"

struct cli_probe {
    struct cli *cli;
    struct cli_state state; /* owned */
    struct xs_client *client;
    struct xs_call call;
    struct xs_bytes answer;
    char session[37];
    bool done;
    const char *what; /* running, exited, closed, attached, gone, unreachable ... */
    bool gone;        /* the server does not know it any more */
    bool has_code;
    int code;
    char *error; /* owned; NULL: none */
};

/* Connects; the rest follows in xs_client_process() until `done`. */
void cli_probe_start(struct cli *c, struct cli_probe *p);
void cli_probe_fini(struct cli_probe *p);
