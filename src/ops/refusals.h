#pragma once
/*
 * How many refused connections the audit log tells of. Anybody can be refused as often as he likes,
 * so single lines are limited by two token buckets, one per address and one for all; what exceeds
 * them is counted, and told as a sum. Holds no memory but its own.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REFUSALS_PEERS 64   /* addresses that are told apart; the longest silent one makes room */
#define REFUSALS_KEY_MAX 64 /* bytes of an address */
#define REFUSALS_PEER_BURST 10  /* lines at once about one address; then one a second */
#define REFUSALS_TOTAL_BURST 50 /* lines at once about all; then REFUSALS_TOTAL_RATE */
#define REFUSALS_TOTAL_RATE 10  /* lines a second */
#define REFUSALS_SUM_MS 10000   /* from the first that is only counted to the sum */

/* Tokens, in thousandths. */
struct refusals_bucket {
    uint64_t tokens;
    uint64_t filled; /* ms, when it was last filled */
};

struct refusals_peer {
    char key[REFUSALS_KEY_MAX]; /* empty: free */
    struct refusals_bucket bucket;
    uint64_t seen;  /* ms */
    uint64_t count; /* not told of yet */
};

/* All zero is empty. */
struct refusals {
    struct refusals_peer peers[REFUSALS_PEERS];
    struct refusals_bucket total;
    bool begun;      /* `total` was filled once */
    uint64_t others; /* of addresses that had to make room, not told of yet */
    uint64_t since;  /* ms: the first that is counted and not told of; if `waiting` */
    bool waiting;
};

/*
 * A connection of `peer` ("IP:PORT", or a text before a comma) was refused at `now` (ms). True: it
 * gets a line of its own. False: it was counted. `room`: whether the log has room for it.
 */
bool refusals_admit(struct refusals *r, const char *peer, uint64_t now, bool room);

/* A sum of what was only counted; false: there is none left. *key is "" for all other addresses. */
bool refusals_take(struct refusals *r, const char **key, uint64_t *count);
