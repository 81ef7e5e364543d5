#pragma once
/* The listening socket. */

#include "app/server.h"

/*
 * Binds and listens, or takes the socket that a service manager has bound, and prints the bound URL
 * on stdout. A stale socket file is replaced. 0, or -errno with the reason in e.
 */
MUST_CHECK int listener_open(struct server *s, struct err *e);

/* Stops listening, removes the socket file it made, and tells the service manager. */
void listener_close(struct server *s);
