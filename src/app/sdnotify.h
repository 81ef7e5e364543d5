#pragma once
/*
 * What a service manager such as systemd passes to a service: a listening socket, and a socket on
 * which the service tells its state. The protocols are those of sd_listen_fds(3) and sd_notify(3).
 */

#include "base/err.h"

#include <sys/socket.h>

#define SDNOTIFY_FIRST_FD 3

/*
 * How many descriptors were passed to this process, from SDNOTIFY_FIRST_FD on. They become
 * close-on-exec, and the variables (LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES, LISTEN_PIDFDID) leave
 * the environment, also when they were meant for another process.
 */
unsigned sdnotify_take_fds(void);

/* The value of NOTIFY_SOCKET, owned, or NULL; the variable leaves the environment. */
char *sdnotify_take_socket(void);

/*
 * The one socket among `count` descriptors passed: it must be a stream socket that listens, TCP or
 * Unix. Makes it non-blocking; *addr is what it is bound to. 0, or -EINVAL with the reason in e.
 */
MUST_CHECK int sdnotify_socket(unsigned count, int *fd, struct sockaddr_storage *addr,
                               socklen_t *len, struct err *e);

/*
 * Sends a state such as "READY=1" to the socket of that name ('@' first: an abstract one). Never
 * waits; does nothing when name is NULL; a failure is logged.
 */
void sdnotify_send(const char *name, const char *state);
