#pragma once
/* Copying files, links and whole trees. */

#include "fs/fs.h"

struct fs_copy {
    const char *source, *destination;
    bool recursive;
    /*
     * Where not every path may be copied from or to, else NULL: asked before each file, link and
     * directory below the top; paths are full ones. 0 or -errno. No link is followed then: both
     * paths must be without any.
     */
    int (*check)(void *arg, const char *source, const char *destination, bool dir);
    void *arg;
};

/*
 * fs/copy. 0 or -errno with e set. Never waits for the other end of a FIFO, and empties no file
 * before it is known not to be the source. Links in the source are copied, not followed; those in
 * the destination are followed. Ends early, with ECANCELED, once *stop is true; what was copied by
 * then, or before any other error, stays.
 */
MUST_CHECK int fs_copy(const struct fs_copy *c, const atomic_bool *stop, struct err *e);
