#include "cli/cli_attach.h"

#include "cli/cli_finish.h"
#include "cli/cli_json.h"
#include "cli/cli_kept.h"
#include "cli/cli_report.h"
#include "cli/cli_say.h"

#include <errno.h>
#include <signal.h>

#define TAIL_DEFAULT 65536
#define GRACE_DEFAULT_MS 2000
#define CLOSED_MS 10000 /* after SIGKILL */

/* What is printed before new output; -1: everything that is retained. */
static int64_t tail_of(const struct cli *c, int64_t otherwise) {
    return cli_has(c, CLI_OPT_TAIL) ? c->args.number[CLI_OPT_TAIL] : otherwise;
}

/* The exit status of a loop that has ended without the process, and the session left. */
static int left(struct cli_kept *k) {
    struct cli *c = k->cli;
    _cleanup_free_ char *why = steal_ptr(&k->io.why);
    enum cli_end end = k->io.end;
    int number = k->io.signal;
    int r = cli_kept_leave(k);
    cli_io_fini(&k->io);
    if (why != NULL)
        cli_say_warning(c, "%s", why);
    if (r < 0)
        cli_say_failure(c, xs_client_error(k->client), "cannot detach", CLI_LOST);
    if (end == CLI_END_SIGNAL)
        return cli_report(c, CLI_SIGNALED + number, CLI_REPORT_INTERRUPTED, NULL, NULL,
                          k->state.name);
    if (end == CLI_END_READER)
        return CLI_SIGNALED + SIGPIPE;
    if (end != CLI_END_DETACH)
        return CLI_FAILED;
    return cli_report(c, r < 0 ? CLI_LOST : 0, CLI_REPORT_DETACHED, NULL, why, k->state.name);
}

/* The process has ended: its status; it stays known to the server, and its name to us. */
static int ended(struct cli_kept *k) {
    int r = cli_kept_leave(k);
    if (r < 0)
        cli_say_note(k->cli, 1, "cannot leave the session in order");
    return cli_finish(&k->io);
}

int cli_attach(struct cli *c) {
    _cleanup_cli_kept_ struct cli_kept k;
    enum cli_kept_way way = cli_has(c, CLI_OPT_STEAL) ? CLI_KEPT_STEAL : CLI_KEPT_RESUME;
    int status = cli_kept_open(c, c->args.operands[0], way, &k);
    if (status != 0)
        return cli_report(c, status, CLI_REPORT_LOST, NULL, NULL, k.state.name);
    cli_io_history(&k.io, k.last, tail_of(c, TAIL_DEFAULT));
    status = cli_io_join(&k.io, k.process, STDIN_FILENO);
    if (status != 0)
        return status;
    cli_io_signal_repaint(&k.io);
    cli_io_run(&k.io);
    if (k.io.end == CLI_END_CLOSED)
        return ended(&k);
    bool stays = k.io.end == CLI_END_DETACH;
    return stays ? left(&k) : cli_finish(&k.io);
}

int cli_attach_logs(struct cli *c) {
    _cleanup_cli_kept_ struct cli_kept k;
    bool follow = cli_has(c, CLI_OPT_FOLLOW);
    enum cli_kept_way way = follow ? CLI_KEPT_LOOK : CLI_KEPT_RESUME;
    int status = cli_kept_open(c, c->args.operands[0], way, &k);
    if (status != 0)
        return status;
    if (k.view && cli_has(c, CLI_OPT_TAIL))
        cli_say_warning(c, "--tail has no effect where logs only looks at the process");
    k.io.only_history = !follow;
    k.io.signals_end = true;
    cli_io_history(&k.io, k.last, tail_of(c, -1));
    status = cli_io_join(&k.io, k.process, -1);
    if (status != 0)
        return status;
    cli_io_run(&k.io);
    if (k.io.end == CLI_END_FAILED)
        return cli_finish(&k.io);
    bool whole = k.io.end == CLI_END_CLOSED;
    cli_sink_drain(&k.io.out, -1);
    status = left(&k);
    return whole ? 0 : status;
}

