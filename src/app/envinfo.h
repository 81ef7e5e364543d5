#pragma once
/* environmentInfo: facts about this host for clients. */

#include "base/util.h"

struct buf;
struct server;

/* Sets server->processes.shell and the constant part in server->info. 0 or -errno. */
MUST_CHECK int envinfo_build(struct server *s);

/* Appends environmentInfo. 0 or as buf_reserve(). */
MUST_CHECK int envinfo_put(struct server *s, struct buf *b);
