#pragma once
/*
 * Who may use the console. A link carries a token, good for one exchange within its time; the page
 * gets a secret for it, which is good until the server ends or newer ones need its place. The
 * table keeps digests only, and takes as long for any text.
 *
 * Maxima: TICKET_TOKENS tokens, TICKET_SECRETS secrets. A new token takes the place of the one that
 * ends first; a new secret that of the one that was not used for longest, but never of one in use.
 */

#include "base/str.h"
#include "base/util.h"

#include <stdbool.h>
#include <stdint.h>

#define TICKET_TOKENS 9 /* that of the first link, and eight others */
#define TICKET_SECRETS 32
#define TICKET_MS 600000 /* for a link that a page asked for */
#define TICKET_BYTES 32  /* random bytes of a token */
#define TICKET_LEN 43    /* its characters, base64url */
#define TICKET_SECRET_BYTES 48
#define TICKET_SECRET_LEN 64
#define TICKET_FOREVER UINT64_MAX

struct ticket_table {
    struct ticket {
        bool taken;
        uint8_t digest[32];
        uint64_t until; /* loop time */
    } tokens[TICKET_TOKENS];
    struct ticket_secret {
        bool taken;
        uint8_t digest[32];
        uint64_t used;  /* loop time of the last login */
        unsigned users; /* connections */
    } secrets[TICKET_SECRETS];
};

/* A new token, valid before `until`. */
void ticket_issue(struct ticket_table *t, uint64_t until, char out[TICKET_LEN + 1]);

/* Whether the text is a token that is valid at `now`; it is not any more. */
MUST_CHECK bool ticket_redeem(struct ticket_table *t, struct str text, uint64_t now);

/* A new secret with one user: its place, or -EBUSY while all are in use. */
MUST_CHECK int ticket_secret_new(struct ticket_table *t, uint64_t now,
                                 char out[TICKET_SECRET_LEN + 1]);

/* The place of a secret, which has one more user from now on; -ENOENT if it is none. */
MUST_CHECK int ticket_secret_use(struct ticket_table *t, struct str text, uint64_t now);

/* A user has gone. */
void ticket_secret_leave(struct ticket_table *t, int place);
