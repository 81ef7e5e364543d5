#pragma once
/*
 * A connection that carries messages: a WebSocket (after its HTTP upgrade) or stdio lines.
 *
 *     body <── request, answer ──> http ── upgrade ──> open
 *                                   │                    │ conn_end(), end of input
 *                                   │                  ending ── `gone`
 *                                   │                    │
 *                                   └──── close ────> flushing ── all sent ──> lingering
 *
 * From every state an error, a timeout or the peer's hang-up leads to dropped, then it is freed.
 *
 * The owner hears `open` once, then messages, then `gone` once, when the connection stops being
 * usable. The queue is still sent; then the owner hears `closed` and the connection frees itself.
 *
 * Slow client rule. Output is queued per connection, in order, and nothing is ever dropped. At
 * CONN_OUT_HIGH queued bytes the owner must stop producing output (pressure true), at CONN_OUT_LOW
 * it may go on. Answers to requests may still be queued; at CONN_OUT_MAX no more requests are read
 * until the peer has read. So a connection queues at most CONN_OUT_MAX, one message, and events
 * that the owner cannot delay.
 *
 * A message may be sent piece by piece (conn_stream). Other messages wait behind it until its end,
 * because only control frames may stand between fragments. They count as queued.
 *
 * Proof. A socket is unproven until the owner calls conn_proof_accept(). An unproven connection
 * queues little (CONN_OUT_EARLY and one answer), reads nothing meanwhile, has CONN_PROOF_MS in all,
 * and gives its place up when a newer one needs it. A request that passes auth_check() makes a
 * stranger a guest. While the answer is made and sent the connection is served: only a transfer
 * that stands still ends it then. CONN_PROOF_MS begins again when the answer is sent.
 *
 * Places. The oldest stranger makes room for a new connection. A guest makes room only for another
 * guest: where all unproven connections are guests, a stranger is accepted above the maximum until
 * it asks for something. An unproven connection's input is read before it has to go.
 */

#include "base/buf.h"
#include "loop/loop.h"
#include "net/auth.h"
#include "net/conn_message.h"
#include "net/forwarded.h"
#include "net/http.h"
#include "net/sendq.h"
#include "net/sock.h"
#include "net/bufcache.h"
#include "net/ws.h"

#include <stdbool.h>
#include <sys/socket.h>

#define CONN_MSG_MAX (64u << 20)       /* bytes of an incoming frame, message or line */
#define CONN_MSG_EARLY_MAX (64u << 10) /* until conn_proof_accept() */
#define CONN_FRAME_OUT_MAX (16u << 20) /* larger messages leave in fragments of this */
#define CONN_OUT_MAX (4u << 20)        /* see the slow client rule */
#define CONN_OUT_EARLY 4096            /* CONN_OUT_MAX while unproven */
#define CONN_OUT_HIGH (512u << 10)
#define CONN_OUT_LOW (128u << 10)
#define CONN_READ 65536              /* bytes read per turn of the loop */
#define CONN_HTTP_READ 4096          /* bytes of HTTP heads read at a time */
#define CONN_METRICS_MAX (64u << 10) /* bytes of the text of /metrics */
#define CONN_HEAD_MS 10000           /* for an HTTP head */
#define CONN_PROOF_MS 30000          /* for an unproven connection, see also proof_ms */
#define CONN_PROOF_LATE_MS 1000      /* once more, for input that was read in time */
#define CONN_BODY_MS 60000           /* for a transfer without progress */
#define CONN_PING_MS 30000           /* between keepalive pings */
#define CONN_LINGER_MS 2000          /* for the peer's answer to our close frame */
#define CONN_LOOKS 64         /* connections whose input is read to find one that makes room */
#define CONN_GOODBYE_MS 10000 /* to send the queue after the end */

struct conn;

struct conn_ops {
    void (*open)(struct conn *c);
    /* A message; borrowed during the call, which may take its memory. */
    void (*message)(struct conn *c, const struct conn_message *m);
    void (*pressure)(struct conn *c, bool high);
    /* During a stream: the owner may produce again, even while messages wait behind the stream. */
    void (*drained)(struct conn *c);
    /* stdio: no input follows. The owner answers what it received, then calls conn_end(). */
    void (*input_end)(struct conn *c);
    void (*gone)(struct conn *c);
    /*
     * A request for /v1/files that may pass; the owner answers it with conn_http_...(). Until
     * conn_http_end() it hears `body` when input has come (it consumes c->in) or has ended
     * (c->input_done), `writable` when the queue was sent and want_out is set, and `cut` once if
     * the connection ends.
     */
    void (*files)(struct conn *c, const struct http_request *r, const struct http_answer *a);
    void (*body)(struct conn *c);
    void (*writable)(struct conn *c);
    void (*cut)(struct conn *c);
    /* There are too many connections: this one got 503, or makes room (status 0). */
    void (*turned_away)(struct conn *c, int status, const char *why);
    /* An HTTP request was answered with 401 or 403. */
    void (*refused)(struct conn *c, int status, enum http_refusal why, const char *reason);
    /* The connection is about to be freed. */
    void (*closed)(struct conn *c);
};

