#pragma once
/*
 * The loop around one process: its output to ours, our input, terminal and signals to it. run,
 * shell, attach and logs use it.
 */

#include "cli/cli.h"
#include "cli/cli_escape.h"
#include "cli/cli_feed.h"
#include "cli/cli_modes.h"
#include "cli/cli_signals.h"
#include "cli/cli_sink.h"
#include "cli/cli_term.h"

enum cli_end {
    CLI_END_NONE,
    CLI_END_CLOSED, /* the process and its output have ended */
    CLI_END_FAILED, /* nothing more can be known: `why` */
    CLI_END_ESCAPE, /* ~. */
    CLI_END_DETACH, /* ~d, or another xs attached */
    CLI_END_SIGNAL, /* a signal ended us: `signal` */
    CLI_END_READER, /* our reader is gone */
    CLI_END_OUTPUT, /* our output failed: `why` */
};

/* Output from before we came: only its end is printed. */
struct cli_history {
    uint64_t last;              /* the last event of it; 0: there is none */
    int64_t tail;               /* bytes to print; -1: all */
    struct cli_io_piece *first; /* owned list, oldest first */
    struct cli_io_piece *newest;
    int64_t bytes; /* in the list */
};

struct cli_io {
    struct cli *cli;
    struct xs_client *client;   /* borrowed */
    struct xs_process *process; /* borrowed; NULL before the start */
    bool tty;                   /* the process has a terminal */
    bool view;                  /* only looks: no input, no signals */
    bool signals_end;           /* signals end the loop; they are not for the process */
    bool silent;                /* output is dropped */
    bool only_history;          /* ends when old output is printed */
    struct cli_history history;
    const char *no_detach;                 /* why ~d is refused; NULL: it is not */
    int watch_fd;                          /* inotify of the state file; -1: none */
    bool (*was_stolen)(struct cli_io *io); /* asked when it is readable */
    void *user;

    const char *spool; /* borrowed: removed if the start fails; NULL: none */

    enum cli_end end;
    char *why; /* owned */
    int signal;
    bool gap;            /* output was lost */
    struct xs_exit exit; /* exited, closed: what is known */

    struct cli_sink out, err;
    struct cli_feed feed;
    struct cli_term term;
    struct cli_escape escape;
    struct cli_modes modes;
    struct cli_signals signals;

    bool paused;   /* the process waits for a sink */
    bool finished; /* cli_io_fini() has run */
    bool resized;  /* the size is to be sent */
    bool repaint;  /* another size first */
    bool hung_up;  /* input has told the end of the terminal, and SIGHUP may follow */
    bool resizing;
    int64_t resize_ms; /* the size is sent then; 0: at once */
    struct xs_call resize;
    unsigned interrupts;    /* in a row */
    int64_t interrupted_ms; /* the first of them */
    int64_t leave_ms;       /* when to give up on the process; 0: not yet */
    int64_t lost_ms;        /* since when the connection is lost; 0: it is not */
    bool lost_said;
};

/* Takes the signals and the outputs. `c` and `client` (NULL: later) outlive it. 0 or an exit
 * status. */
int cli_io_init(struct cli_io *io, struct cli *c, struct xs_client *client);
/* Restores the terminal, switches off the modes of a program that did not end by itself, writes
 * what is left. Harmless when repeated. */
void cli_io_fini(struct cli_io *io);

/* Sets another client; NULL: none. */
void cli_io_use(struct cli_io *io, struct xs_client *client);

/* Before cli_io_join(): events up to `last` are old, and only their last `tail` bytes (-1: all) are
 * printed. */
void cli_io_history(struct cli_io *io, uint64_t last, int64_t tail);

/* An operation of the library that the loop waits for. */
struct cli_wait {
    struct xs_call call;
    bool done;
    int result;
};
void cli_io_wait_init(struct cli_wait *w);

/* Runs until it is done: its result, or XS_ECANCELED if a signal ended us first (io->end). `r` is
 * what the operation returned when it was started. `max_ms` -1: no limit, else XS_ETIMEOUT. */
int cli_io_await(struct cli_io *io, struct cli_wait *w, int r, int64_t max_ms);

/* Connects the process: events, input (-1: none), terminal. 0 or an exit status. */
int cli_io_join(struct cli_io *io, struct xs_process *p, int input);

/* Runs until something ends it. */
void cli_io_run(struct cli_io *io);

/* Asks for the size of our terminal to be sent; for a repaint after another one. */
void cli_io_signal_resize(struct cli_io *io);
void cli_io_signal_repaint(struct cli_io *io);

/* Sends a signal to the process, or what comes close to it. */
void cli_io_signal(struct cli_io *io, int number);

/* The members about an end, in the words of the protocol. */
struct cli_json;
void cli_io_output_exit(struct cli_json *j, const struct xs_exit *e);

/* Milliseconds of CLOCK_BOOTTIME. */
int64_t cli_io_now(void);
