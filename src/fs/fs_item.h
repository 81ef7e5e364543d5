#pragma once
/*
 * One item of a list: an entry of a directory, or an entry or an error of a walk. A call hands each
 * item to a sink as soon as it finds it. A helper in a sandbox sends items as bytes.
 */

#include "base/buf.h"

enum fs_item_kind {
    FS_ITEM_OTHER, /* no file, no directory */
    FS_ITEM_FILE,
    FS_ITEM_DIR,
    FS_ITEM_LINK,      /* in a walk that lists links */
    FS_ITEM_ERROR,     /* a walk could not look at `name` */
    FS_ITEM_TRUNCATED, /* the last item of a walk that left something out; no texts */
};

struct fs_item {
    enum fs_item_kind kind;
    struct str name;    /* borrowed, UTF-8: the name in its directory; in a walk the URI */
    struct str message; /* borrowed; FS_ITEM_ERROR: a text, UTF-8; FS_ITEM_LINK: the target, any
                           bytes but NUL; empty: not to be told */
};

struct fs_sink {
    /* Takes an item, which lives until the return. 0; or -errno, with which the call ends. */
    int (*put)(void *arg, const struct fs_item *item);
    void *arg;
};

/* The put of a sink that appends items as bytes; arg is the struct buf. 0 or as buf_reserve(). */
MUST_CHECK int fs_item_encode(void *arg, const struct fs_item *item);

/*
 * Takes the next item off the front of encoded ones, which need not be trusted. 1; 0 at the end;
 * -EINVAL: these are none.
 */
MUST_CHECK int fs_item_decode(struct str *bytes, struct fs_item *item);