/* Shared by the connections of a server. */
struct conn_host {
    struct loop *loop;
    const struct conn_ops *ops;
    const struct auth *auth;
    struct sendq_pool pool;
    struct list conns;
    unsigned max;                  /* places; UINT_MAX unless the owner sets it */
    unsigned count;                /* places taken, by all that are not dropped */
    struct list strangers, guests; /* unproven connections, the oldest first */
    char *scratch;                 /* CONN_READ bytes, owned */
    struct bufcache bufcache;
    void *owner;
    /* Appends the text of /metrics; 0 or -errno. NULL: there is no such path. */
    int (*metrics)(void *owner, struct buf *b);
    bool files;              /* serves /v1/files */
    char *const *http_hosts; /* borrowed: host names that may ask for these */
    size_t http_host_count;
    const struct forwarded *trusted; /* borrowed; NULL = X-Forwarded-For never counts */
    /* The owner's own routes (as http_route()); NULL = those of the protocol. */
    void (*route)(struct conn *c, const struct http_request *r, struct http_answer *a);
    uint64_t proof_ms;      /* for an unproven WebSocket; CONN_PROOF_MS unless the owner sets it */
    const char *proof_late; /* then the reason of the close frame */
    bool pages;             /* its peers are web pages: the audit log says so */
};

MUST_CHECK int conn_host_init(struct conn_host *h, struct loop *loop, const struct conn_ops *ops,
                              const struct auth *auth, void *owner);
/* Tells `gone` or `cut` and frees all connections at once; `closed` is not told. */
void conn_host_drop(struct conn_host *h);
/* Drops all connections and frees what the host owns. */
void conn_host_fini(struct conn_host *h);

/* In this order: up to CONN_OPEN requests and messages are taken. */
enum conn_state {
    CONN_HTTP,      /* requests are read */
    CONN_BODY,      /* a transfer is under way: the owner has yet to end it, or hears `cut` */
    CONN_OPEN,      /* the owner has heard `open`; messages come and go */
    CONN_ENDING,    /* no more messages; the flush task tells the owner `gone` */
    CONN_FLUSHING,  /* sends what is queued and reads nothing */
    CONN_LINGERING, /* all was sent: waits for the peer to hang up, and throws its input away */
    CONN_DROPPED,   /* its place was given up; the free task frees it */
};

enum conn_standing {
    CONN_STRANGER,
    CONN_SERVED,
    CONN_GUEST,
    CONN_LATE, /* a guest whose time is over, while input that was read in time waits */
    CONN_PROVEN,
};

struct conn {
    struct list node;
    struct conn_host *host;
    enum conn_standing standing;
    struct list unproven; /* in host->strangers or host->guests */
    uint64_t proof_due;   /* loop time at which a stranger or guest must go */
    void *user;           /* the owner's */
    void *transfer;       /* the owner's, while CONN_BODY */
    enum conn_state state;
    bool stdio;
    bool input_done;    /* the peer sends no more */
    bool paused;        /* by the owner */
    bool blocked;       /* the socket did not take the whole queue */
    bool want_out;      /* a transfer waits for `writable` */
    bool high;          /* pressure was reported */
    bool broken;        /* out of memory: nothing more can be sent */
    bool end_told;      /* stdio: `input_end` was reported */
    struct loop_io io;  /* input; for a socket also output */
    struct loop_io out; /* stdio: output */
    struct sendq sendq;
    struct sendq behind; /* whole messages that wait for the end of a stream */
    bool streaming;      /* a stream has begun and not ended */
    struct ws_parser ws;
    struct buf
        in; /* bytes read and not handled: an HTTP head, a partial line, or frames that wait */
    size_t line_seen; /* stdio: bytes of `in` known to hold no newline */
    size_t msg_max;
    uint64_t rx_bytes;       /* ever read */
    struct loop_timer timer; /* head, proof, transfer, ping, goodbye, linger */
    struct loop_timer poll;  /* stdio: reads a file, which epoll does not accept */
    struct loop_task flush_task, free_task;
    struct loop_task turn_task; /* queued: it has yielded, its input waits for its turn */
    char *subject;              /* owned; of the peer's token, or NULL */
    const char *why;            /* static: why it ends, for logs; NULL while it does not */
    struct sock_addr proxy;     /* of a trusted proxy; AF_UNSPEC = it is none */
    char peer[SOCK_PEER_MAX];   /* "IP:PORT", "unix", "stdio"; "IP, via IP:PORT" of a proxy */
};

