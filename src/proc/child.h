#pragma once
/*
 * Starting commands without forking the server: pipes or a PTY, a supervisor per command
 * (supervisor.h), and the news from all supervisors over one pipe and SIGCHLD.
 */

#include "base/err.h"
#include "base/list.h"
#include "loop/loop.h"
#include "proc/lowfds.h"
#include "proc/supervisor.h"

#include <stdbool.h>

#define CHILD_BUCKETS 256
#define CHILD_CACHED 16    /* supervisor memory kept for reuse, 32 KiB each */
#define CHILD_LAUNCHERS 32 /* launchers without a supervisor that are not killed at once */

struct child;
typedef void child_fn(struct child *c);

/* One per server. */
struct child_host {
    struct loop *loop;
    struct loop_io wake;               /* read end of the pipe supervisors write to */
    int wake_fd;                       /* write end, inherited by supervisors */
    struct list by_pid[CHILD_BUCKETS]; /* live supervisors */
    size_t live;
    struct supervisor *cache[CHILD_CACHED];
    size_t cached;
    struct lowfds lowfds; /* descriptors for those that are being made */
    struct rlimit nofile; /* descriptor limits the server was started with, for commands */
    bool hunting;         /* a supervisor was killed from outside: kill what it left */
    pid_t launchers[CHILD_LAUNCHERS]; /* which end by themselves, the newest ones; 0: none */
    size_t next_launcher;
    bool spare_strays; /* but do not: they cannot be told from others, or --keep-detached */
};

/* How a command has ended. */
struct child_end {
    int status; /* as of wait() */
    struct rusage usage;
    bool peak_known; /* usage.ru_maxrss is the command's, and not of what ran before its exec */
};

/*
 * How the launcher of the sandbox runs a command. `report` reads what the launcher says of the
 * start on the server's end of the channel: 1 the command runs, 0 nothing yet, or -errno with e set
 * (it could not be started, or the launcher is gone). After that `ended` reads how the command
 * ended and all it started with it: 1 *end is set, 0 nothing yet, or -errno: only the supervisor
 * will tell.
 */
struct child_launch {
    int program;                       /* our own executable; borrowed */
    int handed[SUPERVISOR_HANDED];     /* what it gets as 3, 4, 5 and 6, or -1; borrowed */
    int channel;                       /* the server's end, non-blocking; proc_start() takes it over
                                      when it succeeds */
    struct placeholders *placeholders; /* borrowed; must stay until the supervisor is gone */
    int (*report)(int channel, struct err *e);
    int (*ended)(int channel, struct child_end *end);
};

/* What to run. Strings are borrowed and must stay until the phase has left SUPERVISOR_STARTING. */
struct child_spec {
    const char *program;
    const char *search; /* PATH to search, or NULL: program is a path */
    char *const *argv;
    char *const *envp;
    const char *cwd; /* absolute */
    bool tty;
    bool pipe_stdin; /* without tty: stdin is a pipe, else /dev/null */
    unsigned short rows, cols;
    struct limits_steps limits;        /* its descriptor is the caller's */
    const struct child_launch *launch; /* NULL: not sandboxed. Else program, argv and envp are the
                                          launcher's, and cwd and rlimits its business */
};

/* One command, embedded in its owner. */
struct child {
    struct list node;
    struct supervisor *sup; /* NULL before the start and after the supervisor is gone */
    pid_t pid;              /* of the supervisor */
    int seen;               /* enum supervisor_phase last reported */
    bool gone;              /* supervisor reaped: no descendant is left (or only spared ones) */
    child_fn *changed;      /* phase changed, or gone */
};

/* The server's ends; -1 for none. Non-blocking, close-on-exec, owned by the caller. */
struct child_fds {
    int in;  /* pipe to stdin; for a tty the master, a second time */
    int out; /* stdout, or the master */
    int err;
};

/* 0 or -errno. */
MUST_CHECK int child_host_init(struct child_host *s, struct loop *loop, struct rlimit nofile);
void child_host_fini(struct child_host *s);

/* Kills children of the server that are no supervisors: what a supervisor that was killed has left.
 * Those of the killed follow, so it is done again until none is found. */
void child_host_hunt(struct child_host *s);

/* To be called on SIGCHLD: handles news, reaps supervisors (and, as PID 1, strangers). */
void child_host_reap(struct child_host *s);

/*
 * Starts a command. 0 and *fds, or -errno with nothing left behind. The outcome of exec follows by
 * c->changed: phase SUPERVISOR_RUNNING or SUPERVISOR_FAILED (then `gone`).
 */
MUST_CHECK int child_start(struct child_host *s, struct child *c, const struct child_spec *spec,
                           struct child_fds *fds);

/* Sends a signal to the leader's process group, if the leader has not been reaped. */
void child_signal(struct child *c, int signo);

/*
 * Sends SIGTERM: to the group of a leader that lives (but not to a launcher), later or now to what
 * it leaves behind.
 */
void child_ask_to_end(struct child *c);

/*
 * Kills the command and all its descendants; `spare_setsid` spares those that left its session, but
 * for those in a sandbox.
 */
void child_kill(struct child *c, bool spare_setsid);

/* Whether the supervisor still has to kill what can be killed. False before the exec, and where
 * some are to be spared. */
bool child_is_killing(const struct child *c);

/* Whether that is true of any. */
bool child_host_is_killing(const struct child_host *s);

/* The phase now, and the facts that come with it (valid while c->sup is set). */
enum supervisor_phase child_phase(const struct child *c);
