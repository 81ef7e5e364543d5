#include "app/options.h"

#include "app/config.h"
#include "app/options_table.h"
#include "app/sdnotify.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>

#define WS_SCHEME "ws://"
#define UNIX_SCHEME "unix://"
#define FD_URL "fd://"
#define DEFAULT_LISTEN "ws://127.0.0.1:0"

/* Whether all of s is a number up to `max`. */
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
static bool parse_endpoint(const char *text, struct sockaddr_storage *addr, socklen_t *len) {
    const char *colon = strrchr(text, ':');
    uint32_t port;
    if (colon == NULL || colon == text || !parse_digits(str_of(colon + 1), UINT16_MAX, &port))
        return false;
    struct str host = {text, (size_t)(colon - text)};
    if (host.p[0] == '[') {
        struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)addr;
        *len = sizeof(*in6);
        in6->sin6_port = htons((uint16_t)port);
        return host.p[host.n - 1] == ']' && host.n > 2 &&
               parse_ipv6((struct str){host.p + 1, host.n - 2}, in6);
    }
    struct sockaddr_in *in = (struct sockaddr_in *)addr;
    *len = sizeof(*in);
    in->sin_family = AF_INET;
    in->sin_port = htons((uint16_t)port);
    return parse_address(AF_INET, host, &in->sin_addr);
}

/* "unix://" and an absolute path, taken as it is. */
static int set_listen_unix(struct options *o, const char *url, struct err *e) {
    struct sockaddr_un *un = (struct sockaddr_un *)&o->addr;
    const char *path = url + strlen(UNIX_SCHEME);
    if (path[0] != '/')
        return err_set(e, ERR_INVALID_PARAMS,
                       "invalid unix --listen URL `%s`; expected `unix:///PATH`", url);
    if (strlen(path) >= sizeof(un->sun_path))
        return err_set(e, ERR_INVALID_PARAMS,
                       "invalid unix --listen URL `%s`; the path is longer than %zu bytes", url,
                       sizeof(un->sun_path) - 1);
    o->listen = OPTIONS_LISTEN_UNIX;
    o->addr_len = sizeof(*un);
    un->sun_family = AF_UNIX;
    strcpy(un->sun_path, path);
    return 0;
}

static int set_listen(struct options *o, const char *url, struct err *e) {
    if (strcmp(url, "stdio") == 0 || strcmp(url, "stdio://") == 0) {
        o->listen = OPTIONS_LISTEN_STDIO;
        return 0;
    }
    if (strcmp(url, FD_URL) == 0) {
        o->listen = OPTIONS_LISTEN_FD;
        return 0;
    }
    if (strncmp(url, UNIX_SCHEME, strlen(UNIX_SCHEME)) == 0)
        return set_listen_unix(o, url, e);
    o->listen = OPTIONS_LISTEN_WS;
    if (strncmp(url, WS_SCHEME, strlen(WS_SCHEME)) != 0)
        return err_set(e, ERR_INVALID_PARAMS,
                       "unsupported --listen URL `%s`; expected `ws://IP:PORT` or `stdio`", url);
    if (!parse_endpoint(url + strlen(WS_SCHEME), &o->addr, &o->addr_len))
        return err_set(e, ERR_INVALID_PARAMS,
                       "invalid websocket --listen URL `%s`; expected `ws://IP:PORT`", url);
    return 0;
}

int options_check_listen(const char *url, struct err *e) {
    struct options scratch = {0};
    return set_listen(&scratch, url, e);
}

static bool is_loopback(const struct sockaddr_storage *addr) {
    if (addr->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)addr;
        return ntohl(in->sin_addr.s_addr) >> 24 == 127;
    }
    const struct in6_addr *a = &((const struct sockaddr_in6 *)addr)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(a) || (IN6_IS_ADDR_V4MAPPED(a) && a->s6_addr[12] == 127);
}

bool options_exposed(const struct options *o) {
    bool network = o->addr.ss_family == AF_INET || o->addr.ss_family == AF_INET6;
    return o->listen != OPTIONS_LISTEN_STDIO && network && !is_loopback(&o->addr);
}

bool options_unauthenticated_exposed(const struct options *o) {
    return o->auth.mode == AUTH_NONE && options_exposed(o);
}

