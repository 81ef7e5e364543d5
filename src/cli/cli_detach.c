#include "cli/cli_detach.h"

#include "base/utf8.h"
#include "base/uuid.h"
#include "cli/cli_json.h"
#include "cli/cli_keep.h"
#include "cli/cli_launch.h"
#include "cli/cli_link.h"
#include "cli/cli_path.h"
#include "cli/cli_report.h"
#include "cli/cli_say.h"

#include <errno.h>
#include <stdio.h>

#define SHORTEST_MS 60000 /* a session that ends earlier is no place to leave a process */
#define LEAVE_MS 25000
#define TRIES 16 /* for a name that nobody has */

int cli_detach_ask(struct xs_options *o) {
    int r = xs_options_num(o, XS_OPT_SESSION_TTL_MS, CLI_DETACH_MS);
    return r < 0 ? r : xs_options_num(o, XS_OPT_CLOSED_RETENTION_MS, CLI_DETACH_MS);
}

const char *cli_detach_refusal(struct xs_client *client) {
    if (!xs_client_info(client)->resumable)
        return "over this connection a session ends with it";
    if (!xs_client_can(client, "sessionLimits"))
        return "this server keeps a session without a client for a few seconds only (it lacks the "
               "capability sessionLimits)";
    return NULL;
}

char *cli_detach_directory(struct cli *c) {
    _cleanup_err_ struct err e = ERR_INIT;
    char *directory = cli_keep_directory(getenv("XDG_STATE_HOME"), getenv("HOME"), &e);
    if (directory == NULL)
        cli_say_error(c, CLI_FAILED, "%s", err_msg(&e));
    return directory;
}

/* A name from the program: `make-3fa2`. */
static char *make_name(const struct cli *c) {
    char id[UUID_LEN + 1], word[33], *name = NULL;
    struct str base = STR_LIT("shell");
    if (c->args.command == CLI_RUN && !cli_has(c, CLI_OPT_COMMAND))
        base = cli_path_base(c->args.operands[0]);
    size_t n = 0;
    for (size_t i = 0; i < base.n && n < sizeof word - 1; i++) {
        char one[2] = {base.p[i], '\0'};
        if (cli_args_is_name(one) || (n > 0 && strchr("._-", base.p[i]) != NULL))
            word[n++] = base.p[i];
    }
    word[n] = '\0';
    uuid_random(id);
    return asprintf(&name, "%s-%.4s", n > 0 ? word : "job", id) < 0 ? NULL : name;
}

/* A copy in valid UTF-8; NULL stays NULL. */
static char *copy_text(const char *text) {
    char *copy = text != NULL ? strdup(text) : NULL;
    if (copy != NULL)
        utf8_mend(copy, strlen(copy));
    return copy;
}

/* What -H takes to come back: what was given, or the address of the default. */
static char *host_of(const struct cli *c, struct xs_client *client) {
    const char *host = cli_link_selected(c);
    return copy_text(host != NULL ? host : xs_client_info(client)->url);
}

static char *absolute(const char *path) {
    char *cwd = path != NULL && path[0] != '/' ? getcwd(NULL, 0) : NULL, *joined = NULL;
    if (cwd == NULL)
        return copy_text(path);
    joined = cli_path_join(cwd, str_of(path));
    free(cwd);
    return joined;
}

static int create(struct cli *c, struct cli_state *s) {
    _cleanup_free_ char *directory = cli_detach_directory(c);
    _cleanup_err_ struct err e = ERR_INIT;
    int r = directory != NULL ? -EEXIST : -EINVAL;
    for (int i = 0; r == -EEXIST && i < TRIES; i++) {
        const char *given = cli_value(c, CLI_OPT_NAME);
        free(s->name);
        s->name = given != NULL ? strdup(given) : make_name(c);
        if (s->name == NULL)
            return cli_say_error(c, CLI_FAILED, "out of memory");
        r = cli_keep_create(directory, s, &e);
        if (given != NULL)
            break;
    }
    return r < 0 && directory != NULL ? cli_say_error(c, CLI_FAILED, "%s", err_msg(&e))
           : r < 0                    ? CLI_FAILED
                                      : 0;
}

int cli_detach_record(struct cli *c, struct xs_client *client, const char *process, bool tty,
                      struct cli_state *s) {
    *s = (struct cli_state){.host = host_of(c, client),
                            .token_file = absolute(cli_value(c, CLI_OPT_TOKEN_FILE)),
                            .session = copy_text(xs_client_info(client)->session),
                            .process = copy_text(process),
                            .command = cli_launch_command(c),
                            .tty = tty,
                            .started_ms = cli_state_now_ms()};
    if (s->host == NULL || s->session == NULL || s->process == NULL || s->command == NULL)
        return cli_say_error(c, CLI_FAILED, "out of memory");
    return create(c, s);
}

