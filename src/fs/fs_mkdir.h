#pragma once
/* Makes directories. */

#include "fs/fs_place.h"

/* fs/createDirectory. 0 or -errno with e set. */
MUST_CHECK int fs_mkdir(const char *path, bool recursive, bool follow, struct err *e);

/* Makes one directory, at a place. 0 or -errno. */
MUST_CHECK int fs_mkdir_at(const struct fs_place *p);

/*
 * Makes the missing directories of a place, asking before each; passes no link. The descriptor
 * (O_PATH) of the last one, found or made; or -errno.
 */
MUST_CHECK int fs_mkdir_all_at(const struct fs_place *p, const struct fs_place_check *check);
