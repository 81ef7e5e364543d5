#include "console/console.h"
#include "console/console_methods.h"
#include "json/jsonw.h"
#include "process/params.h"
#include "process/process_api.h"
#include "process/session.h"
#include "process/start.h"

#include <errno.h>
#include <inttypes.h>

/* -- a process of some session -- */

struct control_params {
    struct str session_id;
    _Alignas(max_align_t) char rest[RPC_PARAMS_MAX - 2 * sizeof(max_align_t)]; /* of the method */
};
_Static_assert(sizeof(struct control_params) <= RPC_PARAMS_MAX, "params fit");

static const struct jsondec_field control_fields[] = {
    PARAM(control_params, session_id, "sessionId", JSONDEC_STR),
};
static const struct jsondec_struct control_struct = PARAM_STRUCT("ControlParams", control_fields);

typedef int control_decode_fn(const struct json_node *params, void *out, struct err *e);
typedef enum rpc_outcome control_run_fn(struct rpc_call *c, void *params, struct buf *result,
                                        struct err *e);

static int control_decode(const struct json_node *params, void *out, control_decode_fn *inner,
                          struct err *e) {
    struct control_params *p = out;
    p->session_id = (struct str){NULL, 0};
    int r = jsondec(&control_struct, params, p, e);
    return r < 0 ? r : inner(params, p->rest, e);
}

static bool control_allowed(const struct rpc_call *c, struct err *e) {
    /* planted: only-look */
    if (console_of_call(c)->settings.control)
        return true;
    err_set(e, ERR_INVALID_REQUEST, "the console may only look");
    return false;
}

/* Calls a method of clients as if it came from the session that the params name. */
static enum rpc_outcome control_run(struct rpc_call *c, void *params, control_run_fn *inner,
                                    struct buf *result, struct err *e) {
    struct control_params *p = params;
    c->target = session_shown(console_of_call(c)->processes, p->session_id);
    if (c->target != NULL)
        return inner(c, p->rest, result, e);
    err_about(e, ERR_INVALID_REQUEST, "unknown session id ", p->session_id, "");
    return RPC_ERROR;
}

