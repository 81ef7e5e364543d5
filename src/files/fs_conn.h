#pragma once
/*
 * The file system state of a connection: calls (fs_job.h), open handles (fs_handle.h) and
 * watches (fs_watch_api.h). All of it ends with the connection: handles are closed, calls not begun
 * are dropped, and those that run end unheard.
 */

#include "files/fs_watch_api.h"
#include "files/files_host.h"

struct fs_conn {
    struct files_host *host;
    struct list jobs;    /* struct fs_job: running */
    struct list waiting; /* struct fs_job: for their turn, in order */
    size_t running;      /* length of `jobs`; see FS_JOBS_MIN */
    struct list handles; /* struct fs_handle; at most FS_HANDLES_MAX */
    size_t handle_count;
    struct fs_watch_conn watch;
};

/* Returns the state of the call's connection, made on the first call. NULL with e set. */
struct fs_conn *fs_conn_get(struct rpc_call *c, struct err *e);

/* The connection is gone; NULL is harmless. */
void fs_conn_free(struct fs_conn *f);
