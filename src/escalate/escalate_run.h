#pragma once
/*
 * Runs a program outside the sandbox for a process inside: with that process's descriptors, working
 * directory, environment, argv[0], umask and, where they are known, its ignored and blocked
 * signals, its nice value and its limits. It is the leader of a session of its own, below a
 * supervisor, so that all of it can be ended.
 *
 * Of the environment it does not get what changes how programs are loaded or shells start: LD_*,
 * GLIBC_TUNABLES, BASH_ENV, ENV, and the variables of the wrapper.
 */

#include "base/err.h"
#include "proc/proc.h"

#include <stdint.h>

struct escalate_program {
    const char *file; /* absolute */
    char *const *argv;
    char *const *envp;
    const char *cwd;    /* absolute */
    const int *fds;     /* close-on-exec; borrowed */
    const int *numbers; /* of the descriptors in the program; each once, below 64 */
    size_t fd_count;    /* numbers without a descriptor below 3 are /dev/null */
    const struct supervisor_heritage *heritage; /* NULL: of the server */
};

struct escalate_run;

/* `status` is as of wait(), and the run is invalid afterwards; or, with `error` > 0, the errno of a
 * start that failed. Called once, never inside escalate_run_start(). */
typedef void escalate_run_fn(void *owner, struct escalate_run *r, int status, int error);

/* Starts it; everything is copied. 0 or -errno. */
MUST_CHECK int escalate_run_start(struct proc_host *h, const struct escalate_program *p,
                                  escalate_run_fn *ended, void *owner, struct escalate_run **out);

/* Sends it a signal; with `group` also to the rest of its process group, as a terminal does. */
void escalate_run_signal(struct escalate_run *r, int signo, bool group);

/* Kills it and all it started; the owner hears nothing more, and the run is invalid. */
void escalate_run_kill(struct escalate_run *r);
