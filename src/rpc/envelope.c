#include "rpc/envelope.h"

#include "json/jsondec.h"

#include <errno.h>

static int envelope_bad(struct err *e, const char *reason) {
    return err_set(e, ERR_INVALID_REQUEST, "%s", reason);
}

static int envelope_check_id(const struct json_node *id, struct err *e) {
    int64_t ignored;
    if (id == NULL)
        return envelope_bad(e, "missing field `id`");
    if (id->type == JSON_STRING || (id->type == JSON_NUMBER && json_i64(id, &ignored) == 0))
        return 0;
    return envelope_bad(e, "the id is neither a string nor a 64-bit integer");
}

/* A member that is absent, null or a string. */
static int envelope_check_text(const struct json_node *v, struct err *e) {
    if (v == NULL || v->type == JSON_NULL || v->type == JSON_STRING)
        return 0;
    return jsondec_type_error(v, "a string", e);
}

static int envelope_check_trace(const struct json_node *trace, struct err *e) {
    if (trace == NULL || trace->type == JSON_NULL)
        return 0;
    if (trace->type != JSON_OBJECT)
        return jsondec_type_error(trace, "struct TraceContext", e);
    int r = envelope_check_text(json_get(trace, "traceparent"), e);
    return r < 0 ? r : envelope_check_text(json_get(trace, "tracestate"), e);
}

static int envelope_check_error(const struct json_node *error, struct err *e) {
    int64_t ignored;
    if (error == NULL)
        return envelope_bad(e, "missing field `error`");
    if (error->type != JSON_OBJECT)
        return jsondec_type_error(error, "struct JSONRPCErrorError", e);
    const struct json_node *code = json_get(error, "code");
    const struct json_node *message = json_get(error, "message");
    if (code == NULL || code->type != JSON_NUMBER || json_i64(code, &ignored) < 0)
        return envelope_bad(e, "`error.code` must be an integer");
    if (message == NULL || message->type != JSON_STRING)
        return envelope_bad(e, "`error.message` must be a string");
    return 0;
}

int envelope_read(const struct json_node *root, struct envelope *env, struct err *e) {
    *env = (struct envelope){0};
    if (root->type != JSON_OBJECT)
        return envelope_bad(e, "expected a JSON-RPC object");
    const struct json_node *method = json_get(root, "method");
    env->id = json_get(root, "id");
    env->params = json_get(root, "params");
    if (method != NULL) {
        if (method->type != JSON_STRING)
            return jsondec_type_error(method, "a string", e);
        env->method = json_str(method);
        env->kind = env->id ? ENVELOPE_REQUEST : ENVELOPE_NOTIFICATION;
        if (env->id == NULL)
            return 0;
        int r = envelope_check_id(env->id, e);
        return r < 0 ? r : envelope_check_trace(json_get(root, "trace"), e);
    }
    env->result = json_get(root, "result");
    env->kind = env->result ? ENVELOPE_RESPONSE : ENVELOPE_ERROR;
    if (env->kind == ENVELOPE_ERROR) {
        int r = envelope_check_error(json_get(root, "error"), e);
        if (r < 0)
            return r;
    }
    return envelope_check_id(env->id, e);
}
