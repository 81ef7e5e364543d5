#include "client/environments_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>

static bool check_is_id_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

int environments_check_id(const struct toml_value *id, struct err *e) {
    struct str s = id->text, trimmed = str_trim(s);
    if (trimmed.n == 0)
        return err_set(e, ERR_INVALID_PARAMS, "environment id cannot be empty");
    if (trimmed.n != s.n)
        return err_about(e, ERR_INVALID_PARAMS, "environment id `", s,
                         "` must not contain surrounding whitespace");
    if (str_eqz(s, "local") || str_ieqz(s, "none"))
        return err_about(e, ERR_INVALID_PARAMS, "environment id `", s, "` is reserved");
    if (s.n > ENVIRONMENTS_ID_MAX)
        return err_about(e, ERR_INVALID_PARAMS, "environment id `", s,
                         "` cannot be longer than 64 characters");
    for (size_t i = 0; i < s.n; i++) {
        if (!check_is_id_char(s.p[i]))
            return err_about(e, ERR_INVALID_PARAMS, "environment id `", s,
                             "` must contain only ASCII letters, numbers, '-' or '_'");
    }
    return 0;
}

/* The bytes behind the scheme of a URL that has one of ours; else empty, with p NULL. */
static struct str check_after_scheme(struct str url) {
    static const char *const schemes[] = {"ws://", "wss://"};
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
        size_t n = strlen(schemes[i]);
        if (url.n >= n && memcmp(url.p, schemes[i], n) == 0)
            return (struct str){url.p + n, url.n - n};
    }
    return (struct str){NULL, 0};
}

/* The host, with brackets if it has them, of what follows a scheme; empty if it is malformed. */
static struct str check_host(struct str rest) {
    struct str s = {rest.p, 0};
    while (s.n < rest.n && strchr("/?#", rest.p[s.n]) == NULL)
        s.n++;
    const char *at = s.n > 0 ? memrchr(s.p, '@', s.n) : NULL;
    if (at != NULL)
        str_take(&s, (size_t)(at - s.p) + 1);
    const char *end = NULL;
    if (s.n > 0 && s.p[0] == '[') {
        end = memchr(s.p, ']', s.n);
        end = end != NULL ? end + 1 : s.p;
        if (end < s.p + s.n && *end != ':')
            end = s.p;
    } else if (s.n > 0) {
        end = memchr(s.p, ':', s.n);
    }
    return end != NULL ? (struct str){s.p, (size_t)(end - s.p)} : s;
}

/* Whether what follows a scheme has only characters of URLs; in a path some more are usual. */
static bool check_characters(struct str rest) {
    bool authority = true;
    for (size_t i = 0; i < rest.n; i++) {
        unsigned char c = (unsigned char)rest.p[i];
        if (c <= ' ' || c >= 0x7F || strchr("<>`", c) != NULL)
            return false;
        authority = authority && strchr("/?#", c) == NULL;
        if (authority && strchr("\"\\^{|}", c) != NULL)
            return false;
    }
    return true;
}

int environments_check_url(struct str url, struct err *e) {
    const char *why = NULL;
    if (url.n == 0)
        return err_set(e, ERR_INVALID_PARAMS, "environment url cannot be empty");
    struct str rest = check_after_scheme(url);
    if (rest.p == NULL)
        return err_about(e, ERR_INVALID_PARAMS, "environment url `", url,
                         "` must use ws:// or wss://");
    if (!check_characters(rest))
        why = "` is invalid: HTTP format error: invalid uri character";
    else if (url.n > ENVIRONMENTS_URL_MAX)
        why = "` is invalid: HTTP format error: uri too long";
    else if (rest.n == 0)
        why = "` is invalid: HTTP format error: empty string";
    else if (strchr("/?#", rest.p[0]) != NULL)
        why = "` is invalid: HTTP format error: invalid format";
    else if (check_host(rest).n == 0)
        why = "` is invalid: HTTP format error: invalid authority";
    return why != NULL ? err_about(e, ERR_INVALID_PARAMS, "environment url `", url, why) : 0;
}

/* Whether a host, as it is written, can only be this machine. */
static bool check_is_loopback(struct str host) {
    char text[INET6_ADDRSTRLEN];
    struct in_addr v4;
    struct in6_addr v6;
    bool brackets = host.n > 2 && host.p[0] == '[';
    if (str_ieqz(host, "localhost"))
        return true;
    if (brackets)
        host = (struct str){host.p + 1, host.n - 2};
    if (host.n >= sizeof text)
        return false;
    memcpy(text, host.p, host.n);
    text[host.n] = '\0';
    if (brackets)
        return inet_pton(AF_INET6, text, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
    return inet_pton(AF_INET, text, &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127;
}

int environments_check_token(struct str token, struct str url, struct err *e) {
    bool secure = url.n >= 6 && memcmp(url.p, "wss://", 6) == 0;
    if (!secure && !check_is_loopback(check_host(check_after_scheme(url))))
        return err_set(e, ERR_INVALID_PARAMS,
                       "exec-server WebSocket headers require wss:// or a loopback destination");
    for (size_t i = 0; i < token.n; i++) {
        unsigned char c = (unsigned char)token.p[i];
        if ((c < ' ' && c != '\t') || c == 0x7F)
            return err_set(e, ERR_INVALID_PARAMS,
                           "invalid value for exec-server WebSocket header `authorization`");
    }
    return 0;
}
