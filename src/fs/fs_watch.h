#pragma once
/*
 * The other half of fs/watch: what the events of one inotify instance mean for the watches of a
 * connection. No system calls, for the loop's thread.
 *
 * A watch is of a directory (itself and what lies directly in it, with `recursive` everything
 * below), or of something else, which is then watched by its name in its directory, and may be
 * replaced. Directories form a tree per watch. One that appears below a recursive watch waits in
 * set->fresh to be scanned by a thread (fs_watch_scan.h); one that is moved away leaves the tree
 * with all below it, and its watches wait in set->unused to be removed; where it is moved to it is
 * new. When the directory at the top is removed, moved or unmounted the watch is over.
 *
 * While a scan runs no events may be fed, and no watch removed: it may add directories whose
 * numbers are not known here yet. The kernel keeps the events.
 *
 * A watch collects its changed paths, each once, until its client gets them. Maxima:
 * FS_WATCH_PATHS_MAX paths of a watch, FS_WATCH_BYTES_MAX bytes of all; above, and whenever events
 * were lost, a watch has no paths but says `overflow`. When the kernel has lost events, the watch
 * is also `lost`: its directories must be scanned again before its client hears of the overflow.
 */

#include "base/buf.h"
#include "base/hash.h"
#include "base/list.h"
#include "fs/fs_watch_scan.h"

#include <stdint.h>

#define FS_WATCHES_MAX 64
#define FS_WATCH_BYTES_MAX (1u << 20)
#define FS_WATCH_BUCKETS 1024

/* Changed paths of a watch, in the order of their first change. */
struct fs_watch_change {
    struct hash_node node; /* its key is the path */
    struct list order;
    char path[];
};

struct fs_watch {
    struct list node; /* in set->watches */
    struct fs_watch_set *set;
    char *root;       /* native path; owned */
    const char *leaf; /* NULL, or the root is no directory: its name, part of root */
    bool recursive;
    bool lost;
    bool overflow;
    struct fs_watch_dir *top; /* NULL: not scanned yet, or over */
    struct hash changed;
    struct list changes;
};

struct fs_watch_set {
    struct list watches;
    struct fs_watch_dir **by_wd; /* FS_WATCH_BUCKETS chains, owned; NULL until the first */
    struct hash by_name;         /* directories by the one they lie in and their name */
    size_t dirs;                 /* in the trees of all watches */
    struct list fresh;           /* of them, those that wait to be scanned */
    struct buf unused;           /* int: watches to be removed */
    size_t bytes;                /* of changed paths */
    uint64_t events;             /* ever fed */
};

void fs_watch_set_init(struct fs_watch_set *s);
/* All watches must be gone. */
void fs_watch_set_fini(struct fs_watch_set *s);

/*
 * Adds a watch of `root`, of which nothing is known yet; the scan's results come by
 * fs_watch_adopt(). 0 or -ENOMEM (then w->set is NULL, and there is nothing to give back).
 */
MUST_CHECK int fs_watch_init(struct fs_watch *w, struct fs_watch_set *s, const char *root,
                             bool directory, bool recursive);
void fs_watch_fini(struct fs_watch *w);

/* Events were lost: its tree must be made anew. */
void fs_watch_lose(struct fs_watch *w);

/* Takes in n bytes read from the inotify descriptor. */
void fs_watch_feed(struct fs_watch_set *s, const void *events, size_t n);

/*
 * Prepares a scan: of a watch that is lost (whose tree is given up), else of directories that wait,
 * all of one watch; with the directories to unwatch. *w is the watch, or NULL. 1; 0: there is
 * nothing to do; or -ENOMEM.
 */
MUST_CHECK int fs_watch_next(struct fs_watch_set *s, struct fs_watch_scan *scan,
                             struct fs_watch **w);

/* Moves the directories to unwatch to the scan. 0 or -ENOMEM. */
MUST_CHECK int fs_watch_put_drops(struct fs_watch_set *s, struct fs_watch_scan *scan);

/*
 * Takes over what a scan has found: for the watch, or, when it is NULL (the scan failed or nobody
 * wants it any more), to remove what nobody else uses. A scan that never ran is taken back.
 */
void fs_watch_adopt(struct fs_watch_set *s, struct fs_watch *w, struct fs_watch_scan *scan);

/* Whether there is something to tell. */
static inline bool fs_watch_pending(const struct fs_watch *w) {
    return w->overflow || !list_empty(&w->changes);
}

/* The client has been told of the pending changes: forgets them. */
void fs_watch_told(struct fs_watch *w);
