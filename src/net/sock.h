#pragma once
/* Sockets of peers: their names, and the options they get. */

#include <stddef.h>
#include <sys/socket.h>

#define SOCK_PEER_MAX 64 /* bytes of the name of a peer */

/* "IP:PORT", or "unix": how a peer is called in logs. */
void sock_peer_name(const struct sockaddr *addr, char dst[SOCK_PEER_MAX]);

/* Small packets leave at once, and a peer that is gone without a word is found out. */
void sock_tune_tcp(int fd);

/* Bytes written to a socket that the peer's host has not confirmed; 0 when nobody can say. */
size_t sock_unconfirmed(int fd);

/* At most about n bytes wait in the kernel for a peer that does not read; 0: its own limit. TCP. */
void sock_limit_unsent(int fd, int n);
