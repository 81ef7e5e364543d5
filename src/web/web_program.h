#pragma once
/*
 * One HTTP program: its process and the socket to it. It belongs to a connection until it ends: by
 * itself, when the connection ends, when it was idle for WEB_IDLE_MS, or to make room.
 */

#include "http/http_slots.h"
#include "http/http_wire.h"
#include "net/sendq.h"
#include "proc/child.h"
#include "web/web_host.h"

struct web_conn;

struct web_program {
    struct list node; /* in host->programs */
    struct web_host *host;
    struct web_conn *conn; /* NULL: it is ending */
    struct child child;
    bool greeted;      /* it is of our version */
    struct loop_io io; /* fd -1: closed */
    struct http_wire_reader in;
    struct http_slots slots;
    struct sendq out; /* at most the bodies of WEB_BODIES_MAX, and their heads */
    struct loop_timer idle;
    struct loop_task read_task; /* queued: frames were read and not handled */
};

/* Starts a program for a connection. NULL with e set. */
struct web_program *web_program_new(struct web_conn *conn, struct err *e);

/* Kills it and forgets it; it is freed when it is dead. Accepts NULL. */
void web_program_end(struct web_program *p);

/* Queues frames: a head built by http_wire_put_...() and, cut into frames, a body. 0 or -ENOMEM:
 * it has to end. */
MUST_CHECK int web_program_send(struct web_program *p, struct str frames);
MUST_CHECK int web_program_send_body(struct web_program *p, uint32_t id, struct str body);

/* It has no request any more: it ends soon. Or it has one. */
void web_program_idle(struct web_program *p, bool idle);

/* Goes on reading, after its connection was slow. */
void web_program_resume(struct web_program *p);
