#pragma once
/* Detached processes: coming back to one, and leaving it again. */

#include "cli/cli_io.h"
#include "cli/cli_state.h"

struct cli_kept {
    struct cli *cli;
    char *directory;        /* owned */
    struct cli_state state; /* of the name */
    struct xs_client *client;
    struct xs_process *process;
    bool view;     /* only looks; the session is not ours */
    bool gone;     /* the server does not know the session or process any more */
    uint64_t last; /* the last event that had happened when we came */
    struct cli_io io;
};

/* How to come back. */
enum cli_kept_way {
    CLI_KEPT_RESUME, /* takes the session, unless another xs has it */
    CLI_KEPT_STEAL,  /* throws another xs out first */
    CLI_KEPT_LOOK,   /* a view where the server allows it, else as CLI_KEPT_RESUME */
};

/* Reads the state file, connects, adopts the process; the loop is not joined. 0 or an exit status
 * after a message; then cli_kept_close() is needed too. */
int cli_kept_open(struct cli *c, const char *name, enum cli_kept_way way, struct cli_kept *k);

/* Leaves the session as it was, so that the process goes on; ends the loop. 0 or a negative error.
 */
int cli_kept_leave(struct cli_kept *k);

/* Frees everything; does not end the process. */
void cli_kept_close(struct cli_kept *k);
#define _cleanup_cli_kept_ __attribute__((cleanup(cli_kept_close)))

/* Removes the state file. */
void cli_kept_forget(struct cli_kept *k);
