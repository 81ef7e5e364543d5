#pragma once
/*
 * The command line, the environment variables that stand for options, the config file, and what a
 * service manager passed, as one struct.
 */

#include "base/err.h"
#include "base/log.h"
#include "net/auth.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

#define OPTIONS_HOSTS_MAX 16 /* names of --http-host */

enum options_listen {
    OPTIONS_LISTEN_WS,    /* bind `addr`, IPv4 or IPv6, port 0 = any */
    OPTIONS_LISTEN_UNIX,  /* bind `addr`, a path */
    OPTIONS_LISTEN_FD,    /* `listen_fd`, already listening; `addr` is what it is bound to */
    OPTIONS_LISTEN_STDIO, /* one connection on descriptors 0 and 1 */
};

struct options {
    /* Listening. */
    enum options_listen listen;
    struct sockaddr_storage addr; /* all but OPTIONS_LISTEN_STDIO */
    socklen_t addr_len;
    int listen_fd;                       /* OPTIONS_LISTEN_FD: the socket, checked; else -1 */
    unsigned max_connections;            /* >= 1 */
    uint64_t concurrent_requests;        /* per connection, >= 1 */
    char *http_hosts[OPTIONS_HOSTS_MAX]; /* owned: names accepted in Host by them */
    size_t http_host_count;
    bool metrics;    /* answer /metrics */
    bool http_files; /* answer /v1/files */

    /* Authentication. */
    struct auth auth; /* loaded, ready to use */
    char *auth_file;  /* owned, absolute: the token or secret file; NULL = none */
    bool require_auth;

    /* Sessions and processes. */
    uint64_t session_ttl_ms; /* 0 = a session ends with its connection */
    bool keep_detached;
    bool allow_attach;            /* process/attach is answered */
    unsigned max_processes;       /* that run at once, per session; 0 = no limit */
    size_t retained_output;       /* bytes kept per process, >= 65536 */
    uint64_t closed_retention_ms; /* how long a closed process can still be read; 0 = not at all */
    size_t closed_output_max;     /* bytes kept by all closed processes; 0 = none */
    uint64_t shutdown_grace_ms;   /* between SIGTERM and SIGKILL at the end; 0 = SIGKILL at once */
    bool allow_direct_exec, allow_prepared_exec;
    bool inherit_pids; /* sandboxed processes see those of the host */

    /* Reports. */
    char *audit_log; /* owned, absolute; NULL = none */
    enum log_level log_level;
    char *notify_socket; /* owned: for sdnotify_send(); NULL = nobody to notify */
};

enum options_result {
    OPTIONS_RUN,
    OPTIONS_DOCTOR,      /* `doctor` was asked for: print what this host can enforce */
    OPTIONS_DOCTOR_JSON, /* `doctor --json`: as JSON */
    OPTIONS_EXIT_0,      /* help, version or the configuration was printed: exit 0 */
    OPTIONS_USAGE,       /* the command line is wrong, said on err: exit 2 */
    OPTIONS_ERROR,       /* a value cannot be used, said on err: exit 1 */
};

/*
 * Fills *o. A first argument `exec-server` is skipped; `doctor` then stands alone. Help, version
 * and --print-config go to `out`, errors to `err`. The variables of a service manager (LISTEN_*,
 * NOTIFY_SOCKET) are removed from the environment, so that no process inherits them. After
 * OPTIONS_RUN *o is the caller's, to be given back with options_fini(); after any other result it
 * owns nothing, and options_fini() is harmless.
 */
enum options_result options_parse(int argc, char **argv, struct options *o, FILE *out, FILE *err);

void options_fini(struct options *o);

/* Whether the listener can be reached from other machines. */
bool options_exposed(const struct options *o);

/* The same, and it asks nobody for a token. */
bool options_unauthenticated_exposed(const struct options *o);

/*
 * Reads auth_file again and replaces o->auth in place. 0 on success, and when there is no file. On
 * failure o->auth stays as it was and e says why.
 */
MUST_CHECK int options_reload_auth(struct options *o, struct err *e);
