#pragma once
/*
 * Low descriptor numbers for supervisors.
 *
 * A child with a copy of all our descriptors would have to close them. Closing a file on a file
 * system that hangs (the flush of FUSE or NFS) would hang the child, and so an unrelated start. A
 * supervisor therefore shares our table at first. Its first act is to get a table of its own that
 * copies only the descriptors below a limit (close_range() with CLOSE_RANGE_UNSHARE). For that
 * moment its descriptors lie below the limit, in a set of reserved numbers; all later ones lie
 * above.
 *
 * Maxima: LOWFDS_SETS supervisors at a time without a table of their own; another start waits for
 * one of them.
 */

#include "proc/supervisor.h"

#define LOWFDS_SETS 8
#define LOWFDS_GIVEN SUPERVISOR_HANDED      /* given descriptors; a start with more copies all */
#define LOWFDS_EACH (7 + SUPERVISOR_HANDED) /* descriptors of one supervisor */
#define LOWFDS_MOST 1024                    /* the limit is not above this */

struct lowfds {
    int fence; /* occupies unused numbers; -1: nothing is reserved, all is copied */
    int first; /* number of the first slot */
    struct supervisor *user[LOWFDS_SETS]; /* borrowed; NULL = free */
    bool filled[LOWFDS_MOST];             /* numbers that the fence occupies */
};

/* Reserves the sets and all free numbers below. Does nothing if descriptors are short. */
void lowfds_init(struct lowfds *s);
void lowfds_fini(struct lowfds *s);

/* Moves the descriptors of `sup` into a set and changes the numbers in it. 0 or -errno. */
MUST_CHECK int lowfds_place(struct lowfds *s, struct supervisor *sup);

/* Frees the sets of all supervisors that have a table of their own. */
void lowfds_collect(struct lowfds *s);

/* Frees the set of one supervisor that is gone or was never made. */
void lowfds_drop(struct lowfds *s, const struct supervisor *sup);
