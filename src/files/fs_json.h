#pragma once
/*
 * Writes the results of the fs methods as JSON text, appended to a buffer. Each function returns 0;
 * or -ENOBUFS or -ENOMEM, and then the buffer has what it had before.
 */

#include "fs/fs_call.h"
#include "fs/fs_item.h"
#include "fs/fs_meta.h"
#include "fs/fs_watch.h"

/* fs/getMetadata. */
MUST_CHECK int fs_json_meta(struct buf *b, const struct fs_meta *m);

/* fs/canonicalize, fs/watch: the URI of a native path. */
MUST_CHECK int fs_json_path(struct buf *b, struct str path);

/* fs/readLink: a target, any bytes but NUL. */
MUST_CHECK int fs_json_target(struct buf *b, struct str target);

/* fs/open. */
MUST_CHECK int fs_json_handle(struct buf *b, struct str id);

/* fs/changed: a whole notification with the changes of a watch. */
MUST_CHECK int fs_json_changes(struct buf *b, struct str id, const struct fs_watch *w);

/* fs/readDirectory and fs/walk: begin, any number of items, end. */
struct fs_json_list {
    struct buf *out; /* borrowed */
    size_t before;   /* its length at the beginning */
    size_t start;    /* and where the items begin */
    bool walk;
    bool truncated;
    struct buf errors; /* items; owned between begin and end */
};

MUST_CHECK int fs_json_list_begin(struct fs_json_list *l, struct buf *b, bool walk);

/* The put of a struct fs_sink; arg is the list. */
MUST_CHECK int fs_json_list_put(void *arg, const struct fs_item *item);

/* Must follow begin. `r`: how the call ended; when it failed the list is dropped. Returns r, or an
 * error of its own. */
int fs_json_list_end(struct fs_json_list *l, int r);

/*
 * The result of a call that a helper made, from its bytes (struct fs_call_result), which are not
 * trusted. Also -EINVAL: they are no such result. Calls without a result: "{}".
 */
MUST_CHECK int fs_json_call(struct buf *b, enum fs_call_op op, struct str bytes);
