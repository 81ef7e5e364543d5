#pragma once
/*
 * What may pass from the client to the server. A request with its own head has one body. A tunnel
 * is looked at as far as it names a host: the name in a TLS hello, and the Host of each HTTP/1
 * request. Both must be the host of the tunnel, or one that the lists allow.
 *
 * Not seen: what is inside TLS (Host, an encrypted hello), and protocols that begin otherwise.
 */

#include "base/buf.h"
#include "proxy/proxy_body.h"
#include "proxy/proxy_judge.h"

#define PROXY_LANE_MAX 65536 /* bytes that wait to be looked at, or to be sent */

enum proxy_lane_kind {
    PROXY_LANE_RAW,   /* everything passes */
    PROXY_LANE_BODY,  /* a body passes, and nothing behind it */
    PROXY_LANE_SNIFF, /* the first bytes of a tunnel */
    PROXY_LANE_HTTP,  /* the next request in a tunnel */
    PROXY_LANE_PART,  /* the body of a request in a tunnel */
    PROXY_LANE_HOLD,  /* nothing passes until the server agrees to leave HTTP */
    PROXY_LANE_SHUT,  /* nothing passes any more */
};

struct proxy_lane {
    enum proxy_lane_kind kind;
    struct proxy_body body;
    bool first;     /* no request has passed */
    char start[12]; /* of the server's first answer, in PROXY_LANE_HOLD */
    size_t start_n;
    struct proxy_name other;
};

/*
 * Moves what may pass from `in` to `up`, which has room for PROXY_LANE_MAX bytes more than that. 0;
 * -EPERM: the bytes ask for a host that the lists do not allow (l->other); -EINVAL: they cannot be
 * read for certain; or as buf_put().
 */
MUST_CHECK int proxy_lane_move(struct proxy_lane *l, const struct proxy_config *c,
                               const struct proxy_name *host, struct buf *in, struct buf *up);

/* Whether what is left waits for more bytes of the client to be looked at. */
static inline bool proxy_lane_wants_more(const struct proxy_lane *l) {
    return l->kind == PROXY_LANE_SNIFF || l->kind == PROXY_LANE_HTTP;
}

/* The server sent these bytes. */
void proxy_lane_heard(struct proxy_lane *l, struct str bytes);