void cli_detach_forget(struct cli *c, const struct cli_state *s) {
    _cleanup_free_ char *directory = cli_detach_directory(c);
    if (directory != NULL && s->name != NULL)
        cli_keep_remove(directory, s->name, s->session);
}

/* A session that its client has left acknowledges nothing: its processes must not wait for that. */
static int release(struct cli_io *io, const char *process) {
    _cleanup_cli_json_ struct cli_json j = CLI_JSON_INIT;
    struct xs_bytes result = {.data = NULL};
    struct cli_wait w;
    if (!xs_client_can(io->client, "processAck"))
        return 0;
    cli_json_open(&j, NULL, '{');
    cli_json_str(&j, "processId", str_of(process));
    cli_json_u64(&j, "seq", 0);
    cli_json_bool(&j, "hold", false);
    cli_json_close(&j, '}');
    if (j.error < 0 || buf_putc(&j.b, '\0') < 0)
        return XS_ENOMEM;
    cli_io_wait_init(&w);
    int r = xs_client_rpc(io->client, "process/ack", j.b.p, &result, &w.call);
    r = cli_io_await(io, &w, r, LEAVE_MS);
    xs_bytes_free(&result);
    return r == XS_EREMOTE ? 0 : r; /* it is gone already */
}

int cli_detach_leave(struct cli_io *io, const char *process) {
    const struct xs_info *info = xs_client_info(io->client);
    char session[37];
    struct cli_wait w;
    int r = release(io, process);
    if (r < 0)
        return r;
    if (info->limits_told && info->session_ttl_ms < CLI_DETACH_MS)
        cli_say_warning(io->cli, "the server keeps the session for %lld s",
                        (long long)info->session_ttl_ms / 1000);
    if (info->limits_told && info->session_ttl_ms < SHORTEST_MS)
        return XS_ENOTSUP;
    cli_io_wait_init(&w);
    r = cli_io_await(io, &w, xs_client_detach(io->client, session, &w.call), LEAVE_MS);
    return r == XS_ENOTSUP ? 0 : r; /* less than we asked for, which we have told */
}

/* The session once more, now with the wish that it outlives us. */
static int leave_again(struct cli_io *io, const struct cli_state *s) {
    int status = CLI_FAILED;
    struct cli *c = io->cli;
    _cleanup_cli_options_ struct xs_options *o = cli_link_options(c, NULL, &status);
    _cleanup_cli_client_ struct xs_client *client = NULL;
    struct cli_wait w;
    if (o == NULL || cli_detach_ask(o) < 0 ||
        xs_options_str(o, XS_OPT_SESSION_ID, s->session) < 0 || cli_link_new(c, o, &client) != 0)
        return CLI_FAILED;
    struct xs_client *before = io->client;
    io->client = client;
    cli_io_wait_init(&w);
    int r = cli_io_await(io, &w, xs_client_connect(client, &w.call), LEAVE_MS);
    if (r == 0)
        r = cli_detach_leave(io, s->process);
    status = r < 0 ? cli_say_failure(c, xs_client_error(client), "cannot detach", CLI_LOST) : 0;
    io->client = before;
    return status;
}

int cli_detach_now(struct cli_io *io) {
    struct cli *c = io->cli;
    char session[37];
    struct cli_wait w;
    _cleanup_cli_state_ struct cli_state s = {.name = NULL};
    int status = cli_detach_record(c, io->client, xs_process_id(io->process), io->tty, &s);
    if (status == 0) {
        cli_io_wait_init(&w);
        io->process = NULL;
        io->feed.process = NULL;
        int r = cli_io_await(io, &w, xs_client_detach(io->client, session, &w.call), LEAVE_MS);
        if (r < 0)
            status = cli_say_failure(c, xs_client_error(io->client), "cannot detach", CLI_LOST);
    }
    if (status == 0)
        status = leave_again(io, &s);
    if (status != 0)
        cli_detach_forget(c, &s);
    cli_io_fini(io);
    if (status == 0)
        status = cli_detach_print(c, &s);
    return cli_report(c, status, status == 0 ? CLI_REPORT_DETACHED : CLI_REPORT_LOST, NULL, NULL,
                      s.name);
}

int cli_detach_print(struct cli *c, const struct cli_state *s) {
    if (!c->json) {
        printf("%s\n", s->name);
        return fflush(stdout) == 0 ? 0 : CLI_FAILED;
    }
    _cleanup_cli_json_ struct cli_json j = CLI_JSON_INIT;
    cli_json_open(&j, NULL, '{');
    cli_json_str(&j, "event", STR_LIT("detached"));
    cli_json_str(&j, "name", str_of(s->name));
    cli_json_str(&j, "sessionId", str_of(s->session));
    cli_json_str(&j, "processId", str_of(s->process));
    cli_json_close(&j, '}');
    return cli_json_print(&j, STDOUT_FILENO) == 0 ? 0 : CLI_FAILED;
}
