#include "mcp/mcp_message.h"

#include "json/jsonw.h"

#include <errno.h>

struct str mcp_message_text(const struct json_node *object, const char *key) {
    const struct json_node *v =
        object != NULL && object->type == JSON_OBJECT ? json_get(object, key) : NULL;
    return v != NULL && v->type == JSON_STRING ? json_str(v) : (struct str){0};
}

const struct json_node *mcp_message_object(const struct json_node *object, const char *key) {
    const struct json_node *v =
        object != NULL && object->type == JSON_OBJECT ? json_get(object, key) : NULL;
    return v != NULL && v->type == JSON_OBJECT ? v : NULL;
}

static bool message_is_id(const struct json_node *id) {
    int64_t ignored;
    return id != NULL &&
           (id->type == JSON_STRING || (id->type == JSON_NUMBER && json_i64(id, &ignored) == 0));
}

static int message_bad(struct err *e, const char *why) {
    return err_set(e, ERR_INVALID_REQUEST, "Invalid Request: %s", why);
}

/* A request whose id is none of a string or an integer cannot be answered. */
static int message_read_call(const struct json_node *root, struct mcp_message *m) {
    m->params = json_get(root, "params");
    m->kind = message_is_id(m->id) ? MCP_MESSAGE_REQUEST : MCP_MESSAGE_NOTIFICATION;
    m->meta = mcp_message_object(m->params, "_meta");
    if (m->meta != NULL) {
        m->revision = json_get(m->meta, "io.modelcontextprotocol/protocolVersion");
        m->modern = m->revision != NULL ||
                    json_get(m->meta, "io.modelcontextprotocol/clientCapabilities") != NULL;
    }
    return 0;
}

int mcp_message_read(const struct json_node *root, struct mcp_message *m, struct err *e) {
    *m = (struct mcp_message){0};
    if (root->type == JSON_ARRAY)
        return message_bad(e, "batches are not part of the protocol");
    if (root->type != JSON_OBJECT)
        return message_bad(e, "expected an object");
    if (!str_eqz(mcp_message_text(root, "jsonrpc"), "2.0"))
        return message_bad(e, "jsonrpc must be \"2.0\"");
    const struct json_node *method = json_get(root, "method");
    m->id = json_get(root, "id");
    if (method != NULL) {
        if (method->type != JSON_STRING)
            return message_bad(e, "method must be a string");
        m->method = json_str(method);
        return message_read_call(root, m);
    }
    m->kind = MCP_MESSAGE_RESPONSE;
    m->result = json_get(root, "result");
    if (m->result == NULL && json_get(root, "error") == NULL)
        return message_bad(e, "neither method, result nor error");
    return message_is_id(m->id) ? 0 : message_bad(e, "the id is neither a string nor an integer");
}

int mcp_message_put_error(struct buf *b, struct str id, int code, struct str message,
                          struct str data) {
    int r = buf_putf(b, "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"error\":{\"code\":%d,\"message\":",
                     (int)id.n, id.p, code);
    if (r == 0)
        r = jsonw_str(b, message);
    if (r == 0 && data.p != NULL) {
        r = buf_putz(b, ",\"data\":");
        if (r == 0)
            r = buf_put(b, data.p, data.n);
    }
    return r < 0 ? r : buf_putz(b, "}}");
}
