#pragma once
/* The listening socket. */

#include "server/server.h"

/* Binds, listens and prints the bound URL on stdout. 0 or -errno. */
MUST_CHECK int listener_open(struct server *s);
void listener_close(struct server *s);
