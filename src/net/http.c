#include "net/http.h"

#include "base/utc.h"
#include "net/ws.h"

#include <arpa/inet.h>
#include <errno.h>

#define HTTP_METHOD_MAX 32 /* bytes of a method; no registered one has more than 18 */
#define HTTP_BLANK_MAX 4   /* line ends tolerated before a request */

/* One byte of a token (RFC 9110, section 5.6.2). */
static bool http_is_tchar(char c) {
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
        return true;
    return c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL;
}

static bool http_is_token(struct str s) {
    for (size_t i = 0; i < s.n; i++) {
        if (!http_is_tchar(s.p[i]))
            return false;
    }
    return s.n > 0;
}

static bool http_is_blank(char c) {
    return c == ' ' || c == '\t';
}

static struct str http_trim(struct str s) {
    while (s.n > 0 && http_is_blank(s.p[0])) {
        s.p++;
        s.n--;
    }
    while (s.n > 0 && http_is_blank(s.p[s.n - 1]))
        s.n--;
    return s;
}

/* Visible ASCII without characters that no URI has. */
static bool http_target_ok(struct str s) {
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c <= ' ' || c >= 0x7F || strchr("\"<>`{}", c) != NULL)
            return false;
    }
    return s.n > 0;
}

static bool http_value_ok(struct str s) {
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if ((c < ' ' && c != '\t') || c == 0x7F)
            return false;
    }
    return true;
}

/* Whether the bytes can begin a request at all, so that a stray TLS hello is answered at once. */
static bool http_start_ok(struct str s) {
    for (size_t i = 0; i < s.n && i <= HTTP_METHOD_MAX; i++) {
        if (s.p[i] == ' ')
            return i > 0;
        if (!http_is_tchar(s.p[i]))
            return false;
    }
    return s.n <= HTTP_METHOD_MAX;
}

/*
 * Splits the target into path and query; the absolute form loses its scheme and authority. 0 or the
 * negative status.
 */
static int http_split_target(struct http_request *r) {
    struct str t = r->target;
    const char *hash = memchr(t.p, '#', t.n);
    if (hash)
        t.n = (size_t)(hash - t.p);
    const char *scheme = t.p[0] != '/' ? memmem(t.p, t.n, "://", 3) : NULL;
    if (scheme) {
        size_t authority = (size_t)(scheme - t.p) + 3, skip = authority;
        while (skip < t.n && t.p[skip] != '/' && t.p[skip] != '?')
            skip++;
        if (skip == authority)
            return -400;
        t.p += skip;
        t.n -= skip;
    }
    const char *mark = t.n > 0 ? memchr(t.p, '?', t.n) : NULL;
    size_t n = mark ? (size_t)(mark - t.p) : t.n;
    r->path = n > 0 ? (struct str){t.p, n} : STR_LIT("/");
    r->query = mark ? (struct str){mark + 1, t.n - n - 1} : (struct str){NULL, 0};
    return 0;
}

/* "METHOD SP target SP HTTP/1.x". 0 or the negative status. */
static int http_parse_start(struct str line, struct http_request *r) {
    const char *sp = memchr(line.p, ' ', line.n);
    if (sp == NULL)
        return -400;
    r->method = (struct str){line.p, (size_t)(sp - line.p)};
    struct str rest = {sp + 1, line.n - r->method.n - 1};
    sp = rest.n > 0 ? memchr(rest.p, ' ', rest.n) : NULL;
    if (sp == NULL)
        return -400;
    r->target = (struct str){rest.p, (size_t)(sp - rest.p)};
    struct str version = {sp + 1, rest.n - r->target.n - 1};
    if (r->target.n > HTTP_TARGET_MAX)
        return -414;
    if (!http_is_token(r->method) || !http_target_ok(r->target))
        return -400;
    if (str_eqz(version, "HTTP/1.1"))
        r->minor = 1;
    else if (str_eqz(version, "HTTP/1.0"))
        r->minor = 0;
    else
        return -400;
    return http_split_target(r);
}

/* "name: value". 0 or the negative status. */
static int http_parse_header(struct str line, struct http_request *r) {
    const char *colon = memchr(line.p, ':', line.n);
    if (colon == NULL)
        return -400;
    struct str name = {line.p, (size_t)(colon - line.p)};
    struct str value = http_trim((struct str){colon + 1, line.n - name.n - 1});
    if (!http_is_token(name) || !http_value_ok(value))
        return -400;
    if (r->count == HTTP_HEADERS_MAX)
        return -431;
    r->headers[r->count++] = (struct http_header){name, value};
    return 0;
}

