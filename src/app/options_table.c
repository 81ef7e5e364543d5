#include "app/options_table.h"

#include "base/commit.h"

#include <stdarg.h>
#include <string.h>

#ifndef EXEC_SERVER_VERSION
#define EXEC_SERVER_VERSION "0.0.0"
#endif

#define USAGE_LINE "Usage: exec-server [OPTIONS]"
#define YEAR_MS UINT64_C(31536000000)
#define DAY_MS UINT64_C(86400000)

static const char *const auth_modes[] = {"capability-token", "signed-bearer-token", NULL};
static const char *const namespace_modes[] = {"isolate", "inherit", NULL};
static const char *const log_levels[] = {"error", "warn", "info", "debug", "off", NULL};
static const char *const log_formats[] = {"text", "json", NULL};
static const char *const remote_transports[] = {"noise", "direct", NULL};

const struct option_spec options_table[OPT_COUNT] = {
    [OPT_LISTEN] =
        {.name = "listen",
         .value = "URL",
         .key = "listen",
         .kind = OPTION_TEXT,
         .help = "Where to listen: `ws://IP:PORT`; `unix:///PATH` for a socket file that only\n"
                 "the user of the server and root can use; `fd://` for the socket that systemd\n"
                 "passes; or `stdio` (also `stdio://`) for one connection on standard input\n"
                 "and output. IP is an address, not a name; IPv6 is written in brackets; port 0\n"
                 "lets the kernel choose. The bound URL is printed on standard output\n"
                 "[default: the socket that systemd passes, else ws://127.0.0.1:0]"},
    [OPT_CONCURRENT_REQUESTS] =
        {.name = "concurrent-requests",
         .value = "COUNT",
         .key = "concurrentRequests",
         .kind = OPTION_COUNT,
         .min = 1,
         .max = UINT64_MAX,
         .initial = 1,
         .help = "Requests of one connection that may run at the same time; with 1 they run in\n"
                 "the order they came in [default: 1]"},
    [OPT_MAX_CONNECTIONS] = {.name = "max-connections",
                             .value = "COUNT",
                             .key = "maxConnections",
                             .kind = OPTION_COUNT,
                             .min = 1,
                             .max = 1000000,
                             .initial = 1024,
                             .help = "Connections open at the same time [default: 1024]"},
    [OPT_WS_AUTH] = {.name = "ws-auth",
                     .value = "MODE",
                     .key = "wsAuth",
                     .kind = OPTION_CHOICE,
                     .choices = auth_modes,
                     .auth = true,
                     .help = "Ask every WebSocket client for a bearer token of this kind"},
    [OPT_WS_TOKEN_FILE] = {.name = "ws-token-file",
                           .value = "PATH",
                           .key = "wsTokenFile",
                           .kind = OPTION_PATH,
                           .auth = true,
                           .help = "File with the capability token; read again on SIGHUP"},
    [OPT_WS_TOKEN_SHA256] = {.name = "ws-token-sha256",
                             .value = "HEX",
                             .key = "wsTokenSha256",
                             .kind = OPTION_TEXT,
                             .auth = true,
                             .help = "SHA-256 of the capability token, instead of the token"},
    [OPT_WS_TOKENS_FILE] =
        {.name = "ws-tokens-file",
         .value = "PATH",
         .key = "wsTokensFile",
         .kind = OPTION_PATH,
         .auth = true,
         .help = "File with several capability tokens, a line `NAME TOKEN` or `NAME sha256:HEX`\n"
                 "for each; read again on SIGHUP"},
    [OPT_WS_SHARED_SECRET_FILE] =
        {.name = "ws-shared-secret-file",
         .value = "PATH",
         .key = "wsSharedSecretFile",
         .kind = OPTION_PATH,
         .auth = true,
         .help = "File with the secret, of 32 bytes or more, that signs the tokens (JWT, HS256);\n"
                 "read again on SIGHUP"},
    [OPT_WS_ISSUER] = {.name = "ws-issuer",
                       .value = "ISSUER",
                       .key = "wsIssuer",
                       .kind = OPTION_TEXT,
                       .auth = true,
                       .help = "Issuer (`iss`) that a signed token must name"},
    [OPT_WS_AUDIENCE] = {.name = "ws-audience",
                         .value = "AUDIENCE",
                         .key = "wsAudience",
                         .kind = OPTION_TEXT,
                         .auth = true,
                         .help = "Audience (`aud`) that a signed token must name"},
    [OPT_WS_MAX_CLOCK_SKEW] = {.name = "ws-max-clock-skew-seconds",
                               .value = "SECONDS",
                               .key = "wsMaxClockSkewSeconds",
                               .kind = OPTION_COUNT,
                               .max = UINT64_MAX,
                               .initial = 30,
                               .auth = true,
                               .help = "Tolerance for the times in signed tokens [default: 30]"},
    [OPT_REQUIRE_AUTH] = {.name = "require-auth",
                          .key = "requireAuth",
                          .help = "Refuse to listen on an address that is not loopback without\n"
                                  "--ws-auth, instead of warning about it"},
    [OPT_CONSOLE] =
        {.name = "console",
         .value = "URL",
         .key = "console",
         .kind = OPTION_TEXT,
         .help = "Serve a page on which people watch the commands of all clients, at an address\n"
                 "of its own, `ws://IP:PORT`; port 0 lets the kernel choose. The link is printed\n"
                 "on standard error and is good for one browser; see \"Console\" in PROTOCOL.md"},
    [OPT_CONSOLE_CONTROL] = {.name = "console-control",
                             .key = "consoleControl",
                             .help = "Let the console type, signal and start commands too"},
    [OPT_CONSOLE_HOST] =
        {.name = "console-host",
         .value = "NAME",
         .key = "consoleHosts",
         .kind = OPTION_CONSOLE_HOSTS,
         .repeatable = true,
         .help = "A name by which browsers may ask for the console, on any port, besides its own\n"
                 "address; can be given up to 16 times"},
    [OPT_CONSOLE_PAGE] = {.name = "console-page",
                          .value = "DIR",
                          .key = "consolePage",
                          .kind = OPTION_PATH,
                          .help = "Take the files of the page from DIR (tools/console-assets)\n"
                                  "[default: those that are built in]"},
    [OPT_TRUSTED_PROXY] =
        {.name = "trusted-proxy",
         .value = "CIDR",
         .key = "trustedProxies",
         .kind = OPTION_NETS,
         .repeatable = true,
         .help = "Believe X-Forwarded-For if it comes from this address or network, or `unix` for\n"
                 "the Unix socket; can be given up to 16 times"},
    [OPT_HTTP_HOST] =
        {.name = "http-host",
         .value = "NAME",
         .key = "httpHosts",
         .kind = OPTION_HOSTS,
         .repeatable = true,
         .help = "A name by which clients may ask for /metrics and /v1/files, besides addresses\n"
                 "and localhost; can be given up to 16 times"},
    [OPT_METRICS] = {.name = "metrics",
                     .key = "metrics",
                     .help = "Answer GET /metrics with figures about the server (Prometheus text)"},
    [OPT_HTTP_FILES] = {.name = "http-files",
                        .key = "httpFiles",
                        .help = "Answer GET and PUT /v1/files?path=PATH with raw bytes of files"},
    [OPT_HTTP_PROGRAM] =
        {.name = "http-program",
         .value = "PATH",
         .key = "httpProgram",
         .kind = OPTION_PATH,
         .help = "The program that makes requests for `http/request`; `none` refuses them\n"
                 "[default: exec-server-http beside exec-server, if it is there]"},
    [OPT_SESSION_TTL] =
        {.name = "session-ttl",
         .value = "SECONDS",
         .key = "sessionTtlMs",
         .kind = OPTION_SECONDS,
         .max = YEAR_MS,
         .initial = 30000,
         .help = "How long a session and its processes outlive their connection, so that the\n"
                 "client can come back; fractions allowed, 0 ends them at once [default: 30]"},
    [OPT_SESSION_TTL_MAX] =
        {.name = "session-ttl-max",
         .value = "SECONDS",
         .key = "sessionTtlMaxMs",
         .kind = OPTION_SECONDS,
         .max = YEAR_MS,
         .initial = DAY_MS,
         .help = "How long a client may ask its session to outlive a connection, if that is\n"
                 "more than --session-ttl; fractions allowed [default: 86400, 0 if\n"
                 "--session-ttl is 0]"},
    [OPT_KEEP_DETACHED] = {.name = "keep-detached",
                           .key = "keepDetached",
                           .help = "When a session ends, spare processes that made a session of\n"
                                   "their own with setsid(2)"},
    [OPT_ALLOW_ATTACH] = {.name = "allow-attach",
                          .key = "allowAttach",
                          .help = "Let a connection that knows the id of a session watch the\n"
                                  "processes of that session"},
    [OPT_MAX_PROCESSES] =
        {.name = "max-processes",
         .value = "COUNT",
         .key = "maxProcessesPerConnection",
         .kind = OPTION_COUNT,
         .max = 1000000,
         .help = "Processes of one session that may run at the same time; 0 is no limit\n"
                 "[default: 0]"},
    [OPT_COMMAND_MEMORY] =
        {.name = "command-memory",
         .value = "BYTES",
         .key = "commandMemoryBytes",
         .kind = OPTION_COUNT,
         .max = INT64_MAX,
         .help = "Memory of a command whose client sets no limit; 0 is none beyond the maximum\n"
                 "[default: 0]"},
    [OPT_COMMAND_MEMORY_MAX] =
        {.name = "command-memory-max",
         .value = "BYTES",
         .key = "commandMemoryBytesMax",
         .kind = OPTION_COUNT,
         .max = INT64_MAX,
         .help = "The most memory that a command may have, whoever asks; 0 is any\n"
                 "[default: 0]"},
    [OPT_COMMAND_PIDS] =
        {.name = "command-pids",
         .value = "COUNT",
         .key = "commandPids",
         .kind = OPTION_COUNT,
         .max = 4194304,
         .help = "Processes of a command whose client sets no limit; 0 is none beyond the maximum\n"
                 "[default: 0]"},
    [OPT_COMMAND_PIDS_MAX] =
        {.name = "command-pids-max",
         .value = "COUNT",
         .key = "commandPidsMax",
         .kind = OPTION_COUNT,
         .max = 4194304,
         .help = "The most processes that a command may have, whoever asks; 0 is any\n"
                 "[default: 0]"},
    [OPT_COMMAND_CPU] =
        {.name = "command-cpu-percent",
         .value = "PERCENT",
         .key = "commandCpuPercent",
         .kind = OPTION_COUNT,
         .max = 1000000,
         .help = "CPU time of a command whose client sets no limit, 100 is one CPU; 0 is none\n"
                 "beyond the maximum [default: 0]"},
    [OPT_COMMAND_CPU_MAX] =
        {.name = "command-cpu-percent-max",
         .value = "PERCENT",
         .key = "commandCpuPercentMax",
         .kind = OPTION_COUNT,
         .max = 1000000,
         .help = "The most CPU time that a command may have, whoever asks; 0 is any\n"
                 "[default: 0]"},
    [OPT_COMMAND_TIMEOUT] =
        {.name = "command-timeout",
         .value = "SECONDS",
         .key = "commandTimeoutMs",
         .kind = OPTION_SECONDS,
         .max = YEAR_MS,
         .help =
             "How long a command may run whose client sets no limit; fractions allowed, 0 is no\n"
             "limit beyond the maximum [default: 0]"},
    [OPT_COMMAND_TIMEOUT_MAX] =
        {.name = "command-timeout-max",
         .value = "SECONDS",
         .key = "commandTimeoutMaxMs",
         .kind = OPTION_SECONDS,
         .max = YEAR_MS,
         .help = "The longest that a command may run, whoever asks; fractions allowed, 0 is any\n"
                 "[default: 0]"},
    [OPT_RETAINED_OUTPUT] = {.name = "retained-output",
                             .value = "BYTES",
                             .key = "retainedOutputBytesPerProcess",
                             .kind = OPTION_COUNT,
                             .min = 65536,
                             .max = 16777216, /* an answer with all of it fits a message */
                             .initial = 1048576,
                             .help = "Output of one process that is kept to be read again, at\n"
                                     "least 65536 [default: 1048576]"},
    [OPT_CLOSED_RETENTION] =
        {.name = "closed-retention",
         .value = "SECONDS",
         .key = "closedRetentionMs",
         .kind = OPTION_SECONDS,
         .max = YEAR_MS,
         .initial = 30000,
         .help = "How long a process that has ended can still be asked about; fractions\n"
                 "allowed [default: 30]"},
    [OPT_CLOSED_RETENTION_MAX] =
        {.name = "closed-retention-max",
         .value = "SECONDS",
         .key = "closedRetentionMaxMs",
         .kind = OPTION_SECONDS,
         .max = YEAR_MS,
         .initial = DAY_MS,
         .help = "How long a client may ask to keep its processes that have ended, if that is\n"
                 "more than --closed-retention; fractions allowed [default: 86400]"},
    [OPT_CLOSED_OUTPUT_MAX] =
        {.name = "closed-output-max",
         .value = "BYTES",
         .key = "closedOutputBytesMax",
         .kind = OPTION_COUNT,
         .max = UINT64_C(1) << 40,
         .initial = 67108864,
         .help = "Output of all processes that have ended that is kept in total; sessions share\n"
                 "it, and output that a client has received goes first [default: 67108864]"},
    [OPT_SHUTDOWN_GRACE] =
        {.name = "shutdown-grace-ms",
         .value = "MILLISECONDS",
         .key = "shutdownGracePeriodMs",
         .kind = OPTION_COUNT,
         .max = 3600000,
         .help = "When the server ends, send processes SIGTERM and wait so long before they are\n"
                 "killed; 0 kills them at once [default: 0]"},
    [OPT_ALLOW_DIRECT_EXEC] = {.name = "allow-direct-exec",
                               .value = "BOOL",
                               .key = "allowDirectExec",
                               .kind = OPTION_BOOL,
                               .initial = true,
                               .help = "Whether clients may start processes that no sandbox\n"
                                       "confines, `true` or `false` [default: true]"},
    [OPT_ALLOW_PREPARED_EXEC] =
        {.name = "allow-prepared-exec",
         .value = "BOOL",
         .key = "allowPreparedExec",
         .kind = OPTION_BOOL,
         .initial = true,
         .help = "Whether clients may start processes of the form `prepared`, `true` or `false`\n"
                 "[default: true]"},
    [OPT_PID_NAMESPACE] =
        {.name = "linux-sandbox-pid-namespace",
         .value = "MODE",
         .key = "linuxSandboxPidNamespace",
         .kind = OPTION_CHOICE,
         .choices = namespace_modes,
         .help = "Whether sandboxed processes have a PID namespace of their own, `isolate`, or\n"
                 "see the processes of the host, `inherit` [default: isolate]"},
    [OPT_AUDIT_LOG] = {.name = "audit-log",
                       .value = "FILE",
                       .key = "auditLog",
                       .kind = OPTION_PATH,
                       .help = "Append a JSON line to FILE for each connection, start, exit,\n"
                               "signal, write, file change and refusal"},
    [OPT_LOG_LEVEL] = {.name = "log-level",
                       .value = "LEVEL",
                       .env = "EXEC_SERVER_LOG",
                       .key = "logLevel",
                       .kind = OPTION_CHOICE,
                       .choices = log_levels,
                       .help =
                           "What to report on standard error [default: info, with `stdio` warn]"},
    [OPT_LOG_FORMAT] = {.name = "log-format",
                        .value = "FORMAT",
                        .key = "logFormat",
                        .kind = OPTION_CHOICE,
                        .choices = log_formats,
                        .help = "How to report it: lines of text, or JSON objects [default: text]"},
    [OPT_CONFIG_FILE] = {.name = "config-file",
                         .value = "FILE",
                         .kind = OPTION_PATH,
                         .help = "Read options from this JSON file; the command line wins over it"},
    [OPT_PRINT_CONFIG] = {.name = "print-config",
                          .help = "Check all options, print them as a config file, and exit"},
    [OPT_HELP] = {.name = "help", .letter = 'h', .help = "Print this help"},
    [OPT_VERSION] = {.name = "version", .letter = 'V', .help = "Print the version"},
    [OPT_CONFIG] = {.name = "config",
                    .letter = 'c',
                    .value = "KEY=VALUE",
                    .kind = OPTION_TEXT,
                    .repeatable = true,
                    .ignored = true},
    [OPT_ENABLE] = {.name = "enable",
                    .value = "FEATURE",
                    .kind = OPTION_TEXT,
                    .repeatable = true,
                    .ignored = true},
    [OPT_DISABLE] = {.name = "disable",
                     .value = "FEATURE",
                     .kind = OPTION_TEXT,
                     .repeatable = true,
                     .ignored = true},
    [OPT_STRICT_CONFIG] = {.name = "strict-config", .ignored = true},
    [OPT_NAME] = {.name = "name", .value = "NAME", .kind = OPTION_TEXT, .ignored = true},
    [OPT_ENVIRONMENT_ID] = {.name = "environment-id",
                            .value = "ID",
                            .kind = OPTION_TEXT,
                            .ignored = true},
    [OPT_PROXY_PRIVATE_IPS] = {.name = "proxy-private-ips-via-upstream",
                               .env = "CODEX_EXEC_SERVER_PROXY_PRIVATE_IPS_VIA_UPSTREAM",
                               .ignored = true},
    [OPT_REMOTE] = {.name = "remote", .value = "URL", .kind = OPTION_TEXT},
    [OPT_REMOTE_TRANSPORT] = {.name = "remote-transport",
                              .value = "TRANSPORT",
                              .kind = OPTION_CHOICE,
                              .choices = remote_transports,
                              .needs_remote = true},
    [OPT_AGENT_IDENTITY] = {.name = "use-agent-identity-auth", .needs_remote = true},
    [OPT_CREDENTIAL_STDIN] = {.name = "executor-credential-stdin", .needs_remote = true},
    [OPT_AWS_SIGV4] = {.name = "aws-sigv4", .needs_remote = true},
    [OPT_AWS_PROFILE] = {.name = "aws-profile",
                         .value = "PROFILE",
                         .kind = OPTION_TEXT,
                         .needs_remote = true},
    [OPT_AWS_REGION] = {.name = "aws-region",
                        .value = "REGION",
                        .kind = OPTION_TEXT,
                        .needs_remote = true},
    [OPT_AWS_SERVICE] = {.name = "aws-service",
                         .value = "SERVICE",
                         .kind = OPTION_TEXT,
                         .needs_remote = true},
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

void options_table_print_help(FILE *out) {
    fputs("Runs commands on this machine for Codex clients that connect to it.\n\n" USAGE_LINE
          "\n       exec-server doctor [--json]\n"
          "       exec-server health <URL>\n"
          "       exec-server execpolicy check --rules <PATH> <COMMAND>...\n"
          "       exec-server execpolicy allow <COMMAND>...\n\n"
          "`doctor` prints what this host can enforce in a sandbox, and exits. `health` asks a\n"
          "running server whether it is ready. `execpolicy check` prints what `.rules` files say\n"
          "about a command, `execpolicy allow` adds a rule to the user's.\n\nOptions:",
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

void options_table_print_version(FILE *out) {
    fprintf(out, "exec-server " EXEC_SERVER_VERSION " (%s)\n", commit_name);
}

enum options_result options_table_usage(FILE *err, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    fputs("error: ", err);
    vfprintf(err, fmt, ap);
    va_end(ap);
    fputs("; see 'exec-server --help'\n", err);
    return OPTIONS_USAGE;
}
