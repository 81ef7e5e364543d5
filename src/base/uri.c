#include "base/uri.h"

#include "base/uri_host.h"

#include <errno.h>
#include <stdio.h>

#define URI_TEXT_MAX (3 * URI_PATH_MAX + 4096) /* bytes of a URI: each path byte may be escaped */

/* Precedes the Base64 form of a path that an ordinary URI would spell like a drive. */
#define URI_OPAQUE "/%00/bad/path/"

/* A URI taken apart. */
struct uri {
    struct buf host; /* canonical; empty = this host */
    struct buf path; /* canonical, percent-encoded, starts with one '/' */
};

static void uri_fini(struct uri *u) {
    buf_fini(&u->host);
    buf_fini(&u->path);
}

static bool uri_is_alpha(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool uri_is_slash(char c) {
    return c == '/' || c == '\\';
}

static int uri_hex(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
        return (c | 0x20) - 'a' + 10;
    return -1;
}

/* A letter and ':' or '|'. */
static bool uri_is_drive(struct str s) {
    return s.n == 2 && uri_is_alpha(s.p[0]) && (s.p[1] == ':' || s.p[1] == '|');
}

/* Bytes that a path spells as an escape. '%' is one only in native paths. */
static bool uri_escaped(char c) {
    unsigned char u = (unsigned char)c;
    return u <= ' ' || u >= 0x7F || strchr("\"#<>?`{}", c) != NULL;
}

static int uri_put_byte(struct buf *b, char c, bool escape) {
    if (!escape)
        return buf_putc(b, c);
    static const char hex[] = "0123456789ABCDEF";
    unsigned char u = (unsigned char)c;
    char text[3] = {'%', hex[u >> 4], hex[u & 15]};
    return buf_put(b, text, sizeof text);
}

static int uri_no_memory(struct err *e) {
    return err_os(e, ERR_INTERNAL, ENOMEM);
}

static int uri_too_long(struct err *e) {
    return err_set(e, ERR_INVALID_PARAMS, "path has more than %d bytes", URI_PATH_MAX);
}

/* Fills e with "'URI' is invalid on 'linux'", about the URI, and returns r. */
static int uri_invalid(const struct uri *u, int r, struct err *e) {
    _cleanup_free_ char *uri = NULL;
    int n = asprintf(&uri, "file://%.*s%.*s", (int)u->host.len, u->host.len > 0 ? u->host.p : "",
                     (int)u->path.len, u->path.p);
    if (n < 0) {
        uri = NULL;
        return uri_no_memory(e);
    }
    err_about(e, r == -EXDEV ? ERR_INVALID_REQUEST : ERR_INVALID_PARAMS, "'",
              (struct str){uri, (size_t)n}, "' is invalid on 'linux'");
    return r;
}

/* Number of dots of a dot segment (each also as %2e): 1 or 2; 0 for any other segment. */
static int uri_dots(struct str s) {
    int dots = 0;
    while (s.n > 0 && dots < 3) {
        size_t n = s.p[0] == '.' ? 1 : s.n >= 3 && strncasecmp(s.p, "%2e", 3) == 0 ? 3 : 0;
        if (n == 0)
            return 0;
        s.p += n;
        s.n -= n;
        dots++;
    }
    return dots < 3 ? dots : 0;
}

/* Removes the last segment of a path that ends with '/', unless it looks like a drive. */
static void uri_pop_segment(struct buf *path) {
    if (path->len < 2)
        return;
    const char *slash = memrchr(path->p, '/', path->len - 1);
    size_t start = slash ? (size_t)(slash - path->p) + 1 : 0;
    if (!uri_is_drive((struct str){path->p + start, path->len - 1 - start}))
        path->len = start;
}

/* Resolves the segment at `start` of u->path. */
static int uri_end_segment(struct uri *u, size_t start, bool slash) {
    struct buf *path = &u->path;
    struct str segment = {path->p + start, path->len - start};
    int dots = uri_dots(segment);
    if (dots > 0) {
        path->len = start;
        if (dots == 2)
            uri_pop_segment(path);
        return 0;
    }
    if (start == 1 && uri_is_drive(segment)) {
        path->p[start + 1] = ':';
        u->host.len = 0;
    }
    return slash ? buf_putc(path, '/') : 0;
}

/* Builds the canonical path from *in up to '?', '#' or the end, and leaves *in there. */
static int uri_parse_path(struct uri *u, struct str *in) {
    int r = buf_putc(&u->path, '/');
    for (bool slash = true; r == 0 && slash;) {
        size_t start = u->path.len;
        slash = false;
        while (r == 0 && in->n > 0 && !slash && in->p[0] != '?' && in->p[0] != '#') {
            char c = in->p[0];
            slash = uri_is_slash(c);
            if (!slash)
                r = uri_put_byte(&u->path, c, uri_escaped(c));
            in->p++;
            in->n--;
        }
        if (r == 0)
            r = uri_end_segment(u, start, slash);
    }
    size_t extra = 0;
    while (r == 0 && extra + 1 < u->path.len && u->path.p[extra + 1] == '/')
        extra++;
    if (extra > 0)
        buf_consume(&u->path, extra);
    return r;
}

/* Parses the part after "file:"; leaves *in at '?', '#' or the end. */
static int uri_parse_file(struct uri *u, struct str *in, struct err *e) {
    size_t slashes = 0;
    while (slashes < 2 && slashes < in->n && uri_is_slash(in->p[slashes]))
        slashes++;
    in->p += slashes;
    in->n -= slashes;
    if (slashes == 2) {
        struct str host = {in->p, 0};
        while (host.n < in->n && !uri_is_slash(in->p[host.n]) && in->p[host.n] != '?' &&
               in->p[host.n] != '#')
            host.n++;
        bool drive = uri_is_drive(host);
        int r = drive || host.n == 0 ? 0 : uri_host(host, &u->host, e);
        if (r < 0)
            return r;
        if (str_eqz(buf_str(&u->host), "localhost"))
            u->host.len = 0;
        /* The slash after an empty or local host stays and makes an empty first segment. So
         * "file:///C|" is an ordinary name where "file:/C|" is a drive, as in the reference. */
        size_t skip = drive ? 0 : host.n;
        skip += u->host.len > 0 && skip < in->n && uri_is_slash(in->p[skip]);
        in->p += skip;
        in->n -= skip;
    }
    return uri_parse_path(u, in);
}

/* Takes "scheme:" off *in. 0, or -EINVAL if it is not "file". */
static int uri_parse_scheme(struct str *in, struct err *e) {
    size_t n = 0;
    while (n < in->n && (uri_is_alpha(in->p[n]) ||
                         (n > 0 && in->p[n] != '\0' && strchr("0123456789+-.", in->p[n]) != NULL)))
        n++;
    if (n == 0 || n == in->n || in->p[n] != ':')
        return err_set(e, ERR_INVALID_PARAMS, "invalid URI: relative URL without a base");
    struct str scheme = {in->p, n};
    in->p += n + 1;
    in->n -= n + 1;
    if (str_ieqz(scheme, "file"))
        return 0;
    char lower[256];
    n = MIN(n, sizeof lower);
    for (size_t i = 0; i < n; i++)
        lower[i] = (char)(uri_is_alpha(scheme.p[i]) ? scheme.p[i] | 0x20 : scheme.p[i]);
    return err_set(e, ERR_INVALID_PARAMS, "unsupported path URI scheme `%.*s`", (int)n, lower);
}

int uri_strip(struct str in, struct buf *out) {
    while (in.n > 0 && (unsigned char)in.p[0] <= ' ') {
        in.p++;
        in.n--;
    }
    while (in.n > 0 && (unsigned char)in.p[in.n - 1] <= ' ')
        in.n--;
    int r = buf_reserve(out, in.n);
    for (size_t i = 0; r == 0 && i < in.n; i++) {
        if (in.p[i] != '\t' && in.p[i] != '\n' && in.p[i] != '\r')
            out->p[out->len++] = in.p[i];
    }
    return r;
}

/* Length of an absolute path's first segment if it is a drive: a letter and ':' (in a URI also
 * "%3A"). Else 0. */
static size_t uri_drive_len(struct str path, bool encoded) {
    if (path.n < 3 || !uri_is_alpha(path.p[1]))
        return 0;
    size_t n = path.p[2] == ':' ? 2 : 0;
    if (encoded && path.n >= 5 && strncasecmp(path.p + 2, "%3a", 3) == 0)
        n = 4;
    return n > 0 && (path.n == n + 1 || path.p[n + 1] == '/') ? n : 0;
}

/*
 * Removes dot segments and double and trailing slashes from an absolute path, in place. Returns
 * the new length.
 */
static size_t uri_normalise(char *p, size_t n) {
    size_t out = 0, i = 0;
    while (i < n) {
        while (i < n && p[i] == '/')
            i++;
        size_t start = i;
        while (i < n && p[i] != '/')
            i++;
        struct str segment = {p + start, i - start};
        if (segment.n == 0 || str_eqz(segment, "."))
            continue;
        if (str_eqz(segment, "..")) {
            while (out > 0 && p[--out] != '/')
                ;
            continue;
        }
        p[out++] = '/';
        memmove(p + out, p + start, segment.n);
        out += segment.n;
    }
    if (out == 0)
        p[out++] = '/';
    return out;
}

/* An owned, normalised, NUL-terminated copy of an absolute path without NUL. */
static int uri_finish(struct str path, char **out, struct err *e) {
    if (path.n > URI_PATH_MAX)
        return uri_too_long(e);
    char *p = malloc(path.n + 1);
    if (p == NULL)
        return uri_no_memory(e);
    memcpy(p, path.p, path.n);
    p[uri_normalise(p, path.n)] = '\0';
    *out = p;
    return 0;
}

/* Decodes escapes in place; malformed ones stay. */
static void uri_decode(struct buf *b) {
    size_t n = 0;
    for (size_t i = 0; i < b->len; i++) {
        char c = b->p[i];
        if (c == '%' && b->len - i > 2 && uri_hex(b->p[i + 1]) >= 0 && uri_hex(b->p[i + 2]) >= 0) {
            c = (char)(uri_hex(b->p[i + 1]) * 16 + uri_hex(b->p[i + 2]));
            i += 2;
        }
        b->p[n++] = c;
    }
    b->len = n;
}

static const char URI_BASE64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* URL-safe Base64 without padding, canonical only. 0, -EINVAL, or as buf_reserve(). */
static int uri_base64_decode(struct str in, struct buf *out) {
    uint32_t acc = 0;
    unsigned bits = 0;
    int r = buf_reserve(out, in.n);
    for (size_t i = 0; r == 0 && i < in.n; i++) {
        const char *digit = in.p[i] != '\0' ? strchr(URI_BASE64, in.p[i]) : NULL;
        if (digit == NULL)
            return -EINVAL;
        acc = (acc << 6 | (uint32_t)(digit - URI_BASE64)) & 0xFFFF;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            out->p[out->len++] = (char)(acc >> bits);
        }
    }
    return r < 0 ? r : bits == 6 || (acc & ((1U << bits) - 1)) != 0 ? -EINVAL : 0;
}