/*
 * Length of the head at s (blank line included), 0 when it has no end yet, or the negative status.
 * Only looks for line ends: a head that arrives byte by byte is not parsed again each time.
 */
static int http_find_end(struct str s) {
    struct str rest = s, line;
    size_t lines = 0;
    while (str_take_line(&rest, &line)) {
        size_t len = (size_t)(rest.p - s.p);
        if (len > HTTP_HEAD_MAX)
            return lines == 0 ? -414 : -431;
        if (line.n == 0)
            return (int)len;
        if (++lines > HTTP_HEADERS_MAX + 1)
            return -431;
    }
    if (s.n >= HTTP_HEAD_MAX)
        return lines == 0 ? -414 : -431;
    return 0;
}

struct str http_header_get(const struct http_request *r, const char *name) {
    for (size_t i = 0; i < r->count; i++) {
        if (str_ieqz(r->headers[i].name, name))
            return r->headers[i].value;
    }
    return (struct str){NULL, 0};
}

/* Refuses lengths that differ or are no plain number: what follows the head is then unknown. */
static bool http_lengths_ok(const struct http_request *r) {
    struct str first = http_header_get(r, "content-length");
    for (size_t i = 0; i < r->count; i++) {
        const struct http_header *h = &r->headers[i];
        if (!str_ieqz(h->name, "content-length"))
            continue;
        if (h->value.n == 0 || h->value.n > 18 || !str_eq(h->value, first))
            return false;
        for (size_t k = 0; k < h->value.n; k++) {
            if (h->value.p[k] < '0' || h->value.p[k] > '9')
                return false;
        }
    }
    return true;
}

int http_parse(const char *data, size_t n, struct http_request *r) {
    struct str rest = {data, n}, line;
    for (int i = 0; rest.n > 0 && (rest.p[0] == '\r' || rest.p[0] == '\n'); i++) {
        if (i == 2 * HTTP_BLANK_MAX)
            return -400;
        rest.p++;
        rest.n--;
    }
    if (!http_start_ok(rest))
        return -400;
    int len = http_find_end(rest);
    if (len <= 0)
        return len;
    size_t blank = n - rest.n;
    rest.n = (size_t)len;
    *r = (struct http_request){.count = 0};
    int rc = str_take_line(&rest, &line) ? http_parse_start(line, r) : -400;
    while (rc == 0 && str_take_line(&rest, &line) && line.n > 0)
        rc = http_parse_header(line, r);
    if (rc == 0 && !http_lengths_ok(r))
        rc = -400;
    return rc < 0 ? rc : len + (int)blank;
}

static bool http_contains_nocase(struct str s, const char *word) {
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= s.n; i++) {
        if (strncasecmp(s.p + i, word, n) == 0)
            return true;
    }
    return false;
}

/* Whether some Connection header lists `close`. */
static bool http_wants_close(const struct http_request *r) {
    for (size_t i = 0; i < r->count; i++) {
        if (!str_ieqz(r->headers[i].name, "connection"))
            continue;
        struct str rest = r->headers[i].value;
        while (rest.n > 0) {
            const char *comma = memchr(rest.p, ',', rest.n);
            size_t n = comma ? (size_t)(comma - rest.p) : rest.n;
            if (str_ieqz(http_trim((struct str){rest.p, n}), "close"))
                return true;
            rest.p += comma ? n + 1 : n;
            rest.n -= comma ? n + 1 : n;
        }
    }
    return false;
}

/* Whether a body follows the head. */
static bool http_has_body(const struct http_request *r) {
    for (size_t i = 0; i < r->count; i++) {
        const struct http_header *h = &r->headers[i];
        if (str_ieqz(h->name, "transfer-encoding"))
            return true;
        if (!str_ieqz(h->name, "content-length"))
            continue;
        for (size_t k = 0; k < h->value.n; k++) {
            if (h->value.p[k] != '0')
                return true;
        }
    }
    return false;
}

static void http_reply(struct http_answer *a, int status, const char *body) {
    a->action = HTTP_REPLY;
    a->status = status;
    a->body = body;
}

bool http_check_get(const struct http_request *r, struct http_answer *a) {
    bool ok = str_eqz(r->method, "GET") || str_eqz(r->method, "HEAD");
    http_reply(a, ok ? 200 : 405, "");
    a->allow = ok ? NULL : "GET,HEAD";
    return ok;
}

