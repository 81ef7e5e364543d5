#pragma once
/*
 * What all sessions and their processes share: the tables, what is retained of closed processes,
 * the way to start commands and sandboxes, and where events go. One per server.
 */

#include "base/hash.h"
#include "base/list.h"
#include "loop/loop.h"
#include "ops/ops.h"
#include "proc/proc.h"
#include "process/retention.h"
#include "sandbox/host/remains.h"
#include "sandbox/host/sandbox_host.h"

#define PROCESS_HOST_ENTRIES_MAX (64u << 20) /* bytes of entries of closed processes, no output */
#define PROCESS_HOST_DETACHED_MAX 4096       /* sessions without a connection kept */

struct conn_host;
struct files_host;
struct process_host;
struct session;

/* What the operator has set. */
struct process_settings {
    uint64_t session_ttl_ms;      /* 0 = a session ends with its connection */
    bool keep_detached;           /* what a command detached outlives its session */
    bool allow_attach;            /* process/attach is answered */
    unsigned max_processes;       /* that run at once, per session; 0 = no limit */
    size_t retained_output;       /* bytes kept per process */
    uint64_t closed_retention_ms; /* how long a closed process can still be read; 0 = not at all */
    size_t closed_output_max;     /* bytes kept by all closed processes; 0 = none */
    bool allow_direct_exec, allow_prepared_exec;
    bool inherit_pids;  /* sandboxed processes see those of the host */
    bool one_at_a_time; /* a connection's requests run one after another */
};

/* What the rooms above do when something ends. */
struct process_hooks {
    void (*detached)(struct session *s);   /* its connection is gone */
    void (*ended)(struct session *s);      /* it is about to be freed */
    void (*freed)(struct process_host *h); /* memory of a process or a session was given back */
    void (*died)(struct process_host *h);  /* the last descendant of a command is dead */
};

struct process_host {
    struct loop *loop;
    struct conn_host *conns;
    struct ops *ops;
    struct files_host *files; /* of the room above, opaque here */
    const struct process_hooks *hooks;
    struct process_settings settings;
    struct proc_host procs;
    struct sandbox_host sandbox;
    struct remains remains;
    const char *shell;    /* of terminals whose environment names none; borrowed */
    struct hash sessions; /* struct session by id */
    struct list detached; /* of them, those without a connection, longest first */
    size_t detached_count;
    struct retention outputs; /* of closed processes, by session */
    struct retention entries; /* the processes themselves, likewise */
    struct list dying;        /* struct process: ended, waiting for their last descendant to die */
    uint8_t write_key[16];    /* for digests of write ids */
    uint64_t last_attach_id;
    bool draining; /* told to stop: no new starts */
    bool stopping; /* sessions end with their connections */
};

/*
 * `nofile` are the descriptor limits for commands, `home` (borrowed, or NULL) the user's home. The
 * members above `settings` are the caller's to set first. 0 or -errno.
 */
MUST_CHECK int process_host_init(struct process_host *h, const struct process_settings *settings,
                                 struct rlimit nofile, const char *home);

/* After process_host_end_sessions(). Frees also what could not be ended in time. */
void process_host_fini(struct process_host *h);

/* SIGTERM to everything that runs. */
void process_host_ask_to_end(struct process_host *h);

/* Ends the sessions that have no connection, or all of them. */
void process_host_end_detached(struct process_host *h);
void process_host_end_sessions(struct process_host *h);

/* Adds the figures of sessions and processes. */
void process_host_count(const struct process_host *h, struct metrics_now *now);
