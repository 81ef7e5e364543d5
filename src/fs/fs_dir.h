#pragma once
/* Listing directories. */

#include "fs/fs.h"

/* fs/readDirectory: appends the result. 0 or -errno with e set. Ends early once *stop is true. */
MUST_CHECK int fs_read_directory(const char *path, const atomic_bool *stop, struct buf *result,
                                 struct err *e);
