#include "http/http_url.h"

#include "base/uri.h"
#include "base/uri_host.h"
#include "base/utf8.h"

#include <errno.h>

void http_url_fini(struct http_url *u) {
    buf_fini(&u->text);
    buf_fini(&u->user);
}

static int url_bad(struct err *e, const char *why) {
    return err_set(e, ERR_INVALID_PARAMS, "%s", why);
}

static int url_hex(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
        return (c | 0x20) - 'a' + 10;
    return -1;
}

/* A slash of any kind. */
static bool url_is_slash(char c) {
    return c == '/' || c == '\\';
}

static bool url_is_alpha(char c) {
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

/* Cuts "SCHEME:" off the front; empty if there is none. */
static struct str url_take_scheme(struct str *in) {
    size_t n = 0;
    while (n < in->n &&
           (url_is_alpha(in->p[n]) ||
            (n > 0 && ((in->p[n] >= '0' && in->p[n] <= '9') || strchr("+-.", in->p[n]) != NULL))))
        n++;
    struct str scheme = {in->p, 0};
    if (n == 0 || n == in->n || in->p[n] != ':')
        return scheme;
    scheme.n = n;
    in->p += n + 1;
    in->n -= n + 1;
    return scheme;
}

/* Cuts everything up to the first of the given characters off the front. */
static struct str url_take_until(struct str *in, const char *stops) {
    size_t n = 0;
    while (n < in->n && (in->p[n] == '\0' || strchr(stops, in->p[n]) == NULL))
        n++;
    struct str part = {in->p, n};
    if (n > 0) /* else there may be no text at all */
        *in = (struct str){in->p + n, in->n - n};
    return part;
}

/* Appends s; bytes that are no visible ASCII, or in `set`, as escapes. */
static int url_put_encoded(struct buf *b, struct str s, const char *set) {
    static const char hex[] = "0123456789ABCDEF";
    int r = 0;
    for (size_t i = 0; r == 0 && i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        const char escape[3] = {'%', hex[c >> 4], hex[c & 15]};
        bool plain = c > ' ' && c < 0x7F && strchr(set, c) == NULL;
        r = plain ? buf_putc(b, s.p[i]) : buf_put(b, escape, sizeof escape);
    }
    return r;
}

/* -- authority -- */

/* Appends s with its escapes decoded. */
static int url_put_decoded(struct buf *b, struct str s) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < s.n; i++) {
        char c = s.p[i];
        if (c == '%' && s.n - i > 2 && url_hex(s.p[i + 1]) >= 0 && url_hex(s.p[i + 2]) >= 0) {
            c = (char)(url_hex(s.p[i + 1]) * 16 + url_hex(s.p[i + 2]));
            i += 2;
        }
        r = buf_putc(b, c);
    }
    return r;
}

static int url_put_user(struct http_url *u, struct str info) {
    const char *colon = info.n > 0 ? memchr(info.p, ':', info.n) : NULL;
    size_t user = colon != NULL ? (size_t)(colon - info.p) : info.n;
    u->has_user = info.n > 0 && !(info.n == 1 && colon != NULL);
    int r = url_put_decoded(&u->user, (struct str){info.p, user});
    if (r == 0)
        r = buf_putc(&u->user, ':');
    if (r == 0 && colon != NULL)
        r = url_put_decoded(&u->user, (struct str){colon + 1, info.n - user - 1});
    return r;
}

static int url_port(struct http_url *u, struct str digits, struct err *e) {
    unsigned long port = 0;
    u->port = u->https ? 443 : 80;
    for (size_t i = 0; i < digits.n; i++) {
        if (digits.p[i] < '0' || digits.p[i] > '9' || port > UINT16_MAX)
            return url_bad(e, "invalid port number");
        port = port * 10 + (unsigned long)(digits.p[i] - '0');
    }
    if (port > UINT16_MAX)
        return url_bad(e, "invalid port number");
    if (digits.n > 0)
        u->port = (uint16_t)port;
    return 0;
}

