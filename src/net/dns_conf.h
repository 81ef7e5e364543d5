#pragma once
/*
 * The texts that configure name resolution: resolv.conf(5) and hosts(5). Pure functions on text in
 * memory. Unknown or unreadable lines count as absent, as in libc.
 */

#include "base/str.h"
#include "net/dns_wire.h"
#include "net/sock.h"

#define DNS_CONF_SERVERS 3   /* further ones are ignored, as in libc */
#define DNS_CONF_SEARCHES 32 /* domains of the search list; further ones are ignored */
#define DNS_CONF_NDOTS_MAX 15
#define DNS_CONF_TIMEOUT_MAX 30 /* seconds */
#define DNS_CONF_ATTEMPTS_MAX 5

struct dns_conf {
    struct sock_addr server[DNS_CONF_SERVERS]; /* port 53 */
    size_t servers;                            /* at least 1: without one it is 127.0.0.1 */
    char search[DNS_CONF_SEARCHES][DNS_WIRE_TEXT_MAX + 1]; /* without the final dot */
    size_t searches;
    unsigned ndots;    /* names with so many dots are first tried as they are */
    unsigned timeout;  /* seconds that a server has for an answer, at least 1 */
    unsigned attempts; /* rounds through the servers, at least 1 */
    bool rotate, use_vc, single_request;
};

/*
 * Reads the text of resolv.conf: nameserver, search, domain, and of the options ndots, timeout,
 * attempts, rotate, use-vc, single-request. `hostname` gives the search list if the text has none:
 * its part behind the first dot.
 */
void dns_conf_parse(struct str text, struct str hostname, struct dns_conf *c);

/*
 * Collects the addresses of `name` in the text of a hosts file, in their order, without
 * duplicates, with `port`. Case and a final dot do not matter. Their number, at most `max`.
 */
size_t dns_conf_hosts(struct str text, struct str name, uint16_t port, struct sock_addr *dst,
                      size_t max);

/* Whether a name is localhost or below it, which never leaves the host (RFC 6761). */
bool dns_conf_is_localhost(struct str name);
