#include "sandbox/inside/bridge.h"

#include "base/fdpass.h"
#include "sandbox/inside/bridge_internal.h"
#include "sandbox/policy/sys.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define BRIDGE_LISTENERS_MAX (2 * PLAN_PORTS_MAX)

/* One direction of a connection. */
struct bridge_way {
    size_t at, len; /* bytes of `bytes` still to be written */
    bool ended;     /* the reader has seen the end, and the writer knows */
    char bytes[BRIDGE_BUFFER];
};

enum bridge_kind { BRIDGE_END, BRIDGE_LISTENER, BRIDGE_SIDE };

/* The subject of an event. */
struct bridge_source {
    enum bridge_kind kind;
    int fd;
    uint16_t port;            /* of a listener */
    struct bridge_pair *pair; /* of a side */
};

/* A connection: side 0 inside, side 1 outside; way 0 leads out, way 1 in. */
struct bridge_pair {
    struct bridge_source side[2];
    struct bridge_way way[2];
    uint16_t port;
    bool connecting, tried_v6, dead;
    struct bridge_pair *next_dead;
};

struct bridge {
    int epoll;
    struct bridge_source *listeners; /* owned */
    size_t listener_count, pairs;
    bool paused; /* too many connections: nobody watches the listeners */
    struct bridge_pair *dead;
};

/* -- connections -- */

static void pair_watch(struct bridge *b, struct bridge_pair *p) {
    for (int i = 0; i < 2 && !p->dead; i++) {
        const struct bridge_way *from = &p->way[i], *to = &p->way[!i];
        bool reads = !from->ended && from->len == 0 && !p->connecting;
        bool writes = to->len > 0 || (i == 1 && p->connecting);
        struct epoll_event e = {.events = (reads ? EPOLLIN : 0u) | (writes ? EPOLLOUT : 0u),
                                .data.ptr = &p->side[i]};
        epoll_ctl(b->epoll, EPOLL_CTL_MOD, p->side[i].fd, &e);
    }
}

