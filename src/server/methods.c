#include "server/methods.h"

#include "json/base64.h"
#include "json/jsondec.h"
#include "json/jsonw.h"
#include "server/job.h"
#include "server/start.h"

#include <errno.h>
#include <signal.h>

#define REQUIRED(type, member, wire, kind_)                                                        \
    {.name = (wire), .kind = (kind_), .flags = JSONDEC_REQUIRED,                                   \
     .offset = offsetof(struct type, member), .present = JSONDEC_NO_PRESENT}
#define OPTIONAL(type, member, wire, kind_)                                                        \
    {.name = (wire), .kind = (kind_), .flags = JSONDEC_NULLABLE,                                   \
     .offset = offsetof(struct type, member), .present = JSONDEC_NO_PRESENT}

/* A failed append leaves no result behind: the connection then ends with 1011. */
static enum rpc_outcome method_done(struct buf *result, int r) {
    if (r < 0)
        result->len = 0;
    return RPC_DONE;
}

static enum rpc_outcome method_text(struct buf *result, const char *json) {
    return method_done(result, buf_putz(result, json));
}

static int method_decode_none(const struct json_node *params, void *out, struct err *e) {
    (void)out;
    return jsondec_unit(params, e);
}

/* -- initialize, environment -- */

struct initialize_params {
    struct str client_name, resume;
    bool has_resume;
};

static const struct jsondec_field initialize_fields[] = {
    REQUIRED(initialize_params, client_name, "clientName", JSONDEC_STR),
    {.name = "resumeSessionId",
     .kind = JSONDEC_STR,
     .flags = JSONDEC_NULLABLE,
     .offset = offsetof(struct initialize_params, resume),
     .present = offsetof(struct initialize_params, has_resume)},
};
static const struct jsondec_struct initialize_struct = {"InitializeParams", initialize_fields,
                                                        ARRAY_LEN(initialize_fields)};

static int initialize_decode(const struct json_node *params, void *out, struct err *e) {
    *(struct initialize_params *)out = (struct initialize_params){0};
    return jsondec(&initialize_struct, params, out, e);
}

