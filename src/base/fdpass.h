#pragma once
/* Passes a descriptor along with bytes over a Unix socket. */

#include "base/str.h"
#include "base/util.h"

#include <sys/types.h>

/* Sends head and text, with a descriptor unless fd is -1. 0 or -errno. */
MUST_CHECK int fdpass_send(int sock, struct str head, struct str text, int fd);

/*
 * Receives bytes with at most one descriptor; `flags` as of recvmsg(). The number of bytes, 0 at
 * the end, or -errno: -EMSGSIZE for more bytes or descriptors than there is room for, -EMFILE if
 * this process has no number left for the descriptor (the packet is lost). *fd is close-on-exec,
 * the caller's, and -1 if there is none.
 */
MUST_CHECK ssize_t fdpass_receive(int sock, void *p, size_t n, int flags, int *fd);
