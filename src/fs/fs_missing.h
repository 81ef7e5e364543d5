#pragma once
/*
 * fs/watchMissing: to hear, once, of a change that may concern paths which do not exist, and
 * optionally one that does. Every existing directory above them is watched, from "/" down.
 *
 * Mounting tells no directory anything, so that any change of the mounts counts, too.
 *
 * It fires when a watched path or a directory above it is made, renamed, removed or replaced, when
 * the attributes of a directory above it change, and when the contents or attributes of the
 * present path change. What happens to other names, and inside a present directory, does not
 * matter; but it takes names that differ in case, or that are not ASCII, for the same.
 *
 * Maxima: FS_MISSING_PATHS_MAX missing paths; FS_MISSING_DIRS_MAX different directories above all
 * paths, whether they exist or not.
 */

#include "base/util.h"

#include <stdbool.h>

#define FS_MISSING_PATHS_MAX 64
#define FS_MISSING_DIRS_MAX 64

/* A directory above a path: the first n bytes of path[of]; n = 0 is "/". */
struct fs_missing_dir {
    int wd; /* number of its watch; -1: it does not exist */
    size_t of, n;
};

struct fs_missing {
    int fd;     /* inotify; owned, -1 = none. Closing it takes long. */
    int mounts; /* tells by POLLPRI that the mounts have changed; owned, -1 = none */
    char *path[FS_MISSING_PATHS_MAX + 1]; /* owned; native, absolute, normalised */
    size_t count;
    bool present; /* the last path is the one that exists */
    struct fs_missing_dir dir[FS_MISSING_DIRS_MAX];
    size_t dirs;
};

#define FS_MISSING_INIT ((struct fs_missing){.fd = -1, .mounts = -1})

/*
 * Blocking. Watches for the paths, which the caller has set, by a new inotify instance, or by that
 * of a watch that was stopped if m->fd is set, and checks that they are missing or
 * present. What happens after the first watch was added and before this returns is an event to be
 * read, so no change is lost. 0; or -errno: there is no watch. Some of the reasons: a path is not
 * missing (-EEXIST), leads through a link or a file (-ENOTDIR), lies on a file system that does
 * not tell of all changes (-EOPNOTSUPP), or there are too many directories (-E2BIG).
 */
MUST_CHECK int fs_missing_open(struct fs_missing *m);

/*
 * The watch is over: removes what is watched. m->fd stays open, for another watch to be opened
 * with; closing it is slow, and a user has few of them.
 */
void fs_missing_stop(struct fs_missing *m);

/* Whether the watch fires, given n bytes read from m->fd. It also does when m->mounts tells so. */
bool fs_missing_fires(const struct fs_missing *m, const void *events, size_t n);

/* Closes and frees all; harmless twice. */
void fs_missing_fini(struct fs_missing *m);