/*
 * The absolute form of a path, owned: a leading "~" is the home directory, other relative paths
 * start at the current directory. Removes "." and empty components; keeps ".." for the kernel,
 * which knows the symbolic links. NULL with errno set.
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

/* Checks the rules between the --ws-* options; reads no file. */
static int check_auth_flags(const struct options_args *a, struct err *e) {
    const bool *given = a->given;
    bool token =
        given[OPT_WS_TOKEN_FILE] || given[OPT_WS_TOKEN_SHA256] || given[OPT_WS_TOKENS_FILE];
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
        else if (given[OPT_WS_TOKENS_FILE] &&
                 (given[OPT_WS_TOKEN_FILE] || given[OPT_WS_TOKEN_SHA256]))
            text =
                "`--ws-tokens-file` replaces `--ws-token-file` and `--ws-token-sha256`: give one";
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
    return 0;
}

/* The option that names the token or secret file; OPT_COUNT: none. */
static enum option_id auth_file_option(const struct options_args *a) {
    return a->given[OPT_WS_SHARED_SECRET_FILE] ? OPT_WS_SHARED_SECRET_FILE
           : a->given[OPT_WS_TOKENS_FILE]      ? OPT_WS_TOKENS_FILE
           : a->given[OPT_WS_TOKEN_FILE]       ? OPT_WS_TOKEN_FILE
                                               : OPT_COUNT;
}

static int load_auth_file(struct options *o, const struct options_args *a, struct err *e) {
    bool is_signed = a->given[OPT_WS_SHARED_SECRET_FILE];
    const char *path = a->value[auth_file_option(a)];
    o->auth_file = absolute_path(path);
    if (o->auth_file == NULL) {
        struct err os = ERR_INIT;
        int r = err_os(&os, ERR_INTERNAL, errno);
        err_set(e, ERR_INTERNAL, "failed to read websocket auth secret %s: %s", path, err_msg(&os));
        err_fini(&os);
        return r;
    }
    if (a->given[OPT_WS_TOKENS_FILE])
        return auth_tokens_file(&o->auth, o->auth_file, e);
    if (!is_signed)
        return auth_capability_file(&o->auth, o->auth_file, e);
    uint64_t seconds = a->number[OPT_WS_MAX_CLOCK_SKEW];
    int64_t skew = seconds > INT64_MAX ? INT64_MAX : (int64_t)seconds;
    int r = auth_signed(&o->auth, o->auth_file, a->value[OPT_WS_ISSUER], a->value[OPT_WS_AUDIENCE],
                        skew, e);
    if (r == 0 && seconds > INT64_MAX)
        r = err_set(e, ERR_INVALID_PARAMS,
                    "websocket auth clock skew must fit in a signed 64-bit integer");
    return r;
}

/* Applies the --ws-* options; reads no file. */
static int apply_auth_flags(struct options *o, const struct options_args *a, struct err *e) {
    bool from_file = false;
    for (unsigned id = 0; id < OPT_COUNT; id++)
        from_file |= options_table[id].auth && a->from_file[id];
    _cleanup_err_ struct err why = ERR_INIT;
    int r = check_auth_flags(a, &why);
    if (r == 0 && a->given[OPT_WS_TOKEN_SHA256])
        r = auth_capability_digest(&o->auth, a->value[OPT_WS_TOKEN_SHA256], &why);
    if (r < 0 && from_file)
        err_set(e, ERR_INVALID_PARAMS, "config file %s: %s", a->value[OPT_CONFIG_FILE],
                err_msg(&why));
    else if (r < 0)
        err_set(e, ERR_INVALID_PARAMS, "%s", err_msg(&why));
    return r;
}

/*
 * Sets the address to listen on and checks it against the other options. A service manager passed
 * `passed` sockets; --print-config needs none.
 */
static int apply_listen(struct options *o, const struct options_args *a, unsigned passed,
                        struct err *e) {
    int r = set_listen(o, a->value[OPT_LISTEN], e);
    if (r == 0 && a->given[OPT_WS_AUTH] && o->listen == OPTIONS_LISTEN_STDIO)
        r = err_set(e, ERR_INVALID_PARAMS,
                    "WebSocket auth requires a WebSocket listener, not stdio");
    if (r == 0 && o->listen == OPTIONS_LISTEN_FD && (passed > 0 || !a->on[OPT_PRINT_CONFIG]))
        r = sdnotify_socket(passed, &o->listen_fd, &o->addr, &o->addr_len, e);
    return r;
}

