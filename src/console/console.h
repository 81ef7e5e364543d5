#pragma once
/*
 * The console: a web page on a listener of its own, on which people watch what clients do, and
 * with `control` take part. Its connections are WebSockets like those of clients, with other
 * methods (console_methods.h); a login comes first. Each has a session of the process room, which
 * may watch every process and ends with the connection.
 *
 * What a viewer costs the watched command is bounded by attach.h (turns) and ledger.h. Maxima:
 * CONSOLE_CONNS connections, CONSOLE_LOGIN_MS for the login; PROTOCOL.md lists all.
 */

#include "console/assets.h"
#include "console/ticket.h"
#include "net/conn.h"
#include "ops/audit_tail.h"
#include "process/process_host.h"
#include "rpc/rpc.h"

#define CONSOLE_CONNS 64
#define CONSOLE_LOGIN_MS 10000
#define CONSOLE_LANES 4      /* requests of a connection that run side by side */
#define CONSOLE_LINK_MAX 160 /* bytes of a link with its NUL */

struct console_settings {
    bool on;
    bool control;
    const char *page;   /* borrowed: a directory; NULL: the files built in */
    char *const *hosts; /* borrowed: names for Host besides its own address */
    size_t host_count;
    size_t retained_output; /* bytes kept per process, for the page */
};

struct console {
    struct console_settings settings;
    struct loop *loop;
    struct process_host *processes;
    struct ops *ops;
    struct auth auth; /* none: the login is a message */
    struct conn_host conns;
    struct rpc_host rpc;
    struct assets assets;
    struct ticket_table tickets;
    struct audit_tail *tail; /* owned */
    struct loop_task news;   /* audit lines wait for viewers */
    struct session *session; /* of the processes that it started; NULL: none yet */
    uint64_t last_process;   /* number in the id of the last one */
    int64_t started_ms;      /* Unix time of the server's start */
    char *hostname, *cwd;    /* owned, for the page; the second as JSON text */
    bool begun;
};

/* Somebody who has logged in: conn->user is a peer, and its session has this in `watcher`. */
struct console_viewer {
    int secret;     /* place in the table */
    bool follows;   /* audit lines are sent */
    uint64_t audit; /* the next line to send */
};

/*
 * Loads the page and begins to note what changes; borrows all. `listen` follows with conns. 0, or
 * -errno with e set. Does nothing if the settings are off.
 */
MUST_CHECK int console_init(struct console *k, const struct console_settings *settings,
                            struct loop *loop, struct pool *pool, struct process_host *processes,
                            struct ops *ops, struct err *e);

/* The link of the start, with a token that is good for one exchange. `host` as in a URL. */
void console_link(struct console *k, const char *host, uint16_t port, char out[CONSOLE_LINK_MAX]);

/* Tells viewers that the server ends, and ends their connections. */
void console_stop(struct console *k, const char *reason);

/* Frees connections, before sessions end. */
void console_drop(struct console *k);
void console_fini(struct console *k);

/* The console of a call. */
static inline struct console *console_of_call(const struct rpc_call *c) {
    return c->peer->conn->host->owner;
}
