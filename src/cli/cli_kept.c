#include "cli/cli_kept.h"

#include "base/uuid.h"
#include "cli/cli_detach.h"
#include "cli/cli_keep.h"
#include "cli/cli_link.h"
#include "cli/cli_say.h"
#include "json/json.h"

#include <errno.h>
#include <sys/inotify.h>

#define SESSION_BUSY (-32010)
#define INVALID_REQUEST (-32600)
#define STEAL_MS 20000 /* for another xs to leave */
#define STEAL_STEP_MS 100
#define JSON_MAX 65536 /* of an answer without chunks */

/* The options for the server of a process. The session is resumed unless `session` is NULL. */
static struct xs_options *options_of(struct cli_kept *k, const char *session) {
    int status;
    const char *file = cli_value(k->cli, CLI_OPT_TOKEN_FILE);
    struct xs_options *o = cli_link_options(k->cli, k->state.host, &status);
    int r = o != NULL ? 0 : XS_EINVAL;
    if (r == 0 && session != NULL)
        r = xs_options_str(o, XS_OPT_SESSION_ID, session);
    if (r == 0 && file == NULL)
        file = k->state.token_file;
    if (r == 0 && file != NULL)
        r = xs_options_str(o, XS_OPT_TOKEN_FILE, file);
    else if (r == 0 && k->cli->token != NULL && cli_link_selected(k->cli) == NULL)
        r = xs_options_str(o, XS_OPT_TOKEN, k->cli->token);
    if (r == 0)
        return o;
    xs_options_free(o);
    return NULL;
}

/* One connection. 0, or a negative error; a client that failed is kept for its error. */
static int connect_once(struct cli_kept *k, const char *session) {
    struct cli_wait w;
    _cleanup_cli_options_ struct xs_options *o = options_of(k, session);
    struct xs_client *before = k->client;
    if (o == NULL || cli_link_new(k->cli, o, &k->client) != 0) {
        k->client = before;
        return XS_EINVAL;
    }
    cli_io_use(&k->io, k->client);
    xs_client_free(before);
    cli_io_wait_init(&w);
    return cli_io_await(&k->io, &w, xs_client_connect(k->client, &w.call), -1);
}

static bool is_busy(const struct cli_kept *k, int r) {
    return r < 0 && xs_error_rpc(xs_client_error(k->client)) == SESSION_BUSY;
}

/* Says who we are in the state file: another xs that is attached sees that and leaves. */
static int claim(struct cli_kept *k) {
    _cleanup_err_ struct err e = ERR_INIT;
    char id[UUID_LEN + 1];
    uuid_random(id);
    free(k->state.owner);
    k->state.owner = strdup(id);
    int r = k->state.owner != NULL ? cli_keep_replace(k->directory, &k->state, &e) : -ENOMEM;
    if (r < 0)
        cli_say_warning(k->cli, "%s", err_msg(&e));
    return r;
}

static int connect_session(struct cli_kept *k, bool steal) {
    int64_t until = cli_io_now() + (steal ? STEAL_MS : 0);
    struct cli_wait w;
    if (steal && claim(k) < 0)
        return XS_ELOCAL;
    int r = connect_once(k, k->state.session);
    while (is_busy(k, r) && cli_io_now() < until) {
        cli_io_wait_init(&w); /* a pause in which signals are heard */
        if (cli_io_await(&k->io, &w, 0, STEAL_STEP_MS) == XS_ECANCELED)
            return XS_ECANCELED;
        r = connect_once(k, k->state.session);
    }
    return r;
}

static int fail_connect(struct cli_kept *k, int r) {
    struct cli *c = k->cli;
    const char *name = k->state.name;
    if (r == XS_ECANCELED && k->io.signal != 0)
        return CLI_SIGNALED + k->io.signal;
    if (k->client == NULL)
        return CLI_FAILED;
    const struct xs_error *e = xs_client_error(k->client);
    if (is_busy(k, r))
        return cli_say_error(c, CLI_FAILED, "%s: another xs is attached (attach -d throws it out)",
                             name);
    if (xs_error_rpc(e) == INVALID_REQUEST || xs_error_code(e) == XS_EGONE) {
        k->gone = true;
        return cli_say_error(c, CLI_LOST, "%s: the server does not have its session any more",
                             name);
    }
    return cli_say_failure(c, e, name, CLI_LOST);
}

/* Looks at a process without taking its session. XS_ENOTSUP: not on this server. */
static int look(struct cli_kept *k) {
    struct cli_wait w;
    int r = connect_once(k, NULL);
    if (r < 0)
        return r;
    if (!xs_client_can(k->client, "processAttach"))
        return XS_ENOTSUP;
    cli_io_wait_init(&w);
    r = xs_process_view(k->client, k->state.session, k->state.process, 0, &k->process, &w.call);
    r = cli_io_await(&k->io, &w, r, -1);
    k->view = r == 0;
    k->io.view = k->view;
    return r;
}

