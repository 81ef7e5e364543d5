#pragma once
/* Making directories. */

#include "fs/fs_place.h"

/* fs/createDirectory. 0 or -errno with e set. */
MUST_CHECK int fs_mkdir(const char *path, bool recursive, bool follow, struct err *e);

/* The same at a place, one directory. 0 or -errno. */
MUST_CHECK int fs_mkdir_at(const struct fs_place *p);

/*
 * Makes what is missing of a place, asking before each directory; passes no link. The descriptor
 * (O_PATH) of the last one, whether it was there or was made, or -errno.
 */
MUST_CHECK int fs_mkdir_all_at(const struct fs_place *p, const struct fs_ops_check *check);
