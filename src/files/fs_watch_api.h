#pragma once
/*
 * fs/watchMissing with fs/missingChanged, and the extension fs/watch, fs/unwatch with fs/changed:
 * what a connection watches. All of it ends with the connection.
 *
 * fs/watchMissing: one watch at a time, by an inotify instance of its own. Ids grow; each is used
 * up by the call that names it, which also ends the watch before it.
 *
 * fs/watch: at most FS_WATCHES_MAX watches, all by one inotify instance. Blocking steps (setting
 * up a watch, taking in directories that appear) run as jobs, one at a time; meanwhile the kernel
 * keeps the events. The client hears of changes FS_WATCH_DELAY_MS after the first one; while its
 * output queue is high, changes are collected in bounded memory (fs/fs_watch.h).
 *
 * Closing an inotify instance takes long (20 ms), and a user has few of them (128): a connection
 * keeps those it has, one for each kind of watch, until its end, when a thread closes them.
 */

#include "fs/fs_watch.h"
#include "rpc/rpc.h"

#define FS_WATCH_DELAY_MS 50
#define FS_WATCH_ID_MAX 64 /* bytes */

struct files_host;
struct missing_watch;
struct watch_job;

struct fs_watch_conn {
    struct files_host *host;
    struct rpc_peer *peer;

    uint64_t missing_id;           /* the highest that was named */
    struct missing_watch *missing; /* the current one, also while it is set up */
    struct list missing_all;       /* owned; that one, and those replaced while being set up */
    int missing_fd;                /* an inotify instance for the next one, or -1 */

    struct loop_io inotify; /* fd -1: none yet. Reads while no job runs. */
    struct fs_watch_set set;
    size_t watches;        /* those being set up included */
    struct list setups;    /* struct watch_job: waiting for their turn */
    struct watch_job *job; /* the one that runs, or NULL */
};

/* Borrows the peer. */
void fs_watch_api_init(struct fs_watch_conn *w, struct rpc_peer *peer);

/* The connection is gone, its calls are cancelled. A job that runs ends by itself. */
void fs_watch_api_fini(struct fs_watch_conn *w);

/* The connection has room for output again. */
void fs_watch_api_resume(struct fs_watch_conn *w);

/* The part of fs_watch_api_fini() in fs_missing_api.c. */
void fs_missing_api_conn_fini(struct fs_watch_conn *w);

/* The methods. */
int fs_missing_api_decode(const struct json_node *params, void *out, struct err *e);
enum rpc_outcome fs_missing_api_run(struct rpc_call *c, void *params, struct buf *result,
                                    struct err *e);
int fs_watch_api_decode(const struct json_node *params, void *out, struct err *e);
enum rpc_outcome fs_watch_api_run(struct rpc_call *c, void *params, struct buf *result,
                                  struct err *e);
int fs_watch_api_end_decode(const struct json_node *params, void *out, struct err *e);
enum rpc_outcome fs_watch_api_end_run(struct rpc_call *c, void *params, struct buf *result,
                                      struct err *e);
