#pragma once
/* Messages of the Model Context Protocol: JSON-RPC 2.0, of the revisions with a handshake and of
 * 2026-07-28, whose requests carry their revision. */

#include "base/buf.h"
#include "json/json.h"

#define MCP_MESSAGE_MODERN "2026-07-28"

enum mcp_message_kind { MCP_MESSAGE_REQUEST, MCP_MESSAGE_NOTIFICATION, MCP_MESSAGE_RESPONSE };

struct mcp_message {
    enum mcp_message_kind kind;
    const struct json_node *id; /* of a request or response: a string or a 64-bit integer */
    struct str method;
    const struct json_node *params;   /* NULL: none */
    const struct json_node *meta;     /* params._meta, an object; or NULL */
    const struct json_node *result;   /* of a response; NULL: it is an error */
    bool modern;                      /* a request of the modern era: its _meta says so */
    const struct json_node *revision; /* of a modern request; may be NULL */
};

/* 0, or -EINVAL with ERR_INVALID_REQUEST in e. */
MUST_CHECK int mcp_message_read(const struct json_node *root, struct mcp_message *m, struct err *e);

/* The string of member `key` of an object; p NULL: absent, or no string. `object` may be NULL. */
struct str mcp_message_text(const struct json_node *object, const char *key);

/* The object of member `key`, or NULL. `object` may be NULL. */
const struct json_node *mcp_message_object(const struct json_node *object, const char *key);

/* {"jsonrpc":"2.0","id":ID,"error":{...}}; id and data are JSON, data.p may be NULL. */
MUST_CHECK int mcp_message_put_error(struct buf *b, struct str id, int code, struct str message,
                                     struct str data);
