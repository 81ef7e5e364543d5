#pragma once
/* What the parts of a connection know of each other: conn.c, its life and its messages,
 * conn_http.c, what comes before and beside those, and conn_proof.c, who is not proven yet. */

#include "net/conn.h"

/* The end: nothing more is read or sent. It is freed when the callback that runs has returned. */
void conn_drop(struct conn *c);

/* Watches for what is wanted now. */
void conn_update_watch(struct conn *c);

/* Reads what has come, as far as input is wanted. */
void conn_read(struct conn *c);

/* Sends as much as the socket takes. */
void conn_flush(struct conn *c);

/* A new socket is a stranger. 0 or -ENOMEM. */
MUST_CHECK int conn_proof_begin(struct conn *c);

/* A request may pass: whether there is a place for the connection. A guest makes room for it. */
MUST_CHECK bool conn_proof_admit(struct conn *c);

/* A request may pass: the connection is served until its answer is sent. */
void conn_proof_serve(struct conn *c);

/* No answer is under way: a served connection is a guest, with CONN_PROOF_MS from now on. */
void conn_proof_served(struct conn *c);

/* Takes it off the lists. */
void conn_proof_end(struct conn *c);

/* The time of a WebSocket is over. */
void conn_proof_over(struct conn *c);

/* Whether the time left is too short for another head. */
bool conn_proof_is_short(const struct conn *c);

/*
 * Sets the timer for what is awaited in the HTTP state. An answer to a served connection may take
 * as long as a transfer; the head after it has its time from then. All else is within the proof's.
 */
void conn_proof_await_head(struct conn *c);

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
