#include "server/options.h"

#include "server/options_table.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <string.h>

#define WS_SCHEME "ws://"
#define DEFAULT_LISTEN "ws://127.0.0.1:0"
#define CLOSED_RETENTION_MS 30000

/* A run of digits up to `max`, the whole of s. */
static bool parse_digits(struct str s, uint32_t max, uint32_t *v) {
    uint64_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        n = n * 10 + (uint64_t)(s.p[i] - '0');
        if (n > max)
            return false;
    }
    *v = (uint32_t)n;
    return s.n > 0;
}

/* An address literal without port; inet_pton() takes exactly the forms that are allowed. */
static bool parse_address(int family, struct str s, void *addr) {
    char z[INET6_ADDRSTRLEN];
    if (s.n >= sizeof(z))
        return false;
    memcpy(z, s.p, s.n);
    z[s.n] = '\0';
    return inet_pton(family, z, addr) == 1;
}

/* "ADDRESS" or "ADDRESS%SCOPE", the scope being an interface number. */
static bool parse_ipv6(struct str s, struct sockaddr_in6 *in6) {
    const char *percent = memchr(s.p, '%', s.n);
    if (percent != NULL) {
        struct str scope = {percent + 1, s.n - (size_t)(percent - s.p) - 1};
        if (!parse_digits(scope, UINT32_MAX, &in6->sin6_scope_id))
            return false;
        s.n = (size_t)(percent - s.p);
    }
    in6->sin6_family = AF_INET6;
    return parse_address(AF_INET6, s, &in6->sin6_addr);
}

/* "IP:PORT", IPv6 in brackets. */
static bool parse_endpoint(const char *text, struct options *o) {
    const char *colon = strrchr(text, ':');
    uint32_t port;
    if (colon == NULL || colon == text || !parse_digits(str_of(colon + 1), UINT16_MAX, &port))
        return false;
    struct str host = {text, (size_t)(colon - text)};
    if (host.p[0] == '[') {
        struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&o->addr;
        o->addr_len = sizeof(*in6);
        in6->sin6_port = htons((uint16_t)port);
        return host.p[host.n - 1] == ']' && host.n > 2 &&
               parse_ipv6((struct str){host.p + 1, host.n - 2}, in6);
    }
    struct sockaddr_in *in = (struct sockaddr_in *)&o->addr;
    o->addr_len = sizeof(*in);
    in->sin_family = AF_INET;
    in->sin_port = htons((uint16_t)port);
    return parse_address(AF_INET, host, &in->sin_addr);
}

static int set_listen(struct options *o, const char *url, struct err *e) {
    if (strcmp(url, "stdio") == 0 || strcmp(url, "stdio://") == 0) {
        o->listen = OPTIONS_LISTEN_STDIO;
        return 0;
    }
    o->listen = OPTIONS_LISTEN_WS;
    if (strncmp(url, WS_SCHEME, strlen(WS_SCHEME)) != 0)
        return err_set(e, ERR_INVALID_PARAMS,
                       "unsupported --listen URL `%s`; expected `ws://IP:PORT` or `stdio`", url);
    if (!parse_endpoint(url + strlen(WS_SCHEME), o))
        return err_set(e, ERR_INVALID_PARAMS,
                       "invalid websocket --listen URL `%s`; expected `ws://IP:PORT`", url);
    return 0;
}

static bool is_loopback(const struct options *o) {
    if (o->addr.ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)&o->addr;
        return ntohl(in->sin_addr.s_addr) >> 24 == 127;
    }
    const struct in6_addr *a = &((const struct sockaddr_in6 *)&o->addr)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(a) || (IN6_IS_ADDR_V4MAPPED(a) && a->s6_addr[12] == 127);
}

bool options_unauthenticated_exposed(const struct options *o) {
    return o->listen == OPTIONS_LISTEN_WS && o->auth.mode == AUTH_NONE && !is_loopback(o);
}

/*
 * The absolute form of a path, owned: a leading "~" is the home directory, anything else relative
 * starts at the current directory. "." and empty components go; ".." is left to the kernel, which
 * knows about symbolic links. NULL with errno set.
 */
