#include "console/console_http.h"

#include "base/utc.h"
#include "console/console.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/socket.h>

#define HTTP_PIECE 65536      /* bytes of a file queued at a time */
#define HTTP_HEAD_ROOM 4096   /* bytes of an answer's head */
#define HTTP_AUTHORITY_MAX 64 /* bytes of "[ADDRESS]:PORT" */

static const char console_http_safety[] =
    "cache-control: no-cache\r\n"
    "content-security-policy: default-src 'none'; script-src 'self'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self'; "
    "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n"
    "x-content-type-options: nosniff\r\n"
    "x-frame-options: DENY\r\n"
    "referrer-policy: no-referrer\r\n"
    "cross-origin-opener-policy: same-origin\r\n"
    "cross-origin-resource-policy: same-origin\r\n"
    "permissions-policy: camera=(), clipboard-read=(), clipboard-write=(self), "
    "display-capture=(), fullscreen=(), geolocation=(), hid=(), microphone=(), midi=(), "
    "payment=(), publickey-credentials-get=(), screen-wake-lock=(), serial=(), usb=()\r\n";

/* -- Host and Origin -- */

/* Splits ":PORT" off a host that may be in brackets; *port is empty if there is none. */
static bool console_http_split(struct str value, struct str *host, struct str *port) {
    size_t n = 0;
    if (value.n > 0 && value.p[0] == '[') {
        const char *end = memchr(value.p, ']', value.n);
        n = end != NULL ? (size_t)(end - value.p) + 1 : 0;
    } else {
        while (n < value.n && value.p[n] != ':')
            n++;
    }
    *host = (struct str){value.p, n};
    *port = (struct str){NULL, 0};
    if (n == 0 || n == value.n)
        return n > 0;
    *port = (struct str){value.p + n + 1, value.n - n - 1};
    for (size_t i = 0; i < port->n; i++) {
        if (port->p[i] < '0' || port->p[i] > '9')
            return false;
    }
    return value.p[n] == ':' && port->n > 0 && port->n <= 5;
}

/* The address of a listener as text: "127.0.0.1" or "[::1]"; its port; whether it is loopback. */
static bool console_http_own(const struct sockaddr *own, char host[HTTP_AUTHORITY_MAX],
                             unsigned *port, bool *loopback) {
    char ip[INET6_ADDRSTRLEN];
    const struct sockaddr_in6 *in6 = (const void *)own;
    const struct sockaddr_in *in = (const void *)own;
    const void *bytes = own->sa_family == AF_INET6 ? (const void *)&in6->sin6_addr : &in->sin_addr;
    const uint8_t *v4 = bytes;
    int family = own->sa_family;
    if (family != AF_INET && family != AF_INET6)
        return false;
    *port = ntohs(family == AF_INET6 ? in6->sin6_port : in->sin_port);
    *loopback = family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
    if (family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
        v4 = in6->sin6_addr.s6_addr + 12;
        family = AF_INET;
    }
    if (family == AF_INET)
        *loopback = v4[0] == 127;
    if (inet_ntop(family, family == AF_INET ? (const void *)v4 : bytes, ip, sizeof ip) == NULL)
        return false;
    snprintf(host, HTTP_AUTHORITY_MAX, family == AF_INET6 ? "[%s]" : "%s", ip);
    return true;
}

bool console_http_host_ok(struct str value, const struct sockaddr *own, char *const *hosts,
                          size_t count) {
    struct str host, port;
    char name[HTTP_AUTHORITY_MAX], digits[8];
    unsigned number;
    bool loopback;
    if (!console_http_split(value, &host, &port))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (str_ieqz(host, hosts[i]))
            return true;
    }
    if (!console_http_own(own, name, &number, &loopback))
        return false;
    snprintf(digits, sizeof digits, "%u", number);
    /* planted: any-port */
    bool own_port = port.n > 0 ? str_eqz(port, digits) : number == 80;
    return own_port && (str_ieqz(host, name) || (loopback && str_ieqz(host, "localhost")));
}

/* The only value of a header; false if it is missing or given twice. */
static bool console_http_single(const struct http_request *r, const char *name, struct str *out) {
    size_t n = 0;
    for (size_t i = 0; i < r->count; i++)
        n += str_ieqz(r->headers[i].name, name);
    *out = http_header_get(r, name);
    return n == 1;
}

static bool console_http_is_ours(struct conn *c, const struct http_request *r, struct str *host) {
    const struct console *k = c->host->owner;
    struct sockaddr_storage own = {0};
    socklen_t n = sizeof own;
    if (!console_http_single(r, "host", host) ||
        getsockname(c->io.fd, (struct sockaddr *)&own, &n) < 0)
        return false;
    return console_http_host_ok(*host, (struct sockaddr *)&own, k->settings.hosts,
                                k->settings.host_count);
}

/* Whether the Origin is that of the page: "http://HOST", or https behind an operator's proxy. */
static bool console_http_from_page(const struct http_request *r, struct str host) {
    static const char *const schemes[] = {"http://", "https://"};
    struct str origin;
    if (!console_http_single(r, "origin", &origin))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
        size_t n = strlen(schemes[i]);
        /* planted: any-page */
        if (origin.n == n + host.n && memcmp(origin.p, schemes[i], n) == 0 &&
            strncasecmp(origin.p + n, host.p, host.n) == 0)
            return true;
    }
    return false;
}

