#pragma once
/*
 * All settings as one struct: from the command line, environment variables, the config file and the
 * service manager.
 */

#include "base/err.h"
#include "base/log.h"
#include "net/auth.h"
#include "net/forwarded.h"
#include "proc/limits.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

#define OPTIONS_LIST_MAX 16 /* values of --http-host, --trusted-proxy, --console-host */

enum options_listen {
    OPTIONS_LISTEN_WS,    /* bind `addr`, IPv4 or IPv6, port 0 = any */
    OPTIONS_LISTEN_UNIX,  /* bind `addr`, a path */
    OPTIONS_LISTEN_FD,    /* `listen_fd`, already listening, bound to `addr` */
    OPTIONS_LISTEN_STDIO, /* one connection on descriptors 0 and 1 */
};

struct options {
    /* Listening. */
    enum options_listen listen;
    struct sockaddr_storage addr; /* all but OPTIONS_LISTEN_STDIO */
    socklen_t addr_len;
    int listen_fd;                      /* OPTIONS_LISTEN_FD: the socket, checked; else -1 */
    unsigned max_connections;           /* >= 1 */
    uint64_t concurrent_requests;       /* per connection, >= 1 */
    char *http_hosts[OPTIONS_LIST_MAX]; /* owned: names that HTTP accepts in Host */
    size_t http_host_count;
    struct forwarded trusted;             /* whose X-Forwarded-For counts */
    struct sockaddr_storage console_addr; /* of the console's listener */
    socklen_t console_addr_len;           /* 0: there is no console */
    bool console_control;
    char *console_hosts[OPTIONS_LIST_MAX]; /* owned: names that it accepts in Host */
    size_t console_host_count;
    char *console_page; /* owned, absolute: its files; NULL = those built in */
    bool metrics;       /* answer /metrics */
    bool http_files;    /* answer /v1/files */
    char *http_program; /* owned: for web_host_init(); NULL = beside our own */

    /* Authentication. */
    struct auth auth; /* loaded, ready to use */
    char *auth_file;  /* owned, absolute: the token or secret file; NULL = none */
    bool require_auth;

    /* Sessions and processes. */
    uint64_t session_ttl_ms;     /* 0 = a session ends with its connection */
    uint64_t session_ttl_max_ms; /* that a client may ask for */
    bool keep_detached;
    bool allow_attach;                /* process/attach is answered */
    unsigned max_processes;           /* that run at once, per session; 0 = no limit */
    struct limits command_limits;     /* of commands whose client asks for none */
    struct limits command_limits_max; /* that a client may ask for; given = there is one */
    uint64_t command_timeout_ms;      /* likewise; 0 = none */
    uint64_t command_timeout_max_ms;  /* 0 = any */
    size_t retained_output;           /* bytes kept per process, >= 65536 */
    uint64_t closed_retention_ms; /* how long a closed process can still be read; 0 = not at all */
    uint64_t closed_retention_max_ms; /* that a client may ask for */
    size_t closed_output_max;         /* bytes kept by all closed processes; 0 = none */
    uint64_t shutdown_grace_ms; /* between SIGTERM and SIGKILL on shutdown; 0 = SIGKILL at once */
    bool allow_direct_exec, allow_prepared_exec;
    bool inherit_pids; /* sandboxed processes see the host's processes */

    /* Reports. */
    char *audit_log; /* owned, absolute; NULL = none */
    enum log_level log_level;
    enum log_format log_format;
    char *notify_socket; /* owned: for sdnotify_send(); NULL = nobody to notify */
};

enum options_result {
    OPTIONS_RUN,
    OPTIONS_DOCTOR,      /* `doctor`: print what this host can enforce */
    OPTIONS_DOCTOR_JSON, /* `doctor --json`: as JSON */
    OPTIONS_EXIT_0,      /* printed help, version or configuration: exit 0 */
    OPTIONS_USAGE,       /* the command line is wrong, and err says why: exit 2 */
    OPTIONS_ERROR,       /* a value cannot be used, and err says why: exit 1 */
};

/*
 * Fills *o. Skips a first argument `exec-server`; `doctor` takes no other options. Help, version
 * and --print-config go to `out`, errors to `err`. Removes the variables of a service manager
 * (LISTEN_*, NOTIFY_SOCKET) from the environment, so that no process inherits them. After
 * OPTIONS_RUN the caller frees *o with options_fini(); after any other result *o owns nothing, and
 * options_fini() is harmless.
 */
enum options_result options_parse(int argc, char **argv, struct options *o, FILE *out, FILE *err);

void options_fini(struct options *o);

/* Whether other machines can reach the listener. */
bool options_exposed(const struct options *o);

/* Whether other machines can reach the listener without a token. */
bool options_unauthenticated_exposed(const struct options *o);

/* Whether users other than the owner and its group can read the token or secret file. */
bool options_auth_file_is_open(const struct options *o);

/*
 * Reads auth_file again and replaces o->auth. 0 on success, and if there is no file. On failure
 * o->auth stays as it was and e says why.
 */
MUST_CHECK int options_reload_auth(struct options *o, struct err *e);
