#pragma once
/*
 * Requests of the server to its client. Their ids are 1, 2, 3, … on each connection, beside the
 * client's own. An answer overtakes requests that wait for a lane. An answer that comes too late
 * is ignored; one to an id that was never used is a stray response.
 */

#include "rpc/envelope.h"
#include "rpc/rpc.h"

#define RPC_ASKS_MAX 256 /* of a connection that are not answered */

/* Embedded by its owner, zero at first. */
struct rpc_ask {
    struct list node;
    struct rpc_peer *peer; /* NULL: idle */
    uint64_t id;
    /* Called once by the loop. `result` is borrowed; NULL: an error came, or the connection went.
     * The ask is idle again. */
    void (*answered)(struct rpc_ask *a, const struct json_node *result);
};

/* Sends `{"id":…,"method":METHOD,"params":PARAMS}`; the params are JSON text. 0; -EAGAIN:
 * RPC_ASKS_MAX wait or the queue is full; -ENOMEM. */
MUST_CHECK int rpc_ask_send(struct rpc_peer *p, struct rpc_ask *a, const char *method,
                            struct str params);

/* Forgets it: `answered` will not follow. Harmless on an idle one. */
void rpc_ask_cancel(struct rpc_ask *a);

/* For rpc.c: whether it answers a request of the server, waiting or not; and the answer. */
bool rpc_ask_is_ours(const struct rpc_peer *p, const struct envelope *env);
void rpc_ask_hear(struct rpc_peer *p, const struct envelope *env);

/* For rpc.c: the connection is gone. */
void rpc_ask_drop(struct rpc_peer *p);
