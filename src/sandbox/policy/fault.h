#pragma once
/* Why a sandbox could not be set up: the step, the errno and a text for the user. All processes of
 * a launch share it in memory, hence no allocation. */

#include "base/util.h"

#include <stdint.h>

#define FAULT_TEXT_MAX 1024

/* struct launch_report carries these numbers: append only. */
enum fault_step {
    FAULT_NONE,
    FAULT_REQUEST,    /* the server's request */
    FAULT_POLICY,     /* a rule that cannot be enforced */
    FAULT_GLOB,       /* a pattern of denied paths */
    FAULT_PROTECT,    /* a placeholder directory */
    FAULT_NAMESPACES, /* clone() */
    FAULT_IDS,        /* user and group map */
    FAULT_MOUNT,      /* any mount */
    FAULT_DEV,        /* the private /dev */
    FAULT_PROC,       /* the private /proc */
    FAULT_ROOT,       /* changing the root */
    FAULT_NETWORK,    /* loopback, listeners of a managed network */
    FAULT_PRIVILEGES, /* capabilities, no_new_privs */
    FAULT_LANDLOCK,
    FAULT_SECCOMP,
    FAULT_LIMIT, /* a resource limit of the command */
    FAULT_CWD,   /* the command's working directory */
    FAULT_TTY,   /* the controlling terminal */
    FAULT_EXEC,  /* the program */
    FAULT_LOST,  /* a process of the launch was killed */
};

struct fault {
    uint32_t step; /* enum fault_step */
    int32_t error; /* errno, > 0; 0 if the text says everything */
    char text[FAULT_TEXT_MAX];
};

/* The step in a word or two: "namespaces". */
const char *fault_name(enum fault_step step);

/*
 * Notes the first fault and ignores later ones. `what` names the object. The text becomes "sandbox:
 * <step>: <what>: <os text> (os error n)", plus the kernel settings to check where some are known;
 * for FAULT_CWD and FAULT_EXEC just "<os text> (os error n)". Returns -error.
 */
int fault_os(struct fault *f, enum fault_step step, int error, const char *what, ...)
    PRINTF_LIKE(4, 5);

/* Like fault_os(), for a failure without an errno: "sandbox: <what>". Returns -EINVAL. */
int fault_text(struct fault *f, enum fault_step step, const char *what, ...) PRINTF_LIKE(3, 4);
