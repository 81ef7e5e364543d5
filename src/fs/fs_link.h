#pragma once
/* Reads and makes symbolic links. A target is bytes: nothing here follows or checks it. */

#include "fs/fs_place.h"

#define FS_LINK_TARGET_MAX (PATH_MAX - 1) /* bytes; the kernel's maximum */

/* A link's target with a NUL behind it. */
struct fs_link {
    size_t n;
    char target[FS_LINK_TARGET_MAX + 1];
};

/*
 * Reads a link by its name in a directory (AT_FDCWD for full paths); links before the last
 * component are followed. 0 or -errno: -EINVAL if it is no link.
 */
MUST_CHECK int fs_link_read_at(int dir, const char *name, struct fs_link *link);

/* fs/readLink (extension). 0 or -errno with e set. */
MUST_CHECK int fs_link_read(const char *path, struct fs_link *link, struct err *e);

/* Like fs_link_read() at a place, of the link that was decided on. 0 or -errno with e set. */
MUST_CHECK int fs_link_read_place(const struct fs_place *p, struct fs_link *link, struct err *e);

/* fs/symlink (extension): makes a link; a name that exists is EEXIST. 0 or -errno with e set. */
MUST_CHECK int fs_link_make(const char *path, const char *target, struct err *e);

/* Like fs_link_make() at a place. 0 or -errno with e set. */
MUST_CHECK int fs_link_make_place(const struct fs_place *p, const char *target, struct err *e);
