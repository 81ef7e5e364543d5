#include "app/listener.h"

#include "base/log.h"
#include "ops/report.h"
#include "app/sdnotify.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define LISTENER_BACKLOG 1024
#define LISTENER_BATCH 64     /* accepted per turn of the loop */
#define LISTENER_PAUSE_MS 100 /* when descriptors have run out */

/* Tells a client beyond the maximum why it is turned away; best effort. */
static void listener_turn_away(struct server *s, int fd, const struct sockaddr *addr) {
    char peer[SOCK_PEER_MAX];
    static const char full[] = "HTTP/1.1 503 Service Unavailable\r\n"
                               "content-type: text/plain; charset=utf-8\r\n"
                               "content-length: 20\r\nconnection: close\r\n\r\n"
                               "too many connections";
    (void)!send(fd, full, sizeof full - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    shutdown(fd, SHUT_WR);
    close(fd);
    sock_peer_name(addr, peer);
    report_turned_away(s, METRICS_CAPACITY, peer, 503, "too many connections");
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

/* A Unix socket is for the user of the server, and for root, who could become that user. */
static bool listener_may_connect(struct server *s, int fd) {
    struct ucred peer;
    socklen_t len = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return false;
    if (peer.uid == 0 || peer.uid == geteuid())
        return true;
    char who[64];
    snprintf(who, sizeof who, "unix: user %u, process %d", (unsigned)peer.uid, (int)peer.pid);
    log_warn("refusing a connection of %s", who);
    report_turned_away(s, METRICS_USER, who, 0, "the socket is for another user");
    return false;
}

static void listener_take(struct server *s, int fd, const struct sockaddr *addr) {
    if (addr->sa_family == AF_UNIX && !listener_may_connect(s, fd))
        close(fd);
    else if (!conn_make_room(&s->conns))
        listener_turn_away(s, fd, addr);
    else if (conn_accept(&s->conns, fd, addr) < 0)
        log_error("out of memory: a connection was turned away");
    else
        s->metrics.connections++;
}

static void listener_on_ready(struct loop_io *io, uint32_t events) {
    (void)events;
    struct server *s = container_of(io, struct server, listener);
    for (int i = 0; i < LISTENER_BATCH; i++) {
        struct sockaddr_storage addr = {0};
        socklen_t len = sizeof addr;
        int fd = accept4(io->fd, (struct sockaddr *)&addr, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
                listener_pause(s);
            return;
        }
        s->accept_failing = false;
        listener_take(s, fd, (struct sockaddr *)&addr);
    }
}

/* "unix://PATH", or "unix://@NAME" for an abstract name. The length, as snprintf(). */
static int listener_unix_url(const struct sockaddr_un *un, socklen_t len, char *url, size_t room) {
    size_t head = offsetof(struct sockaddr_un, sun_path);
    size_t n = len > head ? len - head : 0;
    if (n > 0 && un->sun_path[0] == '\0')
        return snprintf(url, room, "unix://@%.*s", (int)n - 1, un->sun_path + 1);
    return snprintf(url, room, "unix://%.*s", (int)strnlen(un->sun_path, n), un->sun_path);
}

static int listener_tcp_url(const struct sockaddr_storage *addr, char *url, size_t room) {
    char ip[INET6_ADDRSTRLEN];
    bool v6 = addr->ss_family == AF_INET6;
    const struct sockaddr_in6 *a6 = (const void *)addr;
    const struct sockaddr_in *a4 = (const void *)addr;
    inet_ntop(addr->ss_family, v6 ? (const void *)&a6->sin6_addr : (const void *)&a4->sin_addr, ip,
              sizeof ip);
    unsigned port = ntohs(v6 ? a6->sin6_port : a4->sin_port);
    return snprintf(url, room, v6 ? "ws://[%s]:%u" : "ws://%s:%u", ip, port);
}

/* One line on stdout: reading it means the server is ready. */
static int listener_announce(int fd) {
    struct sockaddr_storage addr = {0};
    socklen_t len = sizeof addr;
    if (getsockname(fd, (struct sockaddr *)&addr, &len) < 0)
        return -errno;
    char line[sizeof(struct sockaddr_un) + 32];
    int n = addr.ss_family == AF_UNIX
                ? listener_unix_url((const struct sockaddr_un *)&addr, len, line, sizeof line - 1)
                : listener_tcp_url(&addr, line, sizeof line - 1);
    log_info("listening on %s", line);
    line[n] = '\n';
    if (write(STDOUT_FILENO, line, (size_t)n + 1) < 0 && errno != EBADF)
        return -errno; /* somebody was to read it and cannot */
    return 0;
}

/* -- binding -- */

static int listener_bind_tcp(struct server *s) {
    const struct options *o = s->opt;
    int on = 1;
    s->listener.fd = socket(o->addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->listener.fd < 0)
        return -errno;
    (void)setsockopt(s->listener.fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(s->listener.fd, (const struct sockaddr *)&o->addr, o->addr_len) < 0 ||
        listen(s->listener.fd, LISTENER_BACKLOG) < 0)
        return -errno;
    return 0;
}

/* Whether somebody listens on the socket file: 0, -ECONNREFUSED when nobody does, -errno. */
static int listener_probe(const struct sockaddr_un *un) {
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (const struct sockaddr *)un, sizeof *un) == 0 || errno == EAGAIN)
        return 0; /* EAGAIN: somebody does, and has too many waiting */
    return -errno;
}

