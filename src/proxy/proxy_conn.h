#pragma once
/* One connection of a command to its proxy, from the first byte to the last. */

#include "base/buf.h"
#include "net/dial.h"
#include "proxy/proxy.h"
#include "proxy/proxy_head.h"
#include "proxy/proxy_lane.h"

enum proxy_conn_state {
    PROXY_CONN_GREETING,  /* SOCKS5: which authentication */
    PROXY_CONN_REQUEST,   /* the request is read */
    PROXY_CONN_ASKING,    /* the client is asked */
    PROXY_CONN_DIALING,   /* the host is looked for */
    PROXY_CONN_RELAYING,  /* bytes go both ways */
    PROXY_CONN_ANSWERING, /* an answer of ours is sent */
    PROXY_CONN_LINGERING, /* all was sent: waits for the client to hang up */
    PROXY_CONN_ENDED,     /* waits to be freed */
};

struct proxy_conn {
    struct list node; /* in proxy->conns, or host->ended */
    struct proxy *proxy;
    struct proxy_host *host;
    enum proxy_conn_state state;
    enum proxy_protocol protocol;
    bool socks;                  /* it came to the SOCKS5 listener */
    bool asked, override, local; /* the client was asked; allowed it; an address is refused */
    bool aliased;                /* its name is an alias of a denied one, or has a denied address */
    bool answered;               /* PROXY_HTTP: the head of the answer has passed */
    bool client_ended, server_ended, client_told, server_told; /* ends seen, and passed on */
    struct loop_io client, server;
    struct loop_timer timer;
    struct loop_task free_task;
    struct dial dial;
    struct proxy_question question;
    struct proxy_lane lane;
    struct proxy_answer_head answer; /* PROXY_HTTP: of the server */
    struct buf in;                   /* from the client, not looked at yet */
    struct buf up;                   /* to the server */
    struct buf from;                 /* the head of an answer, while it is incomplete */
    struct buf down;                 /* to the client */
    struct proxy_name name;
    uint16_t port;
    char method[PROXY_METHOD_MAX + 1];
    char peer[SOCK_PEER_MAX];
};

/* Owns the descriptor. Without memory it is closed. */
void proxy_conn_new(struct proxy *p, int fd, const struct sock_addr *from, bool socks);

/* Ends a connection, by its node. */
void proxy_conn_drop(struct list *node);

/* Frees those that have ended. */
void proxy_conn_free_ended(struct proxy_host *h);

/* For proxy.c: the number of connections has changed. */
void proxy_conn_changed(struct proxy *p);