void http_check_upgrade(const struct http_request *r, struct http_answer *a) {
    struct str key = http_header_get(r, "sec-websocket-key");
    if (!str_eqz(r->method, "GET"))
        http_reply(a, 405, "Request method must be `GET`");
    else if (!http_contains_nocase(http_header_get(r, "connection"), "upgrade"))
        http_reply(a, 400, "Connection header did not include 'upgrade'");
    else if (!str_ieqz(http_header_get(r, "upgrade"), "websocket"))
        http_reply(a, 400, "`Upgrade` header did not include 'websocket'");
    else if (!str_eqz(http_header_get(r, "sec-websocket-version"), "13"))
        http_reply(a, 400, "`Sec-WebSocket-Version` header did not include '13'");
    else if (key.p == NULL)
        http_reply(a, 400, "`Sec-WebSocket-Key` header missing");
    else if (r->minor == 0)
        http_reply(a, 426,
                   "WebSocket request couldn't be upgraded since no upgrade state was present");
    else if (http_has_body(r))
        http_reply(a, 400, "");
    else {
        a->action = HTTP_UPGRADE;
        a->status = 101;
        a->key = key;
    }
}

void http_answer_init(const struct http_request *r, struct http_answer *a) {
    *a = (struct http_answer){
        .body = "",
        .head_only = str_eqz(r->method, "HEAD"),
        .http10 = r->minor == 0,
        .close = r->minor == 0 || http_wants_close(r) || http_has_body(r),
    };
}

static void http_refuse(struct http_answer *a, enum http_refusal why) {
    static const char bad_host[] =
        "this path is not for browsers, and Host must be an IP address, localhost or a name that "
        "the server was given with --http-host";
    http_reply(a, 403, why == HTTP_BAD_HOST ? bad_host : "");
    a->refusal = why;
}

void http_route(const struct http_request *r, struct http_answer *a) {
    http_answer_init(r, a);
    /* planted: any-origin */
    if (http_header_get(r, "origin").p != NULL)
        http_refuse(a, HTTP_FROM_PAGE);
    else if (str_eqz(r->path, "/readyz") || str_eqz(r->path, "/healthz"))
        (void)http_check_get(r, a);
    else if (str_eqz(r->path, "/"))
        http_check_upgrade(r, a);
    else if (str_eqz(r->path, "/metrics"))
        http_reply(a, 404, "the server was started without --metrics");
    else if (str_eqz(r->path, "/v1/files"))
        http_reply(a, 404, "the server was started without --http-files");
    else
        http_reply(a, 404, "");
}

/* -- /metrics -- */

static bool http_is_address(int family, struct str s) {
    char z[INET6_ADDRSTRLEN];
    struct in6_addr addr;
    if (s.n == 0 || s.n >= sizeof z || str_has_nul(s))
        return false;
    memcpy(z, s.p, s.n);
    z[s.n] = '\0';
    return inet_pton(family, z, &addr) == 1;
}

/* Splits ":PORT" off; false when the host is followed by anything else. */
static bool http_split_host(struct str value, struct str *host) {
    size_t n = 0;
    if (value.n > 0 && value.p[0] == '[') {
        const char *end = memchr(value.p, ']', value.n);
        n = end ? (size_t)(end - value.p) + 1 : 0;
    } else {
        while (n < value.n && value.p[n] != ':')
            n++;
    }
    *host = (struct str){value.p, n};
    if (n == 0 || n == value.n)
        return n > 0;
    struct str port = {value.p + n + 1, value.n - n - 1};
    for (size_t i = 0; i < port.n; i++) {
        if (port.p[i] < '0' || port.p[i] > '9')
            return false;
    }
    return value.p[n] == ':' && port.n > 0 && port.n <= 5;
}

static bool http_host_ok(struct str value, char *const *hosts, size_t count) {
    struct str host;
    if (!http_split_host(value, &host))
        return false;
    if (host.p[0] == '[')
        return http_is_address(AF_INET6, (struct str){host.p + 1, host.n - 2});
    for (size_t i = 0; i < count; i++) {
        if (str_ieqz(host, hosts[i]))
            return true;
    }
    return str_ieqz(host, "localhost") || http_is_address(AF_INET, host);
}