/* Makes way for our socket: only a socket that nobody listens on may be removed. 0 or -errno. */
static int listener_clear_stale(const struct sockaddr_un *un) {
    struct stat before, after;
    if (lstat(un->sun_path, &before) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISSOCK(before.st_mode))
        return -ENOTSOCK;
    int r = listener_probe(un);
    if (r != -ECONNREFUSED)
        return r == 0 ? -EADDRINUSE : r;
    /* Another server may have come first. */
    if (lstat(un->sun_path, &after) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (after.st_dev != before.st_dev || after.st_ino != before.st_ino)
        return -EADDRINUSE;
    return unlink(un->sun_path) < 0 && errno != ENOENT ? -errno : 0;
}

/* The file is the owner's alone from the moment it exists. */
static int listener_bind_private(int fd, const struct sockaddr_un *un) {
    mode_t mask = umask(0177);
    int r = bind(fd, (const struct sockaddr *)un, sizeof *un) < 0 ? -errno : 0;
    umask(mask);
    return r;
}

static int listener_try_unix(struct server *s) {
    const struct sockaddr_un *un = (const void *)&s->opt->addr;
    struct stat st;
    s->listener.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->listener.fd < 0)
        return -errno;
    int r = listener_bind_private(s->listener.fd, un);
    if (r == -EADDRINUSE) {
        r = listener_clear_stale(un);
        if (r == 0)
            r = listener_bind_private(s->listener.fd, un);
    }
    if (r < 0)
        return r;
    if (listen(s->listener.fd, LISTENER_BACKLOG) < 0 || lstat(un->sun_path, &st) < 0)
        return -errno;
    s->socket_dev = st.st_dev;
    s->socket_ino = st.st_ino;
    return 0;
}

static int listener_bind_unix(struct server *s, struct err *e) {
    const char *path = ((const struct sockaddr_un *)&s->opt->addr)->sun_path;
    int r = listener_try_unix(s);
    if (r == -ENOTSOCK)
        err_set(e, ERR_INTERNAL, "cannot listen on unix://%s: the file exists and is not a socket",
                path);
    else if (r == -EADDRINUSE)
        err_set(e, ERR_INTERNAL, "cannot listen on unix://%s: a server is listening there already",
                path);
    else if (r < 0)
        err_set(e, ERR_INTERNAL, "cannot listen on unix://%s: %s (os error %d)", path,
                err_os_text(-r), -r);
    return r;
}

static void listener_remove_file(struct server *s) {
    struct stat st;
    const char *path = ((const struct sockaddr_un *)&s->opt->addr)->sun_path;
    if (s->socket_ino == 0)
        return;
    if (lstat(path, &st) == 0 && st.st_dev == s->socket_dev && st.st_ino == s->socket_ino)
        unlink(path);
    s->socket_ino = 0;
}

int listener_open(struct server *s, struct err *e) {
    s->listener = (struct loop_io){.fd = -1, .fn = listener_on_ready};
    s->accept_timer.fn = listener_on_resume;
    if (s->opt->listen == OPTIONS_LISTEN_UNIX) {
        int bound = listener_bind_unix(s, e);
        if (bound < 0)
            return bound;
    }
    int r = 0;
    if (s->opt->listen == OPTIONS_LISTEN_FD)
        s->listener.fd = s->opt->listen_fd;
    else if (s->opt->listen == OPTIONS_LISTEN_WS)
        r = listener_bind_tcp(s);
    if (r == 0)
        r = loop_io_add(&s->loop, &s->listener, EPOLLIN);
    if (r == 0)
        r = listener_announce(s->listener.fd);
    return r < 0 ? err_os(e, ERR_INTERNAL, -r) : 0;
}

void listener_close(struct server *s) {
    if (s->listener.added)
        sdnotify_send(s->opt->notify_socket, "STOPPING=1");
    loop_timer_del(&s->loop, &s->accept_timer);
    loop_io_del(&s->loop, &s->listener);
    listener_remove_file(s);
    util_close_fd(&s->listener.fd);
}
