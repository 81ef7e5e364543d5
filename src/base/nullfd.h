#pragma once
/* A descriptor without content, for standard streams that nobody uses. */

#include "base/util.h"

/*
 * Opens /dev/null with `flags` and close-on-exec. On a host without it (a chroot, a minimal image)
 * opens the read end of a pipe without a writer: reading finds the end, writing fails with EBADF.
 * The descriptor, or -errno.
 */
MUST_CHECK int nullfd_open(int flags);
