#pragma once
/*
 * Two DNS servers that a test scripts, on 127.0.0.1 and 127.0.0.2 with one port, UDP and TCP. They
 * run in the test's own thread: dns_servers_serve() takes what has arrived and gives each question
 * to the script, which answers at once, later or never.
 */

#include "dns_message.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define DNS_SERVERS 2
#define DNS_SERVER_CONNS 16

/* A question. */
struct asked {
    int server;              /* 0 or 1 */
    int conn;                /* place of its connection; -1: UDP */
    struct sockaddr_in from; /* UDP */
    unsigned id, type;
    char name[256];
};

struct dns_server_conn {
    int fd; /* -1: free */
    int server;
    uint8_t in[514];
    size_t in_n;
    uint8_t *out;
    size_t out_n, out_at;
};

struct dns_servers {
    int udp[DNS_SERVERS], tcp[DNS_SERVERS];
    uint16_t port;
    struct dns_server_conn conn[DNS_SERVER_CONNS];
    void (*script)(const struct asked *q);
};

static struct dns_servers servers;

static inline int dns_server_bind(int type, int server, uint16_t port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK + (uint32_t)server);
    int fd = socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    if (bind(fd, (struct sockaddr *)&a, sizeof a) < 0 ||
        (type == SOCK_STREAM && listen(fd, 16) < 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

static inline void dns_servers_close(void) {
    for (int i = 0; i < DNS_SERVERS; i++) {
        close(servers.udp[i]);
        close(servers.tcp[i]);
    }
    for (int i = 0; i < DNS_SERVER_CONNS; i++) {
        if (servers.conn[i].fd >= 0)
            close(servers.conn[i].fd);
        free(servers.conn[i].out);
        servers.conn[i] = (struct dns_server_conn){.fd = -1};
    }
}

/* Finds a port that is free for all four sockets. */
static inline void dns_servers_open(void) {
    for (int i = 0; i < DNS_SERVER_CONNS; i++)
        servers.conn[i] = (struct dns_server_conn){.fd = -1};
    for (int tries = 0; tries < 100; tries++) {
        struct sockaddr_in a;
        socklen_t n = sizeof a;
        servers.udp[0] = dns_server_bind(SOCK_DGRAM, 0, 0);
        assert_int_equal(getsockname(servers.udp[0], (struct sockaddr *)&a, &n), 0);
        servers.port = ntohs(a.sin_port);
        servers.udp[1] = dns_server_bind(SOCK_DGRAM, 1, servers.port);
        servers.tcp[0] = dns_server_bind(SOCK_STREAM, 0, servers.port);
        servers.tcp[1] = dns_server_bind(SOCK_STREAM, 1, servers.port);
        if (servers.udp[1] >= 0 && servers.tcp[0] >= 0 && servers.tcp[1] >= 0)
            return;
        dns_servers_close();
    }
    fail_msg("no free port");
}

/* Reads id, name and type, and gives them to the script. */
static inline void dns_server_ask(struct asked q, const uint8_t *msg, size_t n) {
    assert_in_range(n, 17, 512);
    assert_int_equal(msg[2] << 8 | msg[3], 0x0100);
    q.id = (unsigned)(msg[0] << 8 | msg[1]);
    size_t at = 12, len = 0;
    while (msg[at] != 0) {
        if (len > 0)
            q.name[len++] = '.';
        memcpy(q.name + len, msg + at + 1, msg[at]);
        len += msg[at];
        at += msg[at] + 1u;
    }
    q.name[len] = '\0';
    q.type = (unsigned)(msg[at + 1] << 8 | msg[at + 2]);
    servers.script(&q);
}

/* Sends an answer, as bytes. */
static inline void dns_server_send(const struct asked *q, const struct message *m) {
    if (q->conn < 0) {
        assert_int_equal(sendto(servers.udp[q->server], m->b, m->n, 0,
                                (const struct sockaddr *)&q->from, sizeof q->from),
                         m->n);
        return;
    }
    struct dns_server_conn *c = &servers.conn[q->conn];
    c->out = realloc(c->out, c->out_n + m->n + 2);
    assert_non_null(c->out);
    c->out[c->out_n++] = (uint8_t)(m->n >> 8);
    c->out[c->out_n++] = (uint8_t)m->n;
    memcpy(c->out + c->out_n, m->b, m->n);
    c->out_n += m->n;
}

static inline void dns_server_serve_conn(int i) {
    struct dns_server_conn *c = &servers.conn[i];
    ssize_t n = recv(c->fd, c->in + c->in_n, sizeof c->in - c->in_n, 0);
    c->in_n += n > 0 ? (size_t)n : 0;
    if (c->in_n >= 2 && c->in_n == 2 + (size_t)(c->in[0] << 8 | c->in[1])) {
        c->in_n = 0;
        dns_server_ask((struct asked){.server = c->server, .conn = i}, c->in + 2,
                       (size_t)(c->in[0] << 8 | c->in[1]));
    }
    if (c->out_at < c->out_n) {
        n = send(c->fd, c->out + c->out_at, c->out_n - c->out_at, MSG_NOSIGNAL);
        c->out_at += n > 0 ? (size_t)n : 0;
    }
    if (n == 0 || (n < 0 && errno != EAGAIN)) {
        close(c->fd);
        free(c->out);
        *c = (struct dns_server_conn){.fd = -1};
    }
}

static inline void dns_server_accept(int server) {
    int fd = accept4(servers.tcp[server], NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return;
    int i = 0;
    while (servers.conn[i].fd >= 0)
        assert_in_range(++i, 0, DNS_SERVER_CONNS - 1);
    servers.conn[i] = (struct dns_server_conn){.fd = fd, .server = server};
}

/* Takes everything that has arrived. */
static inline void dns_servers_serve(void) {
    uint8_t msg[512];
    for (int i = 0; i < DNS_SERVERS; i++) {
        struct asked q = {.server = i, .conn = -1};
        socklen_t len = sizeof q.from;
        ssize_t n;
        while ((n = recvfrom(servers.udp[i], msg, sizeof msg, 0, (struct sockaddr *)&q.from,
                             &len)) >= 0)
            dns_server_ask(q, msg, (size_t)n);
        dns_server_accept(i);
    }
    for (int i = 0; i < DNS_SERVER_CONNS; i++) {
        if (servers.conn[i].fd >= 0)
            dns_server_serve_conn(i);
    }
}

/* Waits a moment, at most, for something to do: for a server or in `epfd`. */
static inline void dns_servers_poll(int epfd) {
    struct pollfd p[1 + 2 * DNS_SERVERS + DNS_SERVER_CONNS] = {{.fd = epfd, .events = POLLIN}};
    nfds_t n = 1;
    for (int i = 0; i < DNS_SERVERS; i++) {
        p[n++] = (struct pollfd){.fd = servers.udp[i], .events = POLLIN};
        p[n++] = (struct pollfd){.fd = servers.tcp[i], .events = POLLIN};
    }
    for (int i = 0; i < DNS_SERVER_CONNS; i++) {
        bool more = servers.conn[i].out_at < servers.conn[i].out_n;
        p[n++] = (struct pollfd){.fd = servers.conn[i].fd,
                                 .events = (short)(POLLIN | (more ? POLLOUT : 0))};
    }
    poll(p, n, 10);
}
