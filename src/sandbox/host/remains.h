#pragma once
/*
 * What sandboxes may have left on the host: lists of placeholder directories (base/placeholders.h)
 * that the server is the last one to know of.
 *
 * When a supervisor was killed its launcher may still live, for a moment, and so may init, which
 * holds the launcher's locks until it has closed them. Such lists wait here, and are swept again,
 * until nobody is left who could make or hold something.
 */

#include "base/list.h"
#include "base/placeholders.h"
#include "loop/loop.h"

#define REMAINS_MAX 1024 /* lists that wait; the oldest makes room */
#define REMAINS_TRIES 40 /* per list; then others hold its directories, and remove them */
#define REMAINS_FIRST_MS 2
#define REMAINS_LAST_MS 1000 /* between two looks; it doubles up to here */

struct remains {
    struct loop *loop;
    struct loop_timer timer;
    struct list lists;
    size_t count;
};

void remains_init(struct remains *r, struct loop *loop);

/* Removes what is left, waiting for it for a short while. */
void remains_fini(struct remains *r);

/* Takes a list over, when its supervisor is gone: sweeps and frees it, now or later. NULL is
 * fine. */
void remains_take(struct remains *r, struct placeholders *l);