static int uri_base64_encode(struct str in, struct buf *out) {
    uint32_t acc = 0;
    unsigned bits = 0;
    int r = 0;
    for (size_t i = 0; r == 0 && i < in.n; i++) {
        acc = (acc << 8 | (unsigned char)in.p[i]) & 0xFFFF;
        for (bits += 8; r == 0 && bits >= 6;) {
            bits -= 6;
            r = buf_putc(out, URI_BASE64[acc >> bits & 63]);
        }
    }
    if (r == 0 && bits > 0)
        r = buf_putc(out, URI_BASE64[acc << (6 - bits) & 63]);
    return r;
}

/* A path with an escaped NUL: valid only in the opaque form, for a path that needs it. */
static int uri_opaque(const struct uri *u, char **path, struct err *e) {
    const size_t prefix = sizeof URI_OPAQUE - 1;
    if (u->host.len > 0 || u->path.len <= prefix || memcmp(u->path.p, URI_OPAQUE, prefix) != 0)
        return uri_invalid(u, -EINVAL, e);
    _cleanup_buf_ struct buf bytes = BUF_INIT(URI_TEXT_MAX);
    int r = uri_base64_decode((struct str){u->path.p + prefix, u->path.len - prefix}, &bytes);
    if (r == -EINVAL)
        return uri_invalid(u, r, e);
    if (r < 0)
        return uri_no_memory(e);
    struct str s = buf_str(&bytes);
    if (s.n == 0 || s.p[0] != '/')
        return uri_invalid(u, -EXDEV, e);
    if (str_has_nul(s))
        return err_set(e, ERR_INVALID_REQUEST, "file name contained an unexpected NUL byte");
    if (uri_drive_len(s, false) == 0)
        return uri_invalid(u, -EXDEV, e);
    r = uri_finish(s, path, e);
    if (r == 0 && !str_eqz(s, *path)) {
        free(steal_ptr(path));
        r = uri_invalid(u, -EXDEV, e);
    }
    return r;
}

