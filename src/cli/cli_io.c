#include "cli/cli_io.h"

#include "cli/cli_io_internal.h"
#include "cli/cli_say.h"

#include <errno.h>
#include <poll.h>
#include <time.h>

#define LOST_SAID_MS 2000 /* a loss that is shorter is not worth a line */
#define CLOSE_MS 500      /* after the end of a program in a terminal, for its last output */

int64_t cli_io_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void cli_io_set_end(struct cli_io *io, enum cli_end end, const char *why) {
    if (io->end != CLI_END_NONE)
        return;
    io->end = end;
    io->why = why != NULL ? strdup(why) : NULL;
}

static void on_state(struct xs_client *client, enum xs_state s, void *user) {
    struct cli_io *io = user;
    (void)client;
    if (s == XS_STATE_RESUMING && io->lost_ms == 0)
        io->lost_ms = cli_io_now();
    if (s != XS_STATE_READY || io->lost_ms == 0)
        return;
    io->lost_ms = 0;
    if (io->lost_said)
        cli_say_warning(io->cli, "the connection is back");
    io->lost_said = false;
}

void cli_io_use(struct cli_io *io, struct xs_client *client) {
    io->client = client;
    if (client != NULL)
        xs_client_on_state(client, on_state, io);
}

int cli_io_init(struct cli_io *io, struct cli *c, struct xs_client *client) {
    *io = (struct cli_io){.cli = c, .watch_fd = -1, .signals = {.fd = -1}};
    io->exit = (struct xs_exit)XS_INIT(struct xs_exit);
    int64_t escape = cli_has(c, CLI_OPT_ESCAPE) ? c->args.number[CLI_OPT_ESCAPE] : '~';
    io->escape = (struct cli_escape)CLI_ESCAPE_INIT((int)escape);
    cli_sink_init(&io->out, STDOUT_FILENO);
    cli_sink_init(&io->err, STDERR_FILENO);
    cli_io_use(io, client);
    int r = cli_signals_open(&io->signals);
    return r < 0 ? cli_say_error(c, CLI_FAILED, "cannot take signals: %s", strerror(-r)) : 0;
}

/* True if the program had the chance to leave the terminal as it found it. */
static bool ended_well(const struct cli_io *io) {
    return io->end == CLI_END_CLOSED && io->exit.signal == 0 && !io->exit.timed_out;
}

void cli_io_fini(struct cli_io *io) {
    char text[CLI_MODES_RESTORE_MAX];
    if (io->finished)
        return;
    io->finished = true;
    if (io->client != NULL)
        xs_client_on_state(io->client, NULL, NULL);
    if (io->tty && !ended_well(io)) {
        size_t n = cli_modes_restore(&io->modes, text);
        if (n > 0 && isatty(STDOUT_FILENO))
            (void)!cli_sink_put(&io->out, text, n);
    }
    cli_sink_drain(&io->out, ended_well(io) ? -1 : 1000);
    cli_sink_drain(&io->err, ended_well(io) ? -1 : 1000);
    cli_term_restore(&io->term);
    io->cli->raw = false;
    cli_sink_fini(&io->out);
    cli_sink_fini(&io->err);
    cli_feed_fini(&io->feed);
    cli_signals_close(&io->signals);
    cli_io_history_drop(io);
    free(io->why);
    io->why = NULL;
}

static void on_waited(struct xs_call *call, int result) {
    struct cli_wait *w = call->user;
    w->done = true;
    w->result = result;
}

void cli_io_wait_init(struct cli_wait *w) {
    *w = (struct cli_wait){.call = {.done = on_waited, .user = w}};
}

/* What poll() waits for; the order of the entries. */
enum { WAIT_CLIENT, WAIT_SIGNALS, WAIT_WATCH, WAIT_OUT, WAIT_ERR, WAIT_INPUT, WAIT_COUNT };

/* Input is read while it has room; during an outage always, for the escapes. */
static bool wants_input(const struct cli_io *io) {
    if (io->process == NULL || !io->feed.open || io->exit.exited)
        return false;
    return cli_feed_has_room(&io->feed) || (io->term.raw && io->lost_ms != 0);
}

static void set_polls(const struct cli_io *io, struct pollfd p[WAIT_COUNT]) {
    for (int i = 0; i < WAIT_COUNT; i++)
        p[i] = (struct pollfd){.fd = -1};
    if (io->client != NULL)
        p[WAIT_CLIENT] = (struct pollfd){.fd = xs_client_fd(io->client), .events = POLLIN};
    p[WAIT_SIGNALS] = (struct pollfd){.fd = io->signals.fd, .events = POLLIN};
    p[WAIT_WATCH] = (struct pollfd){.fd = io->watch_fd, .events = POLLIN};
    if (cli_sink_waits(&io->out))
        p[WAIT_OUT] = (struct pollfd){.fd = io->out.fd, .events = POLLOUT};
    if (cli_sink_waits(&io->err))
        p[WAIT_ERR] = (struct pollfd){.fd = io->err.fd, .events = POLLOUT};
    if (wants_input(io))
        p[WAIT_INPUT] = (struct pollfd){.fd = io->feed.fd, .events = POLLIN};
}

