#pragma once
/* What the file system knows of a path: metadata, its real path, its permissions. */

#include "fs/fs.h"
#include "fs/fs_devices.h"
#include "fs/fs_place.h"

#include <sys/types.h>

/* Any bytes are a valid one: it comes from helpers as its bytes. */
struct fs_meta {
    uint64_t size;
    int64_t created_ms;  /* since 1970; 0: unknown */
    int64_t modified_ms; /* since 1970 */
    uint32_t mode;       /* type and permissions, as of stat() */
    uint32_t link;       /* not 0: the path itself is a link to it */
};

/*
 * fs/getMetadata. With `follow` no time is before 1970. Remembers in d, which may be NULL, what it
 * learns about the mount. 0 or -errno with e set.
 */
MUST_CHECK int fs_meta_get(struct fs_devices *d, const char *path, bool follow, struct fs_meta *m,
                           struct err *e);

/* Like fs_meta_get() at a place, where nothing is a link any more; `link`: the client's path named
 * one. 0 or -errno. */
MUST_CHECK int fs_meta_get_at(const struct fs_place *p, bool follow, bool link, struct fs_meta *m);

/*
 * Like fs_meta_get() with links followed, but never waits: for the loop's thread. -EAGAIN when it
 * would have to, cannot be sure, or failed.
 */
MUST_CHECK int fs_meta_try(const struct fs_devices *d, const char *path, struct fs_meta *m);

/* fs/canonicalize: the real path; *real is owned by the caller. 0 or -errno with e set. */
MUST_CHECK int fs_meta_canonicalize(const char *path, char **real, struct err *e);

/* fs/setPermissions (extension): mode is at most 07777. 0 or -errno with e set. */
MUST_CHECK int fs_meta_set_permissions(const char *path, mode_t mode, bool follow, struct err *e);

/* Like fs_meta_set_permissions() at a place. 0 or -errno with e set. */
MUST_CHECK int fs_meta_set_permissions_at(const struct fs_place *p, mode_t mode, struct err *e);

/*
 * fs/setTimes (extension): the time of the last modification, in ms since 1970, as near as the file
 * system can keep it; the access time stays. In no-follow mode a link as the last component gets
 * the time itself. 0 or -errno with e set.
 */
MUST_CHECK int fs_meta_set_times(const char *path, int64_t modified_ms, bool follow, struct err *e);

/* Like fs_meta_set_times() of the object at a place; ESTALE: another kind of object has come there.
 * 0 or -errno with e set. */
MUST_CHECK int fs_meta_set_times_at(const struct fs_place *p, int64_t modified_ms, struct err *e);
