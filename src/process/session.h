#pragma once
/*
 * Sessions: a process table that outlives its connection. A session is attached to at most one
 * connection; when that goes it is detached, keeps its processes and retains their output for the
 * time to live, and can be resumed by its id.
 */

#include "process/process_host.h"
#include "rpc/rpc.h"

#include "base/uuid.h"

#define SESSION_PROBE_MS 2000  /* silence after which a resumed session changes hands */
#define SESSION_CLIENT_MAX 128 /* bytes of a client's name that are kept */

struct session {
    struct hash_node node;
    char id[UUID_LEN + 1];
    struct process_host *host;
    struct rpc_peer *peer;  /* NULL = detached */
    char *client, *subject; /* owned; the last connection's clientName, token; NULL: none */
    bool wants_started, wants_failed; /* its client asked for process/started, process/failed */
    struct hash processes;            /* struct process by process id */
    struct list order;                /* the same, oldest first */
    size_t running;                   /* of them, those not closed */
    struct list views;                /* struct attach: what its connection watches */
    struct fs_conn *files;            /* what its connection has of the file system; owned */
    struct list helpers;              /* struct fs_helper, the least recently used first */
    size_t helper_count;
    struct retention_share output, entries; /* of what the server keeps of closed processes */
    struct list unsent;    /* struct process: closed, its last events are still queued; in order */
    struct list leftovers; /* struct process: no longer in the table, with descendants alive */
    struct proc_flow gate; /* closed while the connection's output queue is high */
    struct list detached_node; /* in host->detached */
    struct loop_timer ttl;
    struct loop_timer probe; /* running: the connection is being asked for a sign of life */
    uint64_t probe_rx;       /* bytes it had received when asked */
};

/* A new session attached to `peer`. NULL with e set. */
struct session *session_new(struct process_host *host, struct rpc_peer *peer, struct err *e);

/*
 * Attaches the session with that id to `peer`. NULL with e set: unknown, or attached elsewhere
 * (then the other connection is asked for a sign of life and loses the session if it gives none).
 */
struct session *session_resume(struct process_host *host, struct str id, struct rpc_peer *peer,
                               struct err *e);

/* Notes for logs who has the session now: the name it gave, cut at SESSION_CLIENT_MAX. */
void session_named(struct session *s, struct str client);

/* The connection is gone: keeps the session for its time to live, or ends it. */
void session_detach(struct session *s);

/* Kills all it started and frees it. */
void session_end(struct session *s);
