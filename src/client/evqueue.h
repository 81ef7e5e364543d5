#pragma once
/*
 * The events of one process, put in order: each number is handed out exactly once, from the cursor
 * on. Live notifications and the answers of process/read go in, in any order and repeated; events
 * come out in the order of their numbers. A number that no source has any more is handed out inside
 * exactly one GAP.
 *
 * Memory is bounded: events in order wait for their consumer up to `window` bytes, events behind a
 * hole up to EVQUEUE_EARLY_COUNT and EVQUEUE_EARLY_BYTES. What does not fit is dropped here, and
 * evqueue_wants_page() tells that process/read must fetch it. The end of the process (EXITED,
 * CLOSED) needs no room and is never dropped.
 */

#include "base/list.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

#define EVQUEUE_EARLY_COUNT 256
#define EVQUEUE_EARLY_BYTES ((size_t)1 << 20)
#define EVQUEUE_CHUNK_MAX ((size_t)1 << 20) /* a larger chunk breaks the protocol */

enum evqueue_type { EVQUEUE_OUTPUT, EVQUEUE_EXITED, EVQUEUE_CLOSED, EVQUEUE_GAP };
enum evqueue_stream { EVQUEUE_STDOUT, EVQUEUE_STDERR, EVQUEUE_PTY, EVQUEUE_STREAMS };

struct evqueue_event {
    struct list node; /* in `ready` or `early`; the popped event belongs to the caller */
    enum evqueue_type type;
    enum evqueue_stream stream; /* OUTPUT */
    uint64_t seq;               /* GAP: the first number that is lost */
    uint64_t to;                /* GAP: the last number that is lost; otherwise seq */
    size_t n;                   /* OUTPUT: bytes of data */
    size_t cost;                /* memory */
    char data[];
};

/* One chunk of output as it came. */
struct evqueue_chunk {
    uint64_t seq;
    enum evqueue_stream stream;
    struct str base64; /* borrowed */
};

/* One answer of process/read. */
struct evqueue_page {
    uint64_t after;                     /* the afterSeq that was asked for */
    bool limited;                       /* the request had a maxBytes */
    bool held;                          /* the server forgets nothing that is not acknowledged */
    const struct evqueue_chunk *chunks; /* ascending numbers above `after`; borrowed */
    size_t count;
    uint64_t next_seq;
    bool exited, closed;
};

struct evqueue {
    struct list ready; /* struct evqueue_event: numbers up to `last`, in order */
    struct list early; /* struct evqueue_event: behind a hole, in order */
    size_t ready_cost, early_cost, early_count;
    size_t window;       /* maximum of ready_cost, but for the event that passes it */
    uint64_t last;       /* all numbers up to here are in `ready` or handed out */
    uint64_t handed;     /* the number handed out last */
    uint64_t seen;       /* the largest number known to exist */
    uint64_t exit_seq;   /* number of EXITED; 0 while unknown */
    uint64_t closed_seq; /* number of CLOSED; 0 while unknown */
    bool wants_details;  /* set by the owner: an EXITED found in a page waits, see exit_held */
    bool exit_held;      /* EXITED was found in a page and waits for evqueue_release_exit() */
    bool exit_queued;    /* EXITED is in `ready` or handed out */
    bool closed_queued;  /* CLOSED likewise: nothing follows */
    bool behind;         /* events were dropped: process/read must fetch them */
    bool cut;            /* events may be missing that `seen` does not tell */
    uint64_t gaps;       /* numbers that were lost, in all */
};

/* The first event handed out has the number after + 1. Allocates nothing. */
void evqueue_init(struct evqueue *q, uint64_t after, size_t window);
void evqueue_fini(struct evqueue *q);

/*
 * An OUTPUT arrived. 1 if it is new and was taken or noted, 0 if its number was there before,
 * -ENOMEM, -EPROTO for number 0, bad Base64, a chunk above EVQUEUE_CHUNK_MAX, or output after
 * CLOSED.
 */
int evqueue_output(struct evqueue *q, const struct evqueue_chunk *c);

/* EXITED or CLOSED arrived. As evqueue_output(). */
int evqueue_exited(struct evqueue *q, uint64_t seq);
int evqueue_closed(struct evqueue *q, uint64_t seq);

/* A connection was lost, and events with it: wants pages until one of them is the last. */
void evqueue_cut(struct evqueue *q);

/* process/read is being asked: what arrives from now on is sorted in behind the hole. */
void evqueue_asked(struct evqueue *q);

/*
 * An answer of process/read. Numbers that neither it nor a notification has become GAPs: those
 * before the first chunk, and those between chunks. The exception is one that can be EXITED. 0,
 * -ENOMEM, or -EPROTO if the server has fewer events than this queue, or chunks out of order.
 */
int evqueue_page(struct evqueue *q, const struct evqueue_page *page);

/* The owner knows the details of an EXITED that a page revealed. 0 or -ENOMEM. */
int evqueue_release_exit(struct evqueue *q);

/* Moves early events, EXITED and CLOSED behind the last one whose turn came. 0 or -ENOMEM. */
int evqueue_absorb(struct evqueue *q);

/* Whether process/read must be asked for what follows `last`, and there is room for it. */
bool evqueue_wants_page(const struct evqueue *q);

/* Whether the window is full: what arrives now is dropped, and fetched later. */
bool evqueue_is_full(const struct evqueue *q);

/* The next event, now the caller's (free()), or NULL. */
struct evqueue_event *evqueue_pop(struct evqueue *q);
