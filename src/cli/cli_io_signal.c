#include "cli/cli_io_internal.h"
#include "cli/cli_say.h"

#include <errno.h>

#define INTERRUPTS 3      /* within the window: stop asking politely */
#define INTERRUPT_MS 2000 /* the window */
#define REPAINT_MS 100    /* between the two sizes: a program has to see both */
#define GRACE_MS 2000     /* for a command in a terminal, after TERM or HUP */

struct cli_sent {
    struct xs_call call;
    struct cli_io *io;
    struct xs_process *process;
    int number;
};

static const char *name_of(int number) {
    switch (number) {
    case SIGUSR1: return "USR1";
    case SIGUSR2: return "USR2";
    case SIGHUP: return "HUP";
    case SIGQUIT: return "QUIT";
    default: return "TERM";
    }
}

static void on_terminated(struct xs_call *call, int result) {
    (void)result;
    free(call->user);
}

/* The server knows no such signal: the ones that end a command end it, the others are reported. */
static void instead(struct cli_io *io, int number) {
    if (number == SIGUSR1 || number == SIGUSR2) {
        cli_say_warning(io->cli, "the server cannot send SIG%s", name_of(number));
        return;
    }
    cli_say_note(io->cli, 1, "the server cannot send SIG%s: ending the command", name_of(number));
    struct xs_call *call = calloc(1, sizeof *call);
    if (call == NULL)
        return;
    call->done = on_terminated;
    call->user = call;
    if (xs_process_terminate(io->process, GRACE_MS, call) < 0)
        free(call);
}

static void on_sent(struct xs_call *call, int result) {
    struct cli_sent *sent = call->user;
    struct cli_io *io = sent->io;
    if (result == XS_ENOTSUP && io->process == sent->process)
        instead(io, sent->number);
    else if (result == XS_ELOST)
        cli_say_warning(io->cli, "the connection was lost while a signal was sent");
    free(sent);
}

void cli_io_signal(struct cli_io *io, int number) {
    struct cli_sent *sent = calloc(1, sizeof *sent);
    if (sent == NULL || io->process == NULL) {
        free(sent);
        return;
    }
    *sent = (struct cli_sent){.call = {.done = on_sent, .user = sent},
                              .io = io,
                              .process = io->process,
                              .number = number};
    int r = xs_process_signal(io->process, number, &sent->call);
    if (r < 0)
        on_sent(&sent->call, r);
}

/* True for the third interrupt in a row. */
static bool is_last_interrupt(struct cli_io *io) {
    int64_t now = cli_io_now();
    if (io->interrupts == 0 || now - io->interrupted_ms > INTERRUPT_MS) {
        io->interrupts = 0;
        io->interrupted_ms = now;
    }
    return ++io->interrupts >= INTERRUPTS;
}

static void take_signal(struct cli_io *io, int number) {
    bool user = number == SIGUSR1 || number == SIGUSR2;
    if (number == SIGHUP && io->hung_up) { /* one end of the terminal, told twice */
        io->hung_up = false;
        return;
    }
    if (number == SIGCONT) {
        if (io->term.raw)
            cli_term_again(&io->term);
        cli_io_signal_forget_size(io);
    }
    if (number == SIGCONT || number == SIGWINCH) {
        cli_io_signal_resize(io);
        return;
    }
    io->signal = user ? io->signal : number;
    if (io->process == NULL || io->view || io->signals_end ||
        (number == SIGINT && is_last_interrupt(io))) {
        if (!user)
            cli_io_set_end(io, CLI_END_SIGNAL, NULL);
        return;
    }
    /* A shell in a terminal ignores SIGTERM, and a second request is meant seriously. */
    if (io->tty && (number == SIGTERM || number == SIGHUP)) {
        if (io->leave_ms != 0)
            cli_io_set_end(io, CLI_END_SIGNAL, NULL);
        io->leave_ms = cli_io_now() + GRACE_MS;
    }
    cli_io_signal(io, number);
}

void cli_io_signal_hangup(struct cli_io *io) {
    if (io->signal == SIGHUP)
        return;
    take_signal(io, SIGHUP);
    io->hung_up = true;
}

void cli_io_signal_take(struct cli_io *io) {
    for (int number; (number = cli_signals_next(&io->signals)) != 0;)
        take_signal(io, number);
}

void cli_io_signal_resize(struct cli_io *io) {
    io->resized = io->tty && !io->view;
}

void cli_io_signal_forget_size(struct cli_io *io) {
    io->cli->rows = io->cli->cols = 0;
    cli_io_signal_resize(io);
}

void cli_io_signal_repaint(struct cli_io *io) {
    cli_io_signal_resize(io);
    io->repaint = true;
}

static void on_resized(struct xs_call *call, int result) {
    struct cli_io *io = call->user;
    io->resizing = false;
    if (result < 0)
        io->cli->rows = io->cli->cols = 0;
    if (result == XS_ENOTSUP)
        cli_say_note(io->cli, 1, "the server cannot change the size of a terminal");
}

void cli_io_signal_send_size(struct cli_io *io) {
    unsigned rows, cols;
    if (io->resize_ms != 0 && cli_io_now() < io->resize_ms)
        return;
    io->resize_ms = 0;
    if (!io->resized || io->resizing || io->process == NULL || io->exit.exited)
        return;
    io->resized = false;
    if (!cli_term_size(STDIN_FILENO, &rows, &cols) && !cli_term_size(STDOUT_FILENO, &rows, &cols) &&
        !cli_term_size(STDERR_FILENO, &rows, &cols))
        return;
    if (io->repaint) { /* programs repaint when the size changes */
        rows = rows > 1 ? rows - 1 : 2;
        io->repaint = false;
        io->resized = true;
        io->resize_ms = cli_io_now() + REPAINT_MS;
    }
    if (rows == io->cli->rows && cols == io->cli->cols)
        return;
    io->cli->rows = rows;
    io->cli->cols = cols;
    io->resizing = true;
    io->resize = (struct xs_call){.done = on_resized, .user = io};
    int r = xs_process_resize(io->process, rows, cols, &io->resize);
    if (r < 0)
        on_resized(&io->resize, r);
}
