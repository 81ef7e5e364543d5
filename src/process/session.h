#pragma once
/*
 * A session is a process table that outlives its connection. At most one connection is attached to
 * it. Without one the session keeps its processes and their output for its time to live; a client
 * can resume it by its id.
 */

#include "process/process_host.h"
#include "rpc/rpc.h"

#include "base/uuid.h"

#define SESSION_PROBE_MS 2000  /* silence after which another connection may take a session over */
#define SESSION_CLIENT_MAX 128 /* bytes kept of a client's name */

/* The times that a client asks for. */
struct session_ask {
    uint64_t ttl_ms, closed_retention_ms;
    bool has_ttl, has_closed_retention; /* else they stay as they are */
};

struct session {
    struct hash_node node;
    char id[UUID_LEN + 1];
    struct hash_node shown_node;
    char shown[UUID_LEN + 1]; /* its name for those who may look but not resume; begins as id */
    struct process_host *host;
    struct rpc_peer *peer; /* NULL = detached */
    char *client,
        *subject; /* owned: clientName and token subject of the last connection; NULL: none */
    bool console; /* of the console: it may watch every process, and is not for clients */
    struct ledger_row row;
    int64_t started_ms;               /* Unix time */
    bool wants_started, wants_failed; /* its client asked for process/started, process/failed */
    bool output_ack; /* its new processes keep output until process/ack covers it */
    bool lasting;    /* it was granted more than the settings; counted in host->lasting_count */
    uint64_t ttl_ms; /* 0 = it ends with its connection */
    uint64_t closed_retention_ms;
    struct hash processes;       /* struct process by process id */
    struct list order;           /* its processes, oldest first */
    size_t running;              /* its processes that have not closed */
    struct list views;           /* struct attach: the processes that its connection watches */
    struct attach_pace {         /* of the views of a console */
        struct loop_timer timer; /* set: they wait for it */
        uint64_t began;          /* loop time of the last turn */
        size_t left;             /* bytes of this turn */
    } pace;
    struct console_viewer *watcher; /* belongs to a room above, opaque here */
    bool viewer;                    /* it is the session of somebody who looks at the console */
    unsigned serial;                /* of a viewer, from 1 */
    struct fs_conn *files;          /* the file calls and handles of its connection; owned */
    struct web_conn *web;           /* the HTTP requests of its connection; owned */
    struct list snapshots;          /* struct snapshot, the least recently used first */
    size_t snapshot_count;
    struct list captures; /* struct login: shells that tell their state, or have */
    struct list helpers;  /* struct fs_helper, the least recently used first */
    size_t helper_count;
    struct retention_share output, entries; /* its shares of the retained closed processes */
    struct list unsent;        /* struct process: closed, with last events still queued; in order */
    struct list leftovers;     /* struct process: out of the table, but with living descendants */
    struct proc_flow flow;     /* closed while the connection's output queue is high */
    struct list detached_node; /* in host->detached */
    struct loop_timer ttl;
    struct loop_timer probe; /* runs while a ping to the connection is unanswered */
    uint64_t probe_rx;       /* bytes received when the ping was sent */
};

/* A new session attached to `peer`. NULL with e set. */
struct session *session_new(struct process_host *host, struct rpc_peer *peer, struct err *e);

/*
 * Likewise for the console: for a connection that looks at it, with which it ends; or (`peer` NULL)
 * one that lasts until the server ends.
 */
struct session *session_new_console(struct process_host *host, struct rpc_peer *peer,
                                    struct err *e);

/* The session with that `shown` name, or NULL. */
struct session *session_shown(const struct process_host *host, struct str name);

/* The session whose processes a call names. */
static inline struct session *session_of_call(const struct rpc_call *c) {
    return c->target != NULL ? c->target : c->peer->user;
}

/*
 * Attaches the session with that id to `peer`. NULL with e set: the id is unknown, or another
 * connection has the session. That one then gets a ping, and loses the session if it is silent.
 */
struct session *session_resume(struct process_host *host, struct str id, struct rpc_peer *peer,
                               struct err *e);

/*
 * Grants the times that its client asks for: up to the operator's maxima, and not beyond the
 * settings if PROCESS_HOST_LASTING_MAX other sessions have more. A closed process keeps the time it
 * was given.
 */
void session_grant(struct session *s, const struct session_ask *ask);

/* Whether its processes, present and future, keep output until process/ack covers it. */
void session_keep_unacked(struct session *s, bool on);

/* Notes the client's name for logs, cut at SESSION_CLIENT_MAX. */
void session_named(struct session *s, struct str client);

/* The connection is gone: keeps the session for its time to live, or ends it. */
void session_detach(struct session *s);

/* Kills all its processes and frees it. */
void session_end(struct session *s);
