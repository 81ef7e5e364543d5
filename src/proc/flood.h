#pragma once
/*
 * Commands that write faster than clients read. Where the scheduler gives each session a share
 * (autogroup), such a command weighs as much as the whole server, and a few of them starve all
 * others. So while more than FLOOD_FREE commands flood, their sessions get smaller shares; on a
 * machine with idle CPUs that costs nothing. After the flood a session gets its share back.
 *
 * A flood begins with FLOOD_BYTES or more in each of two consecutive windows. It ends with less
 * than a quarter of that in a window. Without autogroup, or without the right to set shares,
 * nothing happens.
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
    size_t *floods;          /* counter of the server's floods; borrowed */
    struct loop_timer timer; /* runs during a flood, and until the share is restored */
    pid_t supervisor;        /* the command's, an unreaped child of the server; 0 = none */
    pid_t session;           /* the command's; 0: any below the supervisor but the server's own */
    uint64_t since;          /* begin of the window */
    size_t bytes;            /* of the window */
    bool before;             /* the previous window was a flood */
    bool active;             /* counted in *floods */
    bool lowered;
    bool useless; /* the share cannot be set */
};

void flood_init(struct flood *f, struct loop *loop, size_t *floods);

/* The command runs. */
void flood_begin(struct flood *f, pid_t supervisor, pid_t session);

/* The command has written n bytes. */
void flood_add(struct flood *f, size_t n);

/* The supervisor and all processes below it end or have ended. Harmless twice. */
void flood_end(struct flood *f);
