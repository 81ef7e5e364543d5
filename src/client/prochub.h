#pragma once
/*
 * The processes of a client: the table, the struct, and the way of notifications to them. The files
 * proc*.c of this room share it:
 *   prochub    the table, notifications, resume, the end
 *   procstart  start, adopt, view: how a process comes into the table
 *   procflow   events: in order to their consumer, fetched, acknowledged, held back
 *   procinput  stdin: writes in order, once
 *   procend    signals, terminate, time limits
 *   procask    wait, read, list, snapshot
 *   proctalk   communicate
 */

#include "base/hash.h"
#include "client/client_internal.h"
#include "client/evqueue.h"
#include "client/procmsg.h"

#define PROCHUB_ACK_STEP ((uint64_t)256 << 10)   /* bytes consumed until an acknowledgement */
#define PROCHUB_ACK_EVENTS 10000                 /* events consumed until an acknowledgement */
#define PROCHUB_PAGE_BYTES ((uint64_t)512 << 10) /* asked for at a time */
#define PROCHUB_INPUT_PIECE ((size_t)64 << 10)   /* bytes of stdin in one request */
#define PROCHUB_INPUT_MAX 64                     /* unanswered writes of a process */
#define PROCHUB_GRACE_MS 2000 /* from SIGTERM to SIGKILL at the end of a time limit */

struct proctalk;

/* A request of nobody: its answer is ignored. */
struct prochub_errand {
    struct list node;
    struct calls_request request;
};

struct processes {
    struct client_part part;
    struct xs_client *client;
    struct list all;     /* struct xs_process, views too */
    struct hash ids;     /* struct xs_process by id, without views */
    struct list errands; /* struct prochub_errand; at most one for each request in flight */
};

enum prochub_state {
    PROCHUB_STARTING, /* the caller does not have it yet */
    PROCHUB_LIVE,
    PROCHUB_CLOSED, /* CLOSED has come, though perhaps not to the consumer */
    PROCHUB_FAILED, /* `failure` tells; FAILED follows the events that have come */
};

struct xs_process {
    struct list node;       /* in processes.all */
    struct hash_node by_id; /* in processes.ids, if listed */
    struct processes *hub;
    char *id; /* owned */
    bool listed, live_counted;
    enum prochub_state state;
    bool tty, stdin_open; /* as started; adopted ones may have both */
    struct list ops;      /* struct prochub_op */

    /* events: procflow.c */
    struct evqueue q;
    struct xs_exit exit; /* all that is known */
    bool exit_details;   /* EXITED was told with everything */
    struct xs_error failure;
    bool failure_told; /* FAILED was handed out */
    bool exited_told, closed_told;
    int (*fn)(struct xs_process *p, const struct xs_event *e, void *user);
    void *user;
    bool paused;
    bool *gone;              /* set by xs_process_free() inside fn */
    struct notice notice;    /* calls fn */
    struct prochub_op *next; /* xs_process_next() that waits, or NULL */
    struct xs_event event;   /* handed out last, with its memory */
    struct evqueue_event *current;
    struct xs_exit event_exit;
    struct proctalk *talk;           /* communicate takes the events, or NULL */
    uint64_t bytes[EVQUEUE_STREAMS]; /* of each stream that were handed out */

    /* flow */
    struct calls_request page;    /* process/read */
    struct calls_request details; /* process/list, for the resources of an exit */
    uint64_t page_after;
    bool page_limited, page_held;
    bool held;               /* the server keeps what is not acknowledged */
    bool overran;            /* it was not held all the time */
    struct loop_timer retry; /* a request did not fit into the queue */
    struct loop_task retry_now;
    bool overruns; /* output beyond the window is given up: see procflow_kick() */
    bool holds;    /* client_hold() counts it */
    uint64_t unacked, unacked_events; /* handed out since the last acknowledgement */

    /* view: procstart.c */
    bool view;
    char *session; /* owned */
    uint64_t attach_id;
    bool attached;
    struct calls_request attach;

    /* stdin: procinput.c */
    struct list writes; /* struct procinput_write with something to send, in order */
    struct list pieces; /* struct procinput_piece, unanswered */
    size_t piece_count;
    struct calls_waiter input_waiter;
    uint64_t write_number;
    char write_prefix[17];

    /* the end: procend.c */
    struct loop_timer timeout, grace;
    bool timed_out; /* the client ended it because its time was over */
};

/* An operation on a process. Its struct begins with this. */
struct prochub_op {
    struct op op;
    struct xs_process *p; /* NULL: freed meanwhile */
    struct list node;     /* in p->ops */
    bool stalls;          /* it cannot end while the process is held back by its full window */
    /* Looks whether it can end; called when anything about the process changed. May be NULL. It may
     * end this op, nothing else. */
    void (*check)(struct prochub_op *o);
    struct calls_request request; /* dropped at its end */
};

/* The state of a client, made at the first use. NULL: out of memory. */
struct processes *prochub_get(struct xs_client *c);

/* A process that is not in the table yet. NULL: out of memory. */
struct xs_process *prochub_process_new(struct processes *hub, const char *id, uint64_t after);

/* Adds it by its id: 0, XS_EINVAL if the id is taken, XS_ENOMEM. */
int prochub_add(struct xs_process *p);

/* Ends its operations with `code` and frees it. */
void prochub_process_free(struct xs_process *p, int code);

/* The start succeeded: news of it are awaited from now on. */
void prochub_set_live(struct xs_process *p);
void prochub_set_state(struct xs_process *p, enum prochub_state s);

/*
 * A new operation on p: as op_new(), with the process's own failure if it has failed. `size` bytes
 * that begin with a struct prochub_op. `end` of the op is prochub_op_end(), or calls it.
 */
MUST_CHECK int prochub_op_new(struct xs_process *p, struct xs_call *k, size_t size,
                              void (*end)(struct op *op), void *out);
void prochub_op_end(struct op *op);

/* Runs `check` of all operations. */
void prochub_check(struct xs_process *p);

/* Begins a request of nobody. The caller appends the params to the buffer, then calls
 * prochub_errand_send(). NULL: out of memory. */
struct prochub_errand *prochub_errand_new(struct processes *hub, const char *method,
                                          struct buf **params);
/* 0, or the error: the errand is gone. */
int prochub_errand_send(struct processes *hub, struct prochub_errand *e, int built);

/* Sends process/terminate (force), and forgets it. */
void prochub_kill(struct processes *hub, const char *id);

/* The member processId, alone: {"processId":ID and, unless `open`, }. */
void prochub_params(struct params *p, struct buf *b, const char *id);