/* `none` is no path. */
static int apply_http_program(struct options *o, const struct options_args *a, struct err *e) {
    const char *path = a->value[OPT_HTTP_PROGRAM];
    if (!a->given[OPT_HTTP_PROGRAM])
        return 0;
    o->http_program = strcmp(path, "none") == 0 ? strdup(path) : absolute_path(path);
    return o->http_program == NULL ? err_os(e, ERR_INTERNAL, errno) : 0;
}

static int apply_console(struct options *o, const struct options_args *a, struct err *e) {
    const char *url = a->value[OPT_CONSOLE], *page = a->value[OPT_CONSOLE_PAGE];
    o->console_control = a->on[OPT_CONSOLE_CONTROL];
    if (page != NULL && (o->console_page = absolute_path(page)) == NULL)
        return err_os(e, ERR_INTERNAL, errno);
    for (size_t i = 0; i < a->console_hosts.count; i++) {
        o->console_hosts[i] = strdup(a->console_hosts.items[i]);
        if (o->console_hosts[i] == NULL)
            return err_os(e, ERR_INTERNAL, ENOMEM);
        o->console_host_count++;
    }
    if (url == NULL)
        return 0;
    if (strncmp(url, WS_SCHEME, strlen(WS_SCHEME)) != 0 ||
        !parse_endpoint(url + strlen(WS_SCHEME), &o->console_addr, &o->console_addr_len))
        return err_set(e, ERR_INVALID_PARAMS, "invalid --console URL `%s`; expected `ws://IP:PORT`",
                       url);
    if (o->auth.mode == AUTH_NONE && !is_loopback(&o->console_addr))
        return err_set(e, ERR_INVALID_PARAMS,
                       "--console: `%s` is not a loopback address and `--ws-auth` is not set", url);
    return 0;
}

static int apply_files(struct options *o, const struct options_args *a, struct err *e) {
    if (a->given[OPT_AUDIT_LOG]) {
        o->audit_log = absolute_path(a->value[OPT_AUDIT_LOG]);
        if (o->audit_log == NULL)
            return err_os(e, ERR_INTERNAL, errno);
    }
    for (size_t i = 0; i < a->nets.count; i++)
        (void)!forwarded_add(&o->trusted, a->nets.items[i]); /* checked when it was read */
    for (size_t i = 0; i < a->hosts.count; i++) {
        o->http_hosts[i] = strdup(a->hosts.items[i]);
        if (o->http_hosts[i] == NULL)
            return err_os(e, ERR_INTERNAL, ENOMEM);
        o->http_host_count++;
    }
    return 0;
}

static void apply_values(struct options *o, const struct options_args *a) {
    o->max_connections = (unsigned)a->number[OPT_MAX_CONNECTIONS];
    o->concurrent_requests = a->number[OPT_CONCURRENT_REQUESTS];
    o->metrics = a->on[OPT_METRICS];
    o->http_files = a->on[OPT_HTTP_FILES];
    o->require_auth = a->on[OPT_REQUIRE_AUTH];
    o->session_ttl_ms = a->number[OPT_SESSION_TTL];
    o->session_ttl_max_ms = a->number[OPT_SESSION_TTL_MAX];
    o->keep_detached = a->on[OPT_KEEP_DETACHED];
    o->allow_attach = a->on[OPT_ALLOW_ATTACH];
    o->max_processes = (unsigned)a->number[OPT_MAX_PROCESSES];
    o->retained_output = (size_t)a->number[OPT_RETAINED_OUTPUT];
    o->closed_retention_ms = a->number[OPT_CLOSED_RETENTION];
    o->closed_retention_max_ms = a->number[OPT_CLOSED_RETENTION_MAX];
    o->closed_output_max = (size_t)MIN(a->number[OPT_CLOSED_OUTPUT_MAX], (uint64_t)SIZE_MAX);
    o->shutdown_grace_ms = a->number[OPT_SHUTDOWN_GRACE];
    o->allow_direct_exec = a->on[OPT_ALLOW_DIRECT_EXEC];
    o->allow_prepared_exec = a->on[OPT_ALLOW_PREPARED_EXEC];
    o->inherit_pids = strcmp(a->value[OPT_PID_NAMESPACE], "inherit") == 0;
    log_level_parse(a->value[OPT_LOG_LEVEL], &o->log_level);
    if (strcmp(a->value[OPT_LOG_FORMAT], "json") == 0)
        o->log_format = LOG_FORMAT_JSON;
    o->command_timeout_ms = a->number[OPT_COMMAND_TIMEOUT];
    o->command_timeout_max_ms = a->number[OPT_COMMAND_TIMEOUT_MAX];
}

