#pragma once
/* A strict parser for an HTTP/1.x request head, and the routes and upgrade checks of the server. */

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

#define HTTP_HEAD_MAX 65536   /* bytes of a request head */
#define HTTP_TARGET_MAX 65534 /* bytes of a request target; more is 414 */
#define HTTP_HEADERS_MAX 100

struct http_header {
    struct str name, value; /* borrowed from the head; value trimmed of blanks */
};

struct http_request {
    struct str method, target;
    struct str path;  /* target without query; of the absolute form, its path ("/" if empty) */
    struct str query; /* after '?', or empty */
    int minor;        /* HTTP/1.minor: 0 or 1 */
    size_t count;
    struct http_header headers[HTTP_HEADERS_MAX];
};

/*
 * Parses the head at the start of n bytes. Returns its length including the final blank line, 0
 * when more bytes are needed, or the negative status to answer with (-400, -414, -431) before
 * closing. -431 also when n reaches HTTP_HEAD_MAX without an end.
 */
int http_parse(const char *data, size_t n, struct http_request *r);

/* Value of the first header of that name (ASCII case-insensitive), or {NULL, 0}. */
struct str http_header_get(const struct http_request *r, const char *name);

/* How to go on with a request. */
enum http_action {
    HTTP_REPLY,   /* send status, body; keep the connection unless `close` */
    HTTP_UPGRADE, /* all upgrade checks but authorization passed: check it, then send 101 */
    HTTP_METRICS, /* all checks of /metrics but authorization passed: check it, then fill `body` */
    HTTP_FILES,   /* all checks of /v1/files but authorization passed: check it, tell the owner */
};

/* Why a request was refused. */
enum http_refusal {
    HTTP_ADMITTED,
    HTTP_FROM_PAGE,    /* it has an Origin header */
    HTTP_BAD_HOST,     /* /metrics or /v1/files from a browser, or by a name that is not known */
    HTTP_OTHER_HOST,   /* the console, by a name that is not its own */
    HTTP_OTHER_ORIGIN, /* the console, for a page that is not its own */
};

struct http_answer {
    enum http_action action;
    int status;
    enum http_refusal refusal; /* of a 403 or 421 */
    const char *body;          /* borrowed text, "" for none */
    const char *type;          /* its content type; NULL = text/plain; charset=utf-8 */
    const char *allow;         /* value of an `allow` header, or NULL */
    const char *more;          /* further header lines, each with its CRLF, or NULL */
    bool close;     /* the connection ends after this answer (HTTP/1.0, Connection: close, body) */
    bool head_only; /* HEAD: no body bytes */
    bool http10;    /* the request was HTTP/1.0: the status line says so too */
    struct str key; /* HTTP_UPGRADE: Sec-WebSocket-Key */
};

/*
 * Routing: Origin refusal first, then /readyz and /healthz, then the upgrade checks on "/". A
 * request with a body closes the connection (the body is not read), and cannot upgrade (400).
 */
void http_route(const struct http_request *r, struct http_answer *a);

/* For routes of other owners: an empty answer to r with the members that its head decides. */
void http_answer_init(const struct http_request *r, struct http_answer *a);

/* The checks of an upgrade, in the order of the protocol; changes an initialised answer. */
void http_check_upgrade(const struct http_request *r, struct http_answer *a);

/* Whether r is a GET or HEAD; if not, the answer becomes a 405. */
bool http_check_get(const struct http_request *r, struct http_answer *a);

/*
 * Routing of "/metrics". No web page may read it, not even under a name of its own that resolves to
 * this host. So the request must have neither `Origin` nor `Sec-Fetch-*`, and its `Host` must be an
 * IP literal, "localhost" or one of the `count` names in `hosts`, each with or without a port.
 */
void http_route_metrics(const struct http_request *r, char *const *hosts, size_t count,
                        struct http_answer *a);

/* Routing of "/v1/files": GET, HEAD and PUT, checked as "/metrics". A PUT may have a body. */
void http_route_files(const struct http_request *r, char *const *hosts, size_t count,
                      struct http_answer *a);

/* Length of the body a request announces; 0 when it has none, -1 when it does not say. */
int64_t http_body_len(const struct http_request *r);

/* Percent-decoded value of a parameter of the query, appended to b. 0, -ENOENT, or as buf_put(). */
MUST_CHECK int http_query_get(const struct http_request *r, const char *name, struct buf *b);

/*
 * The single range of a Range header for a file of `size` bytes. 1 with *from and *to (exclusive)
 * set; 0 when there is none or it must be ignored (several ranges, another unit, bad syntax);
 * -ERANGE when it lies outside.
 */
int http_range(struct str value, uint64_t size, uint64_t *from, uint64_t *to);

/*
 * Appends a response head without a body: a->status and the headers of a, and a length of `len`
 * (-1: none). 0 or as buf_reserve().
 */
MUST_CHECK int http_write_head(struct buf *b, const struct http_answer *a, int64_t len,
                               long long now);

/*
 * Appends the response for a (HTTP_REPLY). `now` is Unix time for the date header. 0 or as
 * buf_reserve(); a failure leaves b as it was.
 */
MUST_CHECK int http_write_reply(struct buf *b, const struct http_answer *a, long long now);

/* Appends the 101 response; as http_write_reply(). */
MUST_CHECK int http_write_upgrade(struct buf *b, struct str key, long long now);