/* -- routes -- */

static void console_http_say(struct http_answer *a, int status, const char *text) {
    a->action = HTTP_REPLY;
    a->status = status;
    a->body = text;
    a->more = console_http_safety;
}

bool console_http_takes_gzip(struct str accept) {
    while (accept.n > 0) {
        const char *comma = memchr(accept.p, ',', accept.n);
        struct str item = {accept.p, comma != NULL ? (size_t)(comma - accept.p) : accept.n};
        accept.p += item.n + (comma != NULL);
        accept.n -= item.n + (comma != NULL);
        const char *semicolon = memchr(item.p, ';', item.n);
        struct str name = {item.p, semicolon != NULL ? (size_t)(semicolon - item.p) : item.n};
        struct str quality = {name.p + name.n, item.n - name.n};
        if (!str_ieqz(str_trim(name), "gzip") && !str_eqz(str_trim(name), "*"))
            continue;
        const char *q = quality.n > 0 ? memchr(quality.p, '=', quality.n) : NULL;
        for (; q != NULL && ++q < quality.p + quality.n;) {
            if (*q >= '1' && *q <= '9')
                return true; /* not "q=0" or "q=0.000" */
        }
        return quality.n == 0;
    }
    return false;
}

static void console_http_get(const struct console *k, const struct http_request *r,
                             struct http_answer *a) {
    const struct assets_file *f = assets_find(&k->assets, r->path);
    if (!http_check_get(r, a)) {
        a->more = console_http_safety;
        return;
    }
    if (f == NULL)
        console_http_say(a, 404, "");
    else if (!console_http_takes_gzip(http_header_get(r, "accept-encoding")))
        console_http_say(a, 406, "this page is sent with gzip only");
    else
        a->action = HTTP_FILES;
}

void console_http_route(struct conn *c, const struct http_request *r, struct http_answer *a) {
    struct str host;
    http_answer_init(r, a);
    if (!console_http_is_ours(c, r, &host)) {
        console_http_say(a, 421, "");
        a->refusal = HTTP_OTHER_HOST;
        a->close = true;
    } else if (!str_eqz(r->path, CONSOLE_HTTP_WS)) {
        console_http_get(c->host->owner, r, a);
    } else if (!console_http_from_page(r, host)) {
        console_http_say(a, 403, "");
        a->refusal = HTTP_OTHER_ORIGIN;
        a->close = true;
    } else {
        http_check_upgrade(r, a);
        a->more = console_http_safety;
    }
}

/* -- files -- */

/* A file on its way; conn->transfer. */
struct console_http_transfer {
    const uint8_t *p; /* borrowed from the assets */
    size_t left;
    bool close;
};

static void console_http_go_on(struct conn *c) {
    struct console_http_transfer *t = c->transfer;
    size_t n = MIN(t->left, (size_t)HTTP_PIECE);
    if (n > 0)
        conn_http_put(c, (struct str){(const char *)t->p, n});
    t->p += n;
    t->left -= n;
    conn_http_progress(c);
    if (t->left > 0) {
        conn_http_want_out(c);
        return;
    }
    bool close = t->close;
    free(steal_ptr(&c->transfer));
    conn_http_end(c, close);
}

void console_http_file(struct conn *c, const struct http_request *r, const struct http_answer *a) {
    const struct console *k = c->host->owner;
    const struct assets_file *f = assets_find(&k->assets, r->path);
    _cleanup_buf_ struct buf head = BUF_INIT(HTTP_HEAD_ROOM);
    _cleanup_buf_ struct buf more = BUF_INIT(HTTP_HEAD_ROOM);
    struct console_http_transfer *t = calloc(1, sizeof *t);
    struct http_answer b = *a;
    char tag[ASSETS_TAG_LEN + 3];
    snprintf(tag, sizeof tag, "\"%s\"", f->tag);
    bool same = str_eqz(http_header_get(r, "if-none-match"), tag);
    b.status = same ? 304 : 200;
    b.type = f->asset.type;
    int status =
        buf_putf(&more, "%setag: %s\r\nvary: accept-encoding\r\n", console_http_safety, tag);
    if (status == 0 && !same)
        status = buf_putz(&more, "content-encoding: gzip\r\n");
    if (status == 0)
        status = buf_putc(&more, '\0');
    b.more = more.p;
    if (status == 0)
        status = http_write_head(&head, &b, same ? -1 : (int64_t)f->asset.n, utc_now_ms() / 1000);
    conn_http_begin(c);
    if (t == NULL || status < 0) {
        free(t);
        conn_http_abort(c);
        return;
    }
    bool bare = same || b.head_only;
    *t = (struct console_http_transfer){f->asset.data, bare ? 0 : f->asset.n, b.close};
    c->transfer = t;
    conn_http_put(c, buf_str(&head));
    console_http_go_on(c);
}

void console_http_body(struct conn *c) {
    (void)c; /* a request with a body ends the connection after the answer */
}

void console_http_writable(struct conn *c) {
    c->want_out = false;
    if (c->transfer != NULL)
        console_http_go_on(c);
}

void console_http_cut(struct conn *c) {
    free(steal_ptr(&c->transfer));
}