/* Options that set a limit of commands, with the kind of the limit. */
static const struct {
    enum option_id usual, max;
    enum limits_kind kind;
} command_limits[] = {
    {OPT_COMMAND_MEMORY, OPT_COMMAND_MEMORY_MAX, LIMITS_MEMORY},
    {OPT_COMMAND_PIDS, OPT_COMMAND_PIDS_MAX, LIMITS_PIDS},
    {OPT_COMMAND_CPU, OPT_COMMAND_CPU_MAX, LIMITS_CPU},
};

static int check_command_pair(const struct options_args *a, enum option_id usual,
                              enum option_id max, struct err *e) {
    if (a->number[max] == 0 || a->number[usual] <= a->number[max])
        return 0;
    return err_set(e, ERR_INVALID_PARAMS, "--%s is more than --%s allows; lower it",
                   options_table[usual].name, options_table[max].name);
}

static int apply_command_limit(struct limits *l, enum option_id id, enum limits_kind kind,
                               const struct options_args *a, struct err *e) {
    _cleanup_err_ struct err why = ERR_INIT;
    struct limits one = {0};
    if (a->number[id] == 0)
        return 0;
    one.given[kind] = l->given[kind] = true;
    one.value[kind] = l->value[kind] = (int64_t)a->number[id];
    if (limits_check(&one, &why) == 0)
        return 0;
    return err_set(e, ERR_INVALID_PARAMS, "--%s: %s", options_table[id].name, err_msg(&why));
}

static int apply_command_limits(struct options *o, const struct options_args *a, struct err *e) {
    int r = check_command_pair(a, OPT_COMMAND_TIMEOUT, OPT_COMMAND_TIMEOUT_MAX, e);
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(command_limits); i++) {
        enum limits_kind kind = command_limits[i].kind;
        r = apply_command_limit(&o->command_limits, command_limits[i].usual, kind, a, e);
        if (r == 0)
            r = apply_command_limit(&o->command_limits_max, command_limits[i].max, kind, a, e);
        if (r == 0)
            r = check_command_pair(a, command_limits[i].usual, command_limits[i].max, e);
    }
    return r;
}

/* The order of these steps decides which of several errors is reported. */
static int apply(struct options *o, const struct options_args *a, unsigned passed, struct err *e) {
    apply_values(o, a);
    int r = apply_auth_flags(o, a, e);
    if (r == 0)
        r = refuse_unavailable(a, e);
    if (r == 0)
        r = apply_listen(o, a, passed, e);
    if (r == 0 && auth_file_option(a) != OPT_COUNT)
        r = load_auth_file(o, a, e);
    if (r == 0 && o->require_auth && options_unauthenticated_exposed(o))
        r = err_set(e, ERR_INVALID_PARAMS,
                    "--require-auth: `%s` is not a loopback address and `--ws-auth` is not set",
                    a->value[OPT_LISTEN]);
    if (r == 0 && (o->metrics || o->http_files) && options_unauthenticated_exposed(o))
        r = err_set(e, ERR_INVALID_PARAMS,
                    "--%s: `%s` is not a loopback address and `--ws-auth` is not set",
                    o->metrics ? "metrics" : "http-files", a->value[OPT_LISTEN]);
    if (r == 0)
        r = apply_command_limits(o, a, e);
    if (r == 0)
        r = apply_http_program(o, a, e);
    if (r == 0)
        r = apply_console(o, a, e);
    return r == 0 ? apply_files(o, a, e) : r;
}