static char *absolute_path(const char *path) {
    const char *home = getenv("HOME");
    _cleanup_free_ char *base = NULL;
    if (path[0] == '~' && (path[1] == '/' || path[1] == '\0') && home != NULL && home[0] == '/') {
        base = strdup(home);
        path++;
    } else {
        base = path[0] == '/' ? strdup("") : getcwd(NULL, 0);
    }
    char *full = base != NULL ? malloc(strlen(base) + strlen(path) + 2) : NULL;
    if (full == NULL)
        return NULL;
    char *end = stpcpy(full, strcmp(base, "/") == 0 ? "" : base);
    while (*path != '\0') {
        size_t n = strcspn(path, "/");
        if (n > 0 && !(n == 1 && *path == '.')) {
            *end++ = '/';
            end = mempcpy(end, path, n);
        }
        path += n + (path[n] == '/');
    }
    if (end == full)
        *end++ = '/';
    *end = '\0';
    return full;
}

/* The rules between the --ws-* options, without looking at any file. */
static int check_auth_flags(const struct options_args *a, struct err *e) {
    const bool *given = a->given;
    bool token = given[OPT_WS_TOKEN_FILE] || given[OPT_WS_TOKEN_SHA256];
    bool jwt = given[OPT_WS_SHARED_SECRET_FILE] || given[OPT_WS_ISSUER] || given[OPT_WS_AUDIENCE] ||
               given[OPT_WS_MAX_CLOCK_SKEW];
    const char *text = NULL;
    if (!given[OPT_WS_AUTH]) {
        if (token || jwt)
            text = "websocket auth flags require `--ws-auth capability-token` or "
                   "`--ws-auth signed-bearer-token`";
    } else if (strcmp(a->value[OPT_WS_AUTH], "capability-token") == 0) {
        if (jwt)
            text = "`--ws-shared-secret-file`, `--ws-issuer`, `--ws-audience`, and "
                   "`--ws-max-clock-skew-seconds` require `--ws-auth signed-bearer-token`";
        else if (given[OPT_WS_TOKEN_FILE] && given[OPT_WS_TOKEN_SHA256])
            text = "`--ws-token-file` and `--ws-token-sha256` are mutually exclusive";
        else if (!token)
            text = "`--ws-token-file` or `--ws-token-sha256` is required when "
                   "`--ws-auth capability-token` is set";
    } else if (token) {
        text = "`--ws-token-file` and `--ws-token-sha256` require `--ws-auth capability-token`, "
               "not `signed-bearer-token`";
    } else if (!given[OPT_WS_SHARED_SECRET_FILE]) {
        text = "`--ws-shared-secret-file` is required when `--ws-auth signed-bearer-token` is set";
    }
    return text != NULL ? err_set(e, ERR_INVALID_PARAMS, "%s", text) : 0;
}

static int refuse_unavailable(const struct options_args *a, struct err *e) {
    if (a->given[OPT_REMOTE] && a->given[OPT_WS_AUTH])
        return err_set(e, ERR_INVALID_PARAMS,
                       "WebSocket listener auth cannot be used with --remote or forward");
    if (a->given[OPT_REMOTE])
        return err_set(e, ERR_INVALID_PARAMS,
                       "--remote is not available in this version of exec-server");
    const char *mode = a->value[OPT_PID_NAMESPACE];
    if (mode != NULL && strcmp(mode, "inherit") == 0)
        return err_set(e, ERR_INVALID_PARAMS,
                       "--linux-sandbox-pid-namespace inherit is not available in this version of "
                       "exec-server");
    return 0;
}

static int load_auth_file(struct options *o, const struct options_args *a, struct err *e) {
    bool is_signed = a->given[OPT_WS_SHARED_SECRET_FILE];
    const char *path = a->value[is_signed ? OPT_WS_SHARED_SECRET_FILE : OPT_WS_TOKEN_FILE];
    o->auth_file = absolute_path(path);
    if (o->auth_file == NULL) {
        struct err os = ERR_INIT;
        int r = err_os(&os, ERR_INTERNAL, errno);
        err_set(e, ERR_INTERNAL, "failed to read websocket auth secret %s: %s", path, err_msg(&os));
        err_fini(&os);
        return r;
    }
    if (!is_signed)
        return auth_capability_file(&o->auth, o->auth_file, e);
    int64_t skew = a->skew_seconds > INT64_MAX ? INT64_MAX : (int64_t)a->skew_seconds;
    int r = auth_signed(&o->auth, o->auth_file, a->value[OPT_WS_ISSUER], a->value[OPT_WS_AUDIENCE],
                        skew, e);
    if (r == 0 && a->skew_seconds > INT64_MAX)
        r = err_set(e, ERR_INVALID_PARAMS,
                    "websocket auth clock skew must fit in a signed 64-bit integer");
    return r;
}

