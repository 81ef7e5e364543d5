#pragma once
/* What the parts of a connection know of each other: conn.c, its life and its messages, and
 * conn_http.c, what comes before and beside those. */

#include "net/conn.h"

/* The end: nothing more is read or sent. It is freed when the callback that runs has returned. */
void conn_drop(struct conn *c);

/* Watches for what is wanted now. */
void conn_update_watch(struct conn *c);

/* The next head has its time once the last answer is sent, which may take as long as a transfer. */
void conn_await_head(struct conn *c);

/* Something was put into the queue. */
void conn_queued(struct conn *c);

/* Out of memory: the connection ends, soon. */
void conn_break(struct conn *c);

/* Sends what is queued, then ends. The owner hears of it from the flush task. */
void conn_begin_flush(struct conn *c);

/* Input, as the state has it. The bytes are modified. */
void conn_process(struct conn *c, char *data, size_t n);

/* Handles the heads at the start of c->in; what follows an upgrade goes to the WebSocket parser. */
void conn_http(struct conn *c);
