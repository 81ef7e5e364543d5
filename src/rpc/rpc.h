#pragma once
/*
 * Requests of one connection: lifecycle, order of execution, answers.
 *
 * Order. Requests run one after another (or up to `lanes` at a time, begun in order). A call that
 * cannot be answered at once keeps its lane until it is (rpc_defer), unless it steps aside
 * (rpc_yield): then the next one runs. Control methods overtake what waits, except an earlier
 * waiting request that names the same process or handle.
 *
 * A turn of the loop is shared. A connection's requests run until its slice is over (loop_yield).
 * Large messages are parsed and decoded in a thread, the first that waits at a time; until then
 * nobody knows what they name, so requests that name something do not overtake them. The threads
 * that do so are half as many as CPUs, so that the loop's always has one; connections take turns.
 *
 * Maxima per connection: RPC_QUEUE_MAX requests or RPC_QUEUE_BYTES of text wait for a lane (then
 * input pauses until some have run); RPC_PARKED_MAX calls step aside (more are refused), and they
 * are not answered while the output queue is full; RPC_KEPT_ID_BYTES of ids of calls not answered;
 * no call begins beside others that hold RPC_HELD_BYTES of data.
 */

#include "base/buf.h"
#include "base/list.h"
#include "json/json.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "net/conn.h"

#define RPC_QUEUE_MAX 4096
#define RPC_QUEUE_BYTES ((size_t)CONN_MSG_MAX)
#define RPC_PARKED_MAX 1024
#define RPC_ID_MAX ((size_t)1 << 20)             /* bytes of an id */
#define RPC_AHEAD ((size_t)16 << 10)             /* bytes of text that are read in a thread */
#define RPC_READERS_MAX 4                        /* such threads at a time; see rpc_host.readers */
#define RPC_KEY_MAX 4096                         /* bytes of an id that requests are ordered by */
#define RPC_KEPT_ID_BYTES ((size_t)CONN_MSG_MAX) /* of the ids of kept calls */
#define RPC_HELD_BYTES (32u << 20)               /* of the data of running calls */
#define RPC_RESULT_MAX ((size_t)CONN_MSG_MAX)    /* bytes of one answer */

struct rpc_peer;
struct rpc_call;

/* What a handler did. */
enum rpc_outcome {
    RPC_DONE,  /* the result's JSON text was appended to `result` */
    RPC_ERROR, /* e says why */
    RPC_LATER, /* the call was kept and will be answered */
};

struct rpc_method {
    const char *name;
    const char *family; /* as in "client must call initialize before using FAMILY methods" */
    const char *key;    /* the parameter that names what it acts on, or NULL */
    bool control;       /* overtakes */
    /*
     * Two steps, since bad params are reported before a missing handshake: `decode` checks the
     * params into the space it is given (the table's largest params struct), `run` acts on them.
     * `decode` may run in a thread: it touches nothing else.
     */
    int (*decode)(const struct json_node *params, void *out, struct err *e);
    enum rpc_outcome (*run)(struct rpc_call *c, void *params, struct buf *result, struct err *e);
    /* NULL, or gives back what the params own; called last, also after a failed decode. */
    void (*release)(void *params);
    const char *base64; /* the parameter decoded by conn_message_base64(), or NULL */
};

#define RPC_PARAMS_MAX 1024 /* bytes of decoded params */
#define RPC_METHODS_MAX 64
#define RPC_STREAM_TAIL_MAX 16

/* What became of the requests for one method. */
struct rpc_tally {
    uint64_t results, errors;
    uint64_t dropped; /* the connection ended first */
};

/* What the peers of a server share. */
struct rpc_host {
    struct loop *loop;
    struct pool *pool;
    struct list ahead; /* struct rpc_ahead: large messages that wait for a thread, in order */
    size_t reading;    /* threads that read one */
    size_t readers;    /* at most so many */
    const struct rpc_method *methods;
    size_t method_count;
    size_t lanes; /* >= 1 */
    struct json_doc doc;
    struct buf result;                             /* the result being built */
    struct sendq_seg *blob;                        /* segments to send within it, or NULL */
    size_t blob_at;                                /* in front of this byte of it */
    struct rpc_tally tallies[RPC_METHODS_MAX + 1]; /* by method; then: of unknown methods */
    uint64_t malformed;                            /* messages */
    void (*peer_gone)(struct rpc_peer *p);
};

/* `count` methods, at most RPC_METHODS_MAX. The pool reads large messages; its loop is used. */
void rpc_host_init(struct rpc_host *h, struct pool *pool, const struct rpc_method *methods,
                   size_t count, size_t lanes, void (*peer_gone)(struct rpc_peer *p));
void rpc_host_fini(struct rpc_host *h);

enum rpc_life { RPC_NEW, RPC_GREETED, RPC_READY };

