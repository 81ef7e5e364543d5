#include "cli/cli_run.h"

#include "base/uuid.h"
#include "cli/cli_detach.h"
#include "cli/cli_finish.h"
#include "cli/cli_launch.h"
#include "cli/cli_link.h"
#include "cli/cli_report.h"
#include "cli/cli_say.h"
#include "cli/cli_spool.h"

#include <errno.h>

/* What messages call the command. */
static const char *program_of(const struct cli_io *io) {
    const struct cli *c = io->cli;
    return c->args.command == CLI_SHELL || cli_has(c, CLI_OPT_COMMAND)
               ? xs_client_info(io->client)->shell
               : c->args.operands[0];
}

/* The reference starts a command in another directory if its own is missing. */
static int check_directory(struct cli_io *io) {
    const char *directory = cli_value(io->cli, CLI_OPT_WORKDIR);
    struct xs_fs *fs = NULL;
    struct xs_stat st = XS_INIT(struct xs_stat);
    struct cli_wait w;
    if (directory == NULL || xs_client_can(io->client, "processWait"))
        return 0;
    cli_io_wait_init(&w);
    int r = xs_fs_new(io->client, NULL, &fs);
    r = r < 0 ? r : cli_io_await(io, &w, xs_fs_stat(fs, directory, 0, &st, &w.call), -1);
    xs_fs_free(fs);
    if (r < 0)
        return cli_finish_start(io, r, directory);
    if (st.kind == XS_KIND_DIRECTORY)
        return 0;
    cli_io_fini(io);
    cli_say_error(io->cli, CLI_CANNOT, "%s: %s", directory, strerror(ENOTDIR));
    return cli_report(io->cli, CLI_CANNOT, CLI_REPORT_CANNOT_RUN, NULL, "no directory", NULL);
}

/* Starts the process. 0, or an exit status with the loop ended. `id` may be NULL. */
static int start(struct cli_io *io, const struct cli_launch *l, const char *id,
                 struct xs_process **out) {
    _cleanup_free_ char *spool = NULL;
    struct cli_wait w;
    int status = check_directory(io);
    if (status == 0 && l->spool)
        status = cli_spool(io, &spool);
    if (status != 0)
        return status;
    io->spool = spool;
    _cleanup_cli_options_ struct xs_options *o =
        cli_launch_options(io->cli, io->client, l, spool, &status);
    if (o != NULL && id != NULL && xs_options_str(o, XS_OPT_PROCESS_ID, id) < 0)
        status = CLI_FAILED;
    if (o == NULL || status != 0) {
        cli_spool_drop(io);
        cli_io_fini(io);
        return cli_report(io->cli, status, CLI_REPORT_CANNOT_RUN, NULL, NULL, NULL);
    }
    cli_io_wait_init(&w);
    int r = cli_io_await(io, &w, xs_process_start(io->client, o, out, &w.call), -1);
    if (r < 0)
        return cli_finish_start(io, r, program_of(io));
    io->spool = NULL;
    return 0;
}

/* run without -d. */
static int run_attached(struct cli_io *io) {
    struct cli_launch l;
    struct xs_process *p = NULL;
    cli_launch_streams(io->cli, io->client, &l);
    io->tty = l.tty;
    io->no_detach = cli_detach_refusal(io->client);
    int status = start(io, &l, NULL, &p);
    if (status != 0)
        return status;
    status = cli_io_join(io, p, l.input && !l.spool ? STDIN_FILENO : -1);
    if (status != 0) {
        io->end = CLI_END_OUTPUT;
        cli_finish(io);
        return status;
    }
    cli_io_run(io);
    return io->end == CLI_END_DETACH ? cli_detach_now(io) : cli_finish(io);
}

static int refuse_detach(struct cli_io *io, const char *why) {
    cli_io_fini(io);
    cli_say_error(io->cli, CLI_CANNOT, "cannot detach: %s", why);
    return cli_report(io->cli, CLI_CANNOT, CLI_REPORT_CANNOT_RUN, NULL, why, NULL);
}

/* run -d. The state file comes first: a process without one could not be found again. */
static int run_detached(struct cli_io *io) {
    struct cli *c = io->cli;
    struct cli_launch l;
    struct xs_process *p = NULL;
    char id[UUID_LEN + 1];
    _cleanup_cli_state_ struct cli_state s = {.name = NULL};
    const char *why = cli_detach_refusal(io->client);
    if (why != NULL)
        return refuse_detach(io, why);
    cli_launch_streams(c, io->client, &l);
    uuid_random(id);
    int status = cli_detach_record(c, io->client, id, l.tty, &s);
    if (status != 0) {
        cli_io_fini(io);
        return cli_report(c, status, CLI_REPORT_CANNOT_RUN, NULL, NULL, NULL);
    }
    status = start(io, &l, id, &p);
    if (status != 0) {
        cli_detach_forget(c, &s);
        return status;
    }
    int r = cli_detach_leave(io, id);
    cli_io_fini(io);
    if (r < 0) {
        status = cli_say_failure(c, xs_client_error(io->client), "cannot detach", CLI_LOST);
        return cli_report(c, status, CLI_REPORT_LOST, NULL, "cannot detach", s.name);
    }
    status = cli_detach_print(c, &s);
    return cli_report(c, status, CLI_REPORT_DETACHED, NULL, NULL, s.name);
}

int cli_run(struct cli *c) {
    int status = CLI_FAILED;
    struct cli_io io;
    struct cli_wait w;
    bool detach = cli_has(c, CLI_OPT_DETACH);
    _cleanup_cli_options_ struct xs_options *o = cli_link_options(c, NULL, &status);
    _cleanup_cli_client_ struct xs_client *client = NULL;
    if (o == NULL)
        return cli_report(c, status, CLI_REPORT_NOT_CONNECTED, NULL, NULL, NULL);
    if (detach && cli_detach_ask(o) < 0)
        return CLI_FAILED;
    status = cli_link_new(c, o, &client);
    if (status != 0)
        return cli_report(c, status, CLI_REPORT_NOT_CONNECTED, NULL, NULL, NULL);
    status = cli_io_init(&io, c, client);
    if (status != 0)
        return status;
    cli_io_wait_init(&w);
    int r = cli_io_await(&io, &w, xs_client_connect(client, &w.call), -1);
    if (r < 0)
        return cli_finish_connect(&io, r);
    return detach ? run_detached(&io) : run_attached(&io);
}
