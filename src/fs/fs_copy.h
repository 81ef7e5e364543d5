#pragma once
/* Copies files, links and whole trees. */

#include "fs/fs_place.h"

struct fs_copy {
    const char *source, *destination;
    bool recursive;
    /*
     * The places, and the check that decides on each name below the two; else all NULL. With places
     * the paths are for texts alone, and the call follows no link.
     */
    const struct fs_place *from, *to;
    const struct fs_place_check *check;
};

/*
 * fs/copy. 0 or -errno with e set. Never waits for the other end of a FIFO, and empties no file
 * before it is known not to be the source. Links in the source are copied, not followed; those in
 * the destination are followed. Ends early, with ECANCELED, once *stop is true; what was copied by
 * then, or before any other error, stays.
 */
MUST_CHECK int fs_copy(const struct fs_copy *c, const atomic_bool *stop, struct err *e);
