#pragma once
/* SOCKS5 (RFC 1928) without authentication: the greeting and the request of a client. */

#include "proxy/proxy_name.h"

#define PROXY_SOCKS_MAX 262 /* bytes of the longest message */

/* Codes of an answer. */
enum proxy_socks_code {
    PROXY_SOCKS_OK = 0,
    PROXY_SOCKS_FAILED = 1,
    PROXY_SOCKS_DENIED = 2,
    PROXY_SOCKS_UNREACHABLE = 4,
    PROXY_SOCKS_REFUSED = 5,
    PROXY_SOCKS_NO_COMMAND = 7,
    PROXY_SOCKS_NO_ADDRESS = 8,
};

/* Reads the greeting. Its length; 0: more bytes are needed; -EINVAL: none of SOCKS5. *plain:
 * whether the client accepts to go without authentication. */
MUST_CHECK int proxy_socks_greeting(struct str bytes, bool *plain);

/*
 * Reads the request. Its length; 0: more bytes are needed; -EINVAL: it is none. *code is
 * PROXY_SOCKS_OK for a CONNECT, and what to answer for others.
 */
MUST_CHECK int proxy_socks_request(struct str bytes, struct proxy_name *host, uint16_t *port,
                                   enum proxy_socks_code *code);
