#pragma once
/* A process of a session: its id, who waits for it, and how its events become notifications. */

#include "process/session.h"

#define PROCESS_ID_MAX 4096    /* bytes of a process id */
#define PROCESS_CANCEL_MS 1000 /* a terminated start is cancelled by then */

struct process {
    struct hash_node node; /* in session->processes, while `listed` */
    bool listed;
    struct list link;        /* in session->leftovers, host->dying */
    struct session *session; /* NULL once the session has ended */
    struct process_host *host;
    char session_name[OPS_SESSION_LOGGED + 1]; /* of the session it began in, for logs */
    bool exit_reported;                        /* events_exited() was called */
    struct str id;                             /* owned */
    struct str id_json;                        /* owned: the id as JSON text */
    struct str argv_json;                      /* owned: its first arguments as a JSON array */
    size_t argv_kept, argv_count;              /* how many those are, and how many there were */
    struct list order;                         /* in session->order, while listed */
    struct proc proc;
    struct arena start;      /* strings of the start, until exec is decided */
    struct process_command { /* what was to be run; borrows from `start` */
        const char *program, *cwd;
        char *const *argv;
    } command;
    bool sandboxed;                    /* its start had a sandbox object, whatever that allows */
    bool sandbox_denied;               /* and that seems to be why it failed; from PROC_EXITED on */
    bool confined;                     /* a sandbox is around it */
    struct placeholders *placeholders; /* owned: what its sandbox put on the host; NULL = none */
    struct cgroup cgroup;              /* that limits it; dir NULL = none */
    struct rpc_call *start_call;       /* the start to answer, or NULL */
    struct list waits;                 /* struct process_wait */
    struct list views;                 /* struct attach: connections that watch */
    struct list writes;                /* struct process_write, in order */
    /* Of a closed one (process_retain.h). */
    struct retention_item output, entry; /* its parts of the server's bounds */
    struct loop_timer retention;         /* until it is forgotten */
    struct list unsent;                  /* in session->unsent */
    /* What its client has of its events. */
    uint64_t sent_at;         /* where the last one sent ends on the connection (conn_tx_end()) */
    uint64_t missed_seq;      /* the last one that was not sent, or may have been lost; 0 = none */
    uint64_t lost_seq;        /* of the last output that had to go; 0 = none */
    struct loop_timer cancel; /* set: to be terminated when it has started, at the latest then */
    uint64_t cancel_grace_ms; /* how */
};

/* The process with that id, or NULL. */
struct process *process_find(const struct session *s, struct str id);

/*
 * The process that a request names, for methods that refuse unknown ids. NULL with e set, also
 * while it is starting.
 */
struct process *process_of_call(const struct rpc_call *c, struct str id, struct err *e);

/* A new, listed process without a process yet. NULL when out of memory. The id must not be in
 * use. */
struct process *process_new(struct session *s, struct str id);

/*
 * Starts its process. On success `start_call` will be answered, and a launch's channel and list are
 * the process's; on failure the process is freed.
 */
MUST_CHECK int process_start(struct process *p, const struct child_spec *spec);

/* Forgets a closed process; what the command left running lives on with the session. */
void process_expire(struct process *p);

/* Frees a process that never had a process. */
void process_free(struct process *p);

/*
 * As proc_terminate(); after a forced one waiting writes fail. A start that is under way is
 * cancelled where requests run side by side, else it is killed once it runs.
 */
bool process_terminate(struct process *p, uint64_t grace_ms);

/* Unlists it and kills all it started; the memory follows when the last descendant is dead. */
void process_kill(struct process *p);
