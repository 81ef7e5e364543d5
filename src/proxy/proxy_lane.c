#include "proxy/proxy_lane.h"

#include "proxy/proxy_head.h"
#include "proxy/proxy_hello.h"

#include <errno.h>

#define LANE_LINE_MAX 16384 /* bytes of a first line */
#define LANE_BLANK_MAX 64   /* line ends before it */

enum lane_sort { LANE_MORE, LANE_RAW, LANE_TLS, LANE_HTTP, LANE_BAD };

static int lane_pass(struct buf *in, struct buf *up, size_t n) {
    int r = buf_put(up, in->p, n);
    if (r == 0)
        buf_consume(in, n);
    return r;
}

/* Whether the lists allow what the bytes ask for. 0 or -EPERM. */
static int lane_check(struct proxy_lane *l, const struct proxy_config *c,
                      const struct proxy_name *host, const struct proxy_name *other) {
    if (strcmp(host->text, other->text) == 0)
        return 0;
    l->other = *other;
    return proxy_judge_host(c, other).answer == PROXY_ALLOWED ? 0 : -EPERM;
}

/* -- the first bytes -- */

/* Whether a line has the version of HTTP in it. */
static bool lane_has_version(struct str line) {
    for (size_t i = 0; i + 5 <= line.n; i++) {
        if (strncasecmp(line.p + i, "HTTP/", 5) == 0)
            return true;
    }
    return false;
}

/* Whether a method may have the character. Some servers take any token; none of them knows one that
 * begins with a digit, as messages of other protocols do. */
static bool lane_is_method(char c, bool first) {
    bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    bool digit = c >= '0' && c <= '9';
    return letter || (digit && !first) || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

/* Which protocol a text begins. */
static enum lane_sort lane_sort_text(struct str s) {
    size_t at = 0, skip = 0;
    while (skip < s.n && (s.p[skip] == '\r' || s.p[skip] == '\n'))
        skip++;
    if (skip > LANE_BLANK_MAX)
        return LANE_BAD;
    s.p += skip;
    s.n -= skip;
    while (at < s.n && lane_is_method(s.p[at], at == 0))
        at++;
    if (at == s.n) /* however long: a server may take it for a method */
        return at > LANE_LINE_MAX ? LANE_BAD : LANE_MORE;
    if (at == 0 || (s.p[at] != ' ' && s.p[at] != '\t'))
        return LANE_RAW;
    const char *end = memchr(s.p, '\n', s.n);
    if (end == NULL)
        return s.n > LANE_LINE_MAX ? LANE_BAD : LANE_MORE;
    return lane_has_version((struct str){s.p, (size_t)(end - s.p)}) ? LANE_HTTP : LANE_RAW;
}

static int lane_tls(struct proxy_lane *l, const struct proxy_config *c,
                    const struct proxy_name *host, enum proxy_hello found, const char *name) {
    struct proxy_name other;
    if (found == PROXY_HELLO_BAD)
        return -EINVAL;
    if (found == PROXY_HELLO_NAMED) {
        if (proxy_name_parse(str_of(name), &other) < 0)
            return -EINVAL;
        int r = lane_check(l, c, host, &other);
        if (r < 0)
            return r;
    }
    l->kind = PROXY_LANE_RAW;
    return 0;
}

static int lane_sniff(struct proxy_lane *l, const struct proxy_config *c,
                      const struct proxy_name *host, const struct buf *in) {
    char name[256];
    enum proxy_hello found = proxy_hello_read(buf_str(in), name);
    if (found == PROXY_HELLO_MORE)
        return in->len >= PROXY_LANE_MAX ? -EINVAL : 0;
    if (found != PROXY_HELLO_NONE)
        return lane_tls(l, c, host, found, name);
    enum lane_sort sort = lane_sort_text(buf_str(in));
    if (sort == LANE_RAW || sort == LANE_HTTP)
        l->kind = sort == LANE_RAW ? PROXY_LANE_RAW : PROXY_LANE_HTTP;
    l->first = true;
    return sort == LANE_BAD ? -EINVAL : 0;
}

/* -- requests in a tunnel -- */

static int lane_http(struct proxy_lane *l, const struct proxy_config *c,
                     const struct proxy_name *host, struct buf *in, struct buf *up) {
    struct proxy_head h;
    const char *why;
    int n = proxy_head_parse(buf_str(in), &h, &why);
    if (n == 0)
        return 0;
    if (n < 0 || (h.upgrade && !l->first))
        return -EINVAL;
    int r = lane_check(l, c, host, &h.host);
    if (r < 0)
        return r;
    l->body = h.body;
    l->kind = h.upgrade ? PROXY_LANE_HOLD : h.body.done ? PROXY_LANE_HTTP : PROXY_LANE_PART;
    l->first = false;
    if (h.upgrade && !h.body.done)
        return -EINVAL;
    return lane_pass(in, up, (size_t)n);
}

static int lane_body(struct proxy_lane *l, struct buf *in, struct buf *up) {
    ssize_t n = proxy_body_feed(&l->body, buf_str(in));
    if (n < 0)
        return (int)n;
    if (l->body.done)
        l->kind = l->kind == PROXY_LANE_BODY ? PROXY_LANE_SHUT : PROXY_LANE_HTTP;
    return lane_pass(in, up, (size_t)n);
}

int proxy_lane_move(struct proxy_lane *l, const struct proxy_config *c,
                    const struct proxy_name *host, struct buf *in, struct buf *up) {
    size_t before = SIZE_MAX;
    enum proxy_lane_kind kind = PROXY_LANE_SHUT;
    int r = 0;
    /* Until nothing changes: one read may hold several requests. */
    while (r == 0 && in->len > 0 && (in->len != before || kind != l->kind) &&
           up->len < PROXY_LANE_MAX) {
        before = in->len;
        kind = l->kind;
        switch (l->kind) {
        case PROXY_LANE_RAW: r = lane_pass(in, up, in->len); break;
        case PROXY_LANE_BODY:
        case PROXY_LANE_PART: r = lane_body(l, in, up); break;
        case PROXY_LANE_SNIFF: r = lane_sniff(l, c, host, in); break;
        case PROXY_LANE_HTTP: r = lane_http(l, c, host, in, up); break;
        case PROXY_LANE_SHUT: in->len = 0; break;
        case PROXY_LANE_HOLD: break;
        }
    }
    return r;
}

void proxy_lane_heard(struct proxy_lane *l, struct str bytes) {
    static const char agreed[] = "HTTP/1.1 101";
    if (l->kind != PROXY_LANE_HOLD)
        return;
    size_t n = MIN(bytes.n, sizeof l->start - l->start_n);
    memcpy(l->start + l->start_n, bytes.p, n);
    l->start_n += n;
    if (l->start_n == sizeof l->start)
        l->kind = memcmp(l->start, agreed, sizeof l->start) == 0 ? PROXY_LANE_RAW : PROXY_LANE_HTTP;
}
