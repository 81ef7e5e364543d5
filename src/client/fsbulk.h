#pragma once
/* Whole files that are larger than a message: by a handle, in blocks. */

#include "client/blockio.h"
#include "client/fsop.h"

/* xs_fs_read() and xs_fs_write(). */
int fsbulk_read(struct xs_fs *f, const char *path, unsigned flags, uint64_t max,
                struct xs_bytes *out, struct xs_call *k);
int fsbulk_write(struct xs_fs *f, const char *path, const void *data, size_t n, unsigned flags,
                 struct xs_call *k);
