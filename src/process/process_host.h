#pragma once
/*
 * The state that all sessions and their processes share: the tables, the retained output of closed
 * processes, the means to start commands and sandboxes, and the sink of events. One per server.
 */

#include "base/hash.h"
#include "base/list.h"
#include "loop/loop.h"
#include "ops/ops.h"
#include "proc/proc.h"
#include "process/ledger.h"
#include "process/retention.h"
#include "proxy/proxy.h"
#include "sandbox/host/remains.h"
#include "sandbox/host/sandbox_host.h"

#define PROCESS_HOST_ENTRIES_MAX (64u << 20) /* bytes of entries of closed processes, no output */
#define PROCESS_HOST_DETACHED_MAX 4096       /* sessions without a connection kept */
#define PROCESS_HOST_LASTING_MAX 64          /* sessions with longer times than the settings' */

struct conn_host;
struct files_host;
struct process_host;
struct web_host;
struct session;

/* Settings of the operator. */
struct process_settings {
    uint64_t session_ttl_ms;      /* 0 = a session ends with its connection */
    uint64_t session_ttl_max_ms;  /* that a client may ask for, if it is more */
    bool keep_detached;           /* detached descendants of a command outlive its session */
    bool allow_attach;            /* process/attach is allowed */
    unsigned max_processes;       /* running ones per session; 0 = no limit */
    struct limits limits;         /* of commands whose client asks for none */
    struct limits limits_max;     /* that a client may ask for */
    uint64_t timeout_ms;          /* likewise; 0 = none */
    uint64_t timeout_max_ms;      /* 0 = any */
    size_t retained_output;       /* bytes kept per process */
    uint64_t closed_retention_ms; /* how long clients can read a closed process; 0 = not at all */
    uint64_t closed_retention_max_ms; /* that a client may ask for, if it is more */
    size_t closed_output_max;         /* bytes kept by all closed processes; 0 = none */
    bool allow_direct_exec, allow_prepared_exec;
    bool inherit_pids;  /* sandboxed processes see the host's processes */
    bool one_at_a_time; /* a connection's requests run one after another */
};

/* Callbacks of the rooms above. */
struct process_hooks {
    void (*detached)(struct session *s);   /* its connection is gone */
    void (*ended)(struct session *s);      /* it is about to be freed */
    void (*freed)(struct process_host *h); /* a process or a session gave memory back */
    void (*died)(struct process_host *h);  /* the last descendant of a command is dead */
};

struct process_host {
    struct loop *loop;
    struct conn_host *conns;
    struct ops *ops;
    struct files_host *files; /* belongs to a room above, opaque here */
    struct web_host *web;     /* likewise */
    const struct process_hooks *hooks;
    struct process_settings settings;
    struct proc_host procs;
    struct sandbox_host sandbox;
    struct remains remains;
    struct proxy_host proxies;
    const char *shell;    /* for terminals whose environment names none; borrowed */
    struct hash sessions; /* struct session by id */
    struct hash shown;    /* likewise by the name that the console shows */
    struct ledger ledger; /* of sessions and processes */
    struct list detached; /* sessions without a connection, longest detached first */
    size_t detached_count;
    size_t console_count;     /* sessions of the console, and of those who look at it */
    size_t lasting_count;     /* sessions that are `lasting` */
    struct retention outputs; /* output of closed processes, shared by session */
    struct retention entries; /* the closed processes themselves, likewise */
    struct list dying;        /* struct process: ended, waiting for their last descendant to die */
    struct list captures;     /* struct login: likewise, of sessions that have ended */
    size_t snapshot_bytes;    /* kept by the snapshots of all sessions */
    uint8_t write_key[16];    /* for digests of write ids */
    uint64_t last_attach_id;
    unsigned last_viewer; /* serial of the last session of a console */
    bool draining;        /* no new starts */
    bool stopping;        /* sessions end with their connections */
};

/*
 * Initialises all members below `settings`; the caller has set the others. `nofile` are the
 * descriptor limits of commands, `home` is the user's home (borrowed, or NULL). 0 or -errno.
 */
MUST_CHECK int process_host_init(struct process_host *h, const struct process_settings *settings,
                                 struct rlimit nofile, const char *home);

/* Whether this host can enforce the limits of the settings. 0, or -errno with e set. */
MUST_CHECK int process_host_check_limits(struct process_host *h, struct err *e);

/* Call after process_host_end_sessions(). Also frees processes that would not die in time. */
void process_host_fini(struct process_host *h);

/* Sends SIGTERM to every running process. */
void process_host_ask_to_end(struct process_host *h);

/* Ends the sessions that have no connection, or all of them. */
void process_host_end_detached(struct process_host *h);
void process_host_end_sessions(struct process_host *h);

/* Adds the counts of sessions and processes. */
void process_host_count(const struct process_host *h, struct metrics_now *now);
