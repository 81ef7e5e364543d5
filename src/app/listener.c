#include "app/listener.h"

#include "base/log.h"
#include "app/sdnotify.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define LISTENER_BACKLOG 1024
#define LISTENER_URL_MAX 80   /* bytes of "ws://[IPV6]:PORT" */
#define LISTENER_BATCH 64     /* accepted per turn of the loop */
#define LISTENER_PAUSE_MS 100 /* when descriptors have run out */

/* Tells a client beyond the maximum why the server refuses it; best effort. */
static void listener_turn_away(struct listener *l, int fd, const struct sockaddr *addr) {
    char peer[SOCK_PEER_MAX];
    static const char full[] = "HTTP/1.1 503 Service Unavailable\r\n"
                               "content-type: text/plain; charset=utf-8\r\n"
                               "content-length: 20\r\nconnection: close\r\n\r\n"
                               "too many connections";
    (void)!send(fd, full, sizeof full - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    shutdown(fd, SHUT_WR);
    close(fd);
    sock_peer_name(addr, peer);
    ops_turned_away(l->ops, METRICS_CAPACITY, peer, 503, "too many connections");
}

static void listener_pause(struct listener *l) {
    if (!l->failing) /* once per episode */
        log_error("cannot accept connections: %s", err_os_text(errno));
    l->failing = true;
    if (loop_timer_set(l->loop, &l->resume, LISTENER_PAUSE_MS * LOOP_MS) == 0)
        loop_io_want(l->loop, &l->io, 0);
}

static void listener_on_resume(struct loop_timer *t) {
    struct listener *l = container_of(t, struct listener, resume);
    loop_io_want(l->loop, &l->io, EPOLLIN);
}

/* A Unix socket admits the server's user, and root, who could become that user. */
static bool listener_may_connect(struct listener *l, int fd) {
    struct ucred peer;
    socklen_t len = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return false;
    if (peer.uid == 0 || peer.uid == geteuid())
        return true;
    char who[64];
    snprintf(who, sizeof who, "unix: user %u, process %d", (unsigned)peer.uid, (int)peer.pid);
    ops_turned_away(l->ops, METRICS_USER, who, 0, "the socket is for another user");
    return false;
}

static void listener_take(struct listener *l, int fd, const struct sockaddr *addr) {
    if (addr->sa_family == AF_UNIX && !listener_may_connect(l, fd))
        close(fd);
    else if (!conn_proof_make_room(l->conns))
        listener_turn_away(l, fd, addr);
    else if (conn_accept(l->conns, fd, addr) < 0)
        log_error("out of memory: a connection was turned away");
    else
        l->ops->metrics.connections++;
}

static void listener_on_ready(struct loop_io *io, uint32_t events) {
    (void)events;
    struct listener *l = container_of(io, struct listener, io);
    for (int i = 0; i < LISTENER_BATCH; i++) {
        struct sockaddr_storage addr = {0};
        socklen_t len = sizeof addr;
        int fd = accept4(io->fd, (struct sockaddr *)&addr, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
                listener_pause(l);
            return;
        }
        l->failing = false;
        listener_take(l, fd, (struct sockaddr *)&addr);
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

/* Prints one line on stdout: a reader knows that the server is ready. */
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
        return -errno; /* the reader is gone */
    return 0;
}

/* -- binding -- */

/* What the operator can do about an address that cannot be used. */
static const char *listener_remedy(int error) {
    switch (error) {
    case EADDRINUSE: return "; another program listens there: choose another port, or 0 for any";
    case EACCES: return "; ports below 1024 are for root: choose another port";
    case EADDRNOTAVAIL: return "; no interface here has this address: see `ip address`";
    case EAFNOSUPPORT: return "; this system has no such addresses: choose an IPv4 address";
    default: return "";
    }
}

static int listener_bind_tcp(struct listener *l, struct err *e) {
    const struct listener_place *o = &l->place;
    char url[LISTENER_URL_MAX];
    int on = 1;
    l->io.fd = socket(o->addr->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (l->io.fd >= 0)
        (void)setsockopt(l->io.fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (l->io.fd >= 0 && bind(l->io.fd, (const struct sockaddr *)o->addr, o->addr_len) == 0 &&
        listen(l->io.fd, LISTENER_BACKLOG) == 0)
        return 0;
    int error = errno;
    listener_tcp_url(o->addr, url, sizeof url);
    err_set(e, ERR_INTERNAL, "cannot listen on %s: %s (os error %d)%s", url, err_os_text(error),
            error, listener_remedy(error));
    return -error;
}

/* 0: a server listens on the socket file; -ECONNREFUSED: none does; or -errno. */
static int listener_probe(const struct sockaddr_un *un) {
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (const struct sockaddr *)un, sizeof *un) == 0 || errno == EAGAIN)
        return 0; /* EAGAIN: a server listens, but its queue is full */
    return -errno;
}

/* Removes a socket file on which no server listens, and nothing else. 0 or -errno. */
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

/* Creates the file with mode 0600: there is no moment when others can connect. */
static int listener_bind_private(int fd, const struct sockaddr_un *un) {
    mode_t mask = umask(0177);
    int r = bind(fd, (const struct sockaddr *)un, sizeof *un) < 0 ? -errno : 0;
    umask(mask);
    return r;
}

static int listener_try_unix(struct listener *l) {
    const struct sockaddr_un *un = (const void *)l->place.addr;
    struct stat st;
    l->io.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (l->io.fd < 0)
        return -errno;
    int r = listener_bind_private(l->io.fd, un);
    if (r == -EADDRINUSE) {
        r = listener_clear_stale(un);
        if (r == 0)
            r = listener_bind_private(l->io.fd, un);
    }
    if (r < 0)
        return r;
    if (listen(l->io.fd, LISTENER_BACKLOG) < 0 || lstat(un->sun_path, &st) < 0)
        return -errno;
    l->socket_dev = st.st_dev;
    l->socket_ino = st.st_ino;
    return 0;
}

static int listener_bind_unix(struct listener *l, struct err *e) {
    const char *path = ((const struct sockaddr_un *)l->place.addr)->sun_path;
    int r = listener_try_unix(l);
    if (r == -ENOTSOCK)
        err_set(e, ERR_INTERNAL,
                "cannot listen on unix://%s: the file exists and is not a socket: choose "
                "another path, or remove it",
                path);
    else if (r == -EADDRINUSE)
        err_set(e, ERR_INTERNAL,
                "cannot listen on unix://%s: a server is listening there already: "
                "choose another path",
                path);
    else if (r < 0)
        err_set(e, ERR_INTERNAL, "cannot listen on unix://%s: %s (os error %d)", path,
                err_os_text(-r), -r);
    return r;
}

static void listener_remove_file(struct listener *l) {
    struct stat st;
    const char *path = ((const struct sockaddr_un *)l->place.addr)->sun_path;
    if (l->socket_ino == 0)
        return;
    if (lstat(path, &st) == 0 && st.st_dev == l->socket_dev && st.st_ino == l->socket_ino)
        unlink(path);
    l->socket_ino = 0;
}

void listener_init(struct listener *l, struct loop *loop, const struct listener_place *place,
                   struct conn_host *conns, struct ops *ops) {
    *l = (struct listener){.loop = loop,
                           .place = *place,
                           .conns = conns,
                           .ops = ops,
                           .io = {.fd = -1, .fn = listener_on_ready},
                           .resume.fn = listener_on_resume};
}

int listener_open(struct listener *l, struct err *e) {
    int r = l->place.kind == OPTIONS_LISTEN_UNIX ? listener_bind_unix(l, e)
            : l->place.kind == OPTIONS_LISTEN_WS ? listener_bind_tcp(l, e)
                                                 : 0;
    if (r < 0)
        return r;
    if (l->place.kind == OPTIONS_LISTEN_FD)
        l->io.fd = l->place.fd;
    if (r == 0)
        r = loop_io_add(l->loop, &l->io, EPOLLIN);
    if (r == 0 && l->place.announce)
        r = listener_announce(l->io.fd);
    return r < 0 ? err_os(e, ERR_INTERNAL, -r) : 0;
}

int listener_address(const struct listener *l, struct sock_addr *a) {
    socklen_t n = sizeof *a;
    memset(a, 0, sizeof *a);
    return getsockname(l->io.fd, &a->u.sa, &n) < 0 ? -errno : 0;
}

void listener_close(struct listener *l) {
    if (l->io.added && l->place.notify_socket != NULL)
        sdnotify_send(l->place.notify_socket, "STOPPING=1");
    loop_timer_del(l->loop, &l->resume);
    loop_io_del(l->loop, &l->io);
    listener_remove_file(l);
    util_close_fd(&l->io.fd);
}
