#pragma once
/* One small job for the examples with an event loop: connect, run a command there, copy its output,
 * keep its status. Nothing in it blocks. */

#include <execserver.h>

struct job {
    struct xs_client *client;
    struct xs_process *process;
    char **words; /* the command, with a NULL behind it; borrowed */
    struct xs_call call;
    int over;   /* the loop may end */
    int status; /* for main() */
};

/* `URL COMMAND...` of a command line: makes the client and begins to connect. 0, or -1 after a
 * message. */
int job_begin(struct job *job, int argc, char **argv);

/* Frees everything; returns the status. */
int job_end(struct job *job);
