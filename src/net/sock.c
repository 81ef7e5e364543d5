#include "net/sock.h"

#include <arpa/inet.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/ioctl.h>

void sock_peer_name(const struct sockaddr *addr, char dst[SOCK_PEER_MAX]) {
    char ip[INET6_ADDRSTRLEN] = "?";
    if (addr->sa_family == AF_INET) {
        const struct sockaddr_in *a = (const void *)addr;
        inet_ntop(AF_INET, &a->sin_addr, ip, sizeof ip);
        snprintf(dst, SOCK_PEER_MAX, "%s:%u", ip, ntohs(a->sin_port));
    } else if (addr->sa_family == AF_INET6) {
        const struct sockaddr_in6 *a = (const void *)addr;
        inet_ntop(AF_INET6, &a->sin6_addr, ip, sizeof ip);
        snprintf(dst, SOCK_PEER_MAX, "[%s]:%u", ip, ntohs(a->sin6_port));
    } else {
        snprintf(dst, SOCK_PEER_MAX, "unix");
    }
}

static void sock_set_option(int fd, int level, int name, int value) {
    (void)setsockopt(fd, level, name, &value, sizeof value); /* tuning: failure is harmless */
}

void sock_tune_tcp(int fd) {
    /* planted: no-nodelay */
    sock_set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    sock_set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    sock_set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 30);
    sock_set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 15);
    sock_set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 90000);
}

size_t sock_unconfirmed(int fd) {
    int n;
    return ioctl(fd, SIOCOUTQ, &n) == 0 && n > 0 ? (size_t)n : 0;
}

void sock_limit_unsent(int fd, int n) {
    sock_set_option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, n);
}
