#pragma once
/* The server: everything a running exec-server owns, and how its parts are wired together. */

#include "base/hash.h"
#include "base/list.h"
#include "base/passwd.h"
#include "fs/fs_devices.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "net/conn.h"
#include "proc/proc.h"
#include "rpc/rpc.h"
#include "ops/audit.h"
#include "ops/metrics.h"
#include "app/options.h"
#include "ops/refusals.h"
#include "sandbox/host/remains.h"
#include "process/retention.h"
#include "sandbox/host/sandbox.h"

#define SERVER_ENTRIES_MAX (64u << 20) /* bytes of entries of closed processes, without output */
#define SERVER_DETACHED_MAX 4096       /* sessions without a connection kept */
#define SERVER_LANES_MAX 1024          /* more --concurrent-requests are taken as this */
#define SERVER_DRAIN_MS 5              /* between looks whether clients have been told */
#define SERVER_STOP_MS 2000            /* for the last processes to die, unless they hang */
#define SERVER_STOP_AGAIN_MS 50        /* between looks at those that do not */
#define SERVER_STOP_LOOKS 600          /* at most: half a minute */
#define SERVER_POOL_MS 500             /* at most, for calls of the file system to end */
#define SERVER_TRIM_MS 5000            /* until free memory is given back, when nobody is there */
#define SERVER_TRIM_BUSY_MS 30000      /* the same beside clients, whom it may cost milliseconds */

struct server {
    struct loop loop;
    struct options *opt; /* borrowed */
    struct conn_host conns;
    struct rpc_host rpc;
    struct proc_host procs;
    struct sandbox_host sandbox;
    struct pool pool;             /* for calls of the file system */
    struct fs_devices devices;    /* what those have learned */
    struct loop_timer trim_timer; /* running: large buffers are given back soon */
    struct loop_timer heap_timer; /* running: free memory is given back to the system soon */

    struct hash sessions; /* struct session by id */
    struct list detached; /* of them, those without a connection, longest first */
    size_t detached_count;

    struct list helpers; /* struct fs_helper of all sessions, the least recently used first */
    size_t helper_count;
    size_t helpers_alive; /* that were started and have not died yet */

    struct retention outputs; /* of closed processes, by session */
    struct retention entries; /* the processes themselves, likewise */
    struct list dying;        /* struct job: ended, waiting for their last descendant to die */

    struct metrics metrics;
    struct audit audit;
    struct refusals refusals; /* what the audit log tells of them */
    struct loop_timer refusals_timer;
    uint64_t started;      /* loop time */
    double started_unix;   /* the same moment in seconds of Unix time */
    uint8_t write_key[16]; /* for digests of write ids */
    uint64_t last_attach_id;
    struct remains remains;
    struct passwd_entry passwd;
    const char *shell; /* of terminals whose environment names none; borrowed */
    struct buf info;   /* environmentInfo, as JSON, but for its end (info.h) */

    struct loop_io listener; /* fd -1: none */
    struct loop_timer accept_timer;
    dev_t socket_dev; /* identify the socket file to remove at the end; socket_ino 0: none */
    ino_t socket_ino;
    bool accept_failing; /* descriptors or memory are short */
    struct loop_io signals;
    bool draining; /* told to stop: processes have their grace period */
    bool stopping;
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

/*
 * A process or a session was freed. Its memory lay between that of others, where free() leaves the
 * pages with the heap; they go back to the system a little later, all at once.
 */
void server_freed(struct server *s);

/* Whoever waited for processes to die looks again. */
void server_check_stopped(struct server *s);

static inline struct server *server_of_peer(const struct rpc_peer *p) {
    return container_of(p->host, struct server, rpc);
}
