#pragma once
/* The listening socket. */

#include "app/options.h"
#include "net/conn.h"
#include "ops/ops.h"

struct listener {
    struct loop *loop;
    const struct options *opt;
    struct conn_host *conns;
    struct ops *ops;
    struct loop_io io;        /* fd -1: not open */
    struct loop_timer resume; /* runs while accepting is paused */
    dev_t socket_dev;         /* identifies the socket file to remove; socket_ino 0: none */
    ino_t socket_ino;
    bool failing; /* descriptors or memory are short */
};

/* Prepares a closed listener; borrows everything. */
void listener_init(struct listener *l, struct loop *loop, const struct options *opt,
                   struct conn_host *conns, struct ops *ops);

/*
 * Binds and listens, or takes the socket of a service manager; prints the bound URL on stdout.
 * Replaces a stale socket file. 0, or -errno with the reason in e.
 */
MUST_CHECK int listener_open(struct listener *l, struct err *e);

/* Stops listening, removes the socket file it made, and tells the service manager. */
void listener_close(struct listener *l);