/* Turns a parsed URI into a native path. */
static int uri_to_native(struct uri *u, char **path, struct err *e) {
    if (memmem(u->path.p, u->path.len, "%00", 3) != NULL)
        return uri_opaque(u, path, e);
    bool drive = uri_drive_len(buf_str(&u->path), true) > 0;
    if (drive && u->host.len == 0 && u->path.p[1] >= 'a')
        u->path.p[1] = (char)(u->path.p[1] & ~0x20);
    if (drive || u->host.len > 0)
        return uri_invalid(u, -EXDEV, e);
    uri_decode(&u->path);
    return uri_finish(buf_str(&u->path), path, e);
}

static int uri_parse(struct uri *u, struct str in, struct err *e) {
    if (in.n > URI_TEXT_MAX)
        return uri_too_long(e);
    _cleanup_buf_ struct buf text = BUF_INIT(URI_TEXT_MAX);
    int r = uri_strip(in, &text);
    struct str rest = buf_str(&text);
    if (r == 0)
        r = uri_parse_scheme(&rest, e);
    if (r == 0)
        r = uri_parse_file(u, &rest, e);
    if (r == -ENOBUFS)
        return uri_too_long(e);
    if (r == -ENOMEM)
        return uri_no_memory(e);
    if (r == 0 && rest.n > 0)
        return err_set(e, ERR_INVALID_PARAMS,
                       rest.p[0] == '?' ? "query parameters are not allowed in path URIs"
                                        : "fragments are not allowed in path URIs");
    return r;
}