/* Whether a browser may have sent it, or it names a host that the operator did not allow. */
static bool http_guarded(const struct http_request *r, char *const *hosts, size_t count) {
    static const char fetch[] = "sec-fetch-";
    size_t named = 0;
    for (size_t i = 0; i < r->count; i++) {
        const struct http_header *h = &r->headers[i];
        if (h->name.n >= sizeof fetch - 1 && strncasecmp(h->name.p, fetch, sizeof fetch - 1) == 0)
            return false;
        named += str_ieqz(h->name, "host");
    }
    return named == 1 && http_host_ok(http_header_get(r, "host"), hosts, count);
}

void http_route_metrics(const struct http_request *r, char *const *hosts, size_t count,
                        struct http_answer *a) {
    http_answer_init(r, a);
    if (http_header_get(r, "origin").p != NULL)
        http_refuse(a, HTTP_FROM_PAGE);
    else if (!http_guarded(r, hosts, count))
        http_refuse(a, HTTP_BAD_HOST);
    else
        (void)http_check_get(r, a);
    if (a->status != 200)
        return;
    a->action = HTTP_METRICS;
    a->type = "text/plain; version=0.0.4; charset=utf-8";
}

/* -- /v1/files -- */

void http_route_files(const struct http_request *r, char *const *hosts, size_t count,
                      struct http_answer *a) {
    bool put = str_eqz(r->method, "PUT");
    http_answer_init(r, a);
    if (http_header_get(r, "origin").p != NULL)
        http_refuse(a, HTTP_FROM_PAGE);
    else if (!http_guarded(r, hosts, count))
        http_refuse(a, HTTP_BAD_HOST);
    else if (!put && !str_eqz(r->method, "GET") && !a->head_only) {
        http_reply(a, 405, "");
        a->allow = "GET,HEAD,PUT";
    } else {
        a->action = HTTP_FILES;
        a->status = 200;
        a->close = r->minor == 0 || http_wants_close(r) || (!put && http_has_body(r));
    }
}

int64_t http_body_len(const struct http_request *r) {
    struct str v = http_header_get(r, "content-length");
    int64_t n = 0;
    if (http_header_get(r, "transfer-encoding").p != NULL)
        return -1;
    for (size_t i = 0; i < v.n; i++) /* at most 18 digits (http_lengths_ok) */
        n = n * 10 + (v.p[i] - '0');
    return v.p != NULL ? n : str_eqz(r->method, "PUT") ? -1 : 0;
}

static int http_hex(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int http_put_decoded(struct str s, struct buf *b) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < s.n; i++) {
        bool escape =
            s.p[i] == '%' && i + 2 < s.n && http_hex(s.p[i + 1]) >= 0 && http_hex(s.p[i + 2]) >= 0;
        int c = s.p[i];
        if (escape)
            c = http_hex(s.p[i + 1]) << 4 | http_hex(s.p[i + 2]);
        r = buf_putc(b, (char)c);
        i += escape ? 2 : 0;
    }
    return r;
}

int http_query_get(const struct http_request *r, const char *name, struct buf *b) {
    size_t n = strlen(name);
    for (struct str rest = r->query; rest.n > 0;) {
        const char *amp = memchr(rest.p, '&', rest.n);
        struct str item = {rest.p, amp ? (size_t)(amp - rest.p) : rest.n};
        if (item.n > n && item.p[n] == '=' && memcmp(item.p, name, n) == 0)
            return http_put_decoded((struct str){item.p + n + 1, item.n - n - 1}, b);
        size_t skip = item.n + (amp != NULL);
        rest.p += skip;
        rest.n -= skip;
    }
    return -ENOENT;
}

/* Takes a decimal number off the front, UINT64_MAX for a larger one; false when there is none. */
static bool http_number(struct str *s, uint64_t *v) {
    size_t i = 0;
    *v = 0;
    for (; i < s->n && s->p[i] >= '0' && s->p[i] <= '9'; i++) {
        unsigned digit = (unsigned)(s->p[i] - '0');
        if (__builtin_mul_overflow(*v, 10, v) || __builtin_add_overflow(*v, digit, v))
            *v = UINT64_MAX;
    }
    s->p += i;
    s->n -= i;
    return i > 0;
}

