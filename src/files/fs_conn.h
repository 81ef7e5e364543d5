#pragma once
/*
 * What a connection has of the file system: calls that run in threads of the pool, and open
 * handles. It belongs to the session's connection and goes with it: handles are closed, calls not
 * begun are dropped, and those that run are left to themselves and end unheard.
 *
 * Maxima: at most two jobs of a connection run at once (as many as it has lanes, if more), the
 * others wait for their turn; FS_HANDLES_MAX handles. Each job names the file system it is going
 * to touch before it does (fs_site.h), so that one that hangs takes a bounded share of the threads.
 */

#include "fs/fs_devices.h"
#include "fs/fs_file.h"
#include "loop/pool.h"
#include "files/fs_watch_api.h"
#include "files/files_host.h"

#define FS_HANDLES_MAX 128
#define FS_HANDLE_ID_MAX 32 /* bytes */
#define FS_JOBS_MIN 2

struct fs_job;
struct file_event;
struct fs_handle;

struct fs_conn {
    struct files_host *host;
    struct list jobs;    /* struct fs_job: running */
    struct list waiting; /* struct fs_job: for their turn, in order */
    size_t running;
    struct list handles; /* struct fs_handle */
    size_t handle_count;
    struct fs_watch_conn watch;
};

/* That of the call's connection, made when first asked for. NULL with e set. */
struct fs_conn *fs_conn_get(struct rpc_call *c, struct err *e);

/* The connection is gone; NULL is harmless. */
void fs_conn_free(struct fs_conn *f);

/* -- jobs -- */

enum fs_job_state {
    FS_JOB_PAUSED,  /* with its owner: not begun, or between two pieces of work */
    FS_JOB_WAITING, /* for its turn */
    FS_JOB_RUNNING, /* with the pool */
};

/* What a job is going to touch: the site of an open file, or else paths. */
struct fs_target {
    uint64_t site;       /* 0: see the paths */
    const char *path[2]; /* borrowed from the job, or NULL */
    bool nofollow;       /* a link that a path ends in is not followed */
};

/* In a thread: enters all of it. False as pool_enter(). */
MUST_CHECK bool fs_target_enter(struct pool_job *j, const struct fs_target *t);

/*
 * A blocking call. `work` runs in a thread and touches nothing but the job; then, in the loop,
 * `finish` answers the call, unless nobody waits for it any more, and `release` frees the job.
 */
struct fs_job {
    struct pool_job job;
    enum fs_job_state state;
    struct list node;
    struct files_host *host;
    struct fs_conn *conn;      /* NULL: gone */
    struct fs_handle *held;    /* kept open until after `release`, or NULL */
    struct rpc_call *call;     /* kept; NULL: nobody waits for the answer */
    atomic_bool stop;          /* nobody is interested any more */
    const char *cut;           /* for rpc_stream_fail(), in a job that streams; static */
    size_t bytes;              /* of memory that it brings along; see rpc_charge() */
    struct file_event *report; /* owned; what the audit log hears of it, or NULL */
    struct fs_target target;
    bool ran;       /* work was called */
    bool pause;     /* set by finish: the job goes on later, it is not to be released */
    int r;          /* of work: 0 or -errno */
    struct err err; /* its error; when not set, r says it all */
    int (*work)(struct fs_job *j);
    void (*finish)(struct fs_job *j); /* r >= 0 and call is set */
    void (*release)(struct fs_job *j);
};

/*
 * Keeps the call for the job, whose functions are set (the rest is zero), and queues it. RPC_LATER,
 * or RPC_ERROR with e set and the job released. fs_job_keep() does not queue it yet.
 */
enum rpc_outcome fs_job_start(struct fs_conn *f, struct fs_job *j, struct rpc_call *c,
                              struct err *e);
MUST_CHECK int fs_job_keep(struct fs_conn *f, struct fs_job *j, struct rpc_call *c, struct err *e);

/* Queues a paused job. */
void fs_job_queue(struct fs_job *j);

/* Releases a paused job; its call, if it still has one, must have been answered. */
void fs_job_free(struct fs_job *j);

/* Closes a descriptor in a thread: that may block. */
void fs_conn_close_later(struct files_host *host, int fd);

/* Whether closing cannot take long: nothing to write back, no file to be removed with it. */
bool fs_conn_closes_fast(const struct fs_file *f);

/* -- handles -- */

struct fs_handle {
    struct list node;
    struct files_host *host; /* once it is out of the table */
    struct fs_conn *conn;    /* NULL: out of the table; it lives while it is busy */
    char id[FS_HANDLE_ID_MAX];
    size_t id_len;
    struct fs_file file;       /* fd -1: still being opened */
    unsigned busy;             /* jobs that use it */
    struct fs_job *closing;    /* to be run when it is no longer busy */
    struct file_event *report; /* owned; of one that is written, told when it ends, or NULL */
};

/* The handle with that id, or NULL. */
struct fs_handle *fs_handle_find(const struct fs_conn *f, struct str id);

/* A new one, in the table, without a file. NULL with e set (out of memory). */
struct fs_handle *fs_handle_new(struct fs_conn *f, struct str id, struct err *e);

/* Takes it out of the table: its id is free again. The file is closed when nothing uses it. */
void fs_handle_drop(struct fs_handle *h);

/* The same for fs/close: answers the call when the file is closed. */
enum rpc_outcome fs_handle_close(struct fs_handle *h, struct rpc_call *c, struct buf *result,
                                 struct err *e);
