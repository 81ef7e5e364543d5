#pragma once
/* What rpc.c, the order and the answers, and rpc_read.c, reading messages, know of each other. */

#include "rpc/envelope.h"
#include "rpc/rpc.h"

#define RPC_TOO_LARGE 1 /* from rpc_read_parse(): for a thread */

const struct rpc_method *rpc_find(const struct rpc_host *h, struct str name);

/* Whether a message has so much text that a thread reads it. */
bool rpc_read_is_large(const struct conn_message *m);

/*
 * Parses a message into the document. 0; -EINVAL with the reason; RPC_TOO_LARGE, for the document
 * of the loop, when the message has to be restored and has much text: a thread does that.
 */
MUST_CHECK int rpc_read_parse(const struct rpc_host *h, struct json_doc *doc,
                              struct conn_message *m, struct envelope *env, struct err *e);

/* Decoded params of a request. */
struct rpc_params {
    const struct rpc_method *method; /* NULL: unknown, or no request */
    int r;                           /* 0 or -errno, then with e */
    struct err e;
    _Alignas(max_align_t) char space[RPC_PARAMS_MAX];
};

void rpc_read_params_init(struct rpc_params *p, const struct rpc_host *h,
                          const struct envelope *env);
void rpc_read_params_fini(struct rpc_params *p);

/* A message that is read in a thread. */
struct rpc_ahead {
    struct pool_job job;
    struct list node; /* in host->ahead while it is queued */
    struct rpc_host *host;
    struct rpc_peer *peer; /* NULL: nobody waits for it */
    struct rpc_waiting *waiting;
    enum { RPC_AHEAD_NEW, RPC_AHEAD_QUEUED, RPC_AHEAD_READING, RPC_AHEAD_READ } state;
    struct json_doc doc;
    struct envelope env;
    struct rpc_params params; /* when it was read and is a request */
    int r;                    /* of rpc_read_parse() */
    struct err e;
};

/* A message that waits for a lane. */
struct rpc_waiting {
    struct list node;
    char *key; /* value of the method's key parameter, or NULL */
    size_t key_len;
    struct conn_message message; /* in `memory` or in `text` */
    struct buf memory;           /* of a large one, taken over */
    struct rpc_ahead *ahead;     /* owned, or NULL */
    char text[];
};

/* Makes a message last: the memory of a large one is taken over, another one is copied. */
struct rpc_waiting *rpc_read_waiting_new(const struct conn_message *m, struct str key);

/* NULL is harmless. One that a thread is reading goes when the thread is through with it. */
void rpc_read_waiting_free(struct rpc_peer *p, struct rpc_waiting *w);

/* Lets a thread read it when its turn has come. 0 or -ENOMEM. */
MUST_CHECK int rpc_read_ahead_new(struct rpc_peer *p, struct rpc_waiting *w);

/* Whether it was read; if nobody has begun to, a thread does, and the peer's pump runs after it. */
bool rpc_read_ahead_is_done(struct rpc_ahead *a);
