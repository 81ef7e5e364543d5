#pragma once
/*
 * The texts of shell snapshots: the script that a login shell runs to tell its state, and the
 * script that gives another shell that state. Nothing here starts anything.
 *
 * The state of a shell is its functions, options and aliases, as a script; and the variables that
 * it exports. Variables of the shell alone, the working directory and the umask are no part of it.
 */

#include "base/arena.h"
#include "base/buf.h"

#define SNAPSHOT_SCRIPT_CAPTURE_MAX (8u << 20) /* bytes that a capture may print */
#define SNAPSHOT_SCRIPT_STATE_MAX (512u << 10) /* bytes of state and variables together */
#define SNAPSHOT_SCRIPT_PART_MAX (60u << 10)   /* bytes of state in one variable */
#define SNAPSHOT_SCRIPT_PREFIX "__EXEC_SERVER_SNAPSHOT_"

enum snapshot_shell { SNAPSHOT_BASH, SNAPSHOT_ZSH, SNAPSHOT_SH, SNAPSHOT_SHELLS };

/* The kind of shell with that name; SNAPSHOT_SHELLS: none that can be captured. */
enum snapshot_shell snapshot_script_shell(struct str name);

/* The script to run in a login shell instead of the client's. */
const char *snapshot_script_capture(enum snapshot_shell shell);

/* What a capture printed; borrowed from it. */
struct snapshot_text {
    struct str state;     /* a script; no NUL */
    struct str variables; /* "NAME=VALUE", each with a NUL */
};

/* Finds both in all that a login shell printed. 0; -EINVAL: it is no capture, or is too large. */
MUST_CHECK int snapshot_script_parse(struct str printed, struct snapshot_text *out);

/* A command that is to get the state, and where it then is. Arrays end with NULL. */
struct snapshot_command {
    char *const *argv; /* SHELL -lc SCRIPT ... */
    char *const *envp;
};

/*
 * Puts the state into a command, in the arena: the variables of `environment` override those of the
 * command but for the names in `own`; the state itself goes into further variables, which the
 * script reads and unsets. 0; -E2BIG: no kernel would take it; -ENOMEM.
 */
MUST_CHECK int snapshot_script_apply(struct arena *a, enum snapshot_shell shell, struct str state,
                                     char *const *environment, char *const *own,
                                     struct snapshot_command *command);