/* Owns a connected socket from now on. 0, or -errno; the socket is closed then. */
MUST_CHECK int conn_accept(struct conn_host *h, int fd, const struct sockaddr *addr);

/* Serves two borrowed descriptors, made non-blocking; tells `open` at once. 0 or -ENOMEM. */
MUST_CHECK int conn_stdio(struct conn_host *h, int in_fd, int out_fd);

/*
 * Answers a request for /v1/files. conn_http_begin() starts the transfer and reads no input until
 * conn_pause(c, false). conn_http_put() queues bytes (copied). conn_http_progress() grants
 * CONN_BODY_MS more. conn_http_want_out() asks for `writable`. conn_http_end() goes on with the
 * next request, or closes the connection when the queue is sent. conn_http_abort() closes it at
 * once.
 */
void conn_http_begin(struct conn *c);
void conn_http_put(struct conn *c, struct str bytes);
void conn_http_progress(struct conn *c);
void conn_http_want_out(struct conn *c);
void conn_http_end(struct conn *c, bool close);
void conn_http_abort(struct conn *c);

/* The owner knows the peer: the limits of an unproven connection end, messages of CONN_MSG_MAX are
 * accepted, pings begin. */
void conn_proof_accept(struct conn *c);

/* Whether one more may be accepted; unproven connections make room if need be. A WebSocket peer
 * that has to go gets a close frame with 1013, if its socket takes it. */
bool conn_proof_make_room(struct conn_host *h);

/* Bytes that have arrived in all, read or not. */
uint64_t conn_received(const struct conn *c);

/* Stops or resumes input, from the next turn on. */
void conn_pause(struct conn *c, bool paused);

/* Whether messages can be sent. */
static inline bool conn_is_open(const struct conn *c) {
    return c->state == CONN_OPEN;
}

/* Queues one message (copied). Does nothing if the connection is not open. */
void conn_send(struct conn *c, struct str text);

/*
 * Like conn_send() without a copy: room for a message of exactly n bytes (n <= CONN_FRAME_OUT_MAX),
 * which the caller fills at once and commits. NULL when the connection is not open, or out of
 * memory (the connection then ends).
 */
char *conn_reserve(struct conn *c, size_t n);
void conn_commit(struct conn *c, size_t n);

/* Bytes queued, those behind a stream included. */
static inline size_t conn_backlog(const struct conn *c) {
    return c->sendq.bytes + c->behind.bytes;
}

/*
 * Positions in all bytes ever sent: the end of the queue, the bytes that the socket has taken, and
 * those that the peer's host has confirmed. While messages wait behind a stream the end is not
 * known (UINT64_MAX).
 */
static inline uint64_t conn_tx_end(const struct conn *c) {
    return c->behind.bytes > 0 ? UINT64_MAX : c->sendq.written + c->sendq.bytes;
}
static inline uint64_t conn_tx_written(const struct conn *c) {
    return c->sendq.written;
}
uint64_t conn_tx_confirmed(const struct conn *c);

/* Whether so much is queued that no requests are read. */
static inline bool conn_is_full(const struct conn *c) {
    bool early = c->standing != CONN_PROVEN && c->state != CONN_BODY;
    return conn_backlog(c) >= (early ? CONN_OUT_EARLY : CONN_OUT_MAX);
}

/* Text, a chain of filled segments (of the host's pool, owned by the call), text. */
struct conn_parts {
    const struct str *before;
    size_t before_count;
    struct sendq_seg *chain;
    struct str after;
};

/* Queues one message of at most CONN_FRAME_OUT_MAX bytes, made of parts; else as conn_send(). */
void conn_send_parts(struct conn *c, const struct conn_parts *p);

/*
 * Queues a piece of a message that is sent while it is made; `last` ends it. A connection has one
 * stream at a time; conn_end() cuts it off.
 */
void conn_stream(struct conn *c, const struct conn_parts *p, bool last);

/* Queues a ping; stdio has none. */
void conn_ping(struct conn *c);

/*
 * Ends the connection with a WebSocket close code and reason, after the queue is sent. It is not
 * open when this returns; `gone` follows, never inside this call.
 */
void conn_end(struct conn *c, unsigned code, const char *reason);
