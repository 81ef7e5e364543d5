#pragma once
/*
 * Intercepts every execve() and execveat() of one command and of everything it starts, with a
 * seccomp filter that asks this process (seccomp_unotify(2)).
 *
 *     a process below the command ── execve ──> kernel: it waits
 *         intercept_on_listener()    reads path, argv, envp, cwd; finds the file that they name
 *         decide()                   the owner's policy; may answer at once or later
 *         intercept_answer()         RUN, DENY, ESCALATE
 *
 * RUN lets the call go on where it is. The kernel then reads the caller's memory a second time, and
 * another thread may have changed it. With `check` the new program is therefore stopped before its
 * first instruction, and what the kernel has loaded is compared with what was decided. A difference
 * is judged anew (decide() with `loaded` set); a forbidden program is killed there.
 *
 * DENY makes the caller print `Execution denied: REASON` and exit with 1, as a wrapper would.
 *
 * ESCALATE turns the caller into a small stub (stub.c), which keeps its pid, frees a vfork parent,
 * passes signals on and ends as the escalated program does. The owner runs that program.
 *
 * Everything happens on the loop's thread, which becomes the tracer of a caller for the moment of
 * one exec: the owner hands the wait statuses of strangers to intercept_host_waited().
 *
 * No call is ever let through unseen: without this process an exec fails with ENOSYS.
 */

#include "base/err.h"
#include "base/execfilter.h"
#include "base/util.h"
#include "loop/loop.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

struct pool;

#define INTERCEPT_PATH_MAX 4096          /* bytes of a path with its NUL, as the kernel's */
#define INTERCEPT_STRINGS_MAX (2u << 20) /* bytes of argv and envp with their pointers */
#define INTERCEPT_OPEN_MAX 64            /* decisions of one call at a time; more wait unread */
#define INTERCEPT_SCRIPTS_MAX 5          /* scripts that interpret each other; the kernel's limit */
#define INTERCEPT_STUBS_MAX 256   /* escalated programs of one call at a time; more are denied */
#define INTERCEPT_REASON_MAX 2048 /* bytes of a reason; the rest is cut off */
#define INTERCEPT_FDS 16          /* descriptors of an escalated program: 0 to 15 */

enum intercept_verdict {
    INTERCEPT_RUN,
    INTERCEPT_DENY,
    INTERCEPT_ESCALATE,
};

/* What a `#!` line starts. */
struct intercept_interpreter {
    const char *path; /* as in the line */
    const char *file; /* symbolic links followed */
    const char *arg;  /* or NULL */
    uint64_t dev, ino;
};

/* One exec. Everything is borrowed, and valid until it is answered, withdrawn, or (after ESCALATE)
 * until its stub has ended. */
struct intercept_exec {
    const char *path; /* as given; of execveat() by descriptor `/dev/fd/N` or `/dev/fd/N/PATH` */
    const char *file; /* the file it leads to, symbolic links followed, as the caller sees it */
    uint64_t dev, ino;
    const char *memfd; /* name of the memfd that `file` is; or NULL */

    /* Of a script: the program of its `#!` line, that of an interpreter that is a script, ... */
    const struct intercept_interpreter *interpreters;
    size_t interpreter_count;
    bool unreadable; /* it may be a script, but we cannot read it */

    size_t argc;
    char *const *argv; /* NULL-terminated; argv[0] may be missing */
    char *const *envp; /* NULL until escalate() */
    const char *cwd;   /* as the caller sees it */
    pid_t pid, tid;    /* caller: process and thread */

    /* Whether the program has been loaded already, and waits before its first instruction: what was
     * decided was changed meanwhile. DENY kills it, every other answer lets it run where it is. */
    bool loaded;
};

struct intercept;
struct intercept_ask;  /* one exec that waits for an answer */
struct intercept_stub; /* one escalated exec */