/* Marks it for bridge_free_dead(): later events of this round may name the pair. */
static void pair_drop(struct bridge *b, struct bridge_pair *p) {
    if (p->dead)
        return;
    p->dead = true;
    struct linger reset = {.l_onoff = 1};
    if (p->connecting) /* nobody answers outside: a reset is closest to a refusal */
        setsockopt(p->side[0].fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    util_close_fd(&p->side[0].fd);
    util_close_fd(&p->side[1].fd);
    p->next_dead = b->dead;
    b->dead = p;
}

/* Begins to connect to the host. False: nobody listens. */
static bool pair_connect(struct bridge *b, struct bridge_pair *p, bool v6) {
    struct sockaddr_storage a;
    socklen_t n = bridge_listen_address(v6, p->port, &a);
    util_close_fd(&p->side[1].fd);
    int fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return false;
    p->side[1].fd = fd;
    p->connecting = true;
    p->tried_v6 = v6;
    struct epoll_event e = {.events = EPOLLOUT, .data.ptr = &p->side[1]};
    if (connect(fd, (struct sockaddr *)&a, n) < 0 && errno != EINPROGRESS)
        return !v6 && pair_connect(b, p, true);
    return epoll_ctl(b->epoll, EPOLL_CTL_ADD, fd, &e) == 0;
}

static bool pair_connected(struct bridge *b, struct bridge_pair *p) {
    int error = 0;
    socklen_t n = sizeof error;
    if (getsockopt(p->side[1].fd, SOL_SOCKET, SO_ERROR, &error, &n) < 0 || error != 0)
        return !p->tried_v6 && pair_connect(b, p, true);
    p->connecting = false;
    return true;
}

/* Moves bytes from one side to the other. False: the connection broke. */
static bool pair_move(struct bridge_pair *p, int from) {
    struct bridge_way *w = &p->way[from];
    if (w->len == 0 && !w->ended) {
        ssize_t n = recv(p->side[from].fd, w->bytes, sizeof w->bytes, 0);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        w->at = 0;
        w->len = (size_t)n;
        w->ended = n == 0;
        if (w->ended)
            shutdown(p->side[!from].fd, SHUT_WR);
    }
    while (w->len > 0) {
        ssize_t n = send(p->side[!from].fd, w->bytes + w->at, w->len, MSG_NOSIGNAL);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        w->at += (size_t)n;
        w->len -= (size_t)n;
    }
    return true;
}

static void pair_event(struct bridge *b, struct bridge_pair *p) {
    if (p->dead)
        return;
    bool ok = !p->connecting || pair_connected(b, p);
    for (int i = 0; ok && !p->connecting && i < 2; i++)
        ok = pair_move(p, i);
    bool over = p->way[0].ended && p->way[1].ended && p->way[0].len + p->way[1].len == 0;
    if (!ok || over)
        pair_drop(b, p);
    else
        pair_watch(b, p);
}

/* -- listeners -- */

static void bridge_pause(struct bridge *b, bool paused) {
    b->paused = paused;
    for (size_t i = 0; i < b->listener_count; i++) {
        struct epoll_event e = {.events = paused ? 0 : EPOLLIN, .data.ptr = &b->listeners[i]};
        epoll_ctl(b->epoll, EPOLL_CTL_MOD, b->listeners[i].fd, &e);
    }
}

static void bridge_accept(struct bridge *b, const struct bridge_source *l) {
    int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct bridge_pair *p = fd < 0 ? NULL : calloc(1, sizeof *p);
    if (p == NULL) {
        util_close_fd(&fd);
        return;
    }
    p->port = l->port;
    p->side[0] = (struct bridge_source){.kind = BRIDGE_SIDE, .fd = fd, .pair = p};
    p->side[1] = (struct bridge_source){.kind = BRIDGE_SIDE, .fd = -1, .pair = p};
    b->pairs++;
    struct epoll_event e = {.events = 0, .data.ptr = &p->side[0]};
    if (epoll_ctl(b->epoll, EPOLL_CTL_ADD, fd, &e) < 0 || !pair_connect(b, p, false))
        pair_drop(b, p);
    if (b->pairs >= BRIDGE_CONNECTIONS_MAX)
        bridge_pause(b, true);
}

static void bridge_free_dead(struct bridge *b) {
    while (b->dead != NULL) {
        struct bridge_pair *p = b->dead;
        b->dead = p->next_dead;
        b->pairs--;
        free(p);
    }
    if (b->paused && b->pairs < BRIDGE_CONNECTIONS_MAX)
        bridge_pause(b, false);
}

/* The next listener; -1 behind the last. */
static int bridge_take(int sock, uint16_t *port) {
    int fd;
    ssize_t n = fdpass_receive(sock, port, sizeof *port, MSG_WAITALL, &fd);
    if (n != (ssize_t)sizeof *port)
        util_close_fd(&fd);
    return fd;
}

/* Sends a listener of the proxy to the server. Whether it is one. */
static bool bridge_hand_on(const struct plan *p, int proxy, uint16_t port, int fd) {
    bool mine = false;
    for (unsigned i = 0; i < p->proxy_ports; i++)
        mine |= p->ports[i] == port;
    if (!mine)
        return false;
    struct str bytes = {(const char *)&port, sizeof port};
    (void)!fdpass_send(proxy, bytes, STR_LIT(""), fd); /* the server may be gone */
    close(fd);
    return true;
}

static void bridge_take_all(struct bridge *b, const struct plan *p, int sock, int proxy) {
    b->listeners = calloc(BRIDGE_LISTENERS_MAX, sizeof *b->listeners);
    uint16_t port;
    for (int fd; b->listeners != NULL && b->listener_count < BRIDGE_LISTENERS_MAX &&
                 (fd = bridge_take(sock, &port)) >= 0;) {
        if (bridge_hand_on(p, proxy, port, fd))
            continue;
        struct bridge_source *l = &b->listeners[b->listener_count++];
        *l = (struct bridge_source){.kind = BRIDGE_LISTENER, .fd = fd, .port = port};
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = l};
        epoll_ctl(b->epoll, EPOLL_CTL_ADD, fd, &e);
    }
}

void bridge_serve(const struct plan *p, int sock, int proxy, pid_t pid) {
    struct bridge b = {.epoll = epoll_create1(EPOLL_CLOEXEC)};
    struct bridge_source end = {.kind = BRIDGE_END, .fd = (int)syscall(SYS_pidfd_open, pid, 0)};
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = &end};
    if (b.epoll < 0 || end.fd < 0 || epoll_ctl(b.epoll, EPOLL_CTL_ADD, end.fd, &e) < 0)
        return; /* then nothing leads out */
    bridge_take_all(&b, p, sock, proxy);
    for (bool ended = false; !ended;) {
        struct epoll_event events[64];
        int n = epoll_wait(b.epoll, events, ARRAY_LEN(events), -1);
        for (int i = 0; i < n; i++) {
            const struct bridge_source *s = events[i].data.ptr;
            if (s->kind == BRIDGE_LISTENER)
                bridge_accept(&b, s);
            else if (s->kind == BRIDGE_SIDE)
                pair_event(&b, s->pair);
            ended |= s->kind == BRIDGE_END;
        }
        bridge_free_dead(&b);
    }
}
