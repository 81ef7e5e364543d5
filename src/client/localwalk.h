#pragma once
/*
 * Reads a local tree, one entry at a time: memory and descriptors depend on its depth alone.
 * A directory comes before what is in it, and once more after that.
 */

#include "base/util.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define LOCALWALK_DEPTH_MAX 256 /* directories open at a time */

enum localwalk_what { LOCALWALK_END, LOCALWALK_ENTRY, LOCALWALK_LEAVE, LOCALWALK_FAULT };

struct localwalk_item {
    enum localwalk_what what;
    int dir;          /* the directory that holds the entry; borrowed until the next call */
    const char *leaf; /* the name in it; of the root "." */
    const char *name; /* relative to the root; of the root "" */
    struct stat st;   /* of the entry; of the target, if links are followed and it has one */
    bool is_link;     /* the entry is a link; st may be that of its target */
    int error;        /* LOCALWALK_FAULT: why `name` was left out, errno; ELOOP: a directory that
                         holds itself, EMFILE: deeper than the maximum */
};

struct localwalk;

/* Takes over `root`, a descriptor of a directory for reading. NULL without memory. */
struct localwalk *localwalk_new(int root, bool follow);
void localwalk_free(struct localwalk *w);

/* The next item. 0, or -ENOMEM. The strings live until the next call. */
MUST_CHECK int localwalk_next(struct localwalk *w, struct localwalk_item *item);