/* Sets the defaults of options that no source has set. */
static void fill_defaults(struct options_args *a, unsigned passed) {
    if (a->value[OPT_LISTEN] == NULL)
        a->value[OPT_LISTEN] = passed > 0 ? FD_URL : DEFAULT_LISTEN;
    if (a->value[OPT_PID_NAMESPACE] == NULL)
        a->value[OPT_PID_NAMESPACE] = "isolate";
    if (a->value[OPT_LOG_LEVEL] == NULL)
        a->value[OPT_LOG_LEVEL] = strncmp(a->value[OPT_LISTEN], "stdio", 5) == 0 ? "warn" : "info";
    if (a->value[OPT_LOG_FORMAT] == NULL)
        a->value[OPT_LOG_FORMAT] = "text";
    /* An operator who ends sessions at once must not get lasting ones because a client asks. */
    if (!a->given[OPT_SESSION_TTL_MAX] && a->number[OPT_SESSION_TTL] == 0)
        a->number[OPT_SESSION_TTL_MAX] = 0;
}

static enum options_result finish_output(FILE *out, FILE *err) {
    if (fflush(out) == 0 && !ferror(out))
        return OPTIONS_EXIT_0;
    fprintf(err, "Error: cannot write to standard output\n");
    return OPTIONS_ERROR;
}

/* Prints absolute paths, as the server uses them. */
static int print_config(const struct options *o, struct options_args *a, FILE *out, struct err *e) {
    if (o->auth_file != NULL)
        a->value[auth_file_option(a)] = o->auth_file;
    a->value[OPT_AUDIT_LOG] = o->audit_log;
    a->value[OPT_HTTP_PROGRAM] = o->http_program;
    a->value[OPT_CONSOLE_PAGE] = o->console_page;
    return config_print(a, out, e);
}

enum options_result options_parse(int argc, char **argv, struct options *o, FILE *out, FILE *err) {
    struct options_args args;
    *o = (struct options){.listen_fd = -1};
    enum options_result result = options_scan(argc, argv, &args, out, err);
    if (result == OPTIONS_EXIT_0)
        return finish_output(out, err);
    if (result != OPTIONS_RUN)
        return result;

    _cleanup_err_ struct err e = ERR_INIT;
    _cleanup_arena_ struct arena strings = ARENA_INIT(2 * CONFIG_FILE_MAX);
    unsigned passed = sdnotify_take_fds();
    o->notify_socket = sdnotify_take_socket();
    int r = config_load(args.value[OPT_CONFIG_FILE], &args, &strings, &e);
    fill_defaults(&args, passed);
    if (r == 0)
        r = apply(o, &args, passed, &e);
    if (r == 0 && !args.on[OPT_PRINT_CONFIG])
        return OPTIONS_RUN;
    if (r == 0)
        r = print_config(o, &args, out, &e);
    options_fini(o);
    if (r == 0)
        return finish_output(out, err);
    fprintf(err, "Error: %s\n", err_msg(&e));
    return OPTIONS_ERROR;
}

void options_fini(struct options *o) {
    auth_fini(&o->auth);
    free(o->auth_file);
    free(o->audit_log);
    free(o->http_program);
    free(o->notify_socket);
    for (size_t i = 0; i < o->http_host_count; i++)
        free(o->http_hosts[i]);
    for (size_t i = 0; i < o->console_host_count; i++)
        free(o->console_hosts[i]);
    free(o->console_page);
    *o = (struct options){.listen_fd = -1};
}

bool options_auth_file_is_open(const struct options *o) {
    struct stat st;
    return o->auth_file != NULL && stat(o->auth_file, &st) == 0 && S_ISREG(st.st_mode) &&
           (st.st_mode & S_IROTH) != 0;
}

int options_reload_auth(struct options *o, struct err *e) {
    if (o->auth_file == NULL)
        return 0;
    struct auth fresh = {.mode = AUTH_NONE};
    int r = o->auth.mode == AUTH_SIGNED ? auth_signed(&fresh, o->auth_file, o->auth.issuer,
                                                      o->auth.audience, o->auth.skew, e)
            : o->auth.tokens != NULL    ? auth_tokens_file(&fresh, o->auth_file, e)
                                        : auth_capability_file(&fresh, o->auth_file, e);
    if (r < 0) {
        auth_fini(&fresh);
        return r;
    }
    auth_fini(&o->auth);
    o->auth = fresh;
    return 0;
}
