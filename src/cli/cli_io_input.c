#include "cli/cli_io_internal.h"
#include "cli/cli_say.h"

#include <errno.h>

static void suspend(struct cli_io *io) {
    io->cli->raw = false;
    int r = cli_term_suspend(&io->term);
    if (r < 0)
        cli_io_set_end(io, CLI_END_OUTPUT, strerror(-r));
    io->cli->raw = io->term.raw;
    cli_io_signal_forget_size(io);
}

static void help(struct cli_io *io) {
    char e = (char)io->escape.character;
    cli_say_warning(io->cli, "after a newline: %c. ends the command and leaves; %cd detaches", e,
                    e);
    cli_say_warning(io->cli, "%c^Z suspends xs; %cr reconnects now; %c%c sends %c", e, e, e, e, e);
}

static void act(struct cli_io *io, enum cli_escape_action action) {
    switch (action) {
    case CLI_ESCAPE_TERMINATE: cli_io_set_end(io, CLI_END_ESCAPE, NULL); break;
    case CLI_ESCAPE_DETACH:
        if (io->no_detach != NULL)
            cli_say_warning(io->cli, "cannot detach: %s", io->no_detach);
        else
            cli_io_set_end(io, CLI_END_DETACH, NULL);
        break;
    case CLI_ESCAPE_SUSPEND: suspend(io); break;
    case CLI_ESCAPE_RECONNECT: xs_client_retry(io->client); break;
    case CLI_ESCAPE_HELP: help(io); break;
    case CLI_ESCAPE_NONE: break;
    }
}

/* Keys: escapes act, the rest is sent. What the bound does not take rings the bell. */
static void take_keys(struct cli_io *io, const char *p, size_t n) {
    char out[4096 + 1];
    while (n > 0 && io->end == CLI_END_NONE) {
        enum cli_escape_action action;
        size_t got, piece = n < sizeof out - 1 ? n : sizeof out - 1;
        size_t used = cli_escape_feed(&io->escape, p, piece, out, &got, &action);
        if (got > 0 && cli_feed_has_room(&io->feed))
            cli_feed_send(&io->feed, out, got);
        else if (got > 0)
            (void)!cli_sink_put(&io->err, "\a", 1);
        act(io, action);
        p += used;
        n -= used;
    }
}

void cli_io_input_take(struct cli_io *io) {
    long n = cli_feed_read(&io->feed);
    if (n == -EAGAIN || n == -EINTR)
        return;
    if (n <= 0 && io->term.raw) { /* the terminal has hung up */
        io->feed.open = false;
        cli_io_signal_hangup(io);
    } else if (n <= 0) {
        if (n < 0)
            cli_say_warning(io->cli, "cannot read standard input: %s", strerror((int)-n));
        cli_feed_end(&io->feed);
    } else if (io->term.raw) {
        take_keys(io, io->feed.piece, (size_t)n);
    } else {
        cli_feed_send(&io->feed, io->feed.piece, (size_t)n);
    }
}