/* Appends the canonical host. The texts of uri_host() begin with a word of their own. */
static int url_put_host(struct http_url *u, struct str host, struct err *e) {
    static const char prefix[] = "invalid URI: ";
    _cleanup_err_ struct err why = ERR_INIT;
    int r = uri_host(host, &u->text, &why);
    if (r != -EINVAL)
        return r;
    const char *text = err_msg(&why);
    bool known = strncmp(text, prefix, sizeof prefix - 1) == 0;
    return url_bad(e, known ? text + sizeof prefix - 1 : text);
}

/* "[USER[:PASSWORD]@]HOST[:PORT]" */
static int url_authority(struct http_url *u, struct str in, struct err *e) {
    const char *at = in.n > 0 ? memrchr(in.p, '@', in.n) : NULL;
    int r = 0;
    if (at != NULL) {
        size_t n = (size_t)(at - in.p);
        r = url_put_user(u, (struct str){in.p, n});
        in.p += n + 1;
        in.n -= n + 1;
    }
    const char *bracket = in.n > 0 && in.p[0] == '[' ? memchr(in.p, ']', in.n) : in.p;
    if (in.n > 0 && bracket == NULL)
        return url_bad(e, "invalid IPv6 address");
    const char *colon = in.n > 0 ? memchr(bracket, ':', in.n - (size_t)(bracket - in.p)) : NULL;
    struct str host = {in.p, colon != NULL ? (size_t)(colon - in.p) : in.n};
    struct str port =
        colon != NULL ? (struct str){colon + 1, in.n - host.n - 1} : (struct str){NULL, 0};
    if (host.n == 0)
        return url_bad(e, "empty host");
    if (r == 0)
        r = buf_putz(&u->text, u->https ? "https://" : "http://");
    u->host_at = u->text.len;
    if (r == 0)
        r = url_put_host(u, host, e);
    if (r == 0 && u->text.len == u->host_at)
        return url_bad(e, "empty host");
    if (r == 0)
        r = url_port(u, port, e);
    if (r == 0 && u->port != (u->https ? 443 : 80))
        r = buf_putf(&u->text, ":%u", (unsigned)u->port);
    u->path_at = u->text.len;
    return r;
}

/* Takes over everything before the path but the user info. */
static int url_copy_authority(struct http_url *u, const struct http_url *base) {
    u->https = base->https;
    u->port = base->port;
    u->host_at = base->host_at;
    u->path_at = base->path_at;
    return buf_put(&u->text, base->text.p, base->path_at);
}

/* -- path -- */

/* Cuts ".", "%2e" or "%2E" off the front. */
static bool url_take_dot(struct str *s) {
    size_t n = s->n >= 1 && s->p[0] == '.'                                                ? 1
               : s->n >= 3 && s->p[0] == '%' && s->p[1] == '2' && (s->p[2] | 0x20) == 'e' ? 3
                                                                                          : 0;
    s->p += n;
    s->n -= n;
    return n > 0;
}

/* The dots that a segment consists of: 1 or 2; 0 for any other segment. */
static int url_dots(struct str s) {
    int dots = 0;
    while (dots < 3 && url_take_dot(&s))
        dots++;
    return s.n == 0 && dots < 3 ? dots : 0;
}

/* Removes the last segment, and the slash before it. */
static void url_pop(struct http_url *u) {
    while (u->text.len > u->path_at && u->text.p[u->text.len - 1] != '/')
        u->text.len--;
    if (u->text.len > u->path_at)
        u->text.len--;
}

