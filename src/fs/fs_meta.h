#pragma once
/* What is known of a path: metadata, its real name, its permissions. */

#include "fs/fs.h"
#include "fs/fs_devices.h"
#include "fs/fs_place.h"

#include <sys/types.h>

/*
 * fs/getMetadata: appends the result. 0 or -errno with e set. What is learned about the mount goes
 * to d, which may be NULL.
 */
MUST_CHECK int fs_get_metadata(struct fs_devices *d, const char *path, bool follow,
                               struct buf *result, struct err *e);

/* The same at a place, where nothing is a link any more; `link`: the client's path named one.
 * 0 or -errno. */
MUST_CHECK int fs_meta_get_at(const struct fs_place *p, bool follow, bool link, struct buf *result);

/*
 * The same with links followed, but never waits: for the loop's thread. -EAGAIN when it would have
 * to, cannot be sure, or failed; nothing is appended then.
 */
MUST_CHECK int fs_meta_try(const struct fs_devices *d, const char *path, struct buf *result);

/* fs/canonicalize: appends the result. 0 or -errno with e set. */
MUST_CHECK int fs_canonicalize(const char *path, struct buf *result, struct err *e);

/* fs/setPermissions (extension): mode is at most 07777. 0 or -errno with e set. */
MUST_CHECK int fs_set_permissions(const char *path, mode_t mode, bool follow, struct err *e);

/* The same at a place. 0 or -errno with e set. */
MUST_CHECK int fs_meta_set_permissions_at(const struct fs_place *p, mode_t mode, struct err *e);
