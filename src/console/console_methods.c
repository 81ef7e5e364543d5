#include "console/console_methods.h"

#include "console/console.h"
#include "console/console_audit.h"
#include "console/console_list.h"
#include "console/console_usage.h"
#include "files/fs_api.h"
#include "files/fs_params.h"
#include "json/jsonw.h"
#include "process/attach.h"
#include "process/events.h"
#include "process/params.h"
#include "process/session.h"

#include <errno.h>
#include <inttypes.h>

#define METHODS_FAMILY "console"

static int methods_none_decode(const struct json_node *params, void *out, struct err *e) {
    (void)out;
    return jsondec_unit(params, e);
}

/* -- console/login -- */

struct login_params {
    struct str token, secret;
    bool has_token, has_secret;
};

static const struct jsondec_field login_fields[] = {
    PARAM_HAS(login_params, token, has_token, "token", JSONDEC_STR, JSONDEC_NULLABLE),
    PARAM_HAS(login_params, secret, has_secret, "secret", JSONDEC_STR, JSONDEC_NULLABLE),
};
static const struct jsondec_struct login_struct = PARAM_STRUCT("LoginParams", login_fields);

static int login_decode(const struct json_node *params, void *out, struct err *e) {
    struct login_params *p = out;
    *p = (struct login_params){.has_token = false};
    int r = jsondec(&login_struct, params, out, e);
    if (r == 0 && p->has_token == p->has_secret)
        r = err_set(e, ERR_INVALID_PARAMS, "give either `token` or `secret`");
    return r;
}

/* The place of the secret that lets this connection in, and its text; or -errno with e set. */
static int login_check(struct console *k, const struct login_params *p,
                       char secret[TICKET_SECRET_LEN + 1], struct err *e) {
    int place = -ENOENT;
    if (p->has_secret)
        place = ticket_secret_use(&k->tickets, p->secret, k->loop->now);
    else if (ticket_redeem(&k->tickets, p->token, k->loop->now))
        place = ticket_secret_new(&k->tickets, k->loop->now, secret);
    if (place >= 0 && p->has_secret)
        memcpy(secret, p->secret.p, TICKET_SECRET_LEN); /* it is one, so it has that length */
    if (place == -ENOENT)
        err_set(e, ERR_UNKNOWN_TOKEN, "the console does not know this token");
    else if (place < 0)
        err_set(e, ERR_INVALID_REQUEST, "too many pages use the console (limit %d)",
                TICKET_SECRETS);
    return place;
}

static int login_put(const struct console *k, const char *secret, struct buf *b) {
    int r = buf_putf(b, "{\"secret\":\"%s\",\"control\":%s,\"version\":\"%s\",\"host\":", secret,
                     k->settings.control ? "true" : "false", EXEC_SERVER_VERSION);
    if (r == 0)
        r = jsonw_str(b, str_of(k->hostname));
    if (r == 0)
        r = buf_putf(b, ",\"cwd\":%s,\"startedAtMs\":%" PRId64, k->cwd != NULL ? k->cwd : "null",
                     k->started_ms);
    return r < 0 ? r
                 : buf_putf(b,
                            ",\"limits\":{\"retainedOutputBytes\":%zu,\"listBytes\":%u,"
                            "\"usageProcesses\":%d,\"viewsPerProcess\":%d,"
                            "\"viewsPerConnection\":%d,\"auditLines\":%d}}",
                            k->settings.retained_output, CONSOLE_LIST_MAX, CONSOLE_USAGE_MAX,
                            ATTACH_PER_PROCESS, ATTACH_PER_SESSION, AUDIT_TAIL_LINES);
}

/* Lets the connection in. 0, or -errno with e set. */
static int login_enter(struct rpc_call *c, struct console *k, int place, struct err *e) {
    struct console_viewer *v = calloc(1, sizeof *v);
    struct session *s = v != NULL ? session_new_console(k->processes, c->peer, e) : NULL;
    if (s == NULL) {
        free(v);
        return v == NULL ? err_os(e, ERR_INTERNAL, ENOMEM) : -ENOMEM;
    }
    *v = (struct console_viewer){.secret = place};
    s->watcher = v;
    c->peer->life = RPC_READY;
    conn_proof_accept(c->peer->conn);
    events_login(s, k->settings.control);
    return 0;
}

