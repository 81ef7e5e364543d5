#pragma once
/* The order in which to try the addresses of a host: a small part of RFC 6724 and RFC 8305. */

#include "net/sock.h"

#define RESOLVE_ORDER_MAX 32 /* addresses */

enum resolve_order_reach {
    RESOLVE_ORDER_GOOD,
    RESOLVE_ORDER_POOR, /* there is a route, but from an address that may not be routed back */
    RESOLVE_ORDER_NONE, /* this host has no route */
    RESOLVE_ORDER_CLASSES,
};

/* Asks the kernel for its route to an address; nothing is sent. */
enum resolve_order_reach resolve_order_probe(const struct sock_addr *a);

/*
 * Drops duplicates and sorts by reach (`probe`); within a class IPv6 and IPv4 take turns, IPv6
 * first, each in the given order. The new number of addresses; `n` is at most RESOLVE_ORDER_MAX.
 */
size_t resolve_order(struct sock_addr *a, size_t n,
                     enum resolve_order_reach (*probe)(const struct sock_addr *a));