/* The number of the last event, from an answer to process/read. */
static int parse_last(struct xs_bytes *json, uint64_t *last) {
    struct json_doc doc;
    _cleanup_err_ struct err e = ERR_INIT;
    uint64_t next = 0;
    json_doc_init(&doc, JSON_MAX, 0);
    int r = json_parse(&doc, json->data, json->n, &e);
    const struct json_node *v = r == 0 && json_root(&doc)->type == JSON_OBJECT
                                    ? json_get(json_root(&doc), "nextSeq")
                                    : NULL;
    if (v == NULL || json_u64(v, &next) < 0)
        r = XS_EPROTO;
    *last = next > 0 ? next - 1 : 0;
    json_doc_fini(&doc);
    return r;
}

static int read_last(struct cli_kept *k) {
    struct xs_bytes json = {.data = NULL};
    struct cli_wait w;
    cli_io_wait_init(&w);
    int r = xs_process_read(k->process, UINT64_MAX, 1, 0, &json, &w.call);
    r = cli_io_await(&k->io, &w, r, -1);
    if (r >= 0)
        r = parse_last(&json, &k->last);
    xs_bytes_free(&json);
    return r;
}

static int adopt(struct cli_kept *k) {
    struct cli_wait w;
    cli_io_wait_init(&w);
    int r = xs_process_adopt(k->client, k->state.process, 0, &k->process, &w.call);
    r = cli_io_await(&k->io, &w, r, -1);
    return r < 0 ? r : read_last(k);
}

static int fail_adopt(struct cli_kept *k, int r) {
    if (r == XS_ECANCELED && k->io.signal != 0)
        return CLI_SIGNALED + k->io.signal;
    const struct xs_error *e = xs_client_error(k->client);
    if (xs_error_rpc(e) == INVALID_REQUEST) {
        k->gone = true;
        return cli_say_error(k->cli, CLI_LOST, "%s: the server does not have this process any more",
                             k->state.name);
    }
    return cli_say_failure(k->cli, e, k->state.name, CLI_LOST);
}

static int read_state(struct cli_kept *k, const char *name) {
    _cleanup_err_ struct err e = ERR_INIT;
    k->directory = cli_detach_directory(k->cli);
    if (k->directory == NULL)
        return CLI_FAILED;
    return cli_keep_read(k->directory, name, &k->state, &e) < 0
               ? cli_say_error(k->cli, CLI_FAILED, "%s", err_msg(&e))
               : 0;
}

static bool was_stolen(struct cli_io *io) {
    struct cli_kept *k = io->user;
    char events[4096];
    _cleanup_cli_state_ struct cli_state now = {.name = NULL};
    _cleanup_err_ struct err e = ERR_INIT;
    (void)!read(io->watch_fd, events, sizeof events);
    return cli_keep_read(k->directory, k->state.name, &now, &e) == 0 && now.owner != NULL &&
           k->state.owner != NULL && strcmp(now.owner, k->state.owner) != 0;
}

/* Hears when another xs wants the process. Without inotify it has to wait for us. */
static void watch(struct cli_kept *k, bool claimed) {
    if (!claimed && claim(k) < 0)
        return;
    k->io.watch_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    k->io.was_stolen = was_stolen;
    k->io.user = k;
    if (k->io.watch_fd >= 0 &&
        inotify_add_watch(k->io.watch_fd, k->directory, IN_MOVED_TO | IN_ONLYDIR) < 0)
        util_close_fd(&k->io.watch_fd);
}

int cli_kept_open(struct cli *c, const char *name, enum cli_kept_way way, struct cli_kept *k) {
    *k = (struct cli_kept){.cli = c};
    int status = read_state(k, name);
    if (status != 0)
        return status;
    status = cli_io_init(&k->io, c, NULL);
    if (status != 0)
        return status;
    k->io.tty = k->state.tty;
    int r = way == CLI_KEPT_LOOK ? look(k) : XS_ENOTSUP;
    if (r == 0 || r != XS_ENOTSUP)
        return r == 0                                                   ? 0
               : k->client != NULL && xs_client_info(k->client) != NULL ? fail_adopt(k, r)
                                                                        : fail_connect(k, r);
    r = connect_session(k, way == CLI_KEPT_STEAL);
    if (r < 0)
        return fail_connect(k, r);
    watch(k, way == CLI_KEPT_STEAL);
    r = adopt(k);
    return r < 0 ? fail_adopt(k, r) : 0;
}

int cli_kept_leave(struct cli_kept *k) {
    int r = 0;
    k->io.process = NULL;
    k->io.feed.process = NULL;
    if (!k->view && k->client != NULL && xs_client_state(k->client) != XS_STATE_FAILED)
        r = cli_detach_leave(&k->io, k->state.process);
    return r;
}

void cli_kept_forget(struct cli_kept *k) {
    cli_keep_remove(k->directory, k->state.name, k->state.session);
}

void cli_kept_close(struct cli_kept *k) {
    if (k->io.cli != NULL)
        cli_io_fini(&k->io);
    util_close_fd(&k->io.watch_fd);
    xs_client_free(k->client);
    k->client = NULL;
    cli_state_fini(&k->state);
    free(k->directory);
    k->directory = NULL;
}
