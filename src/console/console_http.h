#pragma once
/*
 * HTTP of the console: the files of the page, and the upgrade at /ws. The Host header must be the
 * listener's own address or a name of the operator's, so that no page gets here under a name that
 * resolves to this host. An upgrade also needs the Origin of the page itself, so that no other
 * page, not even one on another port of this host, speaks with the console.
 */

#include "net/conn.h"

#define CONSOLE_HTTP_WS "/ws"

/* conn_host.route */
void console_http_route(struct conn *c, const struct http_request *r, struct http_answer *a);

/* conn_ops.files, body, writable, cut: send a file. */
void console_http_file(struct conn *c, const struct http_request *r, const struct http_answer *a);
void console_http_body(struct conn *c);
void console_http_writable(struct conn *c);
void console_http_cut(struct conn *c);

/*
 * Whether a Host header names the listener at `own`, the address where the connection arrived: its
 * address and port, `localhost` with the port if it is a loopback address, or one of `hosts` with
 * any port. For its fuzz target.
 */
bool console_http_host_ok(struct str host, const struct sockaddr *own, char *const *hosts,
                          size_t count);

/* Whether an Accept-Encoding header takes gzip. */
bool console_http_takes_gzip(struct str accept);
