#pragma once
/*
 * Starts commands without forking the server: pipes or a PTY, and a supervisor per command
 * (supervisor.h). All supervisors report over one pipe and SIGCHLD.
 */

#include "base/err.h"
#include "base/list.h"
#include "loop/loop.h"
#include "proc/lowfds.h"
#include "proc/supervisor.h"

#include <stdbool.h>

#define CHILD_BUCKETS 256
#define CHILD_CACHED 16    /* supervisor memory kept for reuse, 32 KiB each */
#define CHILD_LAUNCHERS 32 /* launchers that may outlive their supervisor for a while */

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
    struct lowfds lowfds; /* descriptors for supervisors that are being made */
    struct rlimit nofile; /* descriptor limits of commands: those the server was started with */
    bool hunting;         /* a supervisor was killed from outside: kill its orphans */
    pid_t launchers[CHILD_LAUNCHERS]; /* the newest that lost their supervisor; 0: none */
    size_t next_launcher;
    /* Gets wait statuses of processes that are not supervisors: whether it traces them. Or NULL. */
    bool (*stranger)(void *owner, pid_t pid, int status);
    void *stranger_owner;
    bool spare_strays; /* do not hunt: orphans look like other children, or --keep-detached */
};

/* How a command has ended. */
struct child_end {
    int status; /* as of wait() */
    struct rusage usage;
    bool peak_known; /* usage.ru_maxrss is the command's, not that of the program before its exec */
};

/*
 * How the sandbox launcher runs a command. `report` reads the outcome of the start from the
 * server's end of the channel: 1 the command runs, 0 nothing yet, or -errno with e set (the start
 * failed, or the launcher is gone). After that `ended` reads how the command and its whole tree
 * ended: 1 *end is set, 0 nothing yet, or -errno: only the supervisor will tell.
 */
struct child_launch {
    int program;                       /* our own executable; borrowed */
    int handed[SUPERVISOR_HANDED];     /* its descriptors 3 to 8, or -1; borrowed */
    int channel;                       /* the server's end, non-blocking; proc_start() takes it over
                                      when it succeeds */
    struct placeholders *placeholders; /* borrowed; must stay until the supervisor is gone */
    int (*report)(int channel, struct err *e);
    int (*ended)(int channel, struct child_end *end);
};

/* A command. Strings are borrowed and must stay until the phase has left SUPERVISOR_STARTING. */
struct child_spec {
    const char *program;
    const char *search; /* PATH to search, or NULL: program is a path */
    char *const *argv;
    char *const *envp;
    const char *cwd; /* absolute */
    bool tty;
    bool pipe_stdin;  /* without tty: stdin is a pipe, else /dev/null */
    bool merge;       /* without tty: stderr shares the pipe of stdout */
    const int *stdio; /* NULL, or the command's descriptors 0, 1 and 2 instead of pipes; borrowed */
    const struct supervisor_given *given; /* further descriptors; borrowed */
    unsigned given_count;
    const struct supervisor_heritage *heritage; /* borrowed like the strings; NULL: none */
    unsigned short rows, cols;
    struct limits_steps limits;        /* its descriptor is the caller's */
    const struct child_launch *launch; /* NULL: not sandboxed. Else program, argv and envp are the
                                          launcher's, and cwd and rlimits its business */
    const struct execfilter_start *intercept; /* NULL: nobody watches its execs */
};

/* One command, embedded in its owner. */
struct child {
    struct list node;
    struct supervisor *sup; /* NULL before the start and after the supervisor is gone */
    pid_t pid;              /* of the supervisor */
    int seen;               /* enum supervisor_phase last reported */
    bool gone;         /* the supervisor is reaped: no descendant is left, or only spared ones */
    child_fn *changed; /* phase changed, or gone */
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

/*
 * Kills children of the server that are not supervisors: the orphans of a killed supervisor. Their
 * own orphans follow, so the hunt repeats until it finds none.
 */
void child_host_hunt(struct child_host *s);

/* Call on SIGCHLD: handles reports, reaps supervisors (and, as PID 1, strangers). */
void child_host_reap(struct child_host *s);

/*
 * Starts a command. 0 and *fds, or -errno with nothing left behind. c->changed reports the outcome
 * of exec: phase SUPERVISOR_RUNNING, or SUPERVISOR_FAILED and then `gone`.
 */
MUST_CHECK int child_start(struct child_host *s, struct child *c, const struct child_spec *spec,
                           struct child_fds *fds);

/* Sends a signal to the leader's process group, if the leader has not been reaped. */
void child_signal(struct child *c, int signo);
void child_signal_leader(struct child *c, int signo); /* to the leader alone */

/*
 * Sends SIGTERM to the group of a living leader (but not to a launcher), and to its orphans, now or
 * when it ends.
 */
void child_ask_to_end(struct child *c);

/*
 * Kills the command and all its descendants. `spare_setsid` spares those that left its session,
 * but never those in a sandbox.
 */
void child_kill(struct child *c, bool spare_setsid);

/*
 * Whether the supervisor still has processes to kill that can die. False before the exec, and if it
 * spares some.
 */
bool child_is_killing(const struct child *c);

/* Whether child_is_killing() holds for any command. */
bool child_host_is_killing(const struct child_host *s);

/* The present phase; the members of c->sup are valid as it says. */
enum supervisor_phase child_phase(const struct child *c);
