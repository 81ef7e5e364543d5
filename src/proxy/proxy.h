#pragma once
/*
 * The proxy of one process: the only way from its managed network to other hosts.
 *
 *     command ── listener inside ── struct proxy (in the server) ── host
 *                                        │
 *                                 lists, or the client's decision
 *
 * It speaks HTTP (requests and CONNECT) on one listener and SOCKS5 on the other. It decides by
 * name, finds the addresses itself (net/resolve.h), checks each of them, and connects to the one
 * it has checked: no second answer of a name server can lead elsewhere. What passes a tunnel is
 * looked at only as far as it names a host (proxy_lane.h).
 *
 * Maxima: PROXY_CONNS_MAX connections of one process, more wait in the listener's queue;
 * PROXY_HOST_CONNS_MAX of all: then a new one takes the place of the newest one of the process that
 * has most, unless its own process has as many. A connection has PROXY_HEAD_MAX bytes of a head
 * and PROXY_RELAY bytes each way; a side that does not read stalls the other.
 */

#include "loop/loop.h"
#include "net/resolve.h"
#include "proxy/proxy_judge.h"

#define PROXY_CONNS_MAX 128
#define PROXY_HOST_CONNS_MAX 2048
#define PROXY_RELAY 32768    /* bytes on their way, each direction */
#define PROXY_HEAD_MS 30000  /* for a request to arrive */
#define PROXY_DIAL_MS 30000  /* for names and connection */
#define PROXY_LINGER_MS 5000 /* for a client to take an answer */
#define PROXY_PAUSE_MS 100   /* when descriptors have run out */

struct proxy;

/* A request that is put to the client. */
struct proxy_question {
    struct proxy *proxy;
    enum proxy_protocol protocol;
    const char *host; /* borrowed, like the proxy, until the answer or `withdraw` */
    uint16_t port;
    void *user; /* the owner's */
};

/* What was decided about a request; borrowed during the call. */
struct proxy_decision {
    enum proxy_protocol protocol;
    enum proxy_answer answer;
    bool domain;   /* about the host, not about the method */
    bool override; /* the client allowed what the lists do not */
    const char *source, *reason, *host;
    uint16_t port;
    struct str method;  /* n 0: none */
    const char *client; /* IP:PORT */
};

struct proxy_ops {
    /* Puts it to the client. False: nobody can be asked. Else proxy_conn_answer() follows once,
     * never from within, unless `withdraw` comes first. */
    bool (*ask)(struct proxy *p, struct proxy_question *q);
    void (*withdraw)(struct proxy *p, struct proxy_question *q);
    void (*decided)(struct proxy *p, const struct proxy_decision *d);
};

/* What the proxies of a server share. */
struct proxy_host {
    struct loop *loop;
    const struct proxy_ops *ops;
    struct resolve_options resolver;
    uint16_t own_ports[2]; /* TCP ports that the server itself listens on; 0: none */
    struct list all;       /* struct proxy */
    struct list ended;     /* struct proxy_conn to be freed */
    size_t conns;          /* of all proxies */
};

enum proxy_listener { PROXY_LISTEN_HTTP, PROXY_LISTEN_SOCKS, PROXY_LISTENERS };

struct proxy {
    struct proxy_host *host;
    struct proxy_config config; /* owned */
    struct resolve resolve;
    struct list node; /* in host->all */
    struct proxy_port {
        struct loop_io io; /* fd -1: none */
        uint16_t port;     /* as the command sees it; 0: none */
        bool socks;
        struct proxy *proxy;
    } ports[PROXY_LISTENERS];
    bool outer;   /* the listeners are on this host's loopback */
    bool paused;  /* nobody watches the listeners */
    bool starved; /* accept() failed: descriptors have run out */
    struct loop_timer resume;
    struct list conns; /* struct proxy_conn */
    size_t count;
    void *user; /* the owner's */
};

/* `resolver` may be NULL; its paths are borrowed. */
void proxy_host_init(struct proxy_host *h, struct loop *loop, const struct proxy_ops *ops,
                     const struct resolve_options *resolver);
void proxy_host_fini(struct proxy_host *h);

/* Takes the config over. */
void proxy_init(struct proxy *p, struct proxy_host *h, struct proxy_config *config);

/* Listens on this host's loopback. 0 or -errno. */
MUST_CHECK int proxy_listen(struct proxy *p);

/* Picks ports for listeners in a network of the command's own, none of the `taken` ones. The
 * listeners follow by proxy_take(). */
void proxy_reserve(struct proxy *p, const uint16_t *taken, size_t count);

/* Takes over a listener, non-blocking, that was made for one of the reserved ports. 0, or -errno
 * and it is closed. */
MUST_CHECK int proxy_take(struct proxy *p, uint16_t port, int fd);

/* The port for HTTP, and for SOCKS5 (0: there is none). */
uint16_t proxy_port(const struct proxy *p, enum proxy_listener l);

/* The client has decided; `reason` is borrowed. */
void proxy_conn_answer(struct proxy_question *q, enum proxy_answer answer, const char *reason);

/* Closes listeners and connections, and frees the config. Idempotent. */
void proxy_fini(struct proxy *p);

/* Whether an address is the server's own, or that of another process's proxy. */
bool proxy_host_guards(const struct proxy_host *h, const struct sock_addr *a);