static int wait_for(struct cli *c, const char *name) {
    _cleanup_cli_kept_ struct cli_kept k;
    int status = cli_kept_open(c, name, CLI_KEPT_LOOK, &k);
    if (status != 0)
        return cli_report(c, status, CLI_REPORT_LOST, NULL, NULL, name);
    k.io.silent = true;
    k.io.signals_end = true;
    status = cli_io_join(&k.io, k.process, -1);
    if (status != 0)
        return status;
    cli_io_run(&k.io);
    if (k.io.end != CLI_END_CLOSED)
        return k.io.end == CLI_END_FAILED ? cli_finish(&k.io) : left(&k);
    k.io.gap = false; /* output does not matter here */
    if (!c->json)
        return ended(&k);
    _cleanup_cli_json_ struct cli_json j = CLI_JSON_INIT;
    cli_json_open(&j, NULL, '{');
    cli_json_str(&j, "name", str_of(name));
    cli_io_output_exit(&j, &k.io.exit);
    cli_json_close(&j, '}');
    if (cli_json_print(&j, STDOUT_FILENO) < 0)
        return CLI_FAILED;
    return ended(&k);
}

int cli_attach_wait(struct cli *c) {
    int status = 0;
    for (size_t i = 0; i < c->args.operand_count; i++)
        status = wait_for(c, c->args.operands[i]);
    return status;
}

/* The number of a name that the table has. */
static int signal_of(const char *name) {
    static const struct {
        const char *name;
        int number;
    } signals[] = {{"INT", SIGINT},   {"TERM", SIGTERM}, {"KILL", SIGKILL}, {"HUP", SIGHUP},
                   {"QUIT", SIGQUIT}, {"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"WINCH", SIGWINCH},
                   {"STOP", SIGSTOP}, {"CONT", SIGCONT}};
    if (strncasecmp(name, "SIG", 3) == 0)
        name += 3;
    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        if (strcasecmp(signals[i].name, name) == 0)
            return signals[i].number;
    }
    return 0;
}

/* Waits for an answer about the process; its end serves as well. */
static int settle(struct cli_kept *k, struct cli_wait *w, int r) {
    r = cli_io_await(&k->io, w, r, -1);
    return r < 0 && k->io.end == CLI_END_CLOSED ? 0 : r;
}

static int fail_kill(struct cli_kept *k, int r) {
    if (r == XS_ECANCELED && k->io.end == CLI_END_SIGNAL)
        return CLI_SIGNALED + k->io.signal;
    return cli_say_failure(k->cli, xs_client_error(k->client), k->state.name, CLI_FAILED);
}

/* With --json a line tells what was done. */
static int done(struct cli *c, const char *what, const char *name) {
    _cleanup_cli_json_ struct cli_json j = CLI_JSON_INIT;
    if (!c->json)
        return 0;
    cli_json_open(&j, NULL, '{');
    cli_json_str(&j, "event", str_of(what));
    cli_json_str(&j, "name", str_of(name));
    cli_json_close(&j, '}');
    return cli_json_print(&j, STDOUT_FILENO) < 0 ? CLI_FAILED : 0;
}

/* Ends the process and waits until it is closed; then nothing is left to be kept. */
static int end_kept(struct cli_kept *k) {
    struct cli *c = k->cli;
    int64_t grace = cli_has(c, CLI_OPT_GRACE) ? c->args.number[CLI_OPT_GRACE] : GRACE_DEFAULT_MS;
    struct cli_wait w;
    cli_io_wait_init(&w);
    int r = settle(k, &w, xs_process_terminate(k->process, grace, &w.call));
    cli_io_wait_init(&w);
    if (r >= 0 && k->io.end != CLI_END_CLOSED)
        r = settle(k, &w, xs_process_wait(k->process, 1, grace + CLOSED_MS, NULL, &w.call));
    if (r < 0)
        return fail_kill(k, r);
    cli_kept_forget(k);
    return done(c, "ended", k->state.name);
}

static int kill_one(struct cli *c, const char *name) {
    _cleanup_cli_kept_ struct cli_kept k;
    int status = cli_kept_open(c, name, CLI_KEPT_STEAL, &k);
    if (k.gone) { /* that is what was asked for */
        cli_kept_forget(&k);
        return status;
    }
    if (status != 0)
        return status;
    k.io.silent = true;
    k.io.signals_end = true;
    status = cli_io_join(&k.io, k.process, -1);
    if (status != 0)
        return status;
    if (!cli_has(c, CLI_OPT_SIGNAL))
        return end_kept(&k);
    struct cli_wait w;
    cli_io_wait_init(&w);
    int r = xs_process_signal(k.process, signal_of(cli_value(c, CLI_OPT_SIGNAL)), &w.call);
    r = settle(&k, &w, r);
    if (r < 0)
        return fail_kill(&k, r);
    return cli_kept_leave(&k) < 0 ? CLI_LOST : done(c, "signaled", name);
}

int cli_attach_kill(struct cli *c) {
    int status = 0;
    for (size_t i = 0; i < c->args.operand_count; i++) {
        int one = kill_one(c, c->args.operands[i]);
        status = one != 0 ? one : status;
    }
    return status;
}
