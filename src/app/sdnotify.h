#pragma once
/*
 * The interface to a service manager such as systemd: it passes a listening socket, and a socket
 * for reports of the service's state. See sd_listen_fds(3) and sd_notify(3).
 */

#include "base/err.h"

#include <sys/socket.h>

#define SDNOTIFY_FIRST_FD 3

/*
 * The number of descriptors passed to this process, from SDNOTIFY_FIRST_FD on. Makes them
 * close-on-exec and removes the variables (LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES, LISTEN_PIDFDID)
 * from the environment, even if they were meant for another process.
 */
unsigned sdnotify_take_fds(void);

/* Removes NOTIFY_SOCKET from the environment; returns its value, owned, or NULL. */
char *sdnotify_take_socket(void);

/*
 * Finds the one socket among `count` passed descriptors: a listening stream socket, TCP or Unix.
 * Makes it non-blocking; *addr becomes its address. 0, or -EINVAL with the reason in e.
 */
MUST_CHECK int sdnotify_socket(unsigned count, int *fd, struct sockaddr_storage *addr,
                               socklen_t *len, struct err *e);

/*
 * Sends a state such as "READY=1" to the socket of that name ('@' first: an abstract one). Never
 * waits; logs a failure; does nothing if name is NULL.
 */
void sdnotify_send(const char *name, const char *state);
