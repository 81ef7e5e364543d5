#pragma once
/*
 * Commands that write faster than anybody reads. Where the scheduler gives each session its share
 * (autogroup), such a command weighs as much as the whole server, and a few of them make everybody
 * else wait. So while more than FLOOD_FREE commands flood, their sessions get smaller shares, which
 * costs nothing on a machine with time to spare. A share is put back when the flood is over.
 *
 * A flood: FLOOD_BYTES or more in each of two windows in a row. Its end: less than a quarter of
 * that in a window. Where there are no such shares, or they cannot be set, nothing happens.
 */

#include "loop/loop.h"

#include <sys/types.h>

#define FLOOD_WINDOW_MS 250
#define FLOOD_BYTES (512u << 10)
#define FLOOD_TTY_WEIGHT 4 /* a byte through a terminal costs the kernel much more */
#define FLOOD_FREE 2       /* floods at a time that do no harm */
#define FLOOD_NICE 15      /* of a session: about a thirtieth of the weight of another */

struct flood {
    struct loop *loop;
    size_t *floods;          /* of the server at this time; borrowed */
    struct loop_timer timer; /* running during a flood, or until the share is put back */
    pid_t supervisor;        /* of the command: an unreaped child of ours; 0 = none */
    pid_t session;           /* of the command; 0: any below the supervisor that is not ours */
    uint64_t since;          /* begin of the window */
    size_t bytes;            /* of the window */
    bool before;             /* the window before was one of a flood */
    bool active;             /* counted in *floods */
    bool lowered;
    bool useless; /* the share cannot be set */
};

void flood_init(struct flood *f, struct loop *loop, size_t *floods);

/* The command runs. */
void flood_begin(struct flood *f, pid_t supervisor, pid_t session);

/* The command has written n bytes. */
void flood_add(struct flood *f, size_t n);

/* The supervisor ends or has ended, and so has everything below it. Harmless twice. */
void flood_end(struct flood *f);
