#pragma once
/*
 * One connection: dials or starts a child, opens the WebSocket or speaks lines, carries messages,
 * pings. It knows nothing of JSON. After `lost` it is idle and can be opened again.
 *
 * Memory: LINK_OUT and LINK_IN bytes, and an incoming message of up to CLIENT_MESSAGE_MAX.
 */

#include "client/client_internal.h"
#include "client/spawn.h"
#include "client/target.h"
#include "client/tls.h"
#include "net/dial.h"
#include "net/ws.h"
#include "net/ws_open.h"

#define LINK_OUT (128u << 10)     /* bytes of frames on their way to the kernel */
#define LINK_IN (64u << 10)       /* bytes read at a time */
#define LINK_FRAME_MAX (1u << 20) /* payload of a frame that we send */
#define LINK_BURST 8              /* reads in one turn of the loop */
#define LINK_OBITUARY_MS 500      /* for the end of a child that hung up */
#define LINK_GOODBYE_MS 2000      /* for the peer's close frame, or a child's end */

enum link_state {
    LINK_IDLE,
    LINK_DIALING,
    LINK_TLS,     /* handshake of TLS */
    LINK_UPGRADE, /* the request is sent, the 101 awaited */
    LINK_OPEN,
    LINK_CLOSING, /* our close frame or end of input is queued, the peer's awaited */
};

/* How a link ended, for the next step. */
enum link_loss {
    LINK_LOST,    /* a new connection may help */
    LINK_LEAVING, /* close code 1001: the server goes away */
    LINK_REFUSED, /* a new connection will end the same way */
    LINK_BROKEN,  /* the peer broke the rules of the protocol */
    LINK_ENDED,   /* after link_close() */
};

struct link {
    struct xs_client *client;         /* borrowed */
    struct loop *loop;                /* borrowed */
    const struct target *target;      /* borrowed */
    const struct xs_options *options; /* borrowed */

    /* Callbacks of the owner, inside the loop. Each may call link_drop() and link_close(). */
    void (*opened)(struct link *l);
    void (*message)(struct link *l, char *data, size_t n); /* valid UTF-8 */
    void (*writable)(struct link *l);                      /* there is room again for link_put() */
    void (*heard)(struct link *l);                         /* bytes arrived */
    /*
     * Instead of messages: bytes as they are (with a socket, or TLS). `ask` appends what opens the
     * talk, a request with this token unless it is empty; 0 or -errno. `bytes` gets what has come
     * and returns how much of it is used up; the rest comes again with more behind it.
     */
    int (*ask)(struct link *l, struct buf *b, struct str token);
    size_t (*bytes)(struct link *l, const char *data, size_t n);
    /* It is idle; e tells why and may be moved. */
    void (*lost)(struct link *l, enum link_loss how, struct xs_error *e);

    enum link_state state;
    uint64_t number;        /* of this connection, from 1 */
    struct loop_io in, out; /* the same descriptor twice for sockets: then only `in` is watched */
    bool in_is_socket, out_is_socket, lines;
    bool reading;            /* wanted by the owner */
    bool hung_up;            /* the peer is gone while we do not read; `in` is not watched */
    bool token_blocked;      /* an address was left out because of the token */
    bool met;                /* the peer was reached, and did not just stay silent */
    bool finished;           /* lines: our end of input is out */
    struct loop_timer limit; /* of dialing and upgrade, or of the goodbye */
    struct loop_task end;    /* reports `lost` */
    bool obituary;           /* `lost` waits for the child's end, to tell how it ended */
    struct loop_task more;   /* goes on with what is in the input buffer */
    enum link_loss how;
    struct xs_error error;

    struct resolve resolve;
    struct dial dial;
    bool resolving; /* `resolve` is initialised */
    struct spawn child;
    const struct tls_ops *tls;
    struct tls_session *session;

    /* out */
    char *out_data; /* owned, LINK_OUT */
    size_t out_at, out_len;
    uint64_t put;        /* bytes ever put into out_data */
    uint64_t frame_left; /* payload of the open frame that is still to be put */
    uint64_t frame_done;
    uint8_t mask[4];
    uint8_t masks[256];
    size_t masks_at;
    bool pong_due;
    uint8_t pong_len;
    char pong[125];
    bool ping_due;
    bool close_due;
    unsigned close_code;

