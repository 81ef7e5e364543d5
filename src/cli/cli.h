#pragma once
/* What the commands of `xs` share: the command line, messages, connections. */

#include "cli/cli_args.h"
#include "execserver.h"

#include <stdio.h>

/* Exit statuses beside those of commands. */
enum cli_status {
    CLI_OK = 0,
    CLI_FAILED = 1,
    CLI_USAGE = 2,
    CLI_TIMED_OUT = 124, /* --timeout */
    CLI_CANNOT = 126,    /* the command cannot be run */
    CLI_NOT_FOUND = 127, /* the command does not exist */
    CLI_SIGNALED = 128,  /* + the number */
    CLI_LOST = 255,      /* no connection; session or output lost */
};

struct cli {
    struct cli_args args;
    const char *token; /* of $XS_TOKEN, which is no longer set; borrowed. NULL: none */
    bool quiet, json;
    int verbose;         /* 0, 1 (-v), 2 (-vv) */
    bool colour;         /* of our own words on stderr */
    bool raw;            /* stderr is a terminal in raw mode: lines need a carriage return */
    unsigned rows, cols; /* of the terminal, as the server was last told; 0: it was not */
    bool meter_shown;    /* a line without its newline is on stderr */
};

/* How often an option was given; its last value or NULL. */
static inline bool cli_has(const struct cli *c, enum cli_option option) {
    return c->args.count[option] > 0;
}
static inline const char *cli_value(const struct cli *c, enum cli_option option) {
    return c->args.value[option];
}
