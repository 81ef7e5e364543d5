#pragma once
/* Open files for the caller. */

#include "client/fshandle.h"

struct xs_file {
    struct list node;        /* in files.opened */
    struct fshandle *handle; /* owned */
    struct list ops;         /* reads and writes in flight: struct file_op.node */
};

/* xs_fs_open(). */
int xs_file_start(struct xs_fs *f, const char *path, enum xs_open mode, struct xs_file **out,
                  struct xs_call *k);