#define CONTROL_METHOD(name, inner)                                                                \
    int name##_decode(const struct json_node *params, void *out, struct err *e) {                  \
        return control_decode(params, out, inner##_decode, e);                                     \
    }                                                                                              \
    enum rpc_outcome name##_run(struct rpc_call *c, void *params, struct buf *result,              \
                                struct err *e) {                                                   \
        return control_allowed(c, e) ? control_run(c, params, inner##_run, result, e) : RPC_ERROR; \
    }

CONTROL_METHOD(console_control_write, process_api_write)
CONTROL_METHOD(console_control_close_stdin, process_api_close_stdin)
CONTROL_METHOD(console_control_resize, process_api_resize)
CONTROL_METHOD(console_control_signal, process_end_signal)
CONTROL_METHOD(console_control_terminate, process_end_terminate)

/* Only looks. */
int console_control_snapshot_decode(const struct json_node *params, void *out, struct err *e) {
    return control_decode(params, out, process_view_snapshot_decode, e);
}

enum rpc_outcome console_control_snapshot_run(struct rpc_call *c, void *params, struct buf *result,
                                              struct err *e) {
    return control_run(c, params, process_view_snapshot_run, result, e);
}

/* -- console/start -- */

struct control_start {
    const struct json_node *argv; /* NULL: shell */
    struct str shell, cwd;
    bool has_shell, has_cwd, tty;
    struct start_size size;
    bool has_size;
};

static const struct jsondec_field start_fields[] = {
    PARAM_OPT(control_start, argv, "argv", JSONDEC_STRS, JSONDEC_NULLABLE),
    PARAM_HAS(control_start, shell, has_shell, "shell", JSONDEC_STR, JSONDEC_NULLABLE),
    PARAM_HAS(control_start, cwd, has_cwd, "cwd", JSONDEC_STR, JSONDEC_NULLABLE),
    PARAM_OPT(control_start, tty, "tty", JSONDEC_BOOL, JSONDEC_NULLABLE),
    PARAM_SUB_HAS(control_start, size, has_size, "size", &start_size_struct, JSONDEC_NULLABLE),
};
static const struct jsondec_struct start_struct = PARAM_STRUCT("StartParams", start_fields);

int console_control_start_decode(const struct json_node *params, void *out, struct err *e) {
    struct control_start *p = out;
    *p = (struct control_start){.argv = NULL};
    int r = jsondec(&start_struct, params, out, e);
    if (r == 0 && p->has_shell == (p->argv != NULL))
        r = err_set(e, ERR_INVALID_PARAMS, "give either `argv` or `shell`");
    return r;
}

static int control_put_argv(const struct control_start *p, struct buf *b) {
    int r = buf_putz(b, p->has_shell ? ",\"argv\":[\"/bin/sh\",\"-c\"," : ",\"argv\":[");
    if (p->has_shell)
        return r < 0 ? r : jsonw_str(b, p->shell);
    json_for_each(v, p->argv) {
        if (r == 0 && v != p->argv + 1)
            r = buf_putc(b, ',');
        if (r == 0)
            r = jsonw_str(b, json_str(v));
    }
    return r;
}

/* The params of a process/start. Its environment is the server's, without what looks secret. */
static int control_put_start(const struct console *k, const struct control_start *p,
                             struct buf *b) {
    int r = buf_putf(b, "{\"processId\":\"console-%" PRIu64 "\"", k->last_process);
    if (r == 0)
        r = control_put_argv(p, b);
    if (r == 0)
        r = buf_putz(b, "],\"cwd\":");
    if (r == 0)
        r = p->has_cwd ? jsonw_str(b, p->cwd) : buf_putz(b, k->cwd != NULL ? k->cwd : "\"\"");
    if (r == 0)
        r = buf_putf(b,
                     ",\"env\":{%s},\"envPolicy\":{\"inherit\":\"all\","
                     "\"ignoreDefaultExcludes\":false,\"exclude\":[],\"set\":{},"
                     "\"includeOnly\":[]},\"tty\":%s,\"pipeStdin\":%s",
                     p->tty ? "\"TERM\":\"xterm-256color\"" : "", p->tty ? "true" : "false",
                     p->tty ? "false" : "true");
    if (r == 0 && p->has_size && p->tty)
        r = buf_putf(b, ",\"size\":{\"rows\":%u,\"cols\":%u}", p->size.rows, p->size.cols);
    return r < 0 ? r : buf_putc(b, '}');
}

/* Calls process/start with params of our own for the console's session. */
static enum rpc_outcome control_call_start(struct rpc_call *c, struct str text, struct buf *result,
                                           struct err *e) {
    struct json_doc doc;
    struct start_params start = {.process_id = {NULL, 0}};
    enum rpc_outcome out = RPC_ERROR;
    json_doc_init(&doc, CONN_MSG_MAX, c->peer->host->doc.seed);
    if (json_parse(&doc, text.p, text.n, e) == 0) {
        if (start_decode(json_root(&doc), &start, e) == 0)
            out = start_run(c, &start, result, e);
        start_release(&start);
    }
    json_doc_fini(&doc);
    return out;
}

enum rpc_outcome console_control_start_run(struct rpc_call *c, void *params, struct buf *result,
                                           struct err *e) {
    struct console *k = console_of_call(c);
    _cleanup_buf_ struct buf text = BUF_INIT(CONN_MSG_MAX);
    if (!control_allowed(c, e))
        return RPC_ERROR;
    if (k->session == NULL)
        k->session = session_new_console(k->processes, NULL, e);
    if (k->session == NULL)
        return RPC_ERROR;
    k->last_process++;
    if (control_put_start(k, params, &text) < 0) {
        err_os(e, ERR_INTERNAL, ENOMEM);
        return RPC_ERROR;
    }
    c->target = k->session;
    return control_call_start(c, buf_str(&text), result, e);
}
