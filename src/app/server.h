#pragma once
/* The server: everything a running exec-server owns, and how its parts are wired together. */

#include "app/listener.h"
#include "app/options.h"
#include "base/passwd.h"
#include "files/files_host.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "net/conn.h"
#include "ops/ops.h"
#include "process/process_host.h"
#include "rpc/rpc.h"

#define SERVER_LANES_MAX 1024     /* more --concurrent-requests are taken as this */
#define SERVER_DRAIN_MS 5         /* between looks whether clients have been told */
#define SERVER_STOP_MS 2000       /* for the last processes to die, unless they hang */
#define SERVER_STOP_AGAIN_MS 50   /* between looks at those that do not */
#define SERVER_STOP_LOOKS 4800    /* at most: four minutes, for a bomb on a busy machine */
#define SERVER_POOL_MS 500        /* at most, for calls of the file system to end */
#define SERVER_TRIM_MS 5000       /* until free memory is given back, when nobody is there */
#define SERVER_TRIM_BUSY_MS 30000 /* the same beside clients, whom it may cost milliseconds */

struct server {
    struct loop loop;
    struct options *opt; /* borrowed */
    struct conn_host conns;
    struct rpc_host rpc;
    struct pool pool; /* for calls of the file system */
    struct ops ops;
    struct process_host processes;
    struct files_host files;
    struct listener listener;
    struct loop_timer heap_timer; /* running: free memory is given back to the system soon */
    uint64_t started;             /* loop time */
    double started_unix;          /* the same moment in seconds of Unix time */
    struct passwd_entry passwd;
    struct buf info; /* environmentInfo, as JSON, but for its end (envinfo.h) */
    struct loop_io signals;
    bool unfinished; /* stopped although processes are left */
    unsigned stop_looks;
    struct loop_timer stop_timer;
    struct loop_task stop_task;
    struct loop_timer drain_timer; /* all processes are gone, clients are still being told */
};

/* 0, or -errno with a message in e fit for the user. */
MUST_CHECK int server_init(struct server *s, struct options *opt, struct rlimit nofile,
                           struct err *e);

/* Listens as the options say and prints the URL, or takes stdio. 0 or -errno with e set. */
MUST_CHECK int server_listen(struct server *s, struct err *e);

/* Runs until told to stop; every process is dead then. 0 or -errno; -EBUSY: some hang in the
 * kernel, and are left. */
MUST_CHECK int server_run(struct server *s);

/* False: a call of the file system hangs in a thread. Nothing was given back, just exit. */
bool server_fini(struct server *s);

/*
 * Begins to stop: after the grace period, if there is one and processes run, connections get a
 * close frame and all processes are killed. Asked again it does not wait.
 */
void server_stop(struct server *s);

/* The server of a peer. */
static inline struct server *server_of_peer(const struct rpc_peer *p) {
    return container_of(p->host, struct server, rpc);
}
