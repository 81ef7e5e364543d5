#pragma once
/* A process of a session: its id, who waits for it, and how its events become notifications. */

#include "process/session.h"

#define JOB_ID_MAX 4096                  /* bytes of a process id */
#define JOB_CANCEL_MS 1000               /* a terminated start is cancelled by then */
#define JOB_PARKED_BYTES_MAX (64u << 20) /* bytes of waiting writes per connection */

struct job {
    struct hash_node node; /* in session->jobs, while `listed` */
    bool listed;
    struct list link;        /* in session->leftovers, server->dying */
    struct session *session; /* NULL once the session has ended */
    struct server *server;
    char session_name[SESSION_LOGGED + 1]; /* of the session it began in, for logs */
    bool exit_reported;                    /* report_exited() was called */
    struct str id;                         /* owned */
    struct str id_json;                    /* owned: the id as JSON text */
    struct str argv_json;                  /* owned: its first arguments as a JSON array */
    size_t argv_kept, argv_count;          /* how many those are, and how many there were */
    struct list order;                     /* in session->order, while listed */
    struct proc proc;
    struct arena start;  /* strings of the start, until exec is decided */
    struct job_command { /* what was to be run; borrows from `start` */
        const char *program, *cwd;
        char *const *argv;
    } command;
    bool sandboxed;              /* its start had a sandbox object, whatever that allows */
    bool sandbox_denied;         /* and that seems to be why it failed; from PROC_EXITED on */
    bool confined;               /* a sandbox is around it */
    struct synthlist *synth;     /* owned: what its sandbox put on the host; NULL = none */
    struct cgroup cgroup;        /* that limits it; dir NULL = none */
    struct rpc_call *start_call; /* the start to answer, or NULL */
    struct list waits;           /* struct job_wait */
    struct list views;           /* struct attach: connections that watch */
    struct list writes;          /* struct job_write, in order */
    /* Of a closed one (job_retain.h). */
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

/* The job with that id, or NULL. */
struct job *job_find(const struct session *s, struct str id);

/* A new, listed job without a process yet. NULL when out of memory. The id must not be in use. */
struct job *job_new(struct session *s, struct str id);

/*
 * Starts its process. On success `start_call` will be answered, and a launch's channel and list are
 * the job's; on failure the job is freed.
 */
MUST_CHECK int job_start(struct job *j, const struct spawn_spec *spec);

/* Forgets a closed job; what the command left running lives on with the session. */
void job_expire(struct job *j);

/* Frees a job that never had a process. */
void job_free(struct job *j);

/*
 * As proc_terminate(); after a forced one waiting writes fail. A start that is under way is
 * cancelled where requests run side by side, else it is killed once it runs.
 */
bool job_terminate(struct job *j, uint64_t grace_ms);

/* Unlists it and kills all it started; the memory follows when the last descendant is dead. */
void job_kill(struct job *j);

/* Bytes of a retained chunk in one piece, valid until the next call. */
const char *job_chunk_bytes(const struct job *j, const struct outlog_chunk *c);

/* -- waiting for news: process/read, process/wait -- */

enum job_until {
    JOB_UNTIL_NEWS,   /* there is something to read */
    JOB_UNTIL_EXITED, /* the leader has ended */
    JOB_UNTIL_CLOSED, /* all its streams too */
};

struct job_query {
    enum job_until until;
    uint64_t after;     /* JOB_UNTIL_NEWS: sequence number */
    uint64_t max_bytes; /* JOB_UNTIL_NEWS */
    bool limited;       /* max_bytes was given: the answer is a page */
};

/* Whether the answer need not wait. */
bool job_ready(const struct job *j, const struct job_query *q);

/*
 * Appends the answer's JSON: of process/read for JOB_UNTIL_NEWS, else of process/wait (`late`: the
 * time was up first). 0 or as buf_reserve().
 */
MUST_CHECK int job_put_answer(struct job *j, const struct job_query *q, bool late, struct buf *b);

/* Waits up to `ms` (UINT64_MAX = for ever) for job_ready(), then answers. 0, or -errno and e. */
MUST_CHECK int job_wait_for(struct job *j, struct rpc_call *c, const struct job_query *q,
                            uint64_t ms, struct err *e);

/* -- process/write, process/closeStdin -- */

enum job_write_status {
    JOB_WRITE_ACCEPTED,
    JOB_WRITE_STDIN_CLOSED,
    JOB_WRITE_STARTING,
    JOB_WRITE_FAILED,  /* e is set */
    JOB_WRITE_WAITING, /* the queue is full: the call was parked and will be answered */
};

struct job_input {
    struct str write_id; /* p NULL: never de-duplicated */
    struct str data;
    bool close; /* end stdin behind it */
};

/* Writes or queues, in order. */
enum job_write_status job_write(struct job *j, struct rpc_call *c, const struct job_input *in,
                                struct err *e);
