#pragma once
/*
 * Bounds the lines about refused connections in the audit log. Anybody can be refused at any rate,
 * so two token buckets limit single lines: one per address, one for all. Refusals beyond them are
 * counted and reported as a sum. Allocates nothing.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REFUSALS_PEERS 64       /* addresses tracked; the longest silent one makes room */
#define REFUSALS_KEY_MAX 64     /* bytes of an address */
#define REFUSALS_PEER_BURST 10  /* lines at once about one address; then one a second */
#define REFUSALS_TOTAL_BURST 50 /* lines at once about all; then REFUSALS_TOTAL_RATE */
#define REFUSALS_TOTAL_RATE 10  /* lines a second */
#define REFUSALS_SUM_MS 10000   /* from the first counted refusal to the sum */

/* Tokens, in thousandths. */
struct refusals_bucket {
    uint64_t tokens;
    uint64_t filled; /* ms, when it was last filled */
};

struct refusals_peer {
    char key[REFUSALS_KEY_MAX]; /* empty: free */
    struct refusals_bucket bucket;
    uint64_t seen;  /* ms */
    uint64_t count; /* not reported yet */
};

/* All zero is empty. */
struct refusals {
    struct refusals_peer peers[REFUSALS_PEERS];
    struct refusals_bucket total;
    bool begun;      /* `total` was filled once */
    uint64_t others; /* of addresses that made room, not reported yet */
    uint64_t since;  /* ms: the first counted and not reported; if `waiting` */
    bool waiting;
};

/*
 * A connection of `peer` ("IP:PORT", or a text before a comma) was refused at `now` (ms). True: it
 * gets a line of its own. False: it was counted. `room`: whether the log has room for it.
 */
bool refusals_admit(struct refusals *r, const char *peer, uint64_t now, bool room);

/* Takes one sum of counted refusals; false: none is left. *key is "" for all other addresses. */
bool refusals_take(struct refusals *r, const char **key, uint64_t *count);
