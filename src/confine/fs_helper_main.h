#pragma once
/*
 * The helper in a sandbox: makes the calls that come over its channel (fs/fs_call.h), one after the
 * other, and ends with it. A call is one packet, with the data to write in a memfd if there is
 * some; so is its answer, with the file or the memfd it speaks of.
 */

#include "sandbox/inside/launch.h"

/* As of launch_main(). */
int fs_helper_main(const struct layout *l, int channel);

/*
 * One packet with at most one descriptor. Bytes, 0 at the end, or -errno (-EMFILE: the packet is
 * gone, since there was no place for its descriptor); *fd is -1 for none.
 */
MUST_CHECK ssize_t fs_helper_receive(int channel, void *p, size_t n, int *fd);
MUST_CHECK int fs_helper_send(int channel, const void *head, size_t head_n, struct str text,
                              int fd);

/* A memfd that holds the text, to be read from the beginning. -errno. */
MUST_CHECK int fs_helper_memfd(struct str text);
