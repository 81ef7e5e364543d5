#include "server/options_table.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#ifndef EXEC_SERVER_VERSION
#define EXEC_SERVER_VERSION "0.0.0"
#endif

#define USAGE_LINE "Usage: exec-server [OPTIONS]"
#define TEXT_OF(number) TEXT_OF_(number)
#define TEXT_OF_(number) #number

static const char not_a_number[] = "not a whole number";

/* Digits only, a leading plus allowed. NULL or the reason. */
static const char *parse_u64(const char *s, uint64_t *v) {
    s += *s == '+';
    if (*s == '\0')
        return not_a_number;
    uint64_t n = 0;
    for (; *s != '\0'; s++) {
        if (*s < '0' || *s > '9')
            return not_a_number;
        if (__builtin_mul_overflow(n, (uint64_t)10, &n) ||
            __builtin_add_overflow(n, (uint64_t)(*s - '0'), &n))
            return "the number is too large";
    }
    *v = n;
    return NULL;
}

static const char *set_concurrent_requests(struct options_args *args, const char *value) {
    const char *reason = parse_u64(value, &args->concurrent_requests);
    if (reason == NULL && args->concurrent_requests == 0)
        reason = "must be at least 1";
    return reason;
}

static const char *set_max_connections(struct options_args *args, const char *value) {
    const char *reason = parse_u64(value, &args->max_connections);
    if (reason != not_a_number && (reason != NULL || args->max_connections == 0 ||
                                   args->max_connections > OPTIONS_CONNECTIONS_MAX))
        reason = "must be between 1 and " TEXT_OF(OPTIONS_CONNECTIONS_MAX);
    return reason;
}

static const char *set_skew(struct options_args *args, const char *value) {
    return parse_u64(value, &args->skew_seconds);
}

/* The digits after the point as milliseconds, rounded up: only zero itself becomes zero. */
static const char *parse_fraction(const char *s, uint64_t *ms) {
    uint64_t scale = 100;
    bool rest = false;
    *ms = 0;
    if (*s == '\0')
        return "not a number";
    for (; *s != '\0'; s++) {
        if (*s < '0' || *s > '9')
            return "not a number";
        uint64_t digit = (uint64_t)(*s - '0');
        *ms += digit * scale;
        rest |= scale == 0 && digit != 0;
        scale /= 10;
    }
    *ms += rest;
    return NULL;
}

static const char *set_session_ttl(struct options_args *args, const char *value) {
    static const char too_large[] = "must be at most " TEXT_OF(OPTIONS_TTL_MAX_SECONDS);
    uint64_t seconds = 0, ms = 0;
    size_t n = strspn(value, "0123456789");
    if (n == 0 || (value[n] != '\0' && value[n] != '.'))
        return "not a number";
    if (value[n] == '.') {
        const char *reason = parse_fraction(value + n + 1, &ms);
        if (reason != NULL)
            return reason;
    }
    for (size_t i = 0; i < n; i++) {
        seconds = seconds * 10 + (uint64_t)(value[i] - '0');
        if (seconds > OPTIONS_TTL_MAX_SECONDS)
            return too_large;
    }
    args->session_ttl_ms = seconds * 1000 + ms;
    return args->session_ttl_ms > OPTIONS_TTL_MAX_SECONDS * UINT64_C(1000) ? too_large : NULL;
}

static const char *const auth_modes[] = {"capability-token", "signed-bearer-token", NULL};
static const char *const namespace_modes[] = {"isolate", "inherit", NULL};
static const char *const log_levels[] = {"error", "warn", "info", "debug", "off", NULL};
static const char *const remote_transports[] = {"noise", "direct", NULL};

