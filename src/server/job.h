#pragma once
/* A process of a session: its id, who waits for it, and how its events become notifications. */

#include "server/session.h"

#define JOB_ID_MAX 4096                  /* bytes of a process id */
#define JOB_CANCEL_MS 1000               /* a terminated start is cancelled by then */
#define JOB_PARKED_BYTES_MAX (64u << 20) /* bytes of waiting writes per connection */

struct job {
    struct hash_node node;   /* in session->jobs, while `listed` */
    bool listed;
    struct list link;        /* in server->retained or emptied, session->leftovers, server->dying */
    struct session *session; /* NULL once the session has ended */
    struct server *server;
    struct str id;           /* owned */
    struct str id_json;      /* owned: the id as JSON text */
    struct proc proc;
    struct arena start;          /* strings of the start, until exec is decided */
    struct rpc_call *start_call; /* the start to answer, or NULL */
    struct list waits;           /* struct job_wait */
    struct list writes;          /* struct job_write, in order */
    bool retained; /* closed, in server->retained or server->emptied */
    struct loop_timer retention;
    struct loop_timer cancel; /* set: to be terminated when it has started, at the latest then */
    size_t retained_bytes; /* its part of server->retained_bytes */
};

/* The job with that id, or NULL. */
struct job *job_find(const struct session *s, struct str id);

/* A new, listed job without a process yet. NULL when out of memory. The id must not be in use. */
struct job *job_new(struct session *s, struct str id);

/* Starts its process. On success `start_call` will be answered; on failure the job is freed. */
MUST_CHECK int job_start(struct job *j, const struct spawn_spec *spec);

/* Frees a job that never had a process. */
void job_free(struct job *j);

/*
 * Kills the process and its descendants, and fails waiting writes. Whether it was running. A start
 * that is under way is cancelled where requests run side by side, else it is killed once it runs.
 */
bool job_terminate(struct job *j);

/* Unlists it and kills all it started; the memory follows when the last descendant is dead. */
void job_kill(struct job *j);

/* -- process/read -- */

struct job_read {
    uint64_t after;
    uint64_t max_bytes;
    bool limited; /* max_bytes was given: the answer is a page */
};

/* Whether a read has something to say (else it may wait). */
bool job_read_ready(const struct job *j, uint64_t after);

/* Appends the result's JSON. 0 or as buf_reserve(). */
MUST_CHECK int job_put_read(struct job *j, const struct job_read *r, struct buf *b);

/* Waits up to `ms` for job_read_ready(), then answers. 0, or -errno with e set. */
MUST_CHECK int job_wait_read(struct job *j, struct rpc_call *c, const struct job_read *r,
                             uint64_t ms, struct err *e);

/* -- process/write -- */

enum job_write_status {
    JOB_WRITE_ACCEPTED,
    JOB_WRITE_STDIN_CLOSED,
    JOB_WRITE_STARTING,
    JOB_WRITE_FAILED,  /* e is set */
    JOB_WRITE_WAITING, /* the queue is full: the call was parked and will be answered */
};

/* Writes or queues n bytes; `write_id` with p NULL is never de-duplicated. */
enum job_write_status job_write(struct job *j, struct rpc_call *c, struct str write_id,
                                const char *data, size_t n, struct err *e);
