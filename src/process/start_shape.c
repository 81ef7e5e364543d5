#include "process/start_shape.h"

#include "process/params.h"
#include "process/sandbox_members.h"
#include "process/variant.h"

#include <errno.h>

enum start_shape start_shape_of(const struct json_node *params, const struct json_node **inner) {
    static const struct {
        const char *name;
        enum start_shape shape;
    } shapes[] = {{"direct", START_DIRECT},
                  {"Direct", START_DIRECT},
                  {"prepared", START_PREPARED},
                  {"Prepared", START_PREPARED}};
    *inner = params;
    if (params == NULL || params->type != JSON_OBJECT || json_get(params, "processId") != NULL)
        return START_DIRECT;
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        const struct json_node *v = json_get(params, shapes[i].name);
        if (v != NULL) {
            *inner = v;
            return shapes[i].shape;
        }
    }
    return START_DIRECT;
}

/* -- prepared -- */

struct prepared_params {
    struct str process_id;
    struct prepared_request {
        const struct json_node *command, *env;
        struct str cwd, arg0;
        bool has_arg0;
    } request;
    const struct json_node *io, *limits;
    const struct json_node *sandbox, *managed_network, *network_proxy; /* must be absent */
    bool enforce_managed_network;
    uint64_t timeout_ms;
    bool has_timeout;
};

static const struct jsondec_field request_fields[] = {
    PARAM(prepared_request, command, "command", JSONDEC_STRS),
    PARAM(prepared_request, cwd, "cwd", JSONDEC_STR),
    PARAM(prepared_request, env, "env", JSONDEC_STRMAP),
    PARAM_HAS(prepared_request, arg0, has_arg0, "arg0", JSONDEC_STR, JSONDEC_NULLABLE),
};
static const struct jsondec_struct request_struct = PARAM_STRUCT("PreparedRequest", request_fields);

static const struct jsondec_field prepared_fields[] = {
    PARAM(prepared_params, process_id, "processId", JSONDEC_STR),
    PARAM_SUB(prepared_params, request, "request", &request_struct, JSONDEC_REQUIRED),
    PARAM(prepared_params, io, "io", JSONDEC_NODE),
    PARAM_OPT(prepared_params, sandbox, "sandbox", JSONDEC_NODE, JSONDEC_NULLABLE),
    PARAM_OPT(prepared_params, managed_network, "managedNetwork", JSONDEC_NODE, JSONDEC_NULLABLE),
    PARAM_OPT(prepared_params, network_proxy, "networkProxy", JSONDEC_NODE, JSONDEC_NULLABLE),
    PARAM_OPT(prepared_params, enforce_managed_network, "enforceManagedNetwork", JSONDEC_BOOL, 0),
    PARAM_OPT(prepared_params, limits, "limits", JSONDEC_NODE, JSONDEC_NULLABLE),
    PARAM_HAS(prepared_params, timeout_ms, has_timeout, "timeoutMs", JSONDEC_U64, JSONDEC_NULLABLE),
};
static const struct jsondec_struct prepared_struct =
    PARAM_STRUCT("PreparedParams", prepared_fields);

int start_shape_prepared(const struct json_node *v, struct start_params *p, struct err *e) {
    struct prepared_params in = {0};
    int r = jsondec(&prepared_struct, v, &in, e);
    if (r < 0)
        return r;
    if (in.sandbox || in.managed_network || in.network_proxy || in.enforce_managed_network)
        return err_set(e, ERR_INVALID_PARAMS, "a prepared start takes no sandbox");
    r = sandbox_members_check(v, &prepared_struct, NULL, e);
    if (r == 0)
        r = sandbox_members_check(json_get(v, "request"), &request_struct, NULL, e);
    if (r < 0)
        return r;
    p->process_id = in.process_id;
    p->argv = in.request.command;
    p->cwd = in.request.cwd;
    p->env = in.request.env;
    p->arg0 = in.request.arg0;
    p->has_arg0 = in.request.has_arg0;
    p->io = in.io;
    p->limits_node = in.limits;
    p->timeout_ms = in.timeout_ms;
    p->has_timeout = in.has_timeout;
    return 0;
}

