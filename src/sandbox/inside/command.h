#pragma once
/* The process that becomes the command: its last steps, whose order matters, and exec. */

#include "sandbox/inside/init.h"

struct command {
    const struct init_args *args;
    char **envp;  /* with PWD */
    int landlock; /* rules, or -1 */
};

/* Starts the command and waits for its exec. The pid, or -errno with the fault noted and no process
 * left. */
MUST_CHECK pid_t command_start(const struct command *c);
