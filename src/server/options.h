#pragma once
/* The command line and the environment variables that stand for options, as one struct. */

#include "base/err.h"
#include "base/log.h"
#include "net/auth.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

struct options {
    enum options_listen { OPTIONS_LISTEN_WS, OPTIONS_LISTEN_STDIO } listen;
    struct sockaddr_storage addr; /* OPTIONS_LISTEN_WS: IPv4 or IPv6 address and port, 0 = any */
    socklen_t addr_len;
    uint64_t concurrent_requests; /* per connection, >= 1 */
    struct auth auth;             /* loaded, ready to use */
    char *auth_file;              /* owned, absolute: the token or secret file; NULL = none */
    uint64_t session_ttl_ms;      /* 0 = a session ends with its connection */
    uint64_t closed_retention_ms; /* how long a closed process can still be read */
    bool keep_detached;
    bool require_auth;
    unsigned max_connections; /* >= 1 */
    enum log_level log_level;
};

enum options_result {
    OPTIONS_RUN,
    OPTIONS_EXIT_0, /* help or version was printed: exit 0 */
    OPTIONS_USAGE,  /* the command line is wrong, said on err: exit 2 */
    OPTIONS_ERROR,  /* a value cannot be used, said on err: exit 1 */
};

/*
 * Fills *o. A first argument `exec-server` is skipped. Help and version go to `out`, errors to
 * `err`. After OPTIONS_RUN *o is the caller's, to be given back with options_fini(); after any
 * other result it owns nothing, and options_fini() is harmless.
 */
enum options_result options_parse(int argc, char **argv, struct options *o, FILE *out, FILE *err);

void options_fini(struct options *o);

/* Whether the listener can be reached from other machines and asks nobody for a token. */
bool options_unauthenticated_exposed(const struct options *o);

/*
 * Reads auth_file again and replaces o->auth in place. 0 on success, and when there is no file. On
 * failure o->auth stays as it was and e says why.
 */
MUST_CHECK int options_reload_auth(struct options *o, struct err *e);
