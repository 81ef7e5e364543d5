#pragma once
/* Inside options: the table of options, the help made from it, and the scan of argv. */

#include "server/options.h"

#define OPTIONS_TTL_MAX_SECONDS 31536000 /* a year */
#define OPTIONS_CONNECTIONS_MAX 1000000

enum option_id {
    OPT_LISTEN,
    OPT_CONCURRENT_REQUESTS,
    OPT_MAX_CONNECTIONS,
    OPT_WS_AUTH,
    OPT_WS_TOKEN_FILE,
    OPT_WS_TOKEN_SHA256,
    OPT_WS_SHARED_SECRET_FILE,
    OPT_WS_ISSUER,
    OPT_WS_AUDIENCE,
    OPT_WS_MAX_CLOCK_SKEW,
    OPT_REQUIRE_AUTH,
    OPT_SESSION_TTL,
    OPT_KEEP_DETACHED,
    OPT_PID_NAMESPACE,
    OPT_LOG_LEVEL,
    OPT_HELP,
    OPT_VERSION,
    OPT_CONFIG,
    OPT_ENABLE,
    OPT_DISABLE,
    OPT_STRICT_CONFIG,
    OPT_NAME,
    OPT_ENVIRONMENT_ID,
    OPT_PROXY_PRIVATE_IPS,
    OPT_REMOTE,
    OPT_REMOTE_TRANSPORT,
    OPT_AGENT_IDENTITY,
    OPT_CREDENTIAL_STDIN,
    OPT_AWS_SIGV4,
    OPT_AWS_PROFILE,
    OPT_AWS_REGION,
    OPT_AWS_SERVICE,
    OPT_EXIT_ON_STDIN_CLOSE,
    OPT_COUNT,
};

/* What was given: values are borrowed from argv or the environment. */
struct options_args {
    bool given[OPT_COUNT];
    bool from_env[OPT_COUNT];
    const char *value[OPT_COUNT]; /* NULL for flags and for what was not given */
    uint64_t concurrent_requests, max_connections, skew_seconds, session_ttl_ms;
};

struct option_spec {
    const char *name;  /* without the dashes */
    char letter;       /* 0 = none */
    const char *value; /* placeholder; NULL = a flag */
    const char *env;   /* environment variable that stands for it; NULL = none */
    bool repeatable;
    bool path;                  /* any bytes, but not empty; other values are UTF-8 */
    bool needs_remote;          /* means nothing without --remote */
    bool ignored;               /* accepted, checked and forgotten */
    const char *const *choices; /* NULL-terminated; NULL = anything */
    /* Parses the value into args; the reason when it is bad, else NULL. */
    const char *(*set)(struct options_args *args, const char *value);
    const char *help; /* lines of at most 86 characters; NULL = not in the help */
};

extern const struct option_spec options_table[OPT_COUNT];

void options_print_help(FILE *out);
void options_print_version(FILE *out);

/* "error: ...", the usage line and the hint on err; returns OPTIONS_USAGE. */
enum options_result options_usage(FILE *err, const char *fmt, ...) PRINTF_LIKE(2, 3);

/*
 * Scans argv, then the environment, into *args, checking each value by itself. OPTIONS_RUN when
 * there is something to run, else what options_parse() shall return.
 */
enum options_result options_scan(int argc, char **argv, struct options_args *args, FILE *out,
                                 FILE *err);
