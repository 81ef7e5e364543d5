#pragma once
/*
 * Low descriptors for what supervisors are given.
 *
 * A child that has a copy of all our descriptors must close them, and closing one of a file on a
 * file system that hangs (the flush of FUSE, of NFS) would hang the child: a start would wait for a
 * handle that has nothing to do with it. So a supervisor is made with our table of descriptors, and
 * its first act is to get one of its own in which only those below a limit are copied
 * (close_range() with CLOSE_RANGE_UNSHARE). What it needs is put below that limit for the moment,
 * into a set of numbers that are reserved for this; everything else that is opened later lies
 * above.
 *
 * Maxima: LOWFDS_SETS supervisors at a time that have not got their own table yet; another start
 * waits for one of them (it is the first thing they do).
 */

#include "proc/supervisor.h"

#define LOWFDS_SETS 8
#define LOWFDS_EACH (6 + SUPERVISOR_HANDED) /* descriptors of one supervisor */
#define LOWFDS_MOST 1024                    /* the limit is not above this */

struct lowfds {
    int fence; /* holds the place of what is not in use; -1: nothing is reserved, all is copied */
    int first; /* number of the first slot */
    struct supervisor *user[LOWFDS_SETS]; /* borrowed; NULL = free */
    bool filled[LOWFDS_MOST];             /* numbers that we keep occupied */
};

/* Reserves them, and whatever is free below. Without enough descriptors it does nothing. */
void lowfds_init(struct lowfds *s);
void lowfds_fini(struct lowfds *s);

/* Puts the descriptors of a filled sup into a set; the numbers in it change. 0 or -errno. */
MUST_CHECK int lowfds_place(struct lowfds *s, struct supervisor *sup);

/* Frees the sets of all that have their own table. */
void lowfds_collect(struct lowfds *s);

/* The same for one, whatever it has: it is gone, or was never made. */
void lowfds_drop(struct lowfds *s, const struct supervisor *sup);
