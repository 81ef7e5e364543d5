#include "server/methods.h"

#include "server/attach.h"
#include "server/params.h"
#include "server/process_api.h"
#include "server/start.h"

#include <errno.h>

enum rpc_outcome method_done(struct buf *result, int r) {
    if (r < 0)
        result->len = 0;
    return RPC_DONE;
}

enum rpc_outcome method_text(struct buf *result, const char *json) {
    result->len = 0;
    return method_done(result, buf_putz(result, json));
}

struct job *method_job(struct rpc_call *c, struct str id, struct err *e) {
    struct job *j = job_find(c->peer->user, id);
    bool starting = j != NULL && j->proc.state == PROC_STARTING;
    if (j != NULL && !starting)
        return j;
    err_about(e, ERR_INVALID_REQUEST, j ? "process id " : "unknown process id ", id,
              starting ? " is starting" : "");
    return NULL;
}

static int decode_none(const struct json_node *params, void *out, struct err *e) {
    (void)out;
    return jsondec_unit(params, e);
}

/* -- initialize, environment -- */

struct initialize_params {
    struct str client_name, resume;
    bool has_resume;
    const struct json_node *notifications; /* extension: names of those to send */
};

static const struct jsondec_field initialize_fields[] = {
    PARAM(initialize_params, client_name, "clientName", JSONDEC_STR),
    PARAM_HAS(initialize_params, resume, has_resume, "resumeSessionId", JSONDEC_STR,
              JSONDEC_NULLABLE),
    PARAM_OPT(initialize_params, notifications, "notifications", JSONDEC_STRS, JSONDEC_NULLABLE),
};
static const struct jsondec_struct initialize_struct =
    PARAM_STRUCT("InitializeParams", initialize_fields);

static int initialize_decode(const struct json_node *params, void *out, struct err *e) {
    *(struct initialize_params *)out = (struct initialize_params){0};
    return jsondec(&initialize_struct, params, out, e);
}

/* Whether the client asked for a notification that is not sent otherwise. */
static bool initialize_wants(const struct initialize_params *p, const char *name) {
    if (p->notifications == NULL)
        return false;
    json_for_each(v, p->notifications) {
        if (str_eqz(json_str(v), name))
            return true;
    }
    return false;
}

static enum rpc_outcome initialize_run(struct rpc_call *c, void *params, struct buf *result,
                                       struct err *e) {
    const struct initialize_params *p = params;
    struct server *srv = server_of_peer(c->peer);
    if (c->peer->life != RPC_NEW) {
        err_set(e, ERR_INVALID_REQUEST, "initialize may only be sent once per connection");
        return RPC_ERROR;
    }
    struct session *s =
        p->has_resume ? session_resume(srv, p->resume, c->peer, e) : session_new(srv, c->peer, e);
    if (s == NULL)
        return RPC_ERROR;
    s->wants_started = initialize_wants(p, "process/started");
    s->wants_failed = initialize_wants(p, "process/failed");
    c->peer->life = RPC_GREETED;
    conn_lift_limit(c->peer->conn);
    int r = buf_putf(result, "{\"sessionId\":\"%s\",\"environmentInfo\":", s->id);
    if (r == 0)
        r = buf_put(result, srv->info.p, srv->info.len);
    return method_done(result, r < 0 ? r : buf_putc(result, '}'));
}

static enum rpc_outcome info_run(struct rpc_call *c, void *params, struct buf *result,
                                 struct err *e) {
    (void)params;
    (void)e;
    const struct server *srv = server_of_peer(c->peer);
    return method_done(result, buf_put(result, srv->info.p, srv->info.len));
}

static enum rpc_outcome status_run(struct rpc_call *c, void *params, struct buf *result,
                                   struct err *e) {
    (void)c;
    (void)params;
    (void)e;
    return method_text(result, "{\"status\":\"ready\"}");
}

const struct rpc_method methods_table[] = {
    {"initialize", NULL, NULL, false, initialize_decode, initialize_run},
    {"environment/info", "environment info", NULL, true, decode_none, info_run},
    {"environment/status", "environment status", NULL, true, decode_none, status_run},
    {"process/start", "exec", "processId", false, start_decode, start_run},
    {"process/read", "exec", "processId", false, read_decode, read_run},
    {"process/write", "exec", "processId", false, write_decode, write_run},
    {"process/signal", "exec", "processId", true, signal_decode, signal_run},
    {"process/terminate", "exec", "processId", true, terminate_decode, terminate_run},
    /* Extensions. */
    {"process/closeStdin", "exec", "processId", false, close_stdin_decode, close_stdin_run},
    {"process/resize", "exec", "processId", false, resize_decode, resize_run},
    {"process/wait", "exec", "processId", false, wait_decode, wait_run},
    {"process/snapshot", "exec", "processId", false, snapshot_decode, snapshot_run},
    {"process/list", "exec", NULL, false, decode_none, list_run},
    {"process/attach", "exec", NULL, false, attach_decode, attach_run},
    {"process/detach", "exec", NULL, false, detach_decode, detach_run},
};
const size_t methods_count = ARRAY_LEN(methods_table);

_Static_assert(ARRAY_LEN(methods_table) <= RPC_METHODS_MAX, "every method has its tally");
_Static_assert(sizeof(struct start_params) <= RPC_PARAMS_MAX, "params fit the dispatcher's space");
