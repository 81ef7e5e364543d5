#pragma once
/* Listing directories. */

#include "fs/fs_place.h"

/* fs/readDirectory: appends the result. 0 or -errno with e set. Ends early once *stop is true. */
MUST_CHECK int fs_read_directory(const char *path, const atomic_bool *stop, struct buf *result,
                                 struct err *e);

/* The same at a place; `path` is how the client named it. */
MUST_CHECK int fs_dir_read_at(const struct fs_place *p, const char *path, const atomic_bool *stop,
                              struct buf *result, struct err *e);
