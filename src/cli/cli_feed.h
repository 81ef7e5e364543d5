#pragma once
/* Standard input of a command there: reads ours, writes to the process, keeps what is on its way
 * bounded. */

#include "base/buf.h"
#include "execserver.h"

#include <stdbool.h>
#include <stddef.h>

#define CLI_FEED_SLOTS 16
#define CLI_FEED_PIECE (128u << 10)    /* bytes of one write */
#define CLI_FEED_TYPED_MAX (64u << 10) /* bytes of a terminal that may wait */

struct cli_feed;

struct cli_feed_slot {
    struct xs_call call;
    struct cli_feed *feed;
    size_t n;
    bool busy;
};

struct cli_feed {
    struct xs_process *process; /* borrowed; NULL: none yet, or no more */
    int fd;                     /* borrowed */
    bool open;                  /* more may come */
    bool broken;                /* nobody reads there */
    size_t waiting;             /* bytes that are not answered */
    size_t max;                 /* of them */
    char *piece;                /* owned: CLI_FEED_PIECE bytes */
    struct cli_feed_slot slots[CLI_FEED_SLOTS];
    bool typed;         /* single keys: what finds no slot is held */
    struct buf held;    /* behind everything in the slots; at most max and a piece */
    struct xs_call end; /* of closing stdin */
    bool ending, ended; /* ending: when nothing is held any more */
};

/* 0, or -ENOMEM. `max` bytes may wait for an answer, or for a slot if they are `typed`. */
int cli_feed_init(struct cli_feed *f, int fd, size_t max, bool typed);
void cli_feed_fini(struct cli_feed *f);

/* True if a piece may be sent now. */
bool cli_feed_has_room(const struct cli_feed *f);

/* Reads one piece into f->piece. The bytes; 0 at the end; negative errno, -EAGAIN included. */
long cli_feed_read(struct cli_feed *f);

/* Sends a piece; there is room. Drops it if nobody reads there. */
void cli_feed_send(struct cli_feed *f, const void *p, size_t n);

/* Closes stdin of the process, behind everything sent. */
void cli_feed_end(struct cli_feed *f);
