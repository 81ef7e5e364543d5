#pragma once
/*
 * What a state file of a detached process says: where the process is, and never how to be let in.
 * Reading is strict: a text that this program did not write is refused.
 */

#include "base/err.h"
#include "base/buf.h"

#include <stdint.h>

#define CLI_STATE_MAX 65536 /* bytes of a file */

struct cli_state {
    char *name;       /* owned, as all strings here */
    char *host;       /* as -H takes it */
    char *token_file; /* path; NULL: none was named */
    char *session;    /* id */
    char *process;    /* id */
    char *command;    /* for people */
    char *owner;      /* random; who attached last. NULL: nobody yet */
    bool tty;
    int64_t started_ms;
};

void cli_state_fini(struct cli_state *s);
#define _cleanup_cli_state_ __attribute__((cleanup(cli_state_fini)))

/* Text to struct and back. Decoding fails for anything but what encoding makes: -EINVAL with a
 * message, -ENOMEM. Strings to encode are valid UTF-8, or -EINVAL. */
MUST_CHECK int cli_state_decode(struct str text, struct cli_state *out, struct err *e);
MUST_CHECK int cli_state_encode(const struct cli_state *s, struct buf *out);

/* The time of day in milliseconds since 1970, for started_ms. */
int64_t cli_state_now_ms(void);