static enum rpc_outcome initialize_run(struct rpc_call *c, void *params, struct buf *result,
                                       struct err *e) {
    const struct initialize_params *p = params;
    struct server *srv = server_of_peer(c->peer);
    if (c->peer->life != RPC_NEW) {
        err_set(e, ERR_INVALID_REQUEST, "initialize may only be sent once per connection");
        return RPC_ERROR;
    }
    struct session *s = p->has_resume ? session_resume(srv, p->resume, c->peer, e)
                                      : session_new(srv, c->peer, e);
    if (s == NULL)
        return RPC_ERROR;
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

/* -- process/read -- */

struct read_params {
    struct str process_id;
    uint64_t after, max_bytes, wait_ms;
    bool limited;
};

static const struct jsondec_field read_fields[] = {
    REQUIRED(read_params, process_id, "processId", JSONDEC_STR),
    OPTIONAL(read_params, after, "afterSeq", JSONDEC_U64),
    {.name = "maxBytes",
     .kind = JSONDEC_USIZE,
     .flags = JSONDEC_NULLABLE,
     .offset = offsetof(struct read_params, max_bytes),
     .present = offsetof(struct read_params, limited)},
    OPTIONAL(read_params, wait_ms, "waitMs", JSONDEC_U64),
};
static const struct jsondec_struct read_struct = {"ReadParams", read_fields,
                                                  ARRAY_LEN(read_fields)};

static int read_decode(const struct json_node *params, void *out, struct err *e) {
    *(struct read_params *)out = (struct read_params){.max_bytes = UINT64_MAX};
    return jsondec(&read_struct, params, out, e);
}

static enum rpc_outcome read_run(struct rpc_call *c, void *params, struct buf *result,
                                 struct err *e) {
    const struct read_params *p = params;
    struct job *j = job_find(c->peer->user, p->process_id);
    bool starting = j != NULL && j->proc.state == PROC_STARTING;
    if (j == NULL || starting) {
        err_about(e, ERR_INVALID_REQUEST, j ? "process id " : "unknown process id ", p->process_id,
                  starting ? " is starting" : "");
        return RPC_ERROR;
    }
    struct job_read r = {p->after, p->max_bytes, p->limited};
    if (p->wait_ms == 0 || job_read_ready(j, r.after))
        return method_done(result, job_put_read(j, &r, result));
    return job_wait_read(j, c, &r, p->wait_ms, e) < 0 ? RPC_ERROR : RPC_LATER;
}

/* -- process/write -- */

struct write_params {
    struct str process_id, chunk, write_id;
    bool has_write_id;
};

static const struct jsondec_field write_fields[] = {
    REQUIRED(write_params, process_id, "processId", JSONDEC_STR),
    REQUIRED(write_params, chunk, "chunk", JSONDEC_STR),
    {.name = "writeId",
     .kind = JSONDEC_STR,
     .flags = 0,
     .offset = offsetof(struct write_params, write_id),
     .present = offsetof(struct write_params, has_write_id)},
};
static const struct jsondec_struct write_struct = {"WriteParams", write_fields,
                                                   ARRAY_LEN(write_fields)};

static int write_decode(const struct json_node *params, void *out, struct err *e) {
    struct write_params *p = out;
    *p = (struct write_params){0};
    int r = jsondec(&write_struct, params, out, e);
    if (r < 0)
        return r;
    /* In place: the message is ours and the decoded form is shorter. */
    char *text = (char *)p->chunk.p;
    ssize_t n = base64_decode(text, text, p->chunk.n, e);
    if (n < 0)
        return (int)n;
    p->chunk.n = (size_t)n;
    return 0;
}

static enum rpc_outcome write_run(struct rpc_call *c, void *params, struct buf *result,
                                  struct err *e) {
    static const char *const answers[] = {
        [JOB_WRITE_ACCEPTED] = "{\"status\":\"accepted\"}",
        [JOB_WRITE_STDIN_CLOSED] = "{\"status\":\"stdinClosed\"}",
        [JOB_WRITE_STARTING] = "{\"status\":\"starting\"}",
    };
    const struct write_params *p = params;
    if (p->has_write_id && p->write_id.n == 0) {
        err_set(e, ERR_INVALID_PARAMS, "writeId must not be empty");
        return RPC_ERROR;
    }
    struct job *j = job_find(c->peer->user, p->process_id);
    if (j == NULL)
        return method_text(result, "{\"status\":\"unknownProcess\"}");
    struct str id = p->has_write_id ? p->write_id : (struct str){NULL, 0};
    enum job_write_status s = job_write(j, c, id, p->chunk.p, p->chunk.n, e);
    if (s == JOB_WRITE_FAILED)
        return RPC_ERROR;
    return s == JOB_WRITE_WAITING ? RPC_LATER : method_text(result, answers[s]);
}

/* -- process/signal, process/terminate -- */

struct signal_params {
    struct str process_id;
    const struct json_node *signal;
};

static const struct jsondec_field signal_fields[] = {
    REQUIRED(signal_params, process_id, "processId", JSONDEC_STR),
    REQUIRED(signal_params, signal, "signal", JSONDEC_NODE),
};
static const struct jsondec_struct signal_struct = {"SignalParams", signal_fields,
                                                    ARRAY_LEN(signal_fields)};

static int signal_decode(const struct json_node *params, void *out, struct err *e) {
    static const char *const names[] = {"interrupt"};
    struct signal_params *p = out;
    *p = (struct signal_params){0};
    int r = jsondec(&signal_struct, params, out, e);
    return r < 0 ? r : MIN(jsondec_variant(p->signal, names, ARRAY_LEN(names), e), 0);
}

static enum rpc_outcome signal_run(struct rpc_call *c, void *params, struct buf *result,
                                   struct err *e) {
    (void)e;
    const struct signal_params *p = params;
    struct job *j = job_find(c->peer->user, p->process_id);
    if (j != NULL)
        proc_signal(&j->proc, SIGINT);
    return method_text(result, "{}");
}

struct terminate_params {
    struct str process_id;
};

static const struct jsondec_field terminate_fields[] = {
    REQUIRED(terminate_params, process_id, "processId", JSONDEC_STR),
};
static const struct jsondec_struct terminate_struct = {"TerminateParams", terminate_fields,
                                                       ARRAY_LEN(terminate_fields)};

static int terminate_decode(const struct json_node *params, void *out, struct err *e) {
    *(struct terminate_params *)out = (struct terminate_params){0};
    return jsondec(&terminate_struct, params, out, e);
}

static enum rpc_outcome terminate_run(struct rpc_call *c, void *params, struct buf *result,
                                      struct err *e) {
    (void)e;
    const struct terminate_params *p = params;
    struct job *j = job_find(c->peer->user, p->process_id);
    bool running = j != NULL && job_terminate(j);
    return method_text(result, running ? "{\"running\":true}" : "{\"running\":false}");
}

const struct rpc_method methods_table[] = {
    {"initialize", NULL, NULL, false, initialize_decode, initialize_run},
    {"environment/info", "environment info", NULL, true, method_decode_none, info_run},
    {"environment/status", "environment status", NULL, true, method_decode_none, status_run},
    {"process/start", "exec", "processId", false, start_decode, start_run},
    {"process/read", "exec", "processId", false, read_decode, read_run},
    {"process/write", "exec", "processId", false, write_decode, write_run},
    {"process/signal", "exec", "processId", true, signal_decode, signal_run},
    {"process/terminate", "exec", "processId", true, terminate_decode, terminate_run},
};
const size_t methods_count = ARRAY_LEN(methods_table);

_Static_assert(sizeof(struct start_params) <= RPC_PARAMS_MAX, "params fit the dispatcher's space");