const struct option_spec options_table[OPT_COUNT] = {
    [OPT_LISTEN] = {.name = "listen",
                    .value = "URL",
                    .help =
                        "Where to listen: `ws://IP:PORT`, or `stdio` (also `stdio://`) for one\n"
                        "connection on standard input and output. IP is an address, not a name;\n"
                        "IPv6 is written in brackets; port 0 lets the kernel choose. The bound\n"
                        "URL is printed on standard output [default: ws://127.0.0.1:0]"},
    [OPT_CONCURRENT_REQUESTS] =
        {.name = "concurrent-requests",
         .value = "COUNT",
         .set = set_concurrent_requests,
         .help = "Requests of one connection that may run at the same time; with 1 they run in\n"
                 "the order they came in [default: 1]"},
    [OPT_MAX_CONNECTIONS] = {.name = "max-connections",
                             .value = "COUNT",
                             .set = set_max_connections,
                             .help = "Connections open at the same time [default: 1024]"},
    [OPT_WS_AUTH] = {.name = "ws-auth",
                     .value = "MODE",
                     .choices = auth_modes,
                     .help = "Ask every WebSocket client for a bearer token of this kind"},
    [OPT_WS_TOKEN_FILE] = {.name = "ws-token-file",
                           .value = "PATH",
                           .path = true,
                           .help = "File with the capability token; read again on SIGHUP"},
    [OPT_WS_TOKEN_SHA256] = {.name = "ws-token-sha256",
                             .value = "HEX",
                             .help = "SHA-256 of the capability token, instead of the token"},
    [OPT_WS_SHARED_SECRET_FILE] =
        {.name = "ws-shared-secret-file",
         .value = "PATH",
         .path = true,
         .help = "File with the secret, of 32 bytes or more, that signs the tokens (JWT, HS256);\n"
                 "read again on SIGHUP"},
    [OPT_WS_ISSUER] = {.name = "ws-issuer",
                       .value = "ISSUER",
                       .help = "Issuer (`iss`) that a signed token must name"},
    [OPT_WS_AUDIENCE] = {.name = "ws-audience",
                         .value = "AUDIENCE",
                         .help = "Audience (`aud`) that a signed token must name"},
    [OPT_WS_MAX_CLOCK_SKEW] = {.name = "ws-max-clock-skew-seconds",
                               .value = "SECONDS",
                               .set = set_skew,
                               .help = "Tolerance for the times in signed tokens [default: 30]"},
    [OPT_REQUIRE_AUTH] = {.name = "require-auth",
                          .help = "Refuse to listen on an address that is not loopback without\n"
                                  "--ws-auth, instead of warning about it"},
    [OPT_SESSION_TTL] =
        {.name = "session-ttl",
         .value = "SECONDS",
         .set = set_session_ttl,
         .help = "How long a session and its processes outlive their connection, so that the\n"
                 "client can come back; fractions allowed, 0 ends them at once [default: 30]"},
    [OPT_KEEP_DETACHED] = {.name = "keep-detached",
                           .help = "When a session ends, spare processes that made a session of\n"
                                   "their own with setsid(2)"},
    [OPT_PID_NAMESPACE] = {.name = "linux-sandbox-pid-namespace",
                           .value = "MODE",
                           .choices = namespace_modes,
                           .help =
                               "PID namespace of sandboxed processes; `inherit` is not available\n"
                               "in this version [default: isolate]"},
    [OPT_LOG_LEVEL] = {.name = "log-level",
                       .value = "LEVEL",
                       .env = "EXEC_SERVER_LOG",
                       .choices = log_levels,
                       .help = "What to report on standard error [default: error]"},
    [OPT_HELP] = {.name = "help", .letter = 'h', .help = "Print this help"},
    [OPT_VERSION] = {.name = "version", .letter = 'V', .help = "Print the version"},
    [OPT_CONFIG] = {.name = "config",
                    .letter = 'c',
                    .value = "KEY=VALUE",
                    .repeatable = true,
                    .ignored = true},
    [OPT_ENABLE] = {.name = "enable", .value = "FEATURE", .repeatable = true, .ignored = true},
    [OPT_DISABLE] = {.name = "disable", .value = "FEATURE", .repeatable = true, .ignored = true},
    [OPT_STRICT_CONFIG] = {.name = "strict-config", .ignored = true},
    [OPT_NAME] = {.name = "name", .value = "NAME", .ignored = true},
    [OPT_ENVIRONMENT_ID] = {.name = "environment-id", .value = "ID", .ignored = true},
    [OPT_PROXY_PRIVATE_IPS] = {.name = "proxy-private-ips-via-upstream",
                               .env = "CODEX_EXEC_SERVER_PROXY_PRIVATE_IPS_VIA_UPSTREAM",
                               .ignored = true},
    [OPT_REMOTE] = {.name = "remote", .value = "URL"},
    [OPT_REMOTE_TRANSPORT] = {.name = "remote-transport",
                              .value = "TRANSPORT",
                              .choices = remote_transports,
                              .needs_remote = true},
    [OPT_AGENT_IDENTITY] = {.name = "use-agent-identity-auth", .needs_remote = true},
    [OPT_CREDENTIAL_STDIN] = {.name = "executor-credential-stdin", .needs_remote = true},
    [OPT_AWS_SIGV4] = {.name = "aws-sigv4", .needs_remote = true},
    [OPT_AWS_PROFILE] = {.name = "aws-profile", .value = "PROFILE", .needs_remote = true},
    [OPT_AWS_REGION] = {.name = "aws-region", .value = "REGION", .needs_remote = true},
    [OPT_AWS_SERVICE] = {.name = "aws-service", .value = "SERVICE", .needs_remote = true},
    [OPT_EXIT_ON_STDIN_CLOSE] = {.name = "exit-on-stdin-close",
                                 .env = "CODEX_EXEC_SERVER_EXIT_ON_STDIN_CLOSE",
                                 .needs_remote = true},
};

