#include "cli/cli_finish.h"

#include "cli/cli_report.h"
#include "cli/cli_say.h"
#include "cli/cli_spool.h"

#include <errno.h>

#define PIPE_STATUS (CLI_SIGNALED + SIGPIPE)
#define END_MS 5000     /* for the answer to terminate */
#define END_LOST_MS 300 /* while the connection is lost */

/* Kills the process if it may still run; says so if nobody can tell. */
static void end_process(struct cli_io *io) {
    struct cli_wait w;
    if (io->process == NULL || io->view || io->exit.exited)
        return;
    cli_io_wait_init(&w);
    int r = xs_process_terminate(io->process, 0, &w.call);
    r = cli_io_await(io, &w, r, io->lost_ms != 0 ? END_LOST_MS : END_MS);
    if (r < 0 && io->end != CLI_END_FAILED)
        cli_say_warning(io->cli, "the command ends when the server gives its session up");
}

static int closed(struct cli_io *io) {
    struct cli *c = io->cli;
    const struct xs_exit *e = &io->exit;
    if (io->gap && !io->tty)
        return cli_report(c, CLI_LOST, CLI_REPORT_OUTPUT_LOST, e, "output was lost", NULL);
    if (e->timed_out) {
        cli_say_warning(c, "the command was ended: its time was over");
        return cli_report(c, CLI_TIMED_OUT, CLI_REPORT_TIMED_OUT, e, NULL, NULL);
    }
    if (e->code < 0) {
        cli_say_error(c, CLI_LOST, "the server does not know how the command ended");
        return cli_report(c, CLI_LOST, CLI_REPORT_LOST, e, "unknown exit code", NULL);
    }
    return cli_report(c, e->code & 255, e->signal > 0 ? CLI_REPORT_SIGNALED : CLI_REPORT_EXITED, e,
                      NULL, NULL);
}

static int signaled(struct cli_io *io) {
    int number = io->signal != 0 ? io->signal : SIGTERM;
    return cli_report(io->cli, CLI_SIGNALED + number, CLI_REPORT_INTERRUPTED, &io->exit, NULL,
                      NULL);
}

static int status_of(struct cli_io *io, const char *why) {
    struct cli *c = io->cli;
    const struct xs_exit *e = &io->exit;
    switch (io->end) {
    case CLI_END_CLOSED: return closed(io);
    case CLI_END_FAILED:
        cli_say_error(c, CLI_LOST, "%s", why);
        return cli_report(c, CLI_LOST, CLI_REPORT_LOST, e, why, NULL);
    case CLI_END_ESCAPE: return cli_report(c, CLI_LOST, CLI_REPORT_LEFT, e, NULL, NULL);
    case CLI_END_SIGNAL: return signaled(io);
    case CLI_END_READER: return cli_report(c, PIPE_STATUS, CLI_REPORT_READER_GONE, e, NULL, NULL);
    case CLI_END_OUTPUT:
        cli_say_error(c, CLI_FAILED, "cannot write the output: %s", why);
        return cli_report(c, CLI_LOST, CLI_REPORT_OUTPUT_FAILED, e, why, NULL);
    case CLI_END_DETACH:
    case CLI_END_NONE: break;
    }
    return CLI_FAILED;
}

int cli_finish(struct cli_io *io) {
    _cleanup_free_ char *why = steal_ptr(&io->why);
    if (io->end != CLI_END_CLOSED && io->end != CLI_END_FAILED)
        end_process(io);
    cli_io_fini(io);
    return status_of(io, why != NULL ? why : "the session is lost");
}

int cli_finish_connect(struct cli_io *io, int err) {
    struct cli *c = io->cli;
    const struct xs_error *e = xs_client_error(io->client);
    if (err == XS_ECANCELED && io->end == CLI_END_SIGNAL) {
        cli_io_fini(io);
        return signaled(io);
    }
    cli_io_fini(io);
    int status = cli_say_failure(c, e, NULL, CLI_LOST);
    return cli_report(c, status, CLI_REPORT_NOT_CONNECTED, NULL, xs_error_text(e), NULL);
}

/* Whether the working directory is why a start failed. */
static bool is_directory_missing(struct cli_io *io, const char *directory) {
    struct xs_fs *fs = NULL;
    struct xs_stat st = XS_INIT(struct xs_stat);
    struct cli_wait w;
    cli_io_wait_init(&w);
    if (xs_fs_new(io->client, NULL, &fs) < 0)
        return false;
    int r = cli_io_await(io, &w, xs_fs_stat(fs, directory, 0, &st, &w.call), END_MS);
    bool missing = r == XS_EREMOTE || (r == 0 && st.kind != XS_KIND_DIRECTORY);
    xs_fs_free(fs);
    return missing;
}

int cli_finish_start(struct cli_io *io, int err, const char *program) {
    struct cli *c = io->cli;
    const char *directory = cli_value(c, CLI_OPT_WORKDIR);
    if (err == XS_ECANCELED && io->end == CLI_END_SIGNAL) {
        cli_spool_drop(io);
        cli_io_fini(io);
        return signaled(io);
    }
    const struct xs_error *e = xs_client_error(io->client);
    int os = xs_error_os(e), status = cli_say_status(err, CLI_CANNOT);
    _cleanup_free_ char *text = strdup(xs_error_text(e));
    _cleanup_free_ char *line = NULL;
    bool place = err == XS_EREMOTE && directory != NULL && (os == ENOENT || os == ENOTDIR) &&
                 is_directory_missing(io, directory);
    cli_spool_drop(io);
    cli_io_fini(io);
    if (err == XS_EREMOTE && os == ENOENT && !place)
        status = CLI_NOT_FOUND;
    if (asprintf(&line, "%s: %s", place ? directory : program, os > 0 ? strerror(os) : text) < 0)
        line = NULL;
    if (status == CLI_LOST || line == NULL)
        cli_say_error(c, status, "%s", text != NULL ? text : "out of memory");
    else
        cli_say_error(c, status, "%s", line);
    return cli_report(c, status, status == CLI_LOST ? CLI_REPORT_LOST : CLI_REPORT_CANNOT_RUN, NULL,
                      line, NULL);
}
