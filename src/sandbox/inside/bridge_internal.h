#pragma once
/* Shared by both sides of the bridge. */

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* Fills in the loopback address of a family; returns its length. */
socklen_t bridge_listen_address(bool v6, uint16_t port, struct sockaddr_storage *out);
