#pragma once
/*
 * The head of a request to the proxy: where it wants to go, how its body ends, and the head that
 * goes on to the server. Whatever two servers could read differently is refused: both a length and
 * chunks, two hosts, a host that differs from the target, user info, folded lines, bare LF.
 */

#include "base/buf.h"
#include "net/http.h"
#include "proxy/proxy_body.h"
#include "proxy/proxy_name.h"

#define PROXY_HEAD_MAX HTTP_HEAD_MAX /* bytes of a head, of requests and answers */
#define PROXY_HEAD_METHOD_MAX 32

struct proxy_head {
    struct http_request request; /* borrows from the bytes */
    bool connect;                /* CONNECT */
    bool absolute;               /* the target is http://HOST[:PORT]/... */
    bool upgrade;                /* it asks to leave HTTP */
    struct proxy_name host;
    uint16_t port;
    struct str path; /* of another method: path and query; empty: "/" */
    struct proxy_body body;
};

/*
 * Parses the head at the start of the bytes. Its length; 0: more bytes are needed; or the negative
 * status to answer with, and *why a text.
 */
int proxy_head_parse(struct str bytes, struct proxy_head *h, const char **why);

/* Appends the head for the server: origin form, the fields of one hop replaced by
 * `connection: close`. 0 or as buf_put(). */
MUST_CHECK int proxy_head_forward(const struct proxy_head *h, struct buf *b);

/* What follows the head of an answer. */
struct proxy_answer_head {
    bool interim;  /* its status is below 200: another head follows */
    bool measured; /* the body ends where `body` says, else with the connection */
    struct proxy_body body;
};

/*
 * Appends the head of an answer for the client, with `connection: close` instead of the fields of
 * one hop. `no_body`: the request was HEAD. The length of the head in `bytes`; 0: more are needed;
 * -EINVAL: it is none.
 */
MUST_CHECK int proxy_head_answer(struct str bytes, bool no_body, struct buf *b,
                                 struct proxy_answer_head *h);
