#pragma once
/* Addresses, names and options of sockets. */

#include "base/str.h"
#include "base/util.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define SOCK_PEER_MAX 128 /* bytes of the name of a peer */

/* Writes the name of a peer for logs: "IP:PORT" or "unix". */
void sock_peer_name(const struct sockaddr *addr, char dst[SOCK_PEER_MAX]);

/* Sends small packets at once, and detects a peer that vanished (keepalive). */
void sock_tune_tcp(int fd);

/* Bytes written to a socket that the peer's host has not confirmed; 0 if the kernel cannot say. */
size_t sock_unconfirmed(int fd);

/* TCP: bounds the bytes that the kernel keeps for a slow peer; 0: its default. */
void sock_limit_unsent(int fd, int n);

/* An IP address with a port. Unused bytes are zero. */
struct sock_addr {
    union {
        struct sockaddr sa; /* sa_family tells which of the others counts */
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
    } u;
};

/* The addresses, from bytes in network order. An IPv4-mapped IPv6 address becomes IPv4, so that
 * every host has one form. */
struct sock_addr sock_addr_v4(const uint8_t bytes[4], uint16_t port);
struct sock_addr sock_addr_v6(const uint8_t bytes[16], uint16_t port);

/*
 * Parses an address as inet_pton() does: four decimal numbers, or RFC 4291. A link-local IPv6
 * address may have a scope, "%eth0" or "%2". 0, or -EINVAL and *a is untouched; also for an
 * interface that does not exist.
 */
MUST_CHECK int sock_addr_parse(struct str text, uint16_t port, struct sock_addr *a);

/* The length that connect() wants. */
socklen_t sock_addr_len(const struct sock_addr *a);

/* Keeps the address of a peer; of a Unix socket only its family. */
void sock_addr_copy(struct sock_addr *a, const struct sockaddr *from);

bool sock_addr_eq(const struct sock_addr *a, const struct sock_addr *b);