    /* in */
    char *in_data; /* owned, LINK_IN */
    size_t in_at, in_len;
    struct ws_parser parser;
    struct buf line; /* of lines: an unfinished one */
    char key[WS_OPEN_KEY];

    /* liveness */
    struct loop_timer alive; /* looks after the next silence */
    uint64_t ping_ms, dead_ms;
    uint64_t heard_at;  /* nanoseconds of the loop's clock */
    uint64_t pinged_at; /* the first ping since; 0: none */
    uint64_t last_ping;
    bool awaited;
};

void link_init(struct link *l, struct xs_client *c, const struct target *t,
               const struct xs_options *o);
/* Drops the connection and ends a child, waiting for it (spawn_fini). */
void link_fini(struct link *l);

/* For an idle link: opens a connection within `limit_ms`. `opened` or `lost` follows. */
void link_open(struct link *l, uint64_t limit_ms);
/* The same over a connected descriptor, which it owns from now on. */
void link_open_fd(struct link *l, int fd, uint64_t limit_ms);

/* Bytes of this connection that the kernel has taken. */
static inline uint64_t link_sent(const struct link *l) {
    return l->put - (l->out_len - l->out_at);
}

/* link_out.c: ------------------------------------------------------------------------------- */

/*
 * Puts a piece of a message of n bytes, from offset `at` on, into the output buffer. Returns the
 * offset behind it: n when the message is complete, and `put` is its end. Less: the buffer is full.
 */
size_t link_out_put(struct link *l, const char *data, size_t n, size_t at);
/* Writes what the kernel takes. True: everything. */
bool link_out_flush(struct link *l);
/* Answers a close frame, if the kernel takes it at once. A failure does not matter: the connection
 * ends, and what the server has said is the reason. */
void link_out_echo(struct link *l, unsigned code);
/* Bytes as they are, before the WebSocket opens. False: they do not fit. */
bool link_out_raw(struct link *l, const char *data, size_t n);
/* Of a link with `bytes`: room for *n bytes, and how many of them were put there. */
char *link_out_space(struct link *l, size_t *n);
void link_out_fill(struct link *l, size_t n);
/* Waits for what there is to wait for. */
void link_out_arm(struct link *l);

/* link_in.c: -------------------------------------------------------------------------------- */

/* Reads what is there and hands it out. */
void link_in_ready(struct link *l);
/* Hands out what is in the buffer. */
void link_in_more(struct loop_task *t);

/* link_dial.c: ------------------------------------------------------------------------------ */

void link_dial_begin(struct link *l, uint64_t limit_ms);
/* `fd` is connected, and the link's. */
void link_dial_connected(struct link *l, int fd);
/* The descriptor is ready during the handshake of TLS. */
void link_dial_tls(struct link *l);

/* link_alive.c: ----------------------------------------------------------------------------- */

void link_alive_init(struct link *l);
void link_alive_begin(struct link *l); /* a connection is open */
void link_alive_heard(struct link *l); /* bytes came */
void link_alive_check(struct link *l); /* reading or awaiting has begun or ended */

/* link.c: ----------------------------------------------------------------------------------- */

/* As link_fail(), with a text that gets the URL in front. */
void link_break(struct link *l, enum link_loss how, int code, const char *fmt, ...)
    PRINTF_LIKE(4, 5);

/* Whether to read on. The clock of liveness stands still while it does not. */
void link_read(struct link *l, bool on);
/* Whether something is awaited, so that silence must be explained. */
void link_await(struct link *l, bool on);

/* Says goodbye behind what was put; `lost` follows with LINK_ENDED, also if the peer vanishes. */
void link_close(struct link *l);
/* Ends the connection at once, without a callback. */
void link_drop(struct link *l);
/* Ends it at once; `lost` follows. Moves e. */
void link_fail(struct link *l, enum link_loss how, struct xs_error *e);