/* Accepts "FIRST-", "FIRST-LAST" or "-COUNT". *ends: LAST is given. */
static bool http_range_spec(struct str s, uint64_t *first, uint64_t *last, bool *ends) {
    bool suffix = s.n > 0 && s.p[0] == '-';
    if (!suffix && !http_number(&s, first))
        return false;
    if (s.n == 0 || s.p[0] != '-')
        return false;
    s = (struct str){s.p + 1, s.n - 1};
    *ends = s.n > 0;
    if (*ends && !http_number(&s, last))
        return false;
    return s.n == 0 && (suffix ? *ends : !*ends || *last >= *first);
}

int http_range(struct str value, uint64_t size, uint64_t *from, uint64_t *to) {
    static const char unit[] = "bytes=";
    const size_t n = sizeof unit - 1;
    uint64_t first = UINT64_MAX, last = 0;
    bool ends;
    if (value.n < n || strncasecmp(value.p, unit, n) != 0 ||
        !http_range_spec((struct str){value.p + n, value.n - n}, &first, &last, &ends))
        return 0;
    bool suffix = value.p[n] == '-'; /* the last so many */
    if (suffix ? last == 0 || size == 0 : first >= size)
        return -ERANGE;
    *from = suffix ? size - MIN(last, size) : first;
    *to = !suffix && ends && last < size ? last + 1 : size;
    return 1;
}

static const char *http_status_text(int status) {
    static const struct {
        int status;
        const char *text;
    } known[] = {
        {100, "Continue"},
        {101, "Switching Protocols"},
        {200, "OK"},
        {201, "Created"},
        {204, "No Content"},
        {206, "Partial Content"},
        {304, "Not Modified"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {406, "Not Acceptable"},
        {408, "Request Timeout"},
        {411, "Length Required"},
        {414, "URI Too Long"},
        {416, "Range Not Satisfiable"},
        {421, "Misdirected Request"},
        {426, "Upgrade Required"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {507, "Insufficient Storage"},
    };
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (known[i].status == status)
            return known[i].text;
    }
    return "Unknown";
}

/* The end of a head: "date: ..." and the blank line. */
static int http_put_date(struct buf *b, long long now) {
    static const char days[] = "SunMonTueWedThuFriSat";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    struct utc u = utc_of(now);
    return buf_putf(b, "date: %.3s, %02u %.3s %04lld %02u:%02u:%02u GMT\r\n\r\n",
                    days + (size_t)3 * u.weekday, u.day, months + (size_t)3 * (u.month - 1),
                    (long long)u.year, u.hour, u.minute, u.second);
}

int http_write_head(struct buf *b, const struct http_answer *a, int64_t len, long long now) {
    int r = buf_putf(b, "HTTP/1.%d %d %s\r\n", a->http10 ? 0 : 1, a->status,
                     http_status_text(a->status));
    if (r == 0 && len > 0)
        r = buf_putf(b, "content-type: %s\r\n", a->type ? a->type : "text/plain; charset=utf-8");
    if (r == 0 && a->allow != NULL)
        r = buf_putf(b, "allow: %s\r\n", a->allow);
    if (r == 0 && a->more != NULL)
        r = buf_putz(b, a->more);
    /* HTTP/1.0 closes anyway, unless both sides say otherwise. */
    if (r == 0 && a->close && !a->http10)
        r = buf_putz(b, "connection: close\r\n");
    if (r == 0 && len >= 0)
        r = buf_putf(b, "content-length: %lld\r\n", (long long)len);
    return r < 0 ? r : http_put_date(b, now);
}

/* Appends a whole reply; leaves a part of it when the buffer is full. */
static int http_put_reply(struct buf *b, const struct http_answer *a, long long now) {
    size_t n = strlen(a->body);
    int r = http_write_head(b, a, (int64_t)n, now);
    return r < 0 || a->head_only ? r : buf_put(b, a->body, n);
}

int http_write_reply(struct buf *b, const struct http_answer *a, long long now) {
    size_t len = b->len;
    int r = http_put_reply(b, a, now);
    if (r < 0)
        b->len = len;
    return r;
}

int http_write_upgrade(struct buf *b, struct str key, long long now) {
    char accept[28];
    ws_accept(accept, key);
    size_t len = b->len;
    int r = buf_putf(b,
                     "HTTP/1.1 101 Switching Protocols\r\n"
                     "connection: upgrade\r\n"
                     "upgrade: websocket\r\n"
                     "sec-websocket-accept: %.28s\r\n",
                     accept);
    if (r == 0)
        r = http_put_date(b, now);
    if (r < 0)
        b->len = len;
    return r;
}
