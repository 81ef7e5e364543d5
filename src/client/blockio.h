#pragma once
/*
 * Moves a range of a file in blocks of 1 MiB, several in flight. What is read arrives in order:
 * when the transfer breaks off, a prefix is there and no hole.
 */

#include "client/fshandle.h"
#include "client/pace.h"

struct blockio;

struct blockio_slot {
    struct fshandle_io io;
    struct blockio *owner;
    bool busy;
    uint64_t sent_ns;
    char *early; /* owned: data that came before that of an earlier block */
    size_t early_n;
    bool early_eof;
};

/* Embedded; zero at first. */
struct blockio {
    struct fshandle *handle; /* borrowed */
    uint64_t next, end;      /* what is still to be asked for; read: end may be UINT64_MAX */
    unsigned fixed;          /* blocks in flight; 0: as the pace says */
    /* Read: the next bytes. 0, or a failure with e set. Write: NULL. */
    int (*take)(struct blockio *b, uint64_t offset, struct str data, struct xs_error *e);
    /* Write: n bytes at offset, valid until the next call; NULL: they cannot be had. */
    const void *(*give)(struct blockio *b, uint64_t offset, size_t n);
    /* n more bytes are there. May be NULL. */
    void (*moved)(struct blockio *b, size_t n);
    /* The end. err 0: all is there, or, of a file that became shorter, all up to `reached`. May
     * free b and the handle. */
    void (*done)(struct blockio *b, int err, struct xs_error *e);
    uint64_t reached; /* read: up to here everything was taken */
    struct pace pace; /* kept from file to file by the owner */
    /* private */
    bool running, eof;
    unsigned flying;
    struct blockio_slot slots[PACE_MAX];
    struct calls_waiter waiter;
};

/* Begins: `done` comes later, inside the loop, also for an empty range (unless that is at once: it
 * returns 1). 0, or a failure in e; then nothing runs. */
MUST_CHECK int blockio_start(struct blockio *b, struct xs_error *e);

/* Stops; `done` does not come. Harmless when idle. */
void blockio_stop(struct blockio *b);
