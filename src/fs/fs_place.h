#pragma once
/*
 * Where a confined call acts: an open directory and a name in it. The gate that decides on the call
 * fills the place. The call acts relative to the descriptor and never looks the path up again, so
 * that nobody can change the place after the decision.
 */

#include "fs/fs.h"

#include <limits.h>

struct fs_place {
    int dir;     /* owned, O_PATH: the deepest directory of `path` that exists; -1: none */
    int object;  /* owned, O_PATH: the existing object, if the decision is about it; or -1 */
    mode_t mode; /* of what exists; 0: nothing */
    size_t name; /* offset in `path` of the first component below `dir` */
    char path[PATH_MAX]; /* absolute, without links and dot segments */
};

#define FS_PLACE_INIT ((struct fs_place){.dir = -1, .object = -1})

/* Closes the descriptors; the place can be filled again. */
void fs_place_fini(struct fs_place *p);

/* The name in the directory; "." for "/". Several components where parents are missing. */
static inline const char *fs_place_name(const struct fs_place *p) {
    return p->path[p->name] != '\0' ? p->path + p->name : ".";
}

/* Whether only the last component may be missing. */
static inline bool fs_place_is_leaf(const struct fs_place *p) {
    return strchr(p->path + p->name, '/') == NULL;
}

/*
 * Fills dir, name and mode for p->path, which is set: the directory of its last component, or with
 * `parents` the deepest one that exists. 0; or -errno, and nothing is open.
 */
MUST_CHECK int fs_place_fill(struct fs_place *p, bool parents);

/* openat() of the name; a link is never followed. A descriptor or -errno. */
MUST_CHECK int fs_place_open(const struct fs_place *p, int flags, mode_t mode);

/* Duplicates the directory's descriptor. The new one or -errno. */
MUST_CHECK int fs_place_dup(const struct fs_place *p);

/* What a call is about to do with a path. */
enum fs_need {
    FS_READS,
    FS_CHANGES, /* makes or replaces a file; changes a mode */
    FS_MAKES,   /* makes a directory */
    FS_TAKES,   /* removes it, or gives it another name */
    FS_GETS,    /* gives the name to something else; does not follow a link there */
};

/*
 * A call asks this before it touches a name that it found itself, below the place that was decided
 * on: `path` is that name, without links, `mode` that of what exists, 0: nothing. 0 or -errno.
 */
struct fs_place_check {
    int (*ask)(void *arg, enum fs_need need, const char *path, mode_t mode);
    void *arg;
};