/* Appends a path whose first segment stands behind what is there, without its final slash. */
static int url_put_path(struct http_url *u, struct str path) {
    int r = 0;
    for (bool more = true; r == 0 && more;) {
        struct str segment = url_take_until(&path, "/\\");
        more = path.n > 0;
        if (more) {
            path.p++;
            path.n--;
        }
        int dots = url_dots(segment);
        if (dots == 2)
            url_pop(u);
        if (dots == 0)
            r = buf_putc(&u->text, '/');
        if (r == 0 && dots == 0)
            r = url_put_encoded(&u->text, segment, "\"#<>?`{}");
        if (r == 0 && dots > 0 && !more) /* a directory */
            r = buf_putc(&u->text, '/');
    }
    return r;
}

/* PATH and QUERY of `in`, which a fragment may follow; the path may go on where the base's ends. */
static int url_put_rest(struct http_url *u, struct str in, const struct http_url *base) {
    struct str path = url_take_until(&in, "?#");
    bool same = base != NULL && path.n == 0; /* as the base's */
    bool whole = same && (in.n == 0 || in.p[0] == '#');
    bool absolute = base == NULL || same || url_is_slash(path.p[0]);
    int r = 0;
    if (same || !absolute)
        r = buf_put(&u->text, base->text.p + base->path_at, base->path_end - base->path_at);
    if (!absolute)
        url_pop(u);
    if (path.n > 0 && url_is_slash(path.p[0])) {
        path.p++;
        path.n--;
    }
    if (r == 0 && !same)
        r = url_put_path(u, path);
    u->path_end = u->text.len;
    if (r == 0 && whole)
        return buf_put(&u->text, base->text.p + base->path_end, base->text.len - base->path_end);
    if (r < 0 || in.n == 0 || in.p[0] != '?')
        return r;
    in.p++;
    in.n--;
    r = buf_putc(&u->text, '?');
    return r < 0 ? r : url_put_encoded(&u->text, url_take_until(&in, "#"), "\"#<>'");
}

/* -- the whole -- */

static int url_unsupported(struct str scheme, struct err *e) {
    char lower[64];
    size_t n = MIN(scheme.n, sizeof lower);
    for (size_t i = 0; i < n; i++)
        lower[i] =
            (char)(scheme.p[i] >= 'A' && scheme.p[i] <= 'Z' ? scheme.p[i] | 0x20 : scheme.p[i]);
    err_about(e, ERR_INVALID_PARAMS, "", (struct str){lower, n}, "");
    return -EPROTONOSUPPORT;
}

static int url_build(struct http_url *u, struct str in, const struct http_url *base,
                     struct err *e) {
    struct str scheme = url_take_scheme(&in);
    bool https = str_ieqz(scheme, "https");
    if (scheme.n == 0 && base == NULL)
        return url_bad(e, "relative URL without a base");
    if (scheme.n > 0 && !https && !str_ieqz(scheme, "http"))
        return url_unsupported(scheme, e);
    u->https = scheme.n == 0 && base != NULL ? base->https : https;
    bool slashes = in.n >= 2 && url_is_slash(in.p[0]) && url_is_slash(in.p[1]);
    if (base != NULL && u->https == base->https && !slashes) {
        int r = url_copy_authority(u, base);
        return r < 0 ? r : url_put_rest(u, in, base);
    }
    while (in.n > 0 && url_is_slash(in.p[0])) {
        in.p++;
        in.n--;
    }
    int r = url_authority(u, url_take_until(&in, "/\\?#"), e);
    return r < 0 ? r : url_put_rest(u, in, NULL);
}

int http_url_parse(struct http_url *u, struct str in, const struct http_url *base, struct err *e) {
    _cleanup_buf_ struct buf clean = BUF_INIT(HTTP_URL_MAX);
    struct buf text = u->text, user = u->user;
    text.len = user.len = 0;
    *u = (struct http_url){.text = text, .user = user};
    if (in.n > HTTP_URL_MAX)
        return url_bad(e, "it has more than 65536 bytes");
    int r = uri_strip(in, &clean);
    if (r == 0)
        r = url_build(u, buf_str(&clean), base, e);
    if (r == -ENOBUFS) /* escapes made it too long */
        return url_bad(e, "it has more than 65536 bytes");
    return r;
}
