#pragma once
/* State that the file methods of all connections share. One per server. */

#include "base/list.h"
#include "fs/fs_devices.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "process/session.h"

struct files_host {
    struct loop *loop;
    struct pool *pool; /* for calls of the file system */
    struct conn_host *conns;
    struct process_host *processes;
    struct ops *ops;
    size_t lanes;                       /* requests of a connection that run side by side */
    struct fs_devices devices;          /* which mounts answer without waiting */
    struct fs_devices confined_devices; /* which mounts in helpers' sandboxes do */
    struct loop_timer trim_timer;       /* running: gives back large buffers soon */
    struct list helpers; /* struct fs_helper of all sessions, the least recently used first */
    size_t helper_count;
    size_t helpers_alive; /* started, and not dead yet */
};

/* The caller sets the members above `devices` first. */
void files_host_init(struct files_host *h);
void files_host_fini(struct files_host *h);

/* The host of the call's server. */
static inline struct files_host *files_host_of(const struct rpc_call *c) {
    return ((struct session *)c->peer->user)->host->files;
}

/* Closes a descriptor in a thread, since close() may block. */
void files_host_close(struct files_host *h, int fd);

/* Hooks of struct process_hooks: handles and calls end with the connection, helpers with the
 * session. */
void files_host_detached(struct session *s);
void files_host_ended(struct session *s);