struct rpc_peer {
    struct rpc_host *host;
    struct conn *conn;
    void *user; /* the owner's: the session once there is one */
    enum rpc_life life;
    bool ending;       /* no more input: answer what is there, then end */
    struct list queue; /* struct rpc_waiting: not begun, in order */
    size_t queued, queued_bytes;
    struct list calls;       /* kept calls */
    size_t id_bytes;         /* of their ids */
    size_t running;          /* of them, those that hold a lane */
    size_t parked;           /* of them, those that stepped aside */
    size_t parked_bytes;     /* what those hold; kept by their owners */
    struct rpc_call *stream; /* of them, the one whose answer is being sent piece by piece */
    size_t held_bytes;       /* what they said they hold */
    bool room_wanted;        /* one of them waits for room: to stream, or to hold more */
    struct loop_task pump;
};

/* A call. In a handler it lives on the stack; rpc_defer() makes it last. */
struct rpc_call {
    struct list node;
    struct rpc_peer *peer; /* NULL: nobody waits for the answer any more */
    char *id;              /* JSON text of the id; owned by a kept call, else borrowed */
    size_t id_len;
    size_t method;                      /* index in the table; its end for an unknown one */
    size_t held;                        /* bytes; see rpc_charge() */
    bool parked;                        /* it stepped aside */
    const struct conn_message *message; /* in a handler: in which it came */
    void *user;
    void (*cancelled)(struct rpc_call *c); /* the connection is gone; must free the call */
    void (*expire)(struct rpc_call *c);    /* answer now with what there is (end of input) */
    void (*room)(struct rpc_call *c);      /* there is room for a large answer again */
};

/* A new peer for a connection; NULL when out of memory. */
struct rpc_peer *rpc_peer_new(struct rpc_host *h, struct conn *conn);

/* The connection is gone: cancels calls, tells peer_gone, frees the peer. */
void rpc_peer_free(struct rpc_peer *p);

/* There is room for answers again. */
void rpc_peer_resume(struct rpc_peer *p);

/* There is room for more of a streamed answer. */
void rpc_peer_drained(struct rpc_peer *p);

/* Whether a kept call should be answered now; when not, its `room` callback follows. */
bool rpc_has_room(const struct rpc_call *c);

/* A message arrived. */
void rpc_peer_message(struct rpc_peer *p, const struct conn_message *message);

/* No more messages will come; conn_end() follows when all is answered. */
void rpc_peer_input_end(struct rpc_peer *p);

/*
 * Keeps a call beyond its handler, holding its lane. NULL when out of memory (e is set). Without a
 * `cancelled` callback a call outlives its connection; its answer is then dropped.
 */
struct rpc_call *rpc_defer(struct rpc_call *c, struct err *e);

/* The same, stepping aside. NULL with e set, also when too many already have. */
struct rpc_call *rpc_yield(struct rpc_call *c, struct err *e);

/*
 * Says how many bytes of data a kept call holds from now on, its answer in the making included.
 * rpc_may_hold() tells whether it may hold so many; when not, `room` follows.
 */
void rpc_charge(struct rpc_call *c, size_t bytes);
MUST_CHECK bool rpc_may_hold(const struct rpc_call *c, size_t bytes);

/*
 * Answers a kept call whose peer is set: append the result's JSON to the buffer, then
 * rpc_result_send() frees c. A handler that answers other calls does so before it writes its own
 * result: there is one buffer.
 */
struct buf *rpc_result_begin(struct rpc_call *c);
void rpc_result_send(struct rpc_call *c);

/*
 * Puts a chain of filled segments (net/sendq.h, from the connections' pool) into the result, at the
 * end of what it has so far; for a handler's own result or after rpc_result_begin().
 */
void rpc_result_blob(struct rpc_call *c, struct sendq_seg *chain);

/*
 * Answers a kept call piece by piece: `before` and the chain begin the result's JSON. False when
 * the connection is sending another such answer (nothing is done; `room` follows at its end).
 * While more is to come, `room` tells when there is room for it. rpc_stream_end() ends the result
 * with at most RPC_STREAM_TAIL_MAX characters and frees c;
 * rpc_stream_fail() ends the result with `cut` instead, text that makes it none (PROTOCOL.md,
 * "Files"), adds the error, and frees c.
 */
MUST_CHECK bool rpc_stream_begin(struct rpc_call *c, struct str before, struct sendq_seg *chain);
void rpc_stream_put(struct rpc_call *c, struct sendq_seg *chain);
void rpc_stream_end(struct rpc_call *c, struct sendq_seg *chain, const char *after);
void rpc_stream_fail(struct rpc_call *c, const char *cut, const struct err *e);

/* Answers a kept call with an error and frees it. */
void rpc_fail(struct rpc_call *c, const struct err *e);

/* Frees a kept call without an answer. */
void rpc_forget(struct rpc_call *c);

/* -- results -- */

/* RPC_DONE. A failed append (r < 0) leaves no result behind: the connection then ends with 1011. */
enum rpc_outcome rpc_done(struct buf *result, int r);
enum rpc_outcome rpc_done_text(struct buf *result, const char *json);
