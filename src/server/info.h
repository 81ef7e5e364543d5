#pragma once
/* environmentInfo: what a client learns about this host. */

#include "server/server.h"

/* Reads the user's passwd entry and builds server->shell and server->info. 0 or -errno. */
MUST_CHECK int info_build(struct server *s);
