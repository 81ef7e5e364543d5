#pragma once
/*
 * What is sent: method, URL, header fields and body of a request, changed by each redirect that it
 * follows; and the list of lines that makes curl send exactly these fields, in this order.
 */

#include "base/arena.h"
#include "http/http_fields.h"
#include "http/http_url.h"
#include "http/http_wire.h"

#include <curl/curl.h>

#define MESSAGE_HOPS_MAX 10          /* redirects that are followed */
#define MESSAGE_ARENA_MAX (8u << 20) /* bytes of all fields, those of redirects included */
#define MESSAGE_BODY_MAX (64u << 20) /* bytes of a body */
#define MESSAGE_FIELDS_MORE 4        /* fields that redirects may add to the caller's */

struct message {
    struct arena arena; /* owns the texts of method and fields */
    const char *method;
    struct http_url url;
    struct http_field *fields; /* in the arena */
    size_t count, room;        /* room: the caller's and MESSAGE_FIELDS_MORE */
    bool follow;
    unsigned hops; /* redirects followed */
    struct buf body;
    size_t body_want; /* its bytes, when all have arrived */
};

/* Takes a decoded request; copies everything. 0; -EINVAL; -ENOMEM. */
MUST_CHECK int message_init(struct message *m, const struct http_wire_request *q);
void message_fini(struct message *m);

/* Takes a piece of the body. 0; -EPROTO for more than was announced; -ENOMEM. */
MUST_CHECK int message_add_body(struct message *m, struct str bytes);

static inline bool message_is_complete(const struct message *m) {
    return m->body.len == m->body_want;
}

/* The lines for curl (to be freed), or NULL without memory. */
struct curl_slist *message_lines(const struct message *m);

enum message_redirect {
    MESSAGE_STAYS,   /* it is an ordinary answer */
    MESSAGE_MOVES,   /* the message is now the one to send next */
    MESSAGE_REFUSES, /* e says why the redirect cannot be followed */
};

/* Acts on an answer's status and its field `location` (p NULL: none). */
enum message_redirect message_redirect(struct message *m, unsigned status, struct str location,
                                       struct err *e);
