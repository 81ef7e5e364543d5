#pragma once
/*
 * Requests of one connection: lifecycle, order of execution, answers.
 *
 * Order. Requests run one after another, or up to `lanes` at a time; they begin in the order in
 * which they came. A call that cannot be answered at once is deferred and keeps its lane
 * (rpc_defer), or it yields the lane to the next request (rpc_yield). Control methods overtake
 * requests that wait, but none that names the same process or handle.
 *
 * Connections share a turn of the loop: each runs its requests until its slice is over
 * (loop_yield). A thread parses and decodes large messages, the first of a connection at a time.
 * Until then nobody knows what such a message names, so no request that names something overtakes
 * it. Half as many threads as CPUs do that, so that one CPU is left for the loop; connections take
 * turns.
 *
 * Maxima per connection: RPC_QUEUE_MAX requests or RPC_QUEUE_BYTES of text wait for a lane; input
 * pauses above that. RPC_YIELDED_MAX calls yield, more are refused; they are not answered while the
 * output queue is full. The ids of deferred calls take RPC_DEFERRED_ID_BYTES. No call begins beside
 * others that are charged with RPC_CHARGED_MAX bytes of data.
 */

#include "base/buf.h"
#include "base/list.h"
#include "json/json.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "net/conn.h"

#define RPC_QUEUE_MAX 4096
#define RPC_QUEUE_BYTES ((size_t)CONN_MSG_MAX)
#define RPC_YIELDED_MAX 1024
#define RPC_ID_MAX ((size_t)1 << 20) /* bytes of an id */
#define RPC_AHEAD ((size_t)16 << 10) /* a message with so much text is read in a thread */
#define RPC_READERS_MAX 4            /* threads that read messages */
#define RPC_KEY_MAX 4096             /* bytes of the name of a process or handle */
#define RPC_DEFERRED_ID_BYTES ((size_t)CONN_MSG_MAX) /* of the ids of deferred calls */
#define RPC_CHARGED_MAX (32u << 20)                  /* bytes of data of running calls */
#define RPC_RESULT_MAX ((size_t)CONN_MSG_MAX)        /* bytes of one answer */

struct rpc_peer;
struct rpc_call;

/* What a handler did. */
enum rpc_outcome {
    RPC_DONE,  /* the result's JSON text was appended to `result` */
    RPC_ERROR, /* e says why */
    RPC_LATER, /* the call was deferred */
};

/* What the time of a method counts for. */
enum rpc_timing { RPC_UNTIMED, RPC_TIMED_START, RPC_TIMED_FILES, RPC_TIMINGS };

struct rpc_method {
    const char *name;
    const char *family; /* in "client must call initialize before using FAMILY methods"; or NULL */
    const char *key;    /* the parameter that names a process or handle, or NULL */
    bool control;       /* overtakes requests that wait */
    /*
     * Two steps, because bad params are reported before a missing handshake: `decode` checks the
     * params and stores them in RPC_PARAMS_MAX bytes, `run` acts on them. `decode` may run in a
     * thread, so it touches nothing else.
     */
    int (*decode)(const struct json_node *params, void *out, struct err *e);
    enum rpc_outcome (*run)(struct rpc_call *c, void *params, struct buf *result, struct err *e);
    /* NULL, or frees what the params own; called last, also after a failed decode. */
    void (*release)(void *params);
    const char *base64; /* the parameter decoded by conn_message_base64(), or NULL */
};

#define RPC_PARAMS_MAX 1024 /* bytes of decoded params */
#define RPC_METHODS_MAX 64
#define RPC_STREAM_TAIL_MAX 16

#define RPC_BUCKETS 12

/* How long requests took, from their turn to their answer; in ns. */
struct rpc_latency {
    uint64_t buckets[RPC_BUCKETS + 1]; /* by rpc_bucket_ns, the last: longer ones */
    uint64_t sum;
};

extern const uint64_t rpc_bucket_ns[RPC_BUCKETS]; /* their upper bounds */

/* How the requests for one method ended. */
struct rpc_tally {
    uint64_t results, errors;
    uint64_t dropped; /* the connection ended first */
};

/* What the peers of a server share. */
struct rpc_host {
    struct loop *loop;
    struct pool *pool;
    struct list ahead; /* struct rpc_ahead: large messages that wait for a thread, in order */
    size_t reading;    /* threads that read one now */
    size_t readers;    /* their maximum */
    const struct rpc_method *methods;
    size_t method_count;
    size_t lanes;         /* >= 1 */
    const char *greeting; /* the method that comes first, for errors; "initialize" */
    struct json_doc doc;
    struct buf result;                             /* under construction */
    struct sendq_seg *blob;                        /* segments to insert into it, or NULL */
    size_t blob_at;                                /* before this byte of it */
    struct rpc_tally tallies[RPC_METHODS_MAX + 1]; /* by method; the last: unknown methods */
    uint8_t timing[RPC_METHODS_MAX];         /* enum rpc_timing, by method; the owner sets it */
    struct rpc_latency latency[RPC_TIMINGS]; /* by enum rpc_timing; RPC_UNTIMED stays empty */
    uint64_t malformed;                      /* messages */
    void (*peer_gone)(struct rpc_peer *p);
};

/*
 * `count` methods, at most RPC_METHODS_MAX, borrowed. The pool reads large messages, and its loop
 * runs the peers. It calls `peer_gone` before it frees a peer.
 */
void rpc_host_init(struct rpc_host *h, struct pool *pool, const struct rpc_method *methods,
                   size_t count, size_t lanes, void (*peer_gone)(struct rpc_peer *p));
void rpc_host_fini(struct rpc_host *h);

enum rpc_life { RPC_NEW, RPC_GREETED, RPC_READY };

