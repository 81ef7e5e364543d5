#pragma once
/*
 * The blocking half of fs/watch: adding directories to an inotify instance, for a thread of the
 * pool. A scan owns all its memory; what it found is taken over by fs_watch_adopt().
 *
 * A directory is watched before it is read: what is made in it meanwhile is found, or reported as
 * an event, or both. Links are never followed, except those in the path that a client gave.
 */

#include "base/buf.h"
#include "base/err.h"

#include <stdatomic.h>
#include <stdbool.h>

#define FS_WATCH_DIRS_MAX 8192                     /* directories watched per connection */
#define FS_WATCH_PATHS_MAX 1024                    /* changed paths told at a time */
#define FS_WATCH_NAMES_MAX ((size_t)4 << 20)       /* bytes of names that a scan finds */
#define FS_WATCH_DROPS_MAX (2 * FS_WATCH_DIRS_MAX) /* watches removed at a time */

struct fs_watch_dir;

/* A directory: one to begin with, or one found below. */
struct fs_watch_found {
    size_t parent;             /* index of the one it lies in; its own index: to begin with */
    size_t name;               /* where its name (or path) begins in `names`; NUL-terminated */
    int wd;                    /* number of its watch; -1: it is gone, or must not be read */
    struct fs_watch_dir *node; /* for fs_watch_adopt(); a thread does not look at it */
};

/* An entry of a directory. */
struct fs_watch_entry {
    size_t dir, name; /* as above */
};

struct fs_watch_scan {
    int fd; /* inotify; borrowed */
    bool recursive;
    bool fresh;       /* the directories are new: what lies in them counts as changed */
    size_t room;      /* directories that may be found, those to begin with not counted */
    atomic_bool stop; /* set by the owner: nobody is interested any more */
    int *drop;        /* watches to be removed first; owned */
    size_t drops;

    struct fs_watch_found *dir; /* owned */
    size_t dirs, cap;
    struct fs_watch_entry *entry; /* owned; at most FS_WATCH_PATHS_MAX */
    size_t entries;
    struct buf names;
    bool missed; /* fs_watch_scan(): not all could be watched, or listed */

    char *root;     /* fs_watch_scan_open_root(): the real path; owned */
    bool directory; /* and what it is */
};

void fs_watch_scan_init(struct fs_watch_scan *s, int fd);
void fs_watch_scan_fini(struct fs_watch_scan *s);

/* Adds a directory to begin with. 0 or -ENOMEM. */
MUST_CHECK int fs_watch_scan_add(struct fs_watch_scan *s, const char *path,
                                 struct fs_watch_dir *node);

/* Makes an inotify instance. The descriptor or -errno. */
MUST_CHECK int fs_watch_scan_instance(void);

/*
 * Blocking, as all below. Watches the directory `path`, with `recursive` also all below it; or, if
 * it is something else, the directory it lies in. 0; or -errno with e set, and what was added is
 * still in s->dir.
 */
MUST_CHECK int fs_watch_scan_open_root(struct fs_watch_scan *s, const char *path, struct err *e);

/* Removes and watches as s says. What fails is left out and s->missed is set. */
void fs_watch_scan(struct fs_watch_scan *s);
