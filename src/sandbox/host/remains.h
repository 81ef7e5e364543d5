#pragma once
/*
 * Placeholder directories (base/placeholders.h) that sandboxes may have left on the host, and of
 * which only the server still knows.
 *
 * When a supervisor is killed, its launcher may live for another moment, and so may init, which
 * inherits the launcher's locks until it closes them. Their lists wait here. The server sweeps them
 * again until nobody is left who could make or hold a directory.
 */

#include "base/list.h"
#include "base/placeholders.h"
#include "loop/loop.h"

#define REMAINS_MAX 1024 /* waiting lists; the oldest makes room */
#define REMAINS_TRIES                                                                              \
    40 /* per list; after that others hold its directories, and will remove them */
#define REMAINS_FIRST_MS 2
#define REMAINS_LAST_MS 1000 /* longest pause between two sweeps; the pause doubles up to here */

struct remains {
    struct loop *loop;
    struct loop_timer timer;
    struct list lists;
    size_t count;
};

void remains_init(struct remains *r, struct loop *loop);

/* Removes the directories that are left, and waits a short while for that. */
void remains_fini(struct remains *r);

/* Takes over the list of a supervisor that has ended: sweeps and frees it, now or later. NULL is
 * fine. */
void remains_take(struct remains *r, struct placeholders *l);