/* What an escalated program must inherit from the caller. */
struct intercept_escalation {
    const struct intercept_exec *exec;
    struct intercept_stub *stub;
    int fds[INTERCEPT_FDS]; /* its descriptors 0 to 15, close-on-exec here; -1: closed. The owner
                               takes those over that it sets to -1; the rest is closed on return */
    mode_t umask;
    uint64_t ignored; /* signals, bit n-1 */
    uint64_t blocked;
    struct rlimit limits[RLIM_NLIMITS];
    int nice;
    pid_t pgrp, session; /* of the stub */
    bool terminal;       /* the stub has a controlling terminal, */
    bool foreground;     /* and its group is the foreground one */
};

/*
 * The owner's side. `owner` is what intercept_new() was given.
 *
 * decide: answer with intercept_answer(), inside this call or later.
 * withdrawn: nobody waits for the answer any more (the caller was killed, or the call is over); the
 *     ask is invalid when this returns.
 * escalate: the stub is in place: run the program. Call intercept_stub_end() when it has ended, or
 *     if it cannot be started; also inside this call.
 * signal: the stub has received a signal that the program should get; `terminal`: with its group.
 *     Of SIGTSTP, SIGTTIN and SIGTTOU the stub stops itself as well; SIGCONT comes when it goes on.
 * lost: the stub was killed: end the program. The stub is invalid when this returns.
 */
struct intercept_owner {
    void (*decide)(void *owner, struct intercept_ask *ask, const struct intercept_exec *e);
    void (*withdrawn)(void *owner, struct intercept_ask *ask);
    void (*escalate)(void *owner, struct intercept_escalation *x);
    void (*signal)(void *owner, struct intercept_stub *stub, int signo, bool terminal);
    void (*lost)(void *owner, struct intercept_stub *stub);
};

/* One per server. */
struct intercept_host;

/*
 * Whether interception works here; tries it with a child. 0, or -errno with e saying why not: an
 * old kernel, a listener above us, tracing forbidden, ...
 */
MUST_CHECK int intercept_probe(struct err *e);

/* `pool` makes file system calls that could block. NULL without memory. */
struct intercept_host *intercept_host_new(struct loop *loop, struct pool *pool);
void intercept_host_free(struct intercept_host *h);

/* Call with every status of wait() of a process that is no child of ours (child_host.stranger).
 * Whether the process is one that interception traces. */
bool intercept_host_waited(struct intercept_host *h, pid_t pid, int status);

/* One command. */
struct intercept_options {
    const struct intercept_owner *calls;
    void *owner;
    bool check; /* look at what the kernel has loaded; may be changed later with
                   intercept_set_check() */
};

/*
 * Prepares the interception of one command. *start is for child_spec.intercept (and, through it,
 * for a sandbox's launcher); the caller closes start->socket after proc_start(). 0, or -errno.
 */
MUST_CHECK int intercept_new(struct intercept_host *h, const struct intercept_options *o,
                             struct intercept **out, struct execfilter_start *start);

void intercept_set_check(struct intercept *x, bool check);

/* Ends it, also inside a callback: open asks are withdrawn, and every later exec below the command
 * fails. */
void intercept_free(struct intercept *x);

/* Whether a process below the command is left. */
bool intercept_is_alive(const struct intercept *x);

/*
 * Whether the call is the shell's own: every process from the caller up to the command's first
 * process runs the executable file that the command was started with. For asks that are not
 * answered yet; false if `loaded`.
 */
bool intercept_is_by_shell(struct intercept_ask *ask);

/* Answers once. `reason` (may be NULL) is for DENY; copied. */
void intercept_answer(struct intercept_ask *ask, enum intercept_verdict v, const char *reason);

/* The escalated program has ended with this status of wait(): the stub ends likewise and is invalid
 * afterwards. `text` (or NULL) is printed on the stderr it had first. */
void intercept_stub_end(struct intercept_stub *stub, int status, const char *text);

/* The escalated program has stopped, or goes on (WIFSTOPPED, WIFCONTINUED): so does the stub. */
void intercept_stub_stopped(struct intercept_stub *stub, int status);
