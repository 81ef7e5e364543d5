#pragma once
/*
 * fs/walk: a bounded list of what lies below a directory.
 *
 * Memory of one walk, whatever the tree: what the sink keeps (FS_WALK_BUDGET bounds it), the
 * directories still to be read with their paths, the names of one directory (fs_walk_names.h),
 * and, when links are followed, the real paths of the directories read: all paths together at most
 * FS_WALK_PATHS bytes. A walk leaves out what does not fit, and its last item says so.
 */

#include "fs/fs.h"
#include "fs/fs_item.h"
#include "fs/fs_place.h"

#define FS_WALK_DEPTH_MAX 64
#define FS_WALK_DIRECTORIES_MAX 10000
#define FS_WALK_ENTRIES_MAX 50000
#define FS_WALK_BUDGET (4u << 20) /* bytes: 64 and the URI (and message) of each item */
#define FS_WALK_PATHS (32u << 20)

struct fs_walk {
    const char *path;
    const char *uri; /* of path, as the items' URIs are to begin; NULL: made from path */
    uint64_t max_depth, max_directories, max_entries;
    bool follow_directory_links, prune_hidden;
    /*
     * Lists links with their targets, also those that lead nowhere, and follows none; gives names
     * that are not UTF-8 exactly, in their URIs. Not together with follow_directory_links.
     */
    bool links;
    /*
     * Whether the target of a link may be told (FS_READS of the link); NULL: of all. The check
     * needs the directory of `path` as a place, where the walk then begins; without one the walk
     * tells no target. Borrowed.
     */
    const struct fs_place_check *check;
    const struct fs_place *at;
};

/* Whether the limits are allowed. 0, or -EINVAL with e set. */
MUST_CHECK int fs_walk_check(const struct fs_walk *w, struct err *e);

/*
 * Checks the limits, then walks and hands each item to the sink. Ends early, with ECANCELED, once
 * *stop is true. 0 or -errno with e set.
 */
MUST_CHECK int fs_walk(const struct fs_walk *w, const atomic_bool *stop, const struct fs_sink *sink,
                       struct err *e);
