#include "client/target.h"

#include "http/http_url.h"

#include <errno.h>
#include <string.h>

void target_fini(struct target *t) {
    free(t->shown);
    free(t->host);
    free(t->authority);
    free(t->resource);
    free(t->path);
    free(t->user);
    *t = (struct target){.in = -1, .out = -1};
}

static int target_no_memory(struct xs_error *e) {
    return xs_error_set(e, XS_ENOMEM, "out of memory");
}

static int target_bad(const struct target *t, struct xs_error *e, const char *why) {
    return xs_error_set(e, XS_EINVAL, "URL %s: %s", t->shown, why);
}

/* Cuts a prefix off; false: it is not there. */
static bool target_cut(const char **url, const char *prefix) {
    size_t n = strlen(prefix);
    if (strncasecmp(*url, prefix, n) != 0)
        return false;
    *url += n;
    return true;
}

/* HOST of HOST[:PORT], without brackets. */
static struct str target_host(struct str authority) {
    if (authority.n > 0 && authority.p[0] == '[') {
        const char *end = memchr(authority.p, ']', authority.n);
        return end != NULL ? (struct str){authority.p + 1, (size_t)(end - authority.p) - 1}
                           : (struct str){NULL, 0};
    }
    const char *colon = authority.n > 0 ? memchr(authority.p, ':', authority.n) : NULL;
    return colon != NULL ? (struct str){authority.p, (size_t)(colon - authority.p)} : authority;
}

/* ws: and wss: follow the rules of http: and https:. */
static int target_parse_ws(struct target *t, const char *rest, struct xs_error *e) {
    _cleanup_http_url_ struct http_url u = HTTP_URL_INIT;
    _cleanup_err_ struct err why = ERR_INIT;
    _cleanup_buf_ struct buf text = BUF_INIT(TARGET_URL_MAX + 16);
    const char *scheme = t->kind == TARGET_WSS ? "https://" : "http://";
    if (buf_putz(&text, scheme) < 0 || buf_putz(&text, rest) < 0)
        return target_no_memory(e);
    int r = http_url_parse(&u, buf_str(&text), NULL, &why);
    if (r == -ENOMEM)
        return target_no_memory(e);
    if (r < 0)
        return target_bad(t, e, err_msg(&why));
    if (u.has_user)
        return target_bad(t, e, "it has a user name; give a token instead");
    struct str authority = http_url_authority(&u);
    t->host = str_dup(target_host(authority));
    t->authority = str_dup(authority);
    t->resource = str_dup((struct str){u.text.p + u.path_at, u.text.len - u.path_at});
    t->port = u.port;
    return t->host == NULL || t->authority == NULL || t->resource == NULL ? target_no_memory(e) : 0;
}

