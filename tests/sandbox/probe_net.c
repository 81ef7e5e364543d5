/* Rows 183 to 217: sockets. */

#include "probe.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Column a: family, b: type; the protocol is made of both. */
static int make_socket(const struct probe_row *r) {
    int protocol = 0;
    if (r->path)
        protocol = r->path[0] - '@';
    return probe_opened(socket(r->a, r->b | SOCK_CLOEXEC, protocol));
}

static struct sockaddr_in inet(const char *address, int port) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    inet_pton(AF_INET, address, &to.sin_addr);
    return to;
}

static int connect_loopback(const struct probe_row *r) {
    struct sockaddr_in to = inet("127.0.0.1", aim.tcp);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)r;
    if (fd < 0)
        return -errno;
    int e = probe_done(connect(fd, (struct sockaddr *)&to, sizeof(to)));
    close(fd);
    return e;
}

/* Nobody listens there: a refusal has come from it. */
static int connect_elsewhere(const struct probe_row *r) {
    struct sockaddr_in to = inet(aim.address, 9);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)r;
    if (fd < 0)
        return -errno;
    int e = probe_done(connect(fd, (struct sockaddr *)&to, sizeof(to)));
    close(fd);
    if (e == -EINPROGRESS || e == -ECONNREFUSED)
        return probe_say("OK %s", probe_error(-e));
    return e;
}

/* Column a: by sendmsg. */
static int send_udp(const struct probe_row *r) {
    struct sockaddr_in to = inet("127.0.0.1", aim.udp);
    char text[] = "PWNED";
    struct iovec part = {text, 5};
    struct msghdr m = {
        .msg_name = &to, .msg_namelen = sizeof(to), .msg_iov = &part, .msg_iovlen = 1};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    int e = probe_done(r->a ? sendmsg(fd, &m, 0)
                            : sendto(fd, text, 5, 0, (struct sockaddr *)&to, sizeof(to)));
    close(fd);
    return e;
}

/* The address of a socket by path (see probe_path) or, with a leading '@', an abstract name. */
static socklen_t local(const char *name, struct sockaddr_un *to) {
    *to = (struct sockaddr_un){.sun_family = AF_UNIX};
    size_t base = offsetof(struct sockaddr_un, sun_path);
    if (name[0] == '@') {
        int n =
            snprintf(to->sun_path + 1, sizeof(to->sun_path) - 1, "%s%s", aim.abstract, name + 1);
        return (socklen_t)(base + 1 + (size_t)n);
    }
    int n = snprintf(to->sun_path, sizeof(to->sun_path), "%s", probe_path(name));
    return (socklen_t)(base + (size_t)n + 1);
}

static int connect_local(const struct probe_row *r) {
    struct sockaddr_un to;
    socklen_t length = local(r->path, &to);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    int e = probe_done(connect(fd, (struct sockaddr *)&to, length));
    close(fd);
    return e;
}

/* Sends to a name in every way there is; 0 when one of them succeeds, else the first error. */
static int send_named(int fd, struct sockaddr_un *to, socklen_t length) {
    char text[] = "PWNED";
    struct iovec part = {text, 5};
    struct mmsghdr m = {.msg_hdr = {
                            .msg_name = to,
                            .msg_namelen = length,
                            .msg_iov = &part,
                            .msg_iovlen = 1,
                        }};
    if (sendmsg(fd, &m.msg_hdr, 0) == 5)
        return 0;
    int first = -errno;
    if (sendmmsg(fd, &m, 1, 0) == 1 || sendto(fd, text, 5, 0, (struct sockaddr *)to, length) == 5)
        return 0;
    if (connect(fd, (struct sockaddr *)to, length) == 0 && write(fd, text, 5) == 5)
        return 0;
    return first;
}

/* The kernel makes a datagram socket of SOCK_RAW too, and one of a pair takes a name as well. */
static int send_local(const struct probe_row *r) {
    static const int types[] = {SOCK_DGRAM, SOCK_RAW, SOCK_DGRAM | SOCK_NONBLOCK,
                                SOCK_RAW | SOCK_CLOEXEC};
    struct sockaddr_un to;
    socklen_t length = local(r->path, &to);
    int first = 0, ends[2];
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        int fd = socket(AF_UNIX, types[i], 0);
        int e = fd < 0 ? -errno : send_named(fd, &to, length);
        if (e == 0)
            return 0;
        first = first ? first : e;
        if (fd >= 0)
            close(fd);
        if (socketpair(AF_UNIX, types[i], 0, ends) < 0)
            continue;
        if (send_named(ends[0], &to, length) == 0)
            return probe_say("OK socketpair");
        close(ends[0]);
        close(ends[1]);
    }
    return first;
}

static int bind_local(const struct probe_row *r) {
    struct sockaddr_un to;
    socklen_t length = local(r->path, &to);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    int e = probe_done(bind(fd, (struct sockaddr *)&to, length));
    close(fd);
    if (e == 0)
        unlink(to.sun_path);
    return e;
}

enum pair { MADE, WRITTEN, SENT, RECEIVED, PASSED, ASKED, SHUT };

