#pragma once
/*
 * One supervisor per started command: a tiny process between the server and the command.
 *
 *     server ── supervisor ── command (leader of its own session) ── whatever it starts
 *
 * The supervisor is a "child subreaper": every descendant whose parent dies becomes its child, even
 * after setsid() and double forks. So it can find and kill all of them, and no others. If the
 * server dies (parent-death signal), it kills everything below it and ends.
 *
 * clone(CLONE_VM) makes it: it shares the server's memory and needs neither a copy nor an exec.
 * Hence the rules of supervisor.c: no libc call (errno and locks are the server's), no allocation,
 * a fixed stack, state only in `struct supervisor`. If CLONE_VM fails (in an emulator) a plain fork
 * takes its place: the struct lies in MAP_SHARED memory.
 *
 * The two sides talk through the struct: the supervisor stores `phase` and wakes the server by
 * writing its pid (a pid_t) to `wake_fd`; the server stores `kill` and wakes the supervisor with
 * SIGUSR1. The server itself sends signals to the command's group, so that they arrive before it
 * answers the request; `signalling` and `reaping` prevent the reuse of the leader's pid meanwhile
 * (supervisor_signal).
 */

#include "base/execfilter.h"
#include "base/pathexec.h"
#include "base/placeholders.h"
#include "proc/limits.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

enum supervisor_phase {
    SUPERVISOR_STARTING,
    SUPERVISOR_FAILED,  /* nothing runs; `error` says why; the supervisor ends */
    SUPERVISOR_RUNNING, /* exec succeeded; `leader` is set */
    SUPERVISOR_EXITED,  /* leader reaped; `status` and `usage` are set; descendants may remain */
};

/* Requests, bits of `kill`. */
enum supervisor_kill {
    SUPERVISOR_KILL_ALL = 1, /* kill every descendant */
    SUPERVISOR_SPARE_SETSID =
        2,                    /* with KILL_ALL: spare those outside the leader's session, and end */
    SUPERVISOR_TERM_REST = 4, /* once: SIGTERM to the children that a leader has left behind */
};

#define SUPERVISOR_STACK 16384
#define SUPERVISOR_CHILD_STACK 8192
#define SUPERVISOR_HANDED 6       /* descriptors handed to a launcher: its 3 to 8 */
#define SUPERVISOR_GIVEN 13       /* further descriptors of a command without a launcher */
#define SUPERVISOR_GIVEN_LIMIT 64 /* their numbers are below this */

/* A descriptor for a command beyond 0, 1 and 2. */
struct supervisor_given {
    int fd;     /* ours */
    int number; /* the command's: 3 to SUPERVISOR_GIVEN_LIMIT - 1, each once */
};

/* What a command takes over from a process it stands for. A limit that cannot be set stays. */
struct supervisor_heritage {
    mode_t umask;
    uint64_t ignored, blocked; /* signals, bit n-1 */
    int nice;
    struct rlimit limits[RLIM_NLIMITS];
    bool umask_only; /* of the others nothing is known */
};

struct supervisor {
    /* Written by the server before the start, constant afterwards. Strings are borrowed and must
     * stay until the phase has left SUPERVISOR_STARTING. */
    pid_t server;
    int fds[3]; /* descriptors 0, 1 and 2 of the command */
    int wake_fd;
    bool tty;      /* fds[0] is a terminal to make the controlling one */
    bool forked;   /* set by supervisor_start(): it shares only this struct with the server */
    unsigned keep; /* it copies only descriptors below this; 0: all (lowfds.h) */
    const char *program;
    const char *search; /* PATH for the search of `program`; NULL: it is a path */
    char *const *argv;
    char *const *envp;
    const char *cwd;
    struct rlimit nofile; /* descriptor limits of the command, unless `limits` has some */
    struct supervisor_given given[SUPERVISOR_GIVEN];
    unsigned given_count;
    const struct supervisor_heritage *heritage; /* borrowed; NULL: none */
    struct limits_steps limits;
    /* Of a sandboxed command. What is run, as `program`, is then the launcher: our own executable,
     * which takes terminal, working directory and resource limits upon itself. */
    int launcher;                  /* descriptor of it, or -1: not sandboxed */
    int handed[SUPERVISOR_HANDED]; /* descriptors it is given; -1: not this one */
    int intercept; /* socket for the listener of execs (execfilter.h), or -1; a launcher gets it
                      as the next number behind those handed to it */
    uint64_t mark;
    struct placeholders
        *placeholders; /* directories to remove at the end, or NULL; shared memory */

    /* Server to supervisor. */
    _Atomic bool signalling; /* the leader must not be reaped now */
    _Atomic unsigned kill;   /* enum supervisor_kill */

    /* Supervisor to server; valid as `phase` says. */
    _Atomic bool unshared; /* it has descriptors of its own: those it was given may be reused */
    _Atomic bool stuck;    /* it sweeps, or nobody is left who can be killed (hunt_down()) */
    _Atomic bool reaping;  /* from now on the leader's pid may belong to another process */
    _Atomic int phase;
    int error;        /* errno of the failed step */
    int failed_limit; /* enum limits_kind that could not be set, or -1 */
    pid_t self;       /* the supervisor, for the command before its exec */
    pid_t leader;
    int status; /* as of wait() */
    struct rusage usage;

    char path[PATHEXEC_MAX]; /* scratch for the program search */
    _Alignas(16) char child_stack[SUPERVISOR_CHILD_STACK];
    _Alignas(16) char stack[SUPERVISOR_STACK];
};

/*
 * Starts the supervisor for `s` (in MAP_SHARED memory). All signals must be blocked by the caller
 * and stay blocked in the supervisor. Returns its pid or -errno. The result of the start follows
 * through `phase`; the caller reaps the supervisor (SIGCHLD) and may then reuse the memory.
 */
pid_t supervisor_start(struct supervisor *s);

/*
 * For the server: sends a signal to the leader's process group, unless the leader is gone. Whether
 * it was sent. The phase must be SUPERVISOR_RUNNING.
 */
bool supervisor_signal(struct supervisor *s, int signo);

/* Like supervisor_signal(), to the leader alone. */
bool supervisor_signal_leader(struct supervisor *s, int signo);