struct rpc_peer {
    struct rpc_host *host;
    struct conn *conn;
    void *user; /* the owner's: the session once there is one */
    enum rpc_life life;
    bool ending;       /* no input follows: answers the rest, then ends the connection */
    struct list queue; /* struct rpc_waiting: have not begun, in order */
    size_t queued, queued_bytes;
    struct list calls;       /* deferred calls */
    size_t id_bytes;         /* of their ids */
    size_t running;          /* of them, those with a lane */
    size_t yielded;          /* of them, those that yielded their lane */
    size_t yielded_bytes;    /* their data, counted by the methods that own it */
    struct rpc_call *stream; /* of them, the one that sends its answer piece by piece */
    size_t charged_bytes;    /* the sum of rpc_charge() */
    bool room_wanted;        /* one of them waits to stream, or to be charged with more */
    struct loop_task pump;
    struct list asks;  /* struct rpc_ask: requests to the client without an answer, in order */
    size_t ask_count;  /* their number */
    uint64_t last_ask; /* id of the last one */
};

/* A call. It lives on the stack of its handler; rpc_defer() and rpc_yield() make it last. */
struct rpc_call {
    struct list node;
    struct rpc_peer *peer; /* NULL: nobody waits for the answer any more */
    char *id;              /* JSON text of the id; owned by a deferred call, else borrowed */
    size_t id_len;
    size_t method;                      /* index in the table; method_count if unknown */
    uint64_t begun;                     /* ns, of the monotonic clock; 0 = it is not timed */
    size_t charged;                     /* bytes; see rpc_charge() */
    bool yielded;                       /* it has no lane */
    const struct conn_message *message; /* in a handler: the message with the call; borrowed */
    void *target; /* in a handler: the owner's, what the params are about; NULL = its own */
    void *user;
    void (*cancelled)(struct rpc_call *c); /* the connection is gone; frees the call */
    void (*expire)(struct rpc_call *c); /* end of input: answers at once, incomplete if need be */
    void (*room)(struct rpc_call *c);   /* there is room for a large answer again */
};

/* A new peer for a connection; NULL when out of memory. */
struct rpc_peer *rpc_peer_new(struct rpc_host *h, struct conn *conn);

/* The connection is gone: cancels calls, tells peer_gone, frees the peer. */
void rpc_peer_free(struct rpc_peer *p);

/* The output queue has room for answers again. */
void rpc_peer_resume(struct rpc_peer *p);

/* The output queue has room for more of a streamed answer. */
void rpc_peer_drained(struct rpc_peer *p);

/* Whether a deferred call may be answered now; if not, its `room` callback follows. */
bool rpc_has_room(const struct rpc_call *c);

/* A message arrived. */
void rpc_peer_message(struct rpc_peer *p, const struct conn_message *message);

/* No more messages will come; conn_end() follows when all is answered. */
void rpc_peer_input_end(struct rpc_peer *p);

/*
 * Makes a call outlast its handler; it keeps its lane. The caller owns the result until it answers
 * or forgets it. NULL when out of memory (e is set). A call without a `cancelled` callback outlives
 * its connection; its answer is then dropped.
 */
struct rpc_call *rpc_defer(struct rpc_call *c, struct err *e);

/* Like rpc_defer(), but gives the lane up. NULL with e set, also above RPC_YIELDED_MAX. */
struct rpc_call *rpc_yield(struct rpc_call *c, struct err *e);

/*
 * Charges a deferred call with all the data that it holds from now on, its answer included.
 * rpc_may_charge() tells whether it may take `bytes` more; if not, `room` follows.
 */
void rpc_charge(struct rpc_call *c, size_t bytes);
MUST_CHECK bool rpc_may_charge(const struct rpc_call *c, size_t bytes);

/*
 * Answers a deferred call whose peer is set: append the result's JSON to the buffer, then
 * rpc_result_send() frees c. A handler that answers other calls does so before it writes its own
 * result: there is one buffer.
 */
struct buf *rpc_result_begin(struct rpc_call *c);
void rpc_result_send(struct rpc_call *c);

/*
 * Appends a chain of filled segments (net/sendq.h, from the connections' pool) to the result, which
 * is the handler's own or one of rpc_result_begin(). The result owns the chain; text may follow.
 */
void rpc_result_blob(struct rpc_call *c, struct sendq_seg *chain);

/*
 * Answers a deferred call piece by piece: `before` and the chain begin the result's JSON. False:
 * the connection sends another such answer (nothing is done; `room` follows at its end). Between
 * pieces `room` tells when the queue has room for the next one. rpc_stream_end() ends the result
 * with at most RPC_STREAM_TAIL_MAX characters and frees c. rpc_stream_fail() ends it with `cut`, a
 * text that invalidates the result (PROTOCOL.md, "Files"), adds the error, and frees c.
 */
MUST_CHECK bool rpc_stream_begin(struct rpc_call *c, struct str before, struct sendq_seg *chain);
void rpc_stream_put(struct rpc_call *c, struct sendq_seg *chain);
void rpc_stream_end(struct rpc_call *c, struct sendq_seg *chain, const char *after);
void rpc_stream_fail(struct rpc_call *c, const char *cut, const struct err *e);

/* Answers a deferred call with an error and frees it. */
void rpc_fail(struct rpc_call *c, const struct err *e);

/* Frees a deferred call without an answer. */
void rpc_forget(struct rpc_call *c);

/* -- results -- */

/* RPC_DONE. After a failed append (r < 0) the result is empty: the connection ends with 1011. */
enum rpc_outcome rpc_done(struct buf *result, int r);
enum rpc_outcome rpc_done_text(struct buf *result, const char *json);