static int pass_descriptor(const int *ends) {
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } u;
    char byte = 'x';
    struct iovec part = {&byte, 1};
    struct msghdr m = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &u, .msg_controllen = sizeof(u)};
    memset(&u, 0, sizeof(u));
    u.head.cmsg_level = SOL_SOCKET;
    u.head.cmsg_type = SCM_RIGHTS;
    u.head.cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(&u.head), &ends[0], sizeof(int));
    if (sendmsg(ends[0], &m, 0) != 1 || recvmsg(ends[1], &m, MSG_CMSG_CLOEXEC) != 1)
        return -errno;
    return m.msg_controllen >= CMSG_LEN(sizeof(int)) ? 0 : -ENODATA;
}

/* Column a: what to do with a pair of sockets; programs that wait for events need all of it. */
static int use_pair(const struct probe_row *r) {
    int ends[2], type;
    socklen_t size = sizeof(type);
    char byte = 'x';
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return -errno;
    switch ((enum pair)r->a) {
    case MADE: return 0;
    case WRITTEN: return write(ends[0], &byte, 1) == 1 && read(ends[1], &byte, 1) == 1 ? 0 : -errno;
    case SENT: return probe_done(send(ends[0], &byte, 1, 0));
    case RECEIVED:
        return write(ends[0], &byte, 1) == 1 && recv(ends[1], &byte, 1, 0) == 1 ? 0 : -errno;
    case PASSED: return pass_descriptor(ends);
    case ASKED: return probe_done(getsockopt(ends[0], SOL_SOCKET, SO_TYPE, &type, &size));
    case SHUT: return probe_done(shutdown(ends[0], SHUT_WR));
    }
    return -EINVAL;
}

/* A shell takes any error but ENOTSOCK for a sign that it was started over the network. */
static int ask_peer(const struct probe_row *r) {
    struct sockaddr_storage peer;
    socklen_t size = sizeof(peer);
    int ends[2];
    (void)r;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    return probe_done(getpeername(ends[0], (struct sockaddr *)&peer, &size));
}

static int listen_loopback(const struct probe_row *r) {
    struct sockaddr_in at = inet("127.0.0.1", 0);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)r;
    if (fd < 0)
        return -errno;
    int e = bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 1) < 0 ? -errno : 0;
    close(fd);
    return e;
}

/* Names of the interfaces: what stands before a colon. */
static int interfaces(const struct probe_row *r) {
    char text[16384], names[256] = "";
    size_t length = 0;
    if (probe_read(r->path, text, sizeof(text)) < 0)
        return -errno;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char *colon = strchr(line, ':');
        if (!colon || length + 20 > sizeof(names))
            continue;
        line += strspn(line, " ");
        length += (size_t)snprintf(names + length, sizeof(names) - length, "%s%.*s",
                                   length ? " " : "", (int)(colon - line), line);
    }
    return probe_say("%s", names);
}

/* A protocol's number as a letter: '@' is 0, 'A' is 1. */
#define ICMP "A"
#define AUDIT "I"
#define UEVENT "O"

const struct probe_row probe_net[] = {
    {183, make_socket, NULL, AF_INET, SOCK_STREAM},
    {184, make_socket, NULL, AF_INET6, SOCK_STREAM},
    {185, connect_loopback, NULL, 0, 0},
    {186, connect_elsewhere, NULL, 0, 0},
    {187, send_udp, NULL, 0, 0},
    {188, send_udp, NULL, 1, 0},
    {189, make_socket, ICMP, AF_INET, SOCK_RAW},
    {190, make_socket, ICMP, AF_INET, SOCK_DGRAM},
    {191, make_socket, NULL, AF_PACKET, SOCK_RAW},
    {192, make_socket, NULL, AF_NETLINK, SOCK_RAW},
    {193, make_socket, AUDIT, AF_NETLINK, SOCK_RAW},
    {194, make_socket, UEVENT, AF_NETLINK, SOCK_RAW},
    {195, make_socket, NULL, AF_VSOCK, SOCK_STREAM},
    {196, make_socket, NULL, AF_ALG, SOCK_SEQPACKET},
    {197, make_socket, NULL, AF_KEY, SOCK_RAW},
    {198, make_socket, NULL, 44 /* AF_XDP */, SOCK_RAW},
    {199, make_socket, NULL, AF_BLUETOOTH, SOCK_RAW},
    {200, make_socket, NULL, AF_CAN, SOCK_RAW},
    {201, make_socket, NULL, AF_UNIX, SOCK_STREAM},
    {202, connect_local, "O/stream.sock", 0, 0},
    {203, connect_local, "W/stream.sock", 0, 0},
    {204, connect_local, "@", 0, 0},
    {205, send_local, "O/dgram.sock", 0, 0},
    {206, send_local, "@-dgram", 0, 0},
    {207, bind_local, "W/bound.sock", 0, 0},
    {208, use_pair, NULL, MADE, 0},
    {209, use_pair, NULL, WRITTEN, 0},
    {210, use_pair, NULL, SENT, 0},
    {211, use_pair, NULL, RECEIVED, 0},
    {212, use_pair, NULL, PASSED, 0},
    {213, use_pair, NULL, ASKED, 0},
    {214, use_pair, NULL, SHUT, 0},
    {215, ask_peer, NULL, 0, 0},
    {216, listen_loopback, NULL, 0, 0},
    {217, interfaces, "/proc/net/dev", 0, 0},
    {0, NULL, NULL, 0, 0},
};
