#pragma once
/*
 * The HTTP requests of a connection. All of them end with it.
 *
 * Slow client rule. While CONN_OUT_HIGH bytes wait for the client, the server does not read from
 * the HTTP program. The shared slots fill up, or the socket and the program's outbox; then its
 * transfers pause, and the peers' sockets fill up. Other connections have other programs.
 */

#include "http/http_wire.h"
#include "web/web_host.h"

#define WEB_REQUESTS_MAX 256         /* requests of a connection at a time */
#define WEB_BODIES_MAX (64u << 20)   /* bytes of the bodies of all its requests */
#define WEB_BUFFERED_MAX (96u << 20) /* bytes of all answers that are being collected */
#define WEB_ENDED "the HTTP program ended unexpectedly"

struct web_program;

struct web_conn {
    struct web_host *host;
    struct rpc_peer *peer;
    struct web_program *program; /* NULL: none runs */
    struct list requests;        /* struct web_request */
    size_t count;                /* their number */
    size_t bodies;               /* bytes of their bodies */
    size_t buffered;             /* bytes of answers collected so far */
    uint32_t last_id;
};

/* Returns the state of the call's connection, made on the first call. NULL with e set. */
struct web_conn *web_conn_get(struct rpc_call *c, struct err *e);

/* Ends its requests and its program, without a word. Accepts NULL. */
void web_conn_free(struct web_conn *c);

/* Returns its program, which it starts if need be. NULL with e set. */
struct web_program *web_conn_program(struct web_conn *c, struct err *e);

/* Hooks of struct process_hooks and of the connection: the latter reads again. Accepts NULL. */
void web_conn_detached(struct session *s);
void web_conn_resume(struct web_conn *c);

/* Counts its requests; the program is idle without any. */
void web_conn_count(struct web_conn *c, int change);

/* -- for web_program.c -- */

/* Whether the client is slow. */
bool web_conn_is_held(const struct web_conn *c);

/* Acts on a frame. 0; -EPROTO if it cannot be: the program is broken. The connection may end. */
MUST_CHECK int web_conn_frame(struct web_conn *c, const struct http_wire_frame *f);

/* Its program has ended: fails all requests. */
void web_conn_lost(struct web_conn *c, const char *why);

/* Its program has ended while it was idle. */
void web_conn_forget(struct web_conn *c);
