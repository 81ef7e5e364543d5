#pragma once
/* The server: everything a running exec-server owns, and how its parts are connected. */

#include "app/listener.h"
#include "app/options.h"
#include "base/passwd.h"
#include "console/console.h"
#include "files/files_host.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "net/conn.h"
#include "ops/ops.h"
#include "process/process_host.h"
#include "rpc/rpc.h"
#include "web/web_host.h"

#define SERVER_LANES_MAX 1024     /* maximum of --concurrent-requests */
#define SERVER_DRAIN_MS 5         /* between checks whether clients have all news */
#define SERVER_STOP_MS 2000       /* for the last processes to die */
#define SERVER_STOP_AGAIN_MS 50   /* between checks of processes that do not die */
#define SERVER_STOP_LOOKS 4800    /* checks at most: four minutes, for a bomb on a busy machine */
#define SERVER_STOP_STUCK 20      /* checks in a row that find nobody who dies or forks */
#define SERVER_POOL_MS 500        /* at most, for file system calls to end */
#define SERVER_TRIM_MS 5000       /* until free memory returns to the system, without clients */
#define SERVER_TRIM_BUSY_MS 30000 /* with clients, whom the trim may cost milliseconds */

struct server {
    struct loop loop;
    struct options *opt; /* borrowed */
    struct conn_host conns;
    struct rpc_host rpc;
    struct pool pool; /* for calls of the file system */
    struct ops ops;
    struct process_host processes;
    struct files_host files;
    struct web_host web;
    struct listener listener;
    struct console console;
    struct listener console_listener;
    struct loop_timer heap_timer; /* runs until free memory returns to the system */
    uint64_t started;             /* loop time */
    double started_unix;          /* `started` in seconds of Unix time */
    struct passwd_entry passwd;
    struct buf info; /* environmentInfo as JSON, without its end (envinfo.h) */
    struct loop_io signals;
    bool unfinished;                  /* stopped while processes were left */
    unsigned stop_looks, stuck_looks; /* checks of the last processes; those in a row in vain */
    struct loop_timer stop_timer;
    struct loop_task stop_task;
    struct loop_timer drain_timer; /* all processes are gone; clients still get news */
};

/* 0, or -errno with a message for the user in e. */
MUST_CHECK int server_init(struct server *s, struct options *opt, struct rlimit nofile,
                           struct err *e);

/* Listens and prints the URL, or serves stdio, by the options. 0 or -errno with e set. */
MUST_CHECK int server_listen(struct server *s, struct err *e);

/*
 * Runs until server_stop() and the death of every process. 0 or -errno; -EBUSY: some processes hang
 * in the kernel and are left.
 */
MUST_CHECK int server_run(struct server *s);

/* False: a file system call hangs in a thread. Nothing was freed: exit at once. */
bool server_fini(struct server *s);

/*
 * Begins to stop. After the grace period, if there is one and processes run, sends a close frame to
 * connections and kills all processes. A second call ends the grace period.
 */
void server_stop(struct server *s);

/* The server of a peer. */
static inline struct server *server_of_peer(const struct rpc_peer *p) {
    return container_of(p->host, struct server, rpc);
}