/* -- io -- */

struct io_params {
    const struct json_node *stdin_mode;
    struct start_size size;
    bool has_rows, has_cols;
};

static const struct jsondec_field io_fields[] = {
    PARAM_OPT(io_params, stdin_mode, "stdin", JSONDEC_NODE, JSONDEC_NULLABLE),
    PARAM_HAS(io_params, size.rows, has_rows, "rows", JSONDEC_U16, JSONDEC_NULLABLE),
    PARAM_HAS(io_params, size.cols, has_cols, "cols", JSONDEC_U16, JSONDEC_NULLABLE),
};
static const struct jsondec_struct io_struct = PARAM_STRUCT("ProcessIo", io_fields);

static int io_contradiction(struct err *e) {
    return err_set(e, ERR_INVALID_PARAMS, "io contradicts tty, pipeStdin or size");
}

static int io_pty(struct start_params *p, const struct io_params *io, struct err *e) {
    if (io->has_rows != io->has_cols)
        return err_set(e, ERR_INVALID_PARAMS, "rows and cols go together");
    if ((p->has_tty && !p->tty) || io->stdin_mode != NULL || (io->has_rows && p->has_size))
        return io_contradiction(e);
    p->tty = true;
    if (io->has_rows) {
        p->size = io->size;
        p->has_size = true;
    }
    return 0;
}

static int io_pipe(struct start_params *p, const struct io_params *io, struct err *e) {
    static const char *const names[] = {"open", "closed"};
    static const struct variant_set modes = {"StdinMode", names, ARRAY_LEN(names)};
    int mode = 1;
    if (io->stdin_mode != NULL) {
        mode = variant_name(io->stdin_mode, &modes, e);
        if (mode < 0)
            return mode;
    }
    bool open = mode == 0;
    if ((p->has_tty && p->tty) || io->has_rows || io->has_cols ||
        (p->has_pipe_stdin && p->pipe_stdin != open))
        return io_contradiction(e);
    p->tty = false;
    p->pipe_stdin = open;
    return 0;
}

int start_shape_io(struct start_params *p, struct err *e) {
    static const char *const names[] = {"pty", "pipe"};
    static const struct variant_set types = {"struct ProcessIo", names, ARRAY_LEN(names)};
    struct io_params io = {0};
    const struct json_node *members;
    int type = variant_value(p->io, &types, &members, e);
    if (type < 0)
        return type;
    int r = members != NULL ? jsondec(&io_struct, members, &io, e) : 0;
    if (r < 0)
        return r;
    return type == 0 ? io_pty(p, &io, e) : io_pipe(p, &io, e);
}

/* -- limits -- */

static int limits_kind_of(struct str name) {
    for (int k = 0; k < LIMITS_KINDS; k++) {
        if (str_eqz(name, limits_name((enum limits_kind)k)))
            return k;
    }
    return -1;
}

int start_shape_limits(struct start_params *p, struct err *e) {
    if (p->limits_node->type != JSON_OBJECT)
        return jsondec_type_error(p->limits_node, "struct ProcessLimits", e);
    json_for_each_member(key, p->limits_node) {
        const struct json_node *v = key + 1;
        int k = limits_kind_of(json_str(key));
        if (k < 0)
            return err_about(e, ERR_INVALID_PARAMS, "unknown limit `", json_str(key), "`");
        if (v->type == JSON_NULL)
            continue;
        if (v->type != JSON_NUMBER)
            return jsondec_type_error(v, "i64", e);
        if (json_i64(v, &p->limits.value[k]) < 0)
            return err_set(e, ERR_INVALID_PARAMS, "invalid number");
        p->limits.given[k] = true;
    }
    return limits_check(&p->limits, e);
}
