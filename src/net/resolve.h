#pragma once
/*
 * Finds the addresses of a host name: a stub resolver on the loop, without threads and without the
 * name service of libc, which a static program does not have.
 *
 * It asks in this order: the name is an address; localhost and names below it are the loopback
 * addresses; the hosts file; the servers of resolv.conf. It asks them for A and AAAA at a time,
 * by UDP, by TCP if the answer was cut, with the search list as resolv.conf(5) describes. Servers
 * follow aliases (CNAME); the resolver only walks the chain in the answer. Nothing is cached but
 * the two files, which are read again when they have changed.
 *
 * Against forged answers each query has its own socket, connected to the server from a port that
 * the kernel picks at random, and a random id; the answer must repeat the question. After
 * RESOLVE_QUERY_STRAYS datagrams that do not match, the query goes by TCP.
 *
 * Addresses are what file and server say, also addresses of this host (0.0.0.0, ::) and of inner
 * networks. A caller that protects networks checks every address, and connects to the address it
 * has checked.
 *
 * Memory: 1 MiB for the hosts file; for each request in flight 12 KiB and two descriptors, and 128
 * KiB while answers come by TCP. RESOLVE_REQUESTS bounds the requests of one `struct resolve`;
 * clients that must not starve each other get one each.
 */

#include "base/err.h"
#include "base/list.h"
#include "loop/loop.h"
#include "net/resolve_files.h"
#include "net/sock.h"

#define RESOLVE_REQUESTS 64       /* in flight */
#define RESOLVE_ADDRS 16          /* of one name; further ones are dropped */
#define RESOLVE_DEADLINE_MS 30000 /* of a request, unless the options say otherwise */
#define RESOLVE_GRACE_MS 1000     /* for the other type, when one has addresses */

/* The outcome. Of several failures the greatest counts. */
enum resolve_status {
    RESOLVE_OK,
    RESOLVE_NOT_FOUND,     /* no such name */
    RESOLVE_NO_ADDRESS,    /* the name exists, but has neither A nor AAAA */
    RESOLVE_SERVER_FAILED, /* no server could answer, or be reached */
    RESOLVE_MALFORMED,     /* no server sent a readable answer */
    RESOLVE_TIMED_OUT,
    RESOLVE_NO_RESOURCES, /* no memory or no descriptor */
    RESOLVE_BAD_NAME,     /* neither an address nor a host name */
    RESOLVE_DENIED,       /* an alias that `alias` refused */
};

/* Zero or NULL: the default. The paths are borrowed for the resolver's life. */
struct resolve_options {
    const char *hosts_path; /* /etc/hosts */
    const char *conf_path;  /* /etc/resolv.conf */
    uint16_t port;          /* of the servers: 53 */
    uint64_t deadline_ms;   /* RESOLVE_DEADLINE_MS */
    bool mix_case;          /* random case in questions; servers that change it seem silent */
};

struct resolve {
    struct loop *loop; /* borrowed */
    struct resolve_options options;
    struct resolve_files files;
    struct list works; /* requests in flight */
    size_t requests;   /* their number */
    size_t rotation;   /* the next first server, with the option rotate */
};

struct resolve_work;

/* Embedded by its owner, zero at first. */
struct resolve_request {
    /* Called once by the loop, never from resolve_start(). The request is idle again: the owner may
     * start or free it. The owner sets it before resolve_start(). */
    void (*done)(struct resolve_request *q);

    /* Whether an alias of the name may be followed; NULL: all. Optional, set by the owner. It only
     * looks. The text is as dns_wire_name_text() gives it. */
    bool (*alias)(struct resolve_request *q, struct str name);

    /* The result, from `done` until the next start. */
    enum resolve_status status;
    size_t n;                             /* at least 1 if the status is RESOLVE_OK, else 0 */
    struct sock_addr addr[RESOLVE_ADDRS]; /* the most promising first, IPv6 and IPv4 in turn */
    struct err err;                       /* names the name and the server, unless RESOLVE_OK */

    struct resolve_work *work; /* private; NULL while idle */
};

/* `options` may be NULL. */
void resolve_init(struct resolve *r, struct loop *loop, const struct resolve_options *options);

/* Cancels all requests. */
void resolve_fini(struct resolve *r);

/*
 * For an idle request: begins to look for the addresses of `name`, with `port` in each. The name
 * is copied. An IPv6 address is without brackets. 0; -EAGAIN: RESOLVE_REQUESTS are in flight;
 * -ENOMEM. `done` reports every other failure.
 */
MUST_CHECK int resolve_start(struct resolve *r, struct resolve_request *q, struct str name,
                             uint16_t port);

/* Stops it: `done` will not follow. Harmless on an idle request. */
void resolve_cancel(struct resolve_request *q);

/* Cancels it and frees the result. */
void resolve_request_fini(struct resolve_request *q);
