#include "proxy/proxy_head.h"

#include <errno.h>

/* -- requests -- */

static int head_refuse(const char **why, int status, const char *text) {
    *why = text;
    return -status;
}

/* Whether every line ends with CR LF: some servers take a bare LF for an end, others do not. */
static bool head_lines_ok(struct str s) {
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '\n' && (i == 0 || s.p[i - 1] != '\r'))
            return false;
    }
    return true;
}

/* The number of fields with that name; *value is the last one's. */
static size_t head_fields(const struct http_request *r, const char *name, struct str *value) {
    size_t n = 0;
    for (size_t i = 0; i < r->count; i++) {
        if (str_ieqz(r->headers[i].name, name)) {
            *value = r->headers[i].value;
            n++;
        }
    }
    return n;
}

/* Splits http://AUTHORITY/PATH. False: another form. */
static bool head_absolute(struct str target, struct str *authority, struct str *path) {
    static const char scheme[] = "http://";
    size_t n = sizeof scheme - 1;
    if (target.n <= n || strncasecmp(target.p, scheme, n) != 0)
        return false;
    size_t end = n;
    while (end < target.n && strchr("/?#", target.p[end]) == NULL)
        end++;
    *authority = (struct str){target.p + n, end - n};
    *path = (struct str){target.p + end, target.n - end};
    return true;
}

/* Finds host, port and path. 0 or the negative status. */
static int head_target(struct proxy_head *h, const char **why) {
    struct str authority = {NULL, 0}, host = {NULL, 0}, target = h->request.target;
    struct proxy_name named;
    size_t hosts = head_fields(&h->request, "host", &host);
    uint16_t port = 80;
    h->connect = str_eqz(h->request.method, "CONNECT");
    if (hosts > 1 || (hosts == 0 && h->request.minor == 1))
        return head_refuse(why, 400, "missing host");
    if (memchr(target.p, '#', target.n) != NULL)
        return head_refuse(why, 400, "invalid request target");
    h->absolute = !h->connect && head_absolute(target, &authority, &h->path);
    if (h->connect) {
        h->port = port = 443;
        authority = target;
    } else if (!h->absolute) {
        if (target.p[0] != '/' || hosts == 0)
            return head_refuse(why, 400, "invalid request target");
        authority = host;
        h->path = target;
    }
    h->port = port;
    if (proxy_name_authority(authority, &h->host, &h->port) < 0)
        return head_refuse(why, 400, "invalid host");
    if (hosts > 0 && (proxy_name_authority(host, &named, &port) < 0))
        return head_refuse(why, 400, "invalid Host header");
    if (hosts > 0 && strcmp(named.text, h->host.text) != 0)
        return head_refuse(why, 400, "Host header does not match request target");
    if (hosts > 0 && !h->connect && port != h->port)
        return head_refuse(why, 400, "Host header does not match request target");
    return 0;
}

/* How the body ends. 0 or the negative status. */
static int head_body(struct proxy_head *h, const char **why) {
    struct str length = {NULL, 0}, coding = {NULL, 0};
    size_t lengths = head_fields(&h->request, "content-length", &length);
    size_t codings = head_fields(&h->request, "transfer-encoding", &coding);
    uint64_t n = 0;
    if (lengths > 1 || codings > 1 || (lengths > 0 && codings > 0))
        return head_refuse(why, 400, "ambiguous length of the body");
    if (codings > 0 && (h->request.minor == 0 || !str_ieqz(coding, "chunked")))
        return head_refuse(why, 400, "unsupported transfer coding");
    for (size_t i = 0; i < length.n; i++) /* http_parse() has checked them */
        n = n * 10 + (uint64_t)(length.p[i] - '0');
    if (h->connect && (n > 0 || codings > 0))
        return head_refuse(why, 400, "CONNECT has no body");
    proxy_body_init(&h->body, codings > 0, n);
    return 0;
}

int proxy_head_parse(struct str bytes, struct proxy_head *h, const char **why) {
    *h = (struct proxy_head){.port = 0};
    *why = "malformed request";
    int n = http_parse(bytes.p, bytes.n, &h->request);
    if (n <= 0)
        return n;
    if (!head_lines_ok((struct str){bytes.p, (size_t)n}))
        return head_refuse(why, 400, "malformed request");
    if (h->request.method.n > PROXY_HEAD_METHOD_MAX)
        return head_refuse(why, 400, "malformed request");
    struct str value;
    h->upgrade = head_fields(&h->request, "upgrade", &value) > 0;
    int r = head_target(h, why);
    if (r == 0)
        r = head_body(h, why);
    return r < 0 ? r : n;
}

/* -- fields of one hop -- */

static bool head_list_has(struct str list, struct str name) {
    while (list.n > 0) {
        const char *comma = memchr(list.p, ',', list.n);
        size_t n = comma ? (size_t)(comma - list.p) : list.n;
        struct str item = str_trim((struct str){list.p, n});
        if (item.n == name.n && item.n > 0 && strncasecmp(item.p, name.p, name.n) == 0)
            return true;
        list.p += comma ? n + 1 : n;
        list.n -= comma ? n + 1 : n;
    }
    return false;
}

static bool head_is_hop(const struct http_request *r, struct str name) {
    static const char *const hop[] = {"connection",
                                      "keep-alive",
                                      "proxy-connection",
                                      "proxy-authorization",
                                      "proxy-authenticate",
                                      "te",
                                      "upgrade",
                                      "host",
                                      "content-length",
                                      "transfer-encoding"};
    for (size_t i = 0; i < ARRAY_LEN(hop); i++) {
        if (str_ieqz(name, hop[i]))
            return true;
    }
    for (size_t i = 0; i < r->count; i++) {
        if (str_ieqz(r->headers[i].name, "connection") && head_list_has(r->headers[i].value, name))
            return true;
    }
    return false;
}

