#pragma once
/* Names and options of connected sockets. */

#include <stddef.h>
#include <sys/socket.h>

#define SOCK_PEER_MAX 64 /* bytes of the name of a peer */

/* Writes the name of a peer for logs: "IP:PORT" or "unix". */
void sock_peer_name(const struct sockaddr *addr, char dst[SOCK_PEER_MAX]);

/* Sends small packets at once, and detects a peer that vanished (keepalive). */
void sock_tune_tcp(int fd);

/* Bytes written to a socket that the peer's host has not confirmed; 0 if the kernel cannot say. */
size_t sock_unconfirmed(int fd);

/* TCP: bounds the bytes that the kernel keeps for a slow peer; 0: its default. */
void sock_limit_unsent(int fd, int n);
