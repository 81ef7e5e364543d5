#pragma once
/* The params of http/request, and what they ask to send. */

#include "base/arena.h"
#include "http/http_url.h"
#include "http/http_wire.h"
#include "json/jsondec.h"

#define WEB_PARAMS_ARENA_MAX (4u << 20) /* bytes of a request's fields */

struct web_params {
    struct str method, url, request_id, body64;
    bool has_request_id;
    const struct json_node *headers;  /* NULL: none */
    const struct json_node *redirect; /* NULL: follow */
    bool stream;
    uint64_t timeout_ms;
    bool has_timeout;
    bool follow;
    struct str body; /* body64 decoded, in the message */
};

/* What is sent. Slices borrow from the params and the arena. */
struct web_message {
    struct arena arena;
    struct http_url url;
    struct http_wire_request wire;
};

/* `decode` of http/request (rpc/rpc.h). */
MUST_CHECK int web_params_decode(const struct json_node *params, void *out, struct err *e);

/* Checks the params and puts the request together. `env` returns a variable of the server's
 * environment (getenv()). 0, or -EINVAL or -ENOMEM with e set. Free *m in any case. */
MUST_CHECK int web_params_message(const struct web_params *p, char *(*env)(const char *name),
                                  struct web_message *m, struct err *e);
void web_params_message_fini(struct web_message *m);
#define _cleanup_web_message_ __attribute__((cleanup(web_params_message_fini)))
