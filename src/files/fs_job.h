#pragma once
/*
 * A blocking call of a connection: a thread of the pool makes it, the loop answers it.
 *
 * At most FS_JOBS_MIN jobs of a connection run at once, or as many as it has lanes if that is more;
 * the others wait for their turn. A job names each file system before it touches it (fs_site.h), so
 * that one that hangs takes a bounded share of the threads.
 */

#include "loop/pool.h"
#include "files/fs_confined.h"
#include "files/fs_conn.h"

#define FS_JOBS_MIN 2

struct file_event;
struct fs_handle;

enum fs_job_state {
    FS_JOB_PAUSED,  /* with its owner: not begun, or between two pieces of work */
    FS_JOB_WAITING, /* for its turn */
    FS_JOB_RUNNING, /* with the pool */
};

/* What a job is going to touch: the site of an open file, or else paths. */
struct fs_job_target {
    uint64_t site;       /* 0: see the paths */
    const char *path[2]; /* borrowed from the job, or NULL */
    bool nofollow;       /* a link that a path ends in is not followed */
};

/*
 * `work` runs in a thread and touches nothing but the job. Then, in the loop, `finish` answers the
 * call, unless nobody waits for it any more, and `release` frees the job.
 */
struct fs_job {
    struct pool_job job;
    enum fs_job_state state;
    struct list node;
    struct files_host *host;
    struct fs_conn *conn;      /* NULL: gone */
    struct fs_handle *held;    /* kept open until after `release`, or NULL */
    struct rpc_call *call;     /* deferred; NULL: nobody waits for the answer */
    atomic_bool stop;          /* nobody is interested any more */
    const char *cut;           /* for rpc_stream_fail(), in a job that streams; static */
    size_t bytes;              /* of memory that it brings along; see rpc_charge() */
    struct file_event *report; /* owned; for the audit log, or NULL */
    struct fs_job_target target;
    struct fs_confined confined; /* zero: no sandbox has to make the call */
    bool ran;                    /* work was called */
    bool pause;     /* set by finish: the job goes on later, it is not to be released */
    int r;          /* of work: 0 or -errno; 1: again, when the helper runs */
    struct err err; /* its error; while it is not set, r tells */
    int (*work)(struct fs_job *j);
    void (*finish)(struct fs_job *j); /* r is 0 and call is set */
    void (*release)(struct fs_job *j);
};

/* Sets the functions of a job that is zero or partly set. */
static inline void fs_job_init(struct fs_job *j, int (*work)(struct fs_job *j),
                               void (*finish)(struct fs_job *j),
                               void (*release)(struct fs_job *j)) {
    j->work = work;
    j->finish = finish;
    j->release = release;
}

/*
 * Defers the call for the job, whose functions are set, and queues it.
 * RPC_LATER, or RPC_ERROR with e set and the job released. fs_job_keep() does not queue it yet.
 */
enum rpc_outcome fs_job_start(struct fs_conn *f, struct fs_job *j, struct rpc_call *c,
                              struct err *e);
MUST_CHECK int fs_job_keep(struct fs_conn *f, struct fs_job *j, struct rpc_call *c, struct err *e);

/* Queues a paused job. */
void fs_job_queue(struct fs_job *j);

/* A `finish`: answers the call with {}. */
void fs_job_finish_empty(struct fs_job *j);

/* Answers the call with j->err, or by j->r if that is not set. */
void fs_job_fail(struct fs_job *j);

/* Releases a paused job; its call, if it still has one, must have been answered. */
void fs_job_free(struct fs_job *j);

/* In a thread: enters all that the target names. False as pool_enter(). */
MUST_CHECK bool fs_job_enter(struct pool_job *j, const struct fs_job_target *t);

/* Out of memory, in a method: sets e. RPC_ERROR. */
enum rpc_outcome fs_job_no_memory(struct err *e);
