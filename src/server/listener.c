#include "server/listener.h"

#include "base/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#define LISTENER_BACKLOG 1024
#define LISTENER_BATCH 64      /* accepted per turn of the loop */
#define LISTENER_PAUSE_MS 100  /* when descriptors have run out */

/* Tells a client beyond the maximum why it is turned away; best effort. */
static void listener_turn_away(int fd) {
    static const char full[] = "HTTP/1.1 503 Service Unavailable\r\n"
                               "content-type: text/plain; charset=utf-8\r\n"
                               "content-length: 20\r\nconnection: close\r\n\r\n"
                               "too many connections";
    (void)!send(fd, full, sizeof full - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    shutdown(fd, SHUT_WR);
    close(fd);
}

static void listener_pause(struct server *s) {
    if (!s->accept_failing) /* once per episode */
        log_error("cannot accept connections: %s", err_os_text(errno));
    s->accept_failing = true;
    if (loop_timer_set(&s->loop, &s->accept_timer, LISTENER_PAUSE_MS * LOOP_MS) == 0)
        loop_io_want(&s->loop, &s->listener, 0);
}

static void listener_on_resume(struct loop_timer *t) {
    struct server *s = container_of(t, struct server, accept_timer);
    loop_io_want(&s->loop, &s->listener, EPOLLIN);
}

static void listener_on_ready(struct loop_io *io, uint32_t events) {
    (void)events;
    struct server *s = container_of(io, struct server, listener);
    for (int i = 0; i < LISTENER_BATCH; i++) {
        struct sockaddr_storage addr;
        socklen_t len = sizeof addr;
        int fd = accept4(io->fd, (struct sockaddr *)&addr, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
                listener_pause(s);
            return;
        }
        s->accept_failing = false;
        if (s->conns.count >= s->opt->max_connections)
            listener_turn_away(fd);
        else if (conn_accept(&s->conns, fd, (struct sockaddr *)&addr) < 0)
            log_error("out of memory: a connection was turned away");
    }
}

/* One line on stdout: reading it means the server is ready. */
static int listener_announce(int fd) {
    struct sockaddr_storage addr;
    socklen_t len = sizeof addr;
    if (getsockname(fd, (struct sockaddr *)&addr, &len) < 0)
        return -errno;
    char ip[INET6_ADDRSTRLEN], line[INET6_ADDRSTRLEN + 32];
    bool v6 = addr.ss_family == AF_INET6;
    const struct sockaddr_in6 *a6 = (const void *)&addr;
    const struct sockaddr_in *a4 = (const void *)&addr;
    inet_ntop(addr.ss_family, v6 ? (const void *)&a6->sin6_addr : (const void *)&a4->sin_addr, ip,
              sizeof ip);
    unsigned port = ntohs(v6 ? a6->sin6_port : a4->sin_port);
    int n = snprintf(line, sizeof line, v6 ? "ws://[%s]:%u\n" : "ws://%s:%u\n", ip, port);
    log_info("listening on %.*s", n - 1, line);
    if (write(STDOUT_FILENO, line, (size_t)n) < 0 && errno != EBADF)
        return -errno; /* somebody was to read it and cannot */
    return 0;
}

int listener_open(struct server *s) {
    const struct options *o = s->opt;
    int fd = socket(o->addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    s->listener = (struct loop_io){.fd = fd, .fn = listener_on_ready};
    s->accept_timer.fn = listener_on_resume;
    int on = 1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (const struct sockaddr *)&o->addr, o->addr_len) < 0 ||
        listen(fd, LISTENER_BACKLOG) < 0)
        return -errno;
    int r = loop_io_add(&s->loop, &s->listener, EPOLLIN);
    return r < 0 ? r : listener_announce(fd);
}

void listener_close(struct server *s) {
    loop_timer_del(&s->loop, &s->accept_timer);
    loop_io_del(&s->loop, &s->listener);
    util_close_fd(&s->listener.fd);
}
