#pragma once
/*
 * The helper in a sandbox: makes the calls that come over its channel (fs/fs_call.h), one after the
 * other, and ends with it. A call is one packet, with the data to write in a memfd if there is
 * some; so is its answer, with the file or the memfd it speaks of.
 */

#include "sandbox/inside/launch.h"

/* Serves the channel; a launch_helper_fn. */
int fs_helper_main(const struct layout *l, int channel);

/* A memfd that holds the text, to be read from the beginning; or -errno. */
MUST_CHECK int fs_helper_main_memfd(struct str text);