static enum rpc_outcome login_run(struct rpc_call *c, void *params, struct buf *result,
                                  struct err *e) {
    struct console *k = console_of_call(c);
    char secret[TICKET_SECRET_LEN + 1] = "";
    if (c->peer->life != RPC_NEW) {
        err_set(e, ERR_INVALID_REQUEST, "console/login may only be sent once per connection");
        return RPC_ERROR;
    }
    int place = login_check(k, params, secret, e);
    if (place == -ENOENT)
        ops_turned_away(k->ops, METRICS_AUTH, c->peer->conn->peer, 0, err_msg(e));
    if (place < 0)
        return RPC_ERROR;
    if (login_enter(c, k, place, e) < 0) {
        ticket_secret_leave(&k->tickets, place);
        return RPC_ERROR;
    }
    return rpc_done(result, login_put(k, secret, result));
}

/* -- console/link -- */

static enum rpc_outcome link_run(struct rpc_call *c, void *params, struct buf *result,
                                 struct err *e) {
    (void)params;
    (void)e;
    struct console *k = console_of_call(c);
    char token[TICKET_LEN + 1];
    ticket_issue(&k->tickets, k->loop->now + TICKET_MS * LOOP_MS, token);
    events_link(c);
    return rpc_done(result, buf_putf(result, "{\"token\":\"%s\"}", token));
}

/* -- fs/open -- */

/* A page may read files only. */
static enum rpc_outcome methods_open_run(struct rpc_call *c, void *params, struct buf *result,
                                         struct err *e) {
    const struct fs_params *p = params;
    if (p->op == FS_CALL_READ)
        return fs_handles_open_run(c, params, result, e);
    err_set(e, ERR_INVALID_REQUEST, "the console may only read files");
    return RPC_ERROR;
}

/* Their params own memory. */
#define METHODS_FS(name, key, control, params, run)                                                \
    {                                                                                              \
        name, METHODS_FAMILY, key, control, fs_params_##params##_decode, run, fs_params_release,   \
            NULL                                                                                   \
    }

#define METHODS_PLAIN(name, key, prefix, base64)                                                   \
    { name, METHODS_FAMILY, key, false, prefix##_decode, prefix##_run, NULL, base64 }

const struct rpc_method console_methods_table[] = {
    {"console/login", NULL, NULL, false, login_decode, login_run, NULL, NULL},
    METHODS_PLAIN("console/list", NULL, console_list, NULL),
    METHODS_PLAIN("console/resources", NULL, console_usage, NULL),
    METHODS_PLAIN("console/audit", NULL, console_audit, NULL),
    {"console/link", METHODS_FAMILY, NULL, false, methods_none_decode, link_run, NULL, NULL},
    METHODS_PLAIN("process/attach", NULL, attach, NULL),
    {"process/detach", METHODS_FAMILY, NULL, false, attach_detach_decode, attach_detach_run, NULL,
     NULL},
    METHODS_FS("fs/readFile", NULL, false, read_file, fs_read_run),
    METHODS_FS("fs/open", "handleId", false, open, methods_open_run),
    METHODS_FS("fs/readBlock", "handleId", false, read_block, fs_handles_read_block_run),
    METHODS_FS("fs/close", "handleId", true, close, fs_handles_close_run),
    METHODS_FS("fs/getMetadata", NULL, false, get_metadata, fs_ops_get_metadata_run),
    METHODS_FS("fs/canonicalize", NULL, false, canonicalize, fs_ops_run),
    METHODS_FS("fs/readDirectory", NULL, false, read_directory, fs_ops_run),
    METHODS_FS("fs/readLink", NULL, false, read_link, fs_ops_run),
    METHODS_PLAIN("console/snapshot", NULL, console_control_snapshot, NULL),
    METHODS_PLAIN("console/write", "processId", console_control_write, "chunk"),
    METHODS_PLAIN("console/closeStdin", "processId", console_control_close_stdin, NULL),
    METHODS_PLAIN("console/resize", "processId", console_control_resize, NULL),
    METHODS_PLAIN("console/signal", "processId", console_control_signal, NULL),
    METHODS_PLAIN("console/terminate", "processId", console_control_terminate, NULL),
    METHODS_PLAIN("console/start", NULL, console_control_start, NULL),
};
const size_t console_methods_count = ARRAY_LEN(console_methods_table);
_Static_assert(ARRAY_LEN(console_methods_table) <= RPC_METHODS_MAX, "every method has its tally");