static int target_hex(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes %XX in place. False: malformed, or a NUL. */
static bool target_unescape(char *z) {
    char *to = z;
    for (const char *from = z; *from != '\0'; from++) {
        char c = *from;
        if (c == '%') {
            int high = target_hex(from[1]), low = high < 0 ? -1 : target_hex(from[2]);
            if (low < 0 || high * 16 + low == 0)
                return false;
            c = (char)(high * 16 + low);
            from += 2;
        }
        *to++ = c;
    }
    *to = '\0';
    return true;
}

static int target_parse_unix(struct target *t, const char *rest, struct xs_error *e) {
    t->path = strdup(rest);
    t->authority = strdup("localhost");
    t->resource = strdup("/");
    if (t->path == NULL || t->authority == NULL || t->resource == NULL)
        return target_no_memory(e);
    if (!target_unescape(t->path) || (t->path[0] != '/' && t->path[0] != '@'))
        return target_bad(t, e, "unix:// needs an absolute path");
    return 0;
}

/* A decimal number from 0 to max that ends the text or is followed by `stop`. */
static const char *target_number(const char *z, long max, char stop, long *out) {
    long v = 0;
    const char *p = z;
    for (; *p >= '0' && *p <= '9' && v <= max; p++)
        v = v * 10 + (*p - '0');
    *out = v;
    return p > z && v <= max && (*p == '\0' || *p == stop) ? p : NULL;
}

static int target_parse_fd(struct target *t, const char *rest, struct xs_error *e) {
    long in = -1, out = -1;
    const char *p = target_number(rest, 1 << 20, ',', &in);
    if (p != NULL && *p == ',')
        p = target_number(p + 1, 1 << 20, '\0', &out);
    else
        out = in;
    if (p == NULL)
        return target_bad(t, e, "fd: needs one or two descriptors, fd:IN,OUT");
    t->in = (int)in;
    t->out = (int)out;
    return 0;
}

/* The program of ssh://HOST/PROGRAM: a name alone is looked up there, /~/ is the home. */
static int target_ssh_program(struct target *t, const char *slash, struct xs_error *e) {
    if (slash == NULL || slash[1] == '\0')
        return 0;
    bool name = strchr(slash + 1, '/') == NULL, home = strncmp(slash, "/~/", 3) == 0;
    t->path = strdup(home ? slash + 3 : name ? slash + 1 : slash);
    if (t->path == NULL)
        return target_no_memory(e);
    return target_unescape(t->path) && t->path[0] != '-' ? 0 : target_bad(t, e, "bad program");
}

static int target_parse_ssh(struct target *t, const char *rest, struct xs_error *e) {
    const char *slash = strchr(rest, '/');
    struct str authority = {rest, slash != NULL ? (size_t)(slash - rest) : strlen(rest)};
    const char *at = authority.n > 0 ? memrchr(authority.p, '@', authority.n) : NULL;
    if (at != NULL) {
        t->user = str_dup((struct str){authority.p, (size_t)(at - authority.p)});
        if (t->user == NULL)
            return target_no_memory(e);
        if (t->user[0] == '\0' || t->user[0] == '-' || strchr(t->user, ':') != NULL)
            return target_bad(t, e, "bad user name");
        str_take(&authority, (size_t)(at - authority.p) + 1);
    }
    struct str host = target_host(authority);
    bool bracket = authority.n > 0 && authority.p[0] == '[';
    str_take(&authority, MIN(authority.n, host.n + (bracket ? 2 : 0)));
    t->host = str_dup(host);
    if (t->host == NULL)
        return target_no_memory(e);
    if (t->host[0] == '\0' || t->host[0] == '-')
        return target_bad(t, e, "bad host name");
    if (authority.n > 0) {
        _cleanup_free_ char *port = str_dup((struct str){authority.p + 1, authority.n - 1});
        long number = 0;
        if (port == NULL)
            return target_no_memory(e);
        if (authority.p[0] != ':' || target_number(port, 65535, '\0', &number) == NULL ||
            number == 0)
            return target_bad(t, e, "bad port");
        t->port = (uint16_t)number;
    }
    return target_ssh_program(t, slash, e);
}

/* What texts show of a URL: nothing of user info and query. */
static char *target_show(const char *url) {
    const char *scheme = strstr(url, "://");
    const char *authority = scheme != NULL ? scheme + 3 : url;
    size_t n = strcspn(authority, "/?#");
    const char *at = scheme != NULL && strncasecmp(url, "ws", 2) == 0 && n > 0
                         ? memrchr(authority, '@', n)
                         : NULL;
    const char *from = at != NULL ? at + 1 : authority;
    size_t before = (size_t)(authority - url), rest = strcspn(from, "?#");
    char *shown = malloc(before + rest + 1);
    if (shown == NULL)
        return NULL;
    memcpy(shown, url, before);
    memcpy(shown + before, from, rest);
    shown[before + rest] = '\0';
    return shown;
}

int target_parse(struct target *t, const char *url, struct xs_error *e) {
    *t = (struct target){.in = -1, .out = -1};
    if (url == NULL || *url == '\0')
        return xs_error_set(e, XS_EINVAL, "no URL is given");
    if (strlen(url) > TARGET_URL_MAX)
        return xs_error_set(e, XS_EINVAL, "the URL is too long");
    t->shown = target_show(url);
    if (t->shown == NULL)
        return target_no_memory(e);
    const char *rest = url;
    if (target_cut(&rest, "ws://"))
        return target_parse_ws(t, rest, e);
    t->kind = TARGET_WSS;
    if (target_cut(&rest, "wss://"))
        return target_parse_ws(t, rest, e);
    t->kind = TARGET_UNIX;
    if (target_cut(&rest, "unix://"))
        return target_parse_unix(t, rest, e);
    t->kind = TARGET_SSH;
    if (target_cut(&rest, "ssh://"))
        return target_parse_ssh(t, rest, e);
    t->kind = TARGET_FD;
    if (target_cut(&rest, "fd:"))
        return target_parse_fd(t, rest, e);
    t->kind = TARGET_STDIO;
    if (target_cut(&rest, "stdio:") && *rest == '\0')
        return 0;
    t->kind = TARGET_LOCAL;
    rest = url;
    if (target_cut(&rest, "local:") && *rest == '\0')
        return 0;
    return target_bad(t, e, "not one of ws: wss: unix: stdio: ssh: local: fd:");
}
