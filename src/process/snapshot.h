#pragma once
/*
 * Shell snapshots: a start that would run a login shell runs one without its startup files instead,
 * with the state that they leave.
 *
 * A session runs the startup files once for each key (shell, directory, policies), in a process
 * that its client does not see: a capture. It is confined as the command is. Starts wait for it,
 * several for the same one. What it tells is kept for later starts of the session. A capture that
 * fails, prints too much or takes too long is killed; its starts run the login shell after all, and
 * so do later ones until it is tried again.
 *
 * Programs that the startup files leave in the background live as long as the session.
 */

#include "process/snapshot_script.h"
#include "process/session.h"

#define SNAPSHOT_ENTRIES_MAX 16        /* of a session; the least recently used one goes */
#define SNAPSHOT_BYTES_MAX (64u << 20) /* of all sessions */
#define SNAPSHOT_KEY_MAX (64u << 10)   /* bytes of a key; more: no snapshot */
#define SNAPSHOT_SCOPE_MAX 256         /* bytes of a scope */
#define SNAPSHOT_TIMEOUT_MS 10000      /* of a capture */
#define SNAPSHOT_ATTEMPTS 3            /* captures of a key that failed */
#define SNAPSHOT_AGAIN_MS 1000         /* after a failure */

struct snapshot;

/* A start that waits. */
struct snapshot_wait {
    struct list node;
    /* The capture is over: goes on, with the snapshot or (NULL) without. May free x. */
    void (*ready)(struct snapshot_wait *x, struct snapshot *s);
    /* The process is gone before: frees x. */
    void (*drop)(struct snapshot_wait *x);
};

enum snapshot_state {
    SNAPSHOT_NONE,    /* begin a capture (snapshot_begin()) */
    SNAPSHOT_PENDING, /* wait (snapshot_await()) */
    SNAPSHOT_READY,   /* use it (snapshot_apply()) */
    SNAPSHOT_FAILED,  /* run the login shell */
};

/* What a capture runs: a command whose script is replaced. Everything is copied. */
struct plan;

struct snapshot_spec {
    enum snapshot_shell shell;
    const struct child_spec *command; /* without its sandbox */
    const struct plan *plan;          /* NULL: not confined */
    const struct limits *limits;
    struct str policy; /* the envPolicy as JSON; empty: none */
};

/*
 * Finds the snapshot of a key, or makes room for it. NULL: out of memory. The pointer is good until
 * the loop goes on.
 */
struct snapshot *snapshot_find(struct session *s, struct str key);
enum snapshot_state snapshot_state(const struct snapshot *x);

/* Begins a capture. 0, or -errno: it failed. */
MUST_CHECK int snapshot_begin(struct snapshot *x, const struct snapshot_spec *spec);

/* Adds a start to those that wait for a pending one. */
void snapshot_await(struct snapshot *x, struct snapshot_wait *wait);

/* The process of a wait is gone. */
void snapshot_forget(struct snapshot_wait *wait);

/* Puts the state into a command; memory and errors as for snapshot_script_apply(). */
MUST_CHECK int snapshot_apply(const struct snapshot *x, struct arena *a, char *const *own,
                              struct snapshot_command *command);

/* The session ends: kills its captures and forgets its snapshots. */
void snapshot_end_all(struct session *s);

/* The server ends: frees captures that would not die in time. */
void snapshot_free_dying(struct process_host *h);