static void print_lines(FILE *out, const char *text) {
    for (;;) {
        size_t n = strcspn(text, "\n");
        fprintf(out, "          %.*s\n", (int)n, text);
        if (text[n] == '\0')
            return;
        text += n + 1;
    }
}

static void print_name(FILE *out, const struct option_spec *spec) {
    if (spec->letter != 0)
        fprintf(out, "  -%c, --%s", spec->letter, spec->name);
    else
        fprintf(out, "      --%s", spec->name);
    if (spec->value != NULL)
        fprintf(out, " <%s>", spec->value);
    fputc('\n', out);
}

static void print_option(FILE *out, const struct option_spec *spec) {
    fputc('\n', out);
    print_name(out, spec);
    print_lines(out, spec->help);
    if (spec->choices != NULL) {
        fputs("          [possible values: ", out);
        for (const char *const *c = spec->choices; *c != NULL; c++)
            fprintf(out, "%s%s", c == spec->choices ? "" : ", ", *c);
        fputs("]\n", out);
    }
    if (spec->env != NULL)
        fprintf(out, "          [env: %s]\n", spec->env);
}

void options_print_help(FILE *out) {
    fputs("Runs commands on this machine for Codex clients that connect to it.\n\n" USAGE_LINE
          "\n\nOptions:",
          out);
    for (unsigned id = 0; id < OPT_COUNT; id++) {
        if (options_table[id].help != NULL)
            print_option(out, &options_table[id]);
    }
    fputs("\nAccepted for compatibility, without effect:\n", out);
    for (unsigned id = 0; id < OPT_COUNT; id++) {
        if (options_table[id].ignored)
            print_name(out, &options_table[id]);
    }
}

void options_print_version(FILE *out) {
    fputs("exec-server " EXEC_SERVER_VERSION "\n", out);
}

enum options_result options_usage(FILE *err, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    fputs("error: ", err);
    vfprintf(err, fmt, ap);
    va_end(ap);
    fputs("\n\n" USAGE_LINE "\n\nFor more information, try '--help'.\n", err);
    return OPTIONS_USAGE;
}
