#pragma once
/*
 * Escapes of a terminal: after a newline, the escape character and one more. Everything else is
 * passed on unchanged.
 */

#include <stdbool.h>
#include <stddef.h>

enum cli_escape_action {
    CLI_ESCAPE_NONE,
    CLI_ESCAPE_TERMINATE, /* ~.  */
    CLI_ESCAPE_DETACH,    /* ~d  */
    CLI_ESCAPE_SUSPEND,   /* ~^Z */
    CLI_ESCAPE_RECONNECT, /* ~r  */
    CLI_ESCAPE_HELP,      /* ~?  */
};

struct cli_escape {
    int character;      /* -1: no escapes */
    bool after_newline; /* the next byte begins a line */
    bool pending;       /* the escape character was typed, and nothing after it */
};

/* A terminal begins at a new line. */
#define CLI_ESCAPE_INIT(c) ((struct cli_escape){.character = (c), .after_newline = true})

/*
 * Reads typed bytes up to the first action. Stores what is to be sent in `out`, which has room for
 * n + 1 bytes, its length in *out_n, and the action. Returns the number of bytes it has read: all
 * unless there is an action.
 */
size_t cli_escape_feed(struct cli_escape *s, const char *in, size_t n, char *out, size_t *out_n,
                       enum cli_escape_action *action);
