#pragma once
/* Shared by conn.c (life and messages), conn_http.c (HTTP) and conn_proof.c (unproven peers). */

#include "net/conn.h"

/* Ends it at once: nothing more is read or sent. It is freed after the running callback. */
void conn_drop(struct conn *c);

/* Watches its descriptors for the events that it can use now. */
void conn_update_watch(struct conn *c);

/* Reads, if input is wanted. */
void conn_read(struct conn *c);

/* Sends as much as the socket takes. */
void conn_flush(struct conn *c);

/* Makes a new socket a stranger. 0 or -ENOMEM. */
MUST_CHECK int conn_proof_begin(struct conn *c);

/* A request may pass. Whether the connection has a place; a guest makes room if need be. */
MUST_CHECK bool conn_proof_admit(struct conn *c);

/* A request may pass: serves the connection until its answer is sent. */
void conn_proof_serve(struct conn *c);

/* No answer is under way: a served connection becomes a guest, with all of its time from now on. */
void conn_proof_served(struct conn *c);

/* Takes it off the lists of unproven connections. */
void conn_proof_end(struct conn *c);

/* The time of an unproven WebSocket is over. */
void conn_proof_over(struct conn *c);

/* Whether the time left is too short for another request. */
bool conn_proof_is_short(const struct conn *c);

/*
 * Sets the timer in CONN_HTTP. A served connection may take CONN_BODY_MS to read its answer, and
 * CONN_HEAD_MS from then to send the next head. All other waits end with the time of the proof.
 */
void conn_proof_await_head(struct conn *c);

/* Call after the queue has grown: flushes soon, reports pressure. */
void conn_queued(struct conn *c);

/* Out of memory: ends the connection from the flush task. */
void conn_break(struct conn *c);

/* Sends the queue, then ends. The owner hears `gone` from the flush task. */
void conn_begin_flush(struct conn *c);

/* Handles n bytes of input as the state demands; modifies them. */
void conn_process(struct conn *c, char *data, size_t n);

/* Answers the requests in c->in; bytes behind an upgrade go to the WebSocket parser. */
void conn_http(struct conn *c);
