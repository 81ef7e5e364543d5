#pragma once
/* A listening socket: that of the protocol, or that of the console. */

#include "app/options.h"
#include "net/conn.h"
#include "ops/ops.h"

/* Where to listen. */
struct listener_place {
    enum options_listen kind;
    const struct sockaddr_storage *addr; /* borrowed */
    socklen_t addr_len;
    int fd;                    /* OPTIONS_LISTEN_FD */
    const char *notify_socket; /* borrowed; NULL: nobody is told of the end */
    bool announce;             /* print the URL on stdout */
};

struct listener {
    struct loop *loop;
    struct listener_place place;
    struct conn_host *conns;
    struct ops *ops;
    struct loop_io io;        /* fd -1: not open */
    struct loop_timer resume; /* runs while accepting is paused */
    dev_t socket_dev;         /* identifies the socket file to remove; socket_ino 0: none */
    ino_t socket_ino;
    bool failing; /* descriptors or memory are short */
};

/* Prepares a closed listener; borrows everything. */
void listener_init(struct listener *l, struct loop *loop, const struct listener_place *place,
                   struct conn_host *conns, struct ops *ops);

/*
 * Binds and listens, or takes the socket of a service manager; prints the bound URL.
 * Replaces a stale socket file. 0, or -errno with the reason in e.
 */
MUST_CHECK int listener_open(struct listener *l, struct err *e);

/* The address that it is bound to. 0 or -errno. */
MUST_CHECK int listener_address(const struct listener *l, struct sock_addr *a);

/* Stops listening, removes the socket file it made, and tells the service manager. */
void listener_close(struct listener *l);
