#pragma once
/*
 * URLs of the schemes http and https, parsed as the WHATWG's standard says: white space and control
 * characters around them are ignored, backslashes count as slashes, dot segments are resolved, and
 * what a path or query must not contain is percent-encoded. The fragment is dropped.
 */

#include "base/buf.h"
#include "base/err.h"

#define HTTP_URL_MAX 65536 /* bytes of a URL as it is given */

struct http_url {
    bool https;
    uint16_t port;           /* the scheme's own if none was given */
    struct buf text;         /* SCHEME://HOST[:PORT]PATH[?QUERY], without user info */
    size_t host_at, path_at; /* in text: HOST[:PORT] lies between them */
    size_t path_end;         /* in text: the end of PATH */
    bool has_user;           /* there was user info */
    struct buf user;         /* "USER:PASSWORD", with escapes decoded */
};

#define HTTP_URL_INIT                                                                              \
    ((struct http_url){.text = BUF_INIT(4 * HTTP_URL_MAX), .user = BUF_INIT(HTTP_URL_MAX)})

void http_url_fini(struct http_url *u);
#define _cleanup_http_url_ __attribute__((cleanup(http_url_fini)))

/*
 * Parses `in`, valid UTF-8, relative to `base` (NULL: it must be absolute) into *u, an initialised
 * or used object other than base. 0; -EINVAL: e has the reason; -EPROTONOSUPPORT: the scheme is
 * another one, and e has its name; -ENOMEM.
 */
MUST_CHECK int http_url_parse(struct http_url *u, struct str in, const struct http_url *base,
                              struct err *e);

/* HOST[:PORT], as in the field `host`: the port is left out if it is the scheme's own. */
static inline struct str http_url_authority(const struct http_url *u) {
    return (struct str){u->text.p + u->host_at, u->path_at - u->host_at};
}

/* SCHEME://HOST[:PORT] */
static inline struct str http_url_origin(const struct http_url *u) {
    return (struct str){u->text.p, u->path_at};
}

static inline bool http_url_same_origin(const struct http_url *a, const struct http_url *b) {
    return str_eq(http_url_origin(a), http_url_origin(b));
}
