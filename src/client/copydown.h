#pragma once
/* Downloads one file: whole in one message, or in blocks to a part file that is gone on with. */

#include "client/copyop.h"
#include "client/fsanswer.h"
#include "client/localpart.h"

struct copydown;

/* What a download of a file needs to know. Strings are copied. */
struct copydown_file {
    const char *remote;             /* path */
    const char *shown;              /* for the user */
    int dir;                        /* the local directory; duplicated */
    const char *leaf;               /* the local name in it */
    const struct fsanswer_stat *st; /* of the file; NULL: not known yet */
    /* Inside the loop, when the file is there or is left out; it sends nothing. May be NULL. */
    void (*done)(void *user);
    void *user;
};

/* Adds the job. 0; a failure that ends the copy is in e. */
MUST_CHECK int copydown_start(struct copyop *c, const struct copydown_file *f, struct xs_error *e);

/* The mode of a new local file or directory with the permissions of `st`. */
mode_t copydown_mode(const struct copyop *c, const struct fsanswer_stat *st, mode_t otherwise);
