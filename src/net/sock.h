#pragma once
/* Sockets of peers: their names, and the options they get. */

#include <sys/socket.h>

#define SOCK_PEER_MAX 64 /* bytes of the name of a peer */

/* "IP:PORT", or "unix": how a peer is called in logs. */
void sock_peer_name(const struct sockaddr *addr, char dst[SOCK_PEER_MAX]);

/* Small packets leave at once, and a peer that is gone without a word is found out. */
void sock_tune_tcp(int fd);
