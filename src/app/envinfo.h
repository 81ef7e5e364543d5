#pragma once
/* environmentInfo: what a client learns about this host. */

#include "app/server.h"

/* Builds server->processes.shell and server->info, what of it does not change. 0 or -errno. */
MUST_CHECK int envinfo_build(struct server *s);

/* Appends environmentInfo. 0 or as buf_reserve(). */
MUST_CHECK int envinfo_put(struct server *s, struct buf *b);
