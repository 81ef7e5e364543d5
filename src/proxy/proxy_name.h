#pragma once
/* Hosts as a client of the proxy names them, and which addresses belong to local networks. */

#include "net/sock.h"

#define PROXY_NAME_MAX 253 /* bytes of a host */

/* A host in its only form: lower case, no final dot, an address as inet_ntop() writes it. */
struct proxy_name {
    char text[PROXY_NAME_MAX + 1];
    bool is_address;
    struct sock_addr address; /* if so; its port is 0 */
};

/* Reads a host; an IPv6 address has no brackets. 0; -EINVAL: it is neither a name nor an address.
 * Refuses what names have no use for: blanks, '%', '@', '/', controls, bytes beyond ASCII. */
MUST_CHECK int proxy_name_parse(struct str text, struct proxy_name *out);

/* The host that is an address. */
void proxy_name_of(const struct sock_addr *a, struct proxy_name *out);

/*
 * Reads HOST[:PORT], with brackets around an IPv6 address. `port` keeps its value if there is none.
 * 0 or -EINVAL; user info is -EINVAL too.
 */
MUST_CHECK int proxy_name_authority(struct str text, struct proxy_name *out, uint16_t *port);

/* Whether it is a name or an address of this host's loopback. */
bool proxy_name_is_loopback(const struct proxy_name *n);

/* Whether an address is one of the public Internet: not of this host, no private, link-local,
 * shared, multicast, documentation or reserved range, also not embedded in IPv6. */
bool proxy_name_is_public(const struct sock_addr *a);

/* Whether an address is one of this host's loopback. */
bool proxy_name_addr_is_loopback(const struct sock_addr *a);
