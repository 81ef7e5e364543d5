#pragma once
/*
 * The file helper inside a sandbox: makes the calls that arrive on its channel (fs/fs_call.h), one
 * after the other, and ends with the channel. A call is one packet, with a memfd of the data to
 * write, if any. Its answer is one packet, with the file or memfd it names.
 */

#include "sandbox/inside/launch.h"

/* Serves the channel; a launch_helper_fn. */
int fs_helper_main(const struct layout *l, int channel);

/* A memfd that holds the text, to be read from the beginning; or -errno. */
MUST_CHECK int fs_helper_main_memfd(struct str text);
