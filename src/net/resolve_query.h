#pragma once
/*
 * One question, for one name and type, put to the servers one after the other until one answers.
 * Each has the time that resolv.conf gives it. A part of `resolve`.
 */

#include "net/dns_conf.h"
#include "net/dns_wire.h"
#include "net/resolve.h"

#define RESOLVE_QUERY_UDP 4096  /* bytes of a datagram; a longer answer goes by TCP */
#define RESOLVE_QUERY_STRAYS 32 /* datagrams that do not match, until the query goes by TCP */
#define RESOLVE_QUERY_BURST 16  /* datagrams in one turn of the loop */
#define RESOLVE_QUERY_WHY 192   /* bytes of a text */

struct resolve_query {
    struct loop *loop;           /* borrowed */
    const struct dns_conf *conf; /* borrowed; the servers with their ports */
    struct loop_task *wake;      /* borrowed; deferred when `finished` becomes true */

    /* As of struct dns_wire_query; set before a start. */
    bool (*alias)(void *user, const struct dns_wire_name *name);
    void *user;

    struct dns_wire_query ask;
    size_t first;    /* server to begin with, modulo their number */
    unsigned tries;  /* begun */
    unsigned strays; /* of this try */
    bool tcp;
    struct loop_io io;
    struct loop_timer timer; /* of this try */
    uint8_t out[2 + DNS_WIRE_QUERY_MAX];
    size_t out_len, out_at;
    uint8_t *in; /* owned; a message that comes by TCP, behind its length */
    size_t in_len, in_at;
    uint8_t head[2];

    bool finished;
    enum resolve_status status;
    char why[RESOLVE_QUERY_WHY]; /* which server said what, unless RESOLVE_OK */
    struct dns_wire_answer answer;
};

/* Before the first use; without this, stop is not allowed. */
void resolve_query_init(struct resolve_query *q, struct loop *loop, const struct dns_conf *conf,
                        struct loop_task *wake);

/* Asks for addresses of `type`, beginning with the server `first`. Stops what runs. */
void resolve_query_start(struct resolve_query *q, const struct dns_wire_name *name,
                         enum dns_wire_type type, size_t first, bool mix_case);

/* Closes the socket. */
void resolve_query_stop(struct resolve_query *q);

/* The name of the server that was asked last. */
void resolve_query_server(const struct resolve_query *q, char dst[SOCK_PEER_MAX]);
