#pragma once
/*
 * Downloads a file or a tree. The names of a tree come from one fs/walk; if that is truncated, or
 * the server cannot name links, from one walk for each directory. Directories get their permissions
 * and times when everything in them is there.
 */

#include "client/copydown.h"

/* xs_copy_download(). */
int downtree_run(struct xs_client *client, const char *remote, const char *local,
                 const struct xs_options *o, xs_progress_fn *progress, void *user,
                 struct xs_call *k);
