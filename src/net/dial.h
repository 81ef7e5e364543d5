#pragma once
/*
 * Connects to a host and port, or to a Unix socket, on the loop. The addresses of a host are tried
 * one after the other, a new one every DIAL_STAGGER_MS or as soon as the one before has failed; the
 * first connection wins (RFC 8305).
 *
 * Memory: none besides the struct. Descriptors: one for each address that is being tried, at most
 * RESOLVE_ADDRS, and those of the resolver.
 */

#include "net/resolve.h"

#include <sys/un.h>

#define DIAL_STAGGER_MS 250
#define DIAL_RETRY_MS 20  /* after which a Unix socket with a full queue is tried again */
#define DIAL_HOST_MAX 300 /* bytes of a host that errors quote */

struct dial;

/* One address. */
struct dial_attempt {
    struct dial *dial; /* borrowed */
    struct loop_io io; /* fd -1: not begun, or failed */
    int error;         /* errno, or 0 while it is tried */
};

/* Embedded by its owner, zero at first. */
struct dial {
    /* Called once by the loop, never from a start. The dial is idle again: the owner may start or
     * free it. The owner sets it before a start. */
    void (*done)(struct dial *d);

    /* Whether an address may be tried; NULL: all. Optional, set by the owner. It only looks. */
    bool (*allow)(struct dial *d, const struct sock_addr *a);

    /* The result: a connected descriptor that does not block and closes on exec, owned by the
     * owner of the dial since `done`; or -1 and `err` names each address and its failure. */
    int fd;
    struct err err;

    /* private */
    struct loop *loop; /* borrowed; NULL while idle */
    struct resolve_request request;
    struct loop_timer deadline; /* of the whole */
    struct loop_timer next;     /* begins the next attempt */
    struct loop_task end;
    uint64_t deadline_ms;
    bool begun, expired;
    size_t tried; /* attempts begun */
    struct dial_attempt attempt[RESOLVE_ADDRS];
    struct sockaddr_un path; /* sun_family 0: a host */
    socklen_t path_len;
    uint16_t port;
    char host[DIAL_HOST_MAX + 1]; /* for errors */
};

/*
 * For an idle dial: begins to connect to a name or an address (IPv6 without brackets) over TCP,
 * with TCP_NODELAY and keepalive. `deadline_ms` (not 0) counts for name resolution and connection
 * together. 0, or as resolve_start(). `done` reports every other failure.
 */
MUST_CHECK int dial_host(struct dial *d, struct resolve *r, struct str host, uint16_t port,
                         uint64_t deadline_ms);

/* Like dial_host(), for a Unix stream socket; a first byte '@' or NUL is the abstract name space.
 * 0; -ENOMEM; -ENAMETOOLONG also for an empty path. */
MUST_CHECK int dial_unix(struct dial *d, struct loop *loop, struct str path, uint64_t deadline_ms);

/* Stops it: `done` will not follow. Harmless on an idle dial; does not touch a result. */
void dial_cancel(struct dial *d);

/* Cancels it and frees the error. A descriptor that `done` reported stays the owner's. */
void dial_fini(struct dial *d);
