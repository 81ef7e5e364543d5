#pragma once
/*
 * The terminal of `-t`: raw mode, its size, and its return to the modes that it had. A process has
 * at most one terminal in raw mode.
 */

#include "base/util.h"

#include <stdbool.h>
#include <termios.h>

struct cli_term {
    int fd; /* borrowed */
    bool raw;
    struct termios before; /* while raw */
};

/*
 * Notes the modes of the terminal and sets raw mode. Until cli_term_restore(), signals that end the
 * process for a fault (SIGSEGV, SIGABRT ...) restore the terminal first. 0 or -errno.
 */
MUST_CHECK int cli_term_raw(struct cli_term *t, int fd);

/* Restores the modes; without effect if the terminal is not raw. */
void cli_term_restore(struct cli_term *t);

/* Restores the modes, stops the process group, and sets raw mode again when it continues. */
MUST_CHECK int cli_term_suspend(struct cli_term *t);

/* Sets raw mode again, after somebody else stopped and continued the process. */
void cli_term_again(struct cli_term *t);

/* The size; false if the descriptor has none. A size of 0 counts as none. */
bool cli_term_size(int fd, unsigned *rows, unsigned *cols);
