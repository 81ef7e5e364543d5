#pragma once
/* Making directories. */

#include "fs/fs.h"

/* fs/createDirectory. 0 or -errno with e set. */
MUST_CHECK int fs_create_directory(const char *path, bool recursive, bool follow, struct err *e);
