#pragma once
/*
 * Unified exec: sessions, which are processes with their output so far, and turns, which are calls
 * of xs_exec_command() and xs_exec_write_stdin() in flight.
 *
 * A session takes one turn at a time; others wait in its queue. Timers and callbacks only note what
 * has to happen. exec_session_step() does it, from the notice of the struct xs_exec: it alone ends
 * turns and frees sessions, and it calls at most one callback of the caller.
 *
 * Maxima: EXEC_SESSIONS_MAX sessions, of which EXEC_WINDOW_PROCESSES are kept when no turn needs
 * them; for each, two struct exec_buffer and the arguments.
 */

#include "client/client_internal.h"
#include "client/exec_buffer.h"
#include "client/exec_delta.h"

#define EXEC_SESSIONS_MAX (EXEC_WINDOW_PROCESSES + CALLS_MAX)
#define EXEC_SESSION_ID_MAX 64

struct xs_exec {
    struct client_part part;
    struct xs_client *client; /* borrowed */
    struct xs_exec_events events;
    void *user;
    struct list sessions; /* struct exec_session, owned */
    size_t count;         /* their number */
    struct list errands;  /* struct exec_errand, owned */
    struct notice notice;
    uint64_t tick; /* counts uses */
    bool closing;  /* freed by its owner, but errands are out */
    bool *gone;    /* borrowed, while a callback runs: set if it freed us */
};

/* A call of ours of xs_process_*. It outlives its turn, because `done` comes in any case. */
struct exec_errand {
    struct xs_call call;
    struct list node;
    struct xs_exec *exec;       /* borrowed */
    struct exec_turn *turn;     /* borrowed; NULL: nobody waits for it */
    struct xs_process *process; /* of a start */
    bool cancel;                /* nobody wants it any more */
};

struct exec_session {
    struct list node;
    struct xs_exec *exec;       /* borrowed */
    struct xs_process *process; /* owned; NULL until it is started */
    struct xs_options *options; /* owned; what `info` points to */
    struct xs_exec_info info;   /* with its number */
    char id[EXEC_SESSION_ID_MAX];
    bool tty;
    bool stored;   /* its number is known to the caller */
    bool pruned;   /* ends, and is forgotten then */
    bool kill;     /* its process is to be terminated */
    bool ended;    /* its last event has come */
    bool told;     /* and xs_exec_events.end has been called, or is being called */
    char *failure; /* owned; why it failed */
    struct xs_exit exit;
    uint64_t used;             /* tick of the last use */
    struct exec_buffer output; /* not collected yet */
    struct exec_buffer transcript;
    struct exec_delta delta;
    enum xs_stream stream; /* of what `delta` holds */
    struct list turns;     /* struct exec_turn, borrowed; the first one is at work */
};

enum exec_stage {
    EXEC_WAITING,    /* for its turn */
    EXEC_STARTING,   /* for the answer to the start */
    EXEC_EARLY,      /* for an end within EXEC_WINDOW_EARLY */
    EXEC_DENIAL,     /* for the rest of the output of a denied command */
    EXEC_WRITING,    /* for the answer to the input */
    EXEC_SETTLING,   /* for EXEC_WINDOW_SETTLE after it */
    EXEC_COLLECTING, /* for the end of the window, or of the process */
};

struct exec_turn {
    struct op op;
    struct list node;
    struct exec_session *session; /* borrowed; NULL when it is over */
    struct exec_errand *errand;   /* borrowed; in flight */
    enum exec_stage stage;
    bool command; /* xs_exec_command() */
    bool due;     /* its window is over */
    int64_t window_ms;
    uint64_t max_tokens;
    uint64_t began; /* nanoseconds of the loop's clock: when it began to collect */
    struct loop_timer timer;
    struct buf input;
    struct xs_exec_result **out; /* borrowed: the caller's */
};

/* A new session with a free number and a copy of the options. NULL: out of memory, or
 * EXEC_SESSIONS_MAX. */
struct exec_session *exec_session_new(struct xs_exec *x, const struct xs_options *o);

/* Frees it at once; its turns lose their session. `terminate` is false while the client is freed:
 * then the process is not ours any more. */
void exec_session_free(struct exec_session *s, bool terminate);

/* The stored session of that number, or NULL. */
struct exec_session *exec_session_find(const struct xs_exec *x, int number);

/* It started: takes the process, and tells `begin`. The session may be gone afterwards. */
void exec_session_started(struct exec_session *s, struct xs_process *p);

/* Stores it; if there are EXEC_WINDOW_PROCESSES, one makes room. */
void exec_session_store(struct exec_session *s);

/* Ends the process and forgets the session then. */
void exec_session_prune(struct exec_session *s);

/* Does one thing that is due for any session; false: nothing is. */
bool exec_session_step(struct xs_exec *x);

/* Before and after a callback of the caller: false = the callback freed the struct xs_exec.
 * Callbacks may be nested. */
struct exec_guard {
    bool gone;
    bool *outer;
};
void exec_session_enter(struct xs_exec *x, struct exec_guard *g);
MUST_CHECK bool exec_session_leave(struct xs_exec *x, struct exec_guard *g);

/* An errand for a turn, or for nobody (NULL). NULL: out of memory. */
struct exec_errand *exec_session_errand(struct xs_exec *x, struct exec_turn *t);

/* Frees an errand whose call was refused. */
void exec_session_no_errand(struct exec_errand *e);