/* Milliseconds until something is due; -1: nothing. */
static int next_ms(const struct cli_io *io, int64_t until) {
    int64_t now = cli_io_now(), at = until;
    if (io->leave_ms != 0 && (at < 0 || io->leave_ms < at))
        at = io->leave_ms;
    if (io->resize_ms != 0 && (at < 0 || io->resize_ms < at))
        at = io->resize_ms;
    int64_t said = io->lost_ms + LOST_SAID_MS;
    if (io->tty && io->lost_ms != 0 && !io->lost_said && (at < 0 || said < at))
        at = said;
    if (at < 0)
        return -1;
    return at <= now ? 0 : (int)MIN(at - now, (int64_t)60000);
}

static void on_due(struct cli_io *io) {
    int64_t now = cli_io_now();
    if (io->tty && io->lost_ms != 0 && !io->lost_said && now >= io->lost_ms + LOST_SAID_MS) {
        io->lost_said = true;
        cli_say_warning(io->cli, "the connection is lost; trying to get it back%s",
                        io->term.raw && io->escape.character == '~' ? " (~. leaves)" : "");
    }
    if (io->leave_ms == 0 || now < io->leave_ms)
        return;
    if (io->exit.exited)
        cli_io_set_end(io, CLI_END_CLOSED, NULL);
    else
        cli_io_set_end(io, CLI_END_SIGNAL, NULL);
}

static void on_flushed(struct cli_io *io) {
    int out = cli_sink_flush(&io->out), err = cli_sink_flush(&io->err);
    if (out < 0)
        (void)cli_io_output_failed(io, out);
    if (out <= 0 && err <= 0 && io->paused) {
        io->paused = false;
        if (io->process != NULL) /* we have not left it */
            xs_process_unpause(io->process);
    }
}

/* One turn: waits, then hands out what has happened. */
static void turn(struct cli_io *io, int64_t until) {
    struct pollfd p[WAIT_COUNT];
    set_polls(io, p);
    int n = poll(p, WAIT_COUNT, next_ms(io, until));
    on_due(io);
    if (n <= 0) {
        cli_io_signal_send_size(io);
        return;
    }
    if (p[WAIT_SIGNALS].revents != 0)
        cli_io_signal_take(io);
    if (p[WAIT_WATCH].revents != 0 && io->was_stolen(io))
        cli_io_set_end(io, CLI_END_DETACH, "another xs attached to the process");
    if ((p[WAIT_OUT].revents | p[WAIT_ERR].revents) != 0)
        on_flushed(io);
    if (p[WAIT_INPUT].revents != 0 && io->end == CLI_END_NONE)
        cli_io_input_take(io);
    if (p[WAIT_CLIENT].revents != 0)
        xs_client_process(io->client);
    cli_io_signal_send_size(io);
}

int cli_io_await(struct cli_io *io, struct cli_wait *w, int r, int64_t max_ms) {
    enum cli_end before = io->end;
    int64_t until = max_ms < 0 ? -1 : cli_io_now() + max_ms;
    if (r < 0)
        return r;
    while (!w->done && io->end == before && (until < 0 || cli_io_now() < until))
        turn(io, until);
    if (w->done)
        return w->result;
    xs_call_cancel(&w->call);
    while (!w->done) /* comes at once */
        xs_client_run(io->client, 100);
    return io->end != before ? XS_ECANCELED : XS_ETIMEOUT;
}

int cli_io_join(struct cli_io *io, struct xs_process *p, int input) {
    io->process = p;
    int r = cli_feed_init(&io->feed, input,
                          io->tty ? CLI_FEED_TYPED_MAX : CLI_FEED_SLOTS * CLI_FEED_PIECE, io->tty);
    if (r < 0)
        return cli_say_error(io->cli, CLI_FAILED, "%s", strerror(-r));
    io->feed.process = p;
    io->feed.open = input >= 0;
    if (io->tty && input >= 0 && isatty(input)) {
        r = cli_term_raw(&io->term, input);
        if (r < 0)
            return cli_say_error(io->cli, CLI_FAILED, "cannot set up the terminal: %s",
                                 strerror(-r));
        io->cli->raw = isatty(STDERR_FILENO);
        cli_io_signal_resize(io); /* it may have changed since the start was written */
    }
    xs_process_on_event(p, cli_io_output_event, io);
    return 0;
}

void cli_io_run(struct cli_io *io) {
    while (io->end == CLI_END_NONE) {
        if (io->exit.exited && io->tty && !io->paused && io->leave_ms == 0)
            io->leave_ms = cli_io_now() + CLOSE_MS;
        turn(io, -1);
    }
}
