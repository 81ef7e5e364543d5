#pragma once
/* A process of a session: its id, the requests that wait for it, and its notifications. */

#include "process/network.h"
#include "process/session.h"
#include "process/sizes.h"

#define PROCESS_ID_MAX 4096    /* bytes of a process id */
#define PROCESS_NOTED 4        /* viewers whose attach is not logged again */
#define PROCESS_CANCEL_MS 1000 /* from a terminate to the cancellation of a start */

struct process {
    struct hash_node node; /* in session->processes, while `listed` */
    bool listed;
    struct list link;        /* in session->leftovers, host->dying */
    struct session *session; /* NULL once the session has ended */
    struct process_host *host;
    char session_name[OPS_SESSION_LOGGED + 1]; /* the session it began in, for logs */
    bool exit_reported;                        /* events_exited() was called */
    struct str id;                             /* owned */
    struct str id_json;                        /* owned: the id as JSON text */
    struct str argv_json;                      /* owned: its first arguments as a JSON array */
    size_t argv_kept, argv_count;              /* the number in argv_json, and in all */
    struct str cwd_json;                       /* owned: its directory, for those who watch all */
    struct ledger_row row;
    struct sizes sizes; /* of its terminal */
    struct list order;  /* in session->order, while listed */
    struct proc proc;
    struct arena start;      /* strings of the start, until exec is decided */
    struct process_command { /* the command line; borrows from `start` */
        const char *program, *cwd;
        char *const *argv;
    } command;
    bool sandboxed;      /* its start had a sandbox object, even one that allows everything */
    bool sandbox_denied; /* the guess of denial_seen(); from PROC_EXITED on */
    bool confined;       /* it runs in a sandbox */
    struct placeholders
        *placeholders;           /* owned: mount points its sandbox made on the host; NULL = none */
    struct cgroup cgroup;        /* its limits; dir NULL = none */
    struct network *network;     /* owned: its proxy until it has closed; NULL = none */
    struct rpc_call *start_call; /* the start to answer, or NULL */
    struct snapshot_wait *waiting; /* its start waits for a snapshot; or NULL */
    struct list waits;             /* struct process_wait */
    struct list views;             /* struct attach: connections that watch */
    unsigned
        noted[PROCESS_NOTED]; /* viewers of the console that the log has named, the last ones */
    unsigned noted_next;      /* place of the next one */
    struct list writes;       /* struct process_write, in order */
    /* After it has closed (process_retain.h). */
    struct retention_item output, entry; /* its shares of the server's maxima */
    struct loop_timer retention;         /* then it is forgotten */
    struct list unsent;                  /* in session->unsent */
    /* How far its client has its events. */
    uint64_t
        sent_at; /* end of the last one sent, as a position on the connection (conn_tx_end()) */
    uint64_t missed_seq;      /* the last one not sent, or possibly lost; 0 = none */
    uint64_t lost_seq;        /* the last output evicted; 0 = none */
    struct loop_timer cancel; /* set: terminate it when it has started, or cancel its start then */
    uint64_t cancel_grace_ms;
};

/* The process with that id, or NULL. */
struct process *process_find(const struct session *s, struct str id);

/*
 * The process that a request names. NULL with e set if the id is unknown or the process is still
 * starting.
 */
struct process *process_of_call(const struct rpc_call *c, struct str id, struct err *e);

/* Makes a listed process that has no command yet. The id must be free. NULL: out of memory. */
struct process *process_new(struct session *s, struct str id);

/*
 * Starts its command. On success the process answers `start_call` later, and owns the channel and
 * the placeholders of a launch. On failure the caller frees the process.
 */
MUST_CHECK int process_start(struct process *p, const struct child_spec *spec);

/* Forgets a closed process. Descendants of the command live on with the session. */
void process_expire(struct process *p);

/* Frees a process whose command never ran or is gone with all descendants. */
void process_free(struct process *p);

/* Its terminal has another size: tells those who watch. */
void process_resized(struct process *p, unsigned rows, unsigned cols);

/*
 * Like proc_terminate(); waiting writes fail after a forced one. If the command is still starting,
 * cancels the start where requests run side by side; else terminates the command once it runs.
 */
bool process_terminate(struct process *p, uint64_t grace_ms);

/* Unlists it and kills its whole tree; frees it when the last descendant is dead. */
void process_kill(struct process *p);
