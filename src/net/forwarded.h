#pragma once
/*
 * The client behind a proxy. X-Forwarded-For counts only if it comes from a trusted proxy, and of
 * its addresses only the last one that is not itself a trusted proxy: anybody can write the others.
 */

#include "net/http.h"
#include "net/sock.h"

#define FORWARDED_NETS_MAX 16

struct forwarded {
    struct forwarded_net {
        uint8_t addr[16]; /* IPv4 as ::ffff:a.b.c.d */
        unsigned bits;    /* of 128 */
    } nets[FORWARDED_NETS_MAX];
    size_t count;
    bool unix_socket; /* whoever connects to the Unix socket is trusted */
};

/* Adds "IP", "IP/BITS" or "unix". 0, -EINVAL, or -ENOSPC. */
MUST_CHECK int forwarded_add(struct forwarded *f, const char *text);

bool forwarded_trusts(const struct forwarded *f, const struct sockaddr *addr);

/*
 * Names the client of a request that came from a trusted proxy: "IP, via PROXY", or just the proxy
 * if the header is missing or unreadable.
 */
void forwarded_peer(const struct forwarded *f, const struct http_request *r,
                    const struct sock_addr *proxy, char peer[SOCK_PEER_MAX]);

/* The last address of a header's value that is no trusted proxy. False: there is none. */
bool forwarded_last(const struct forwarded *f, struct str value, struct sock_addr *addr);
