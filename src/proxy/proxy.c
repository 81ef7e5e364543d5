#include "proxy/proxy.h"

#include "base/log.h"
#include "proxy/proxy_conn.h"

#include <errno.h>
#include <sodium.h>

#define PROXY_BACKLOG 64
#define PROXY_PORT_FIRST 20000 /* below the ports that Linux gives to clients */
#define PROXY_PORT_COUNT 10000
#define PROXY_ACCEPTS 16 /* of one turn */

void proxy_host_init(struct proxy_host *h, struct loop *loop, const struct proxy_ops *ops,
                     const struct resolve_options *resolver) {
    *h = (struct proxy_host){.loop = loop, .ops = ops};
    if (resolver != NULL)
        h->resolver = *resolver;
    list_init(&h->all);
    list_init(&h->ended);
}

void proxy_host_fini(struct proxy_host *h) {
    proxy_conn_free_ended(h);
}

bool proxy_host_guards(const struct proxy_host *h, const struct sock_addr *a) {
    bool v4 = a->u.sa.sa_family == AF_INET;
    uint16_t port = ntohs(v4 ? a->u.in.sin_port : a->u.in6.sin6_port);
    if (proxy_name_is_public(a))
        return false;
    if (port == h->own_ports[0] || port == h->own_ports[1])
        return true;
    list_for_each(n, &h->all) {
        const struct proxy *p = list_entry(n, struct proxy, node);
        if (!p->outer)
            continue;
        if (port == p->ports[0].port || port == p->ports[1].port)
            return true;
    }
    return false;
}

static void proxy_on_listener(struct loop_io *io, uint32_t events);
static void proxy_on_resume(struct loop_timer *t);

void proxy_init(struct proxy *p, struct proxy_host *h, struct proxy_config *config) {
    *p = (struct proxy){.host = h, .config = *config};
    *config = PROXY_CONFIG_INIT;
    resolve_init(&p->resolve, h->loop, &h->resolver);
    list_append(&h->all, &p->node);
    list_init(&p->conns);
    p->resume.fn = proxy_on_resume;
    for (int i = 0; i < PROXY_LISTENERS; i++)
        p->ports[i] = (struct proxy_port){.io = {.fd = -1, .fn = proxy_on_listener},
                                          .socks = i == PROXY_LISTEN_SOCKS,
                                          .proxy = p};
}

/* Listens on a port that the kernel picks. */
static int proxy_open(struct proxy_port *l, struct loop *loop) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    l->io.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (l->io.fd < 0 || bind(l->io.fd, (struct sockaddr *)&a, n) < 0 ||
        listen(l->io.fd, PROXY_BACKLOG) < 0 || getsockname(l->io.fd, (struct sockaddr *)&a, &n) < 0)
        return -errno;
    l->port = ntohs(a.sin_port);
    return loop_io_add(loop, &l->io, EPOLLIN);
}

int proxy_listen(struct proxy *p) {
    int r = proxy_open(&p->ports[PROXY_LISTEN_HTTP], p->host->loop);
    if (r == 0 && p->config.socks)
        r = proxy_open(&p->ports[PROXY_LISTEN_SOCKS], p->host->loop);
    p->outer = r == 0;
    return r;
}

static bool proxy_is_taken(const struct proxy *p, const uint16_t *taken, size_t count,
                           uint16_t port) {
    bool found = port == p->ports[0].port || port == p->ports[1].port;
    for (size_t i = 0; i < count && !found; i++)
        found = taken[i] == port;
    return found;
}

void proxy_reserve(struct proxy *p, const uint16_t *taken, size_t count) {
    for (int i = 0; i <= (p->config.socks ? PROXY_LISTEN_SOCKS : PROXY_LISTEN_HTTP); i++) {
        uint16_t port;
        do {
            port = (uint16_t)(PROXY_PORT_FIRST + randombytes_uniform(PROXY_PORT_COUNT));
        } while (proxy_is_taken(p, taken, count, port));
        p->ports[i].port = port;
    }
}

int proxy_take(struct proxy *p, uint16_t port, int fd) {
    for (int i = 0; i < PROXY_LISTENERS; i++) {
        struct proxy_port *l = &p->ports[i];
        if (port != 0 && l->port == port && l->io.fd < 0) {
            l->io.fd = fd;
            int r = loop_io_add(p->host->loop, &l->io, p->paused ? 0 : EPOLLIN);
            if (r < 0)
                util_close_fd(&l->io.fd);
            return r;
        }
    }
    close(fd);
    return -EINVAL;
}

uint16_t proxy_port(const struct proxy *p, enum proxy_listener l) {
    return p->ports[l].port;
}

/* Watches the listeners unless too many connections or descriptors are open. */
void proxy_conn_changed(struct proxy *p) {
    bool full = p->count >= PROXY_CONNS_MAX || p->starved;
    if (full == p->paused)
        return;
    p->paused = full;
    for (int i = 0; i < PROXY_LISTENERS; i++) {
        if (p->ports[i].io.fd >= 0)
            loop_io_want(p->host->loop, &p->ports[i].io, full ? 0 : EPOLLIN);
    }
}

/* Makes room for one more connection of p. False: no process has more of them. */
static bool proxy_make_room(struct proxy *p) {
    struct proxy *most = p;
    if (p->host->conns < PROXY_HOST_CONNS_MAX)
        return true;
    list_for_each(n, &p->host->all) {
        struct proxy *other = list_entry(n, struct proxy, node);
        most = other->count > most->count ? other : most;
    }
    if (most->count <= p->count + 1)
        return false;
    proxy_conn_drop(most->conns.prev);
    return true;
}

static void proxy_on_resume(struct loop_timer *t) {
    struct proxy *p = container_of(t, struct proxy, resume);
    p->starved = false;
    proxy_conn_changed(p);
}

/* The listener would be reported again and again. */
static void proxy_starve(struct proxy *p, int error) {
    if (error != EMFILE && error != ENFILE && error != ENOBUFS && error != ENOMEM)
        return;
    p->starved = loop_timer_set(p->host->loop, &p->resume, loop_ms(PROXY_PAUSE_MS)) == 0;
}

static void proxy_on_listener(struct loop_io *io, uint32_t events) {
    struct proxy_port *l = container_of(io, struct proxy_port, io);
    struct proxy *p = l->proxy;
    (void)events;
    for (int i = 0; i < PROXY_ACCEPTS && p->count < PROXY_CONNS_MAX; i++) {
        struct sock_addr from;
        socklen_t n = sizeof from;
        memset(&from, 0, sizeof from);
        int fd = accept4(io->fd, &from.u.sa, &n, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            proxy_starve(p, errno);
            break;
        }
        if (!proxy_make_room(p)) {
            log_warn("too many connections to proxies: one is closed");
            close(fd);
            continue;
        }
        proxy_conn_new(p, fd, &from, l->socks);
    }
    proxy_conn_changed(p);
}

void proxy_fini(struct proxy *p) {
    if (p->host == NULL)
        return;
    for (int i = 0; i < PROXY_LISTENERS; i++) {
        loop_io_del(p->host->loop, &p->ports[i].io);
        util_close_fd(&p->ports[i].io.fd);
    }
    loop_timer_del(p->host->loop, &p->resume);
    list_for_each(n, &p->conns) proxy_conn_drop(n);
    list_remove(&p->node);
    resolve_fini(&p->resolve);
    arena_fini(&p->config.arena);
    p->host = NULL;
}
