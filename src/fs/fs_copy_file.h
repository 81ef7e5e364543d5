#pragma once
/* Copying one file or link, by names relative to directories. */

#include "fs/fs.h"

struct fs_copy_file {
    int source_dir, destination_dir; /* AT_FDCWD for full paths; borrowed */
    const char *source, *destination;
    bool nofollow; /* a destination that is a link is refused: ELOOP */
};

/*
 * Copies a regular file with its mode and access list. The destination is made, or replaced in
 * place through links; devices are written, too. 0 or -errno with e set; 1, with e not set,
 * if the destination is a FIFO that has a reader: it is no file, and the caller knows its path for
 * the text.
 */
MUST_CHECK int fs_copy_file_regular(const struct fs_copy_file *c, const atomic_bool *stop,
                                    struct err *e);

/* Makes a link with the same text; the destination must not exist. 0 or -errno with e set. */
MUST_CHECK int fs_copy_file_link(const struct fs_copy_file *c, struct err *e);
