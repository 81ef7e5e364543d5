#pragma once
/* The JSON-RPC envelope of the protocol: the kind of an incoming message and its parts. */

#include "json/json.h"

enum envelope_kind { ENVELOPE_REQUEST, ENVELOPE_NOTIFICATION, ENVELOPE_RESPONSE, ENVELOPE_ERROR };

struct envelope {
    enum envelope_kind kind;
    const struct json_node *id;     /* a string or an integer within 64 bits; NULL: notification */
    struct str method;              /* requests and notifications; borrowed */
    const struct json_node *params; /* NULL when absent */
    const struct json_node *result; /* of a response; NULL otherwise */
};

/*
 * Classifies the root of a parsed message; *env borrows from it. 0, or -EINVAL with the reason in e
 * when it is no message of the protocol (the answer is an error with id -1).
 */
MUST_CHECK int envelope_read(const struct json_node *root, struct envelope *env, struct err *e);