/* The order of these steps decides which of several errors is reported. */
static int apply(struct options *o, const struct options_args *a, struct err *e) {
    int r = check_auth_flags(a, e);
    if (r == 0 && a->given[OPT_WS_TOKEN_SHA256])
        r = auth_capability_digest(&o->auth, a->value[OPT_WS_TOKEN_SHA256], e);
    if (r == 0)
        r = refuse_unavailable(a, e);
    const char *url = a->given[OPT_LISTEN] ? a->value[OPT_LISTEN] : DEFAULT_LISTEN;
    if (r == 0)
        r = set_listen(o, url, e);
    if (r == 0 && a->given[OPT_WS_AUTH] && o->listen == OPTIONS_LISTEN_STDIO)
        r = err_set(e, ERR_INVALID_PARAMS,
                    "WebSocket auth requires a WebSocket listener, not stdio");
    if (r == 0 && (a->given[OPT_WS_TOKEN_FILE] || a->given[OPT_WS_SHARED_SECRET_FILE]))
        r = load_auth_file(o, a, e);
    if (r == 0 && o->require_auth && options_unauthenticated_exposed(o))
        r = err_set(e, ERR_INVALID_PARAMS,
                    "--require-auth: `%s` is not a loopback address and `--ws-auth` is not set",
                    url);
    return r;
}

static enum options_result finish_output(FILE *out, FILE *err) {
    if (fflush(out) == 0 && !ferror(out))
        return OPTIONS_EXIT_0;
    fprintf(err, "Error: cannot write to standard output\n");
    return OPTIONS_ERROR;
}

enum options_result options_parse(int argc, char **argv, struct options *o, FILE *out, FILE *err) {
    struct options_args args;
    *o = (struct options){0};
    enum options_result result = options_scan(argc, argv, &args, out, err);
    if (result == OPTIONS_EXIT_0)
        return finish_output(out, err);
    if (result != OPTIONS_RUN)
        return result;

    o->concurrent_requests = args.concurrent_requests;
    o->session_ttl_ms = args.session_ttl_ms;
    o->closed_retention_ms = CLOSED_RETENTION_MS;
    o->keep_detached = args.given[OPT_KEEP_DETACHED];
    o->require_auth = args.given[OPT_REQUIRE_AUTH];
    o->max_connections = (unsigned)args.max_connections;
    o->log_level = LOG_LEVEL_ERROR;
    if (args.value[OPT_LOG_LEVEL] != NULL)
        log_level_parse(args.value[OPT_LOG_LEVEL], &o->log_level);

    _cleanup_err_ struct err e = ERR_INIT;
    if (apply(o, &args, &e) == 0)
        return OPTIONS_RUN;
    fprintf(err, "Error: %s\n", err_msg(&e));
    options_fini(o);
    return OPTIONS_ERROR;
}

void options_fini(struct options *o) {
    auth_fini(&o->auth);
    free(o->auth_file);
    *o = (struct options){0};
}

int options_reload_auth(struct options *o, struct err *e) {
    if (o->auth_file == NULL)
        return 0;
    struct auth fresh = {.mode = AUTH_NONE};
    int r = o->auth.mode == AUTH_SIGNED ? auth_signed(&fresh, o->auth_file, o->auth.issuer,
                                                      o->auth.audience, o->auth.skew, e)
                                        : auth_capability_file(&fresh, o->auth_file, e);
    if (r < 0) {
        auth_fini(&fresh);
        return r;
    }
    auth_fini(&o->auth);
    o->auth = fresh;
    return 0;
}
