#pragma once
/* The signals that xs forwards, as a descriptor. */

#include "base/util.h"

#include <signal.h>

struct cli_signals {
    int fd; /* -1: none */
    sigset_t before;
};

/* From now on they arrive at the descriptor: INT, TERM, HUP, QUIT, USR1, USR2 unless they are
 * ignored, and WINCH, CONT. 0 or -errno. */
MUST_CHECK int cli_signals_open(struct cli_signals *s);
void cli_signals_close(struct cli_signals *s);

/* The next one, or 0. */
int cli_signals_next(struct cli_signals *s);
