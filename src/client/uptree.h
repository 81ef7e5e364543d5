#pragma once
/*
 * Uploads a file or a tree, in three walks through the local one: makes the directories and counts,
 * copies files and links, sets permissions and times of directories.
 */

#include "client/copyup.h"

/* xs_copy_upload(). */
int uptree_run(struct xs_client *client, const char *local, const char *remote,
               const struct xs_options *o, xs_progress_fn *progress, void *user, struct xs_call *k);
