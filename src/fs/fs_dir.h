#pragma once
/* Listing directories. */

#include "fs/fs_item.h"
#include "fs/fs_place.h"

/*
 * fs/readDirectory: hands each entry to the sink, bad bytes of its name replaced by U+FFFD. Ends
 * early, with ECANCELED, once *stop is true. 0 or -errno with e set; the sink's -ENOBUFS becomes
 * the text of a result that is too large.
 */
MUST_CHECK int fs_dir_read(const char *path, const atomic_bool *stop, const struct fs_sink *sink,
                           struct err *e);

/* Like fs_dir_read() at a place; `path` is how the client named it. */
MUST_CHECK int fs_dir_read_at(const struct fs_place *p, const char *path, const atomic_bool *stop,
                              const struct fs_sink *sink, struct err *e);
