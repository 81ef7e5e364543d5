#include "cli/cli_io_internal.h"
#include "cli/cli_json.h"
#include "cli/cli_say.h"

#include <errno.h>

static const char *stream_name(enum xs_stream s) {
    static const char *const names[] = {"stdout", "stderr", "pty"};
    return names[s];
}

void cli_io_output_exit(struct cli_json *j, const struct xs_exit *e) {
    if (e->code >= 0)
        cli_json_int(j, "exitCode", e->code);
    else
        cli_json_null(j, "exitCode");
    if (e->signal > 0)
        cli_json_int(j, "signal", e->signal);
    else
        cli_json_null(j, "signal");
    cli_json_bool(j, "timedOut", e->timed_out);
    cli_json_bool(j, "sandboxDenied", e->sandbox_denied);
    cli_json_open(j, "resources", '{');
    cli_json_u64(j, "userTimeMs", e->user_ms);
    cli_json_u64(j, "systemTimeMs", e->system_ms);
    cli_json_u64(j, "wallTimeMs", e->wall_ms);
    cli_json_u64(j, "peakMemoryBytes", e->peak_bytes);
    cli_json_close(j, '}');
}

/* The event as a line of JSON, in the words of the protocol. */
static int put_json(struct cli_io *io, const struct xs_event *e) {
    static const char *const names[] = {"output", "exited", "closed", "gap", "failed"};
    _cleanup_cli_json_ struct cli_json j = CLI_JSON_INIT;
    cli_json_open(&j, NULL, '{');
    cli_json_str(&j, "event", str_of(names[e->type]));
    if (e->type != XS_EV_FAILED)
        cli_json_u64(&j, "seq", e->seq);
    if (e->type == XS_EV_OUTPUT) {
        cli_json_str(&j, "stream", str_of(stream_name(e->stream)));
        cli_json_bytes(&j, "chunk", e->data, e->n);
    } else if (e->type == XS_EV_EXITED && e->exit != NULL) {
        cli_io_output_exit(&j, e->exit);
    } else if (e->type == XS_EV_GAP) {
        cli_json_u64(&j, "toSeq", e->gap_to);
    } else if (e->type == XS_EV_FAILED) {
        cli_json_str(&j, "message", str_of(e->text));
    }
    cli_json_close(&j, '}');
    if (j.error < 0 || buf_putc(&j.b, '\n') < 0)
        return -ENOMEM;
    return cli_sink_put(&io->out, j.b.p, j.b.len);
}

int cli_io_output_put(struct cli_io *io, const struct xs_event *e) {
    if (io->silent)
        return 0;
    if (io->cli->json)
        return put_json(io, e);
    if (e->stream == XS_STDERR) {
        int r = cli_sink_put(&io->err, e->data, e->n);
        return r < 0 ? 0 : r; /* without a reader it is dropped */
    }
    if (e->stream == XS_PTY)
        cli_modes_feed(&io->modes, e->data, e->n);
    return cli_sink_put(&io->out, e->data, e->n);
}

static void on_gap(struct cli_io *io, const struct xs_event *e) {
    if (io->silent)
        return;
    io->gap = true;
    if (io->cli->json && !io->silent)
        (void)!put_json(io, e);
    cli_say_error(io->cli, CLI_LOST, "output was lost: events %llu to %llu",
                  (unsigned long long)e->seq, (unsigned long long)e->gap_to);
}

static void on_exit_known(struct cli_io *io, const struct xs_event *e) {
    if (e->exit != NULL) {
        size_t n = MIN(e->exit->size, sizeof io->exit);
        memcpy(&io->exit, e->exit, n);
        io->exit.size = sizeof io->exit;
    }
    io->exit.exited = 1;
    if (io->cli->json && !io->silent)
        (void)!put_json(io, e);
    if (e->type == XS_EV_CLOSED) {
        io->exit.closed = 1;
        cli_io_set_end(io, CLI_END_CLOSED, NULL);
    }
}

int cli_io_output_failed(struct cli_io *io, int r) {
    if (r == -EIO && io->term.raw) { /* the terminal has hung up: the rest has no reader */
        cli_io_signal_hangup(io);
        io->silent = true;
        return 0;
    }
    if (r == -EPIPE)
        cli_io_set_end(io, CLI_END_READER, NULL);
    else
        cli_io_set_end(io, CLI_END_OUTPUT, strerror(-r));
    return r;
}

/* What follows from printing: the end, a pause, or more events. */
static int after(struct cli_io *io, int r) {
    if (r < 0)
        r = cli_io_output_failed(io, r);
    io->paused = r != 0;
    return r != 0 ? XS_PAUSE : 0;
}

int cli_io_output_event(struct xs_process *p, const struct xs_event *e, void *user) {
    struct cli_io *io = user;
    int r = 0;
    (void)p;
    if (cli_io_history_take(io, e, &r))
        return after(io, r);
    switch (e->type) {
    case XS_EV_OUTPUT: r = cli_io_output_put(io, e); break;
    case XS_EV_EXITED:
    case XS_EV_CLOSED: on_exit_known(io, e); break;
    case XS_EV_GAP: on_gap(io, e); break;
    case XS_EV_FAILED:
        if (io->cli->json && !io->silent)
            (void)!put_json(io, e);
        cli_io_set_end(io, CLI_END_FAILED, e->text);
        break;
    }
    return after(io, r);
}
