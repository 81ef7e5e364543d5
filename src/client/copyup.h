#pragma once
/*
 * Uploads one file: whole in one message, or in blocks to a part file that is gone on with.
 *
 * Two copies may have one destination, and nothing there can be locked. So each writes to a part
 * with a token of its own. A copy that goes on with a part renames it first, which only one can.
 */

#include "client/copyop.h"

#include <sys/stat.h>

struct copyup_file {
    int fd;             /* the local file; taken over, also by a failure */
    const char *remote; /* path; copied, as all strings */
    const char *shown;  /* for the user */
    bool fresh;         /* nothing has the name there */
};

/* Adds the job. 0; a failure that ends the copy is in e. */
MUST_CHECK int copyup_start(struct copyop *c, const struct copyup_file *f, struct xs_error *e);

/* The permissions of a new file or directory there. */
unsigned copyup_mode(const struct copyop *c, mode_t local);