/* Appends HOST[:PORT]. */
static int head_put_authority(const struct proxy_head *h, struct buf *b) {
    bool v6 = h->host.is_address && h->host.address.u.sa.sa_family == AF_INET6;
    int r = buf_putf(b, v6 ? "[%s]" : "%s", h->host.text);
    return r == 0 && h->port != 80 ? buf_putf(b, ":%u", h->port) : r;
}

static int head_put_body(const struct proxy_head *h, struct buf *b) {
    struct str length;
    if (h->body.chunked)
        return buf_putz(b, "transfer-encoding: chunked\r\n");
    if (head_fields(&h->request, "content-length", &length) == 0)
        return 0;
    return buf_putf(b, "content-length: %.*s\r\n", (int)length.n, length.p);
}

int proxy_head_forward(const struct proxy_head *h, struct buf *b) {
    const struct http_request *q = &h->request;
    bool rooted = h->path.n > 0 && h->path.p[0] == '/';
    int r = buf_putf(b, "%.*s %s", (int)q->method.n, q->method.p, rooted ? "" : "/");
    if (r == 0)
        r = buf_put(b, h->path.p, h->path.n);
    if (r == 0)
        r = buf_putz(b, " HTTP/1.1\r\nhost: ");
    if (r == 0)
        r = head_put_authority(h, b);
    if (r == 0)
        r = buf_putz(b, "\r\n");
    for (size_t i = 0; r == 0 && i < q->count; i++) {
        const struct http_header *f = &q->headers[i];
        if (!head_is_hop(q, f->name))
            r = buf_putf(b, "%.*s: %.*s\r\n", (int)f->name.n, f->name.p, (int)f->value.n,
                         f->value.n > 0 ? f->value.p : "");
    }
    if (r == 0)
        r = head_put_body(h, b);
    return r == 0 ? buf_putz(b, "connection: close\r\n\r\n") : r;
}

/* -- answers -- */

static bool head_is_status(struct str line) {
    return line.n >= 12 && memcmp(line.p, "HTTP/1.", 7) == 0 &&
           (line.p[7] == '0' || line.p[7] == '1') && line.p[8] == ' ' && line.p[9] >= '1' &&
           line.p[9] <= '9';
}

static bool head_answer_is_hop(struct str line) {
    static const char *const hop[] = {"connection:", "keep-alive:", "proxy-connection:"};
    for (size_t i = 0; i < ARRAY_LEN(hop); i++) {
        size_t n = strlen(hop[i]);
        if (line.n >= n && strncasecmp(line.p, hop[i], n) == 0)
            return true;
    }
    return false;
}

/* The value of the field `name` (with its colon), or {NULL, 0}. */
static struct str head_value(struct str line, const char *name) {
    size_t n = strlen(name);
    if (line.n < n || strncasecmp(line.p, name, n) != 0)
        return (struct str){NULL, 0};
    return str_trim((struct str){line.p + n, line.n - n});
}

/* Decimal digits; false for all else. */
static bool head_number(struct str s, uint64_t *n) {
    *n = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9' || *n > UINT64_MAX / 16)
            return false;
        *n = *n * 10 + (uint64_t)(s.p[i] - '0');
    }
    return s.n > 0;
}

/* How the body of an answer ends, from the lines seen so far. */
struct head_length {
    size_t lengths, codings;
    bool plain, chunked; /* the length is a number, the coding chunks */
    uint64_t n;
};

static void head_measure_line(struct head_length *l, struct str line) {
    struct str length = head_value(line, "content-length:");
    struct str coding = head_value(line, "transfer-encoding:");
    if (length.p != NULL) {
        l->plain = head_number(length, &l->n);
        l->lengths++;
    }
    if (coding.p != NULL) {
        l->chunked = str_ieqz(coding, "chunked");
        l->codings++;
    }
}

static void head_measure(const struct head_length *l, struct str status, bool no_body,
                         struct proxy_answer_head *h) {
    bool none =
        no_body || memcmp(status.p + 9, "204", 3) == 0 || memcmp(status.p + 9, "304", 3) == 0;
    bool chunked = l->codings == 1 && l->lengths == 0 && l->chunked;
    bool plain = l->codings == 0 && l->lengths == 1 && l->plain;
    h->measured = none || chunked || plain;
    proxy_body_init(&h->body, !none && chunked, none || chunked ? 0 : l->n);
}

int proxy_head_answer(struct str bytes, bool no_body, struct buf *b, struct proxy_answer_head *h) {
    struct str rest = bytes, line, status;
    struct head_length length = {.lengths = 0};
    bool ended = false;
    size_t start = b->len;
    if (!str_take_line(&rest, &status))
        return bytes.n >= PROXY_HEAD_MAX ? -EINVAL : 0;
    if (!head_is_status(status))
        return -EINVAL;
    h->interim = status.p[9] == '1';
    int r = buf_putf(b, "%.*s\r\n", (int)status.n, status.p);
    while (r == 0 && !ended && str_take_line(&rest, &line)) {
        ended = line.n == 0;
        head_measure_line(&length, line);
        if (!ended && !head_answer_is_hop(line))
            r = buf_putf(b, "%.*s\r\n", (int)line.n, line.p);
    }
    if (r == 0 && ended)
        r = buf_putz(b, h->interim ? "\r\n" : "connection: close\r\n\r\n");
    size_t n = bytes.n - rest.n;
    head_measure(&length, status, no_body, h);
    if (r == 0 && ended && n <= PROXY_HEAD_MAX)
        return (int)n;
    b->len = start;
    return r < 0 || n > PROXY_HEAD_MAX || bytes.n >= PROXY_HEAD_MAX ? -EINVAL : 0;
}
