#pragma once
/* A descriptor without content, for standard streams that nobody uses. */

#include "base/util.h"

/*
 * Opens /dev/null with `flags` (close-on-exec is added). A host without it (a chroot, a minimal
 * image) gives the read end of a pipe that nobody writes to instead: reading finds the end, writing
 * fails with EBADF. The descriptor, or -errno.
 */
MUST_CHECK int nullfd_open(int flags);
