#pragma once
/* The table of options, the help made from it, and the scan of argv: for options*.c only. */

#include "app/options.h"

#define OPTIONS_REASON_MAX 96 /* bytes of a reason for refusing a value, with its NUL */

enum option_id {
    OPT_LISTEN,
    OPT_CONCURRENT_REQUESTS,
    OPT_MAX_CONNECTIONS,
    OPT_WS_AUTH,
    OPT_WS_TOKEN_FILE,
    OPT_WS_TOKEN_SHA256,
    OPT_WS_TOKENS_FILE,
    OPT_WS_SHARED_SECRET_FILE,
    OPT_WS_ISSUER,
    OPT_WS_AUDIENCE,
    OPT_WS_MAX_CLOCK_SKEW,
    OPT_REQUIRE_AUTH,
    OPT_CONSOLE,
    OPT_CONSOLE_CONTROL,
    OPT_CONSOLE_HOST,
    OPT_CONSOLE_PAGE,
    OPT_TRUSTED_PROXY,
    OPT_HTTP_HOST,
    OPT_METRICS,
    OPT_HTTP_FILES,
    OPT_HTTP_PROGRAM,
    OPT_SESSION_TTL,
    OPT_SESSION_TTL_MAX,
    OPT_KEEP_DETACHED,
    OPT_ALLOW_ATTACH,
    OPT_MAX_PROCESSES,
    OPT_COMMAND_MEMORY,
    OPT_COMMAND_MEMORY_MAX,
    OPT_COMMAND_PIDS,
    OPT_COMMAND_PIDS_MAX,
    OPT_COMMAND_CPU,
    OPT_COMMAND_CPU_MAX,
    OPT_COMMAND_TIMEOUT,
    OPT_COMMAND_TIMEOUT_MAX,
    OPT_RETAINED_OUTPUT,
    OPT_CLOSED_RETENTION,
    OPT_CLOSED_RETENTION_MAX,
    OPT_CLOSED_OUTPUT_MAX,
    OPT_SHUTDOWN_GRACE,
    OPT_ALLOW_DIRECT_EXEC,
    OPT_ALLOW_PREPARED_EXEC,
    OPT_PID_NAMESPACE,
    OPT_AUDIT_LOG,
    OPT_LOG_LEVEL,
    OPT_LOG_FORMAT,
    OPT_CONFIG_FILE,
    OPT_PRINT_CONFIG,
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

enum option_kind {
    OPTION_FLAG,          /* no value */
    OPTION_TEXT,          /* UTF-8 */
    OPTION_PATH,          /* any bytes, but not empty */
    OPTION_CHOICE,        /* one of `choices` */
    OPTION_BOOL,          /* true or false */
    OPTION_COUNT,         /* a whole number */
    OPTION_SECONDS,       /* seconds with fractions; kept, and written in the config file, in ms */
    OPTION_HOSTS,         /* host names, one by one; an array in the config file */
    OPTION_NETS,          /* networks, likewise */
    OPTION_CONSOLE_HOSTS, /* host names, likewise */
};

/*
 * The options given. Strings are borrowed from argv, the environment, or the arena of
 * config_load(). argv wins over the environment, the environment over the file.
 */
struct options_args {
    bool given[OPT_COUNT];
    bool from_env[OPT_COUNT];
    bool from_file[OPT_COUNT];
    const char *value[OPT_COUNT]; /* TEXT, PATH, CHOICE; NULL when not given */
    bool on[OPT_COUNT];           /* FLAG, BOOL */
    uint64_t number[OPT_COUNT];   /* COUNT, SECONDS */
    struct options_list {
        const char *items[OPTIONS_LIST_MAX];
        size_t count;
    } hosts, nets, console_hosts; /* HOSTS, NETS, CONSOLE_HOSTS */
};

struct option_spec {
    const char *name;  /* without the dashes */
    char letter;       /* 0 = none */
    const char *value; /* placeholder; NULL for a flag, and for nothing else */
    const char *env;   /* environment variable that stands for it; NULL = none */
    const char *key;   /* in the config file; NULL = not there */
    enum option_kind kind;
    bool repeatable;
    bool needs_remote;          /* has no effect without --remote */
    bool ignored;               /* accepted and checked, without effect */
    bool auth;                  /* belongs to --ws-auth */
    const char *const *choices; /* CHOICE: NULL-terminated */
    uint64_t min, max;          /* COUNT, SECONDS (in ms): the allowed range */
    uint64_t initial;           /* COUNT, SECONDS, BOOL: the default */
    const char *help;           /* lines of at most 86 characters; NULL = not in the help */
};

extern const struct option_spec options_table[OPT_COUNT];

void options_table_print_help(FILE *out);
void options_table_print_version(FILE *out);

/* "error: ..." and the hint on err, in one line; returns OPTIONS_USAGE. */
enum options_result options_table_usage(FILE *err, const char *fmt, ...) PRINTF_LIKE(2, 3);

/*
 * Reads the value of a COUNT or SECONDS. NULL, or why it cannot be used (in `reason`, or static).
 */
const char *options_value_number(const struct option_spec *spec, const char *text, uint64_t *v,
                                 char reason[OPTIONS_REASON_MAX]);

/* Why a number is outside the range of a COUNT or SECONDS; as options_value_number(). */
const char *options_value_range(const struct option_spec *spec, uint64_t v, bool in_ms,
                                char reason[OPTIONS_REASON_MAX]);

/* The list that an option of kind HOSTS, NETS or CONSOLE_HOSTS fills. */
static inline struct options_list *options_value_list(struct options_args *args,
                                                      enum option_kind kind) {
    return kind == OPTION_NETS            ? &args->nets
           : kind == OPTION_CONSOLE_HOSTS ? &args->console_hosts
                                          : &args->hosts;
}

/* Adds a host name or a network to its list (borrowed). NULL, or why it cannot be used. */
const char *options_value_add(struct options_args *args, enum option_kind kind, const char *text);

bool options_value_is_choice(const char *value, const char *const *choices);

/* Checks a URL to listen on; opens nothing. */
MUST_CHECK int options_check_listen(const char *url, struct err *e);

/*
 * Scans argv, then the environment, into *args; checks each value by itself. OPTIONS_RUN to go on,
 * else the result for options_parse() to return.
 */
enum options_result options_scan(int argc, char **argv, struct options_args *args, FILE *out,
                                 FILE *err);
