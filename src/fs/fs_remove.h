#pragma once
/* Removes files and whole trees. */

#include "fs/fs_place.h"

struct fs_remove {
    const char *path;
    bool recursive, force, follow;
    /* The place to remove, and the check that decides on each name below it: the call does not use
     * `path` then. Else both NULL. */
    const struct fs_place *at;
    const struct fs_place_check *check;
};

/*
 * fs/remove. 0 or -errno with e set. A tree is removed through descriptors, without passing a link;
 * what somebody else removes meanwhile counts as removed. "/" is EBUSY, by whatever path. Ends
 * early, with ECANCELED, once *stop is true; what was removed by then, or before any other error,
 * is gone.
 */
MUST_CHECK int fs_remove(const struct fs_remove *r, const atomic_bool *stop, struct err *e);
