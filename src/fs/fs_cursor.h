#pragma once
/*
 * The path from the top of a tree down to the current directory, for trees of any depth: no
 * recursion, and few descriptors. Only the top and the FS_CURSOR_OPEN deepest levels are open. On
 * the way up a closed level is opened again as ".." of the one below. It must be the directory that
 * was closed (device and inode), so that one moved meanwhile leads nobody out of the tree.
 *
 * A level may have a peer, the directory it is copied to, reached through links. Where ".." leads
 * elsewhere, the peer is found by its names from the top; it must be the one that was closed, too.
 *
 * Maximum: FS_CURSOR_BYTES for names and records; a tree that needs more is ENAMETOOLONG.
 */

#include "fs/fs_list.h"

#define FS_CURSOR_OPEN 16
#define FS_CURSOR_BYTES (16u << 20) /* of each: 170,000 levels, or fewer with long names */

/* Which directory it is, whatever its name. */
struct fs_id {
    dev_t dev;
    ino_t ino;
};

struct fs_level {
    struct fs_list list; /* closed while the level is */
    struct fs_id id;     /* set when it is closed */
    size_t name;         /* offset of its name in `names`; the top has none */
    int peer;            /* owned; -1 = none, or closed */
    struct fs_id peer_id;
    unsigned passes; /* for the owner: how often it was gone through */
};

struct fs_cursor {
    struct buf levels; /* struct fs_level, the top first */
    struct buf names;  /* NUL-terminated */
    bool peers;
};

/* Nothing yet; with peers or without. */
struct fs_cursor fs_cursor_init(bool peers);
void fs_cursor_fini(struct fs_cursor *l);

size_t fs_cursor_depth(const struct fs_cursor *l);

/* The i-th level, 0 = the top; valid until the next push. */
struct fs_level *fs_cursor_at(const struct fs_cursor *l, size_t i);
struct fs_level *fs_cursor_last(const struct fs_cursor *l);
const char *fs_cursor_name(const struct fs_cursor *l, size_t i);

/* Appends the path of `name` in the last level below the path `top`, with a NUL. 0; -ENAMETOOLONG
 * beyond the buffer's maximum; -ENOMEM. */
MUST_CHECK int fs_cursor_put_path(const struct fs_cursor *l, const char *top, const char *name,
                                  struct buf *b);

/*
 * Enters a directory: its name in the last level (anything for the top), its descriptor and that of
 * its peer (-1 = none), which are taken over even on failure. 0 or -errno.
 */
MUST_CHECK int fs_cursor_push(struct fs_cursor *l, const char *name, int *fd, int *peer);

/* Opens the level above the last one if there is one and it is closed. 0 or -errno; -ESTALE if it
 * cannot be found any more. */
MUST_CHECK int fs_cursor_open_parent(struct fs_cursor *l);

/* Leaves the last level; the one above it must be open. */
void fs_cursor_pop(struct fs_cursor *l);

/* 0 or -errno. */
MUST_CHECK int fs_cursor_id_of(int fd, struct fs_id *id);

static inline bool fs_id_eq(struct fs_id a, struct fs_id b) {
    return a.dev == b.dev && a.ino == b.ino;
}
