#pragma once
/* Shared by rpc.c (order and answers) and rpc_read.c (reading messages). */

#include "rpc/envelope.h"
#include "rpc/rpc.h"

#define RPC_TOO_LARGE 1 /* rpc_read_parse(): a thread must read the message */

const struct rpc_method *rpc_find(const struct rpc_host *h, struct str name);

/* Whether a thread must read the message, because it has RPC_AHEAD of text. */
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
    int r;                           /* of `decode`: 0, or -errno with e set */
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
    struct rpc_peer *peer; /* NULL: the connection is gone */
    struct rpc_waiting *waiting;
    enum { RPC_AHEAD_NEW, RPC_AHEAD_QUEUED, RPC_AHEAD_READING, RPC_AHEAD_READ } state;
    struct json_doc doc;
    struct envelope env;
    struct rpc_params params; /* set in RPC_AHEAD_READ, if r is 0 */
    int r;                    /* of rpc_read_parse() */
    struct err e;
};

/* A message that waits for a lane. */
struct rpc_waiting {
    struct list node;
    char *key; /* value of the method's key parameter, or NULL */
    size_t key_len;
    struct conn_message message; /* in `memory` or in `text` */
    struct buf memory;           /* taken over from a large message */
    struct rpc_ahead *ahead;     /* owned, or NULL */
    char text[];
};

/* Makes a message last: takes the memory of a large one over, copies any other. NULL: no memory. */
struct rpc_waiting *rpc_read_waiting_new(const struct conn_message *m, struct str key);

/* Accepts NULL. A message that a thread reads is freed when the thread is done. */
void rpc_read_waiting_free(struct rpc_peer *p, struct rpc_waiting *w);

/* Prepares w to be read in a thread. 0 or -ENOMEM. */
MUST_CHECK int rpc_read_ahead_new(struct rpc_peer *p, struct rpc_waiting *w);

/* Whether it was read. If not, queues it for a thread; the peer's pump runs when that is done. */
bool rpc_read_ahead_is_done(struct rpc_ahead *a);