int uri_to_path(struct str in, char **path, struct err *e) {
    if (in.n > 0 && in.p[0] == '/') {
        if (str_has_nul(in))
            return err_set(e, ERR_INVALID_PARAMS, "path contains a NUL byte");
        return uri_finish(in, path, e);
    }
    struct uri u = {.host = BUF_INIT(URI_TEXT_MAX), .path = BUF_INIT(URI_TEXT_MAX)};
    int r = uri_parse(&u, in, e);
    if (r == 0)
        r = uri_to_native(&u, path, e);
    uri_fini(&u);
    return r;
}

int uri_canonical(struct str in, struct buf *b) {
    _cleanup_err_ struct err e = ERR_INIT;
    struct uri u = {.host = BUF_INIT(URI_TEXT_MAX), .path = BUF_INIT(URI_TEXT_MAX)};
    _cleanup_free_ char *path = NULL;
    bool native = in.n > 0 && in.p[0] == '/';
    int r = native ? uri_to_path(in, &path, &e) : uri_parse(&u, in, &e);
    if (r == 0 && native)
        r = uri_from_path(b, str_of(path));
    else if (r == 0)
        r = buf_putf(b, "file://%.*s", (int)u.path.len, u.path.len > 0 ? u.path.p : "");
    uri_fini(&u);
    return r;
}

int uri_from_path(struct buf *b, struct str path) {
    size_t len = b->len;
    bool opaque = uri_drive_len(path, false) > 0;
    int r = buf_putz(b, opaque ? "file://" URI_OPAQUE : "file://");
    if (opaque && r == 0)
        r = uri_base64_encode(path, b);
    for (size_t i = 0; !opaque && r == 0 && i < path.n; i++) {
        char c = path.p[i];
        r = uri_put_byte(b, c, c == '%' || c == '\\' || uri_escaped(c));
    }
    if (r < 0)
        b->len = len;
    return r;
}
