#include "net/sock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/sockios.h>
#include <net/if.h>
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

/* -- addresses -- */

struct sock_addr sock_addr_v4(const uint8_t bytes[4], uint16_t port) {
    struct sock_addr a;
    memset(&a, 0, sizeof a);
    a.u.in.sin_family = AF_INET;
    a.u.in.sin_port = htons(port);
    memcpy(&a.u.in.sin_addr, bytes, 4);
    return a;
}

struct sock_addr sock_addr_v6(const uint8_t bytes[16], uint16_t port) {
    static const uint8_t mapped[12] = {[10] = 0xFF, [11] = 0xFF};
    if (memcmp(bytes, mapped, sizeof mapped) == 0)
        return sock_addr_v4(bytes + sizeof mapped, port);
    struct sock_addr a;
    memset(&a, 0, sizeof a);
    a.u.in6.sin6_family = AF_INET6;
    a.u.in6.sin6_port = htons(port);
    memcpy(&a.u.in6.sin6_addr, bytes, 16);
    return a;
}

/* The index of an interface, from its number or name; 0 if there is none. */
static uint32_t sock_scope(const char *text) {
    uint64_t v = 0;
    size_t n = strspn(text, "0123456789");
    if (n == 0 || text[n] != '\0')
        return if_nametoindex(text);
    if (n > 10)
        return 0;
    for (size_t i = 0; i < n; i++)
        v = v * 10 + (uint64_t)(text[i] - '0');
    return v > UINT32_MAX ? 0 : (uint32_t)v;
}

static bool sock_addr_is_local(const struct in6_addr *a) {
    return IN6_IS_ADDR_LINKLOCAL(a) || IN6_IS_ADDR_MC_LINKLOCAL(a);
}

int sock_addr_parse(struct str text, uint16_t port, struct sock_addr *a) {
    char z[INET6_ADDRSTRLEN + 1 + IF_NAMESIZE] = "";
    if (text.n == 0 || text.n >= sizeof z || str_has_nul(text))
        return -EINVAL;
    memcpy(z, text.p, text.n);
    uint8_t bytes[16];
    if (inet_pton(AF_INET, z, bytes) == 1) {
        *a = sock_addr_v4(bytes, port);
        return 0;
    }
    char *percent = strchr(z, '%');
    if (percent != NULL)
        *percent = '\0';
    if (inet_pton(AF_INET6, z, bytes) != 1)
        return -EINVAL;
    struct sock_addr b = sock_addr_v6(bytes, port);
    if (percent != NULL) {
        if (b.u.sa.sa_family != AF_INET6 || !sock_addr_is_local(&b.u.in6.sin6_addr))
            return -EINVAL;
        b.u.in6.sin6_scope_id = sock_scope(percent + 1);
        if (b.u.in6.sin6_scope_id == 0)
            return -EINVAL;
    }
    *a = b;
    return 0;
}

socklen_t sock_addr_len(const struct sock_addr *a) {
    return a->u.sa.sa_family == AF_INET6 ? sizeof a->u.in6 : sizeof a->u.in;
}

void sock_addr_copy(struct sock_addr *a, const struct sockaddr *from) {
    memset(a, 0, sizeof *a);
    a->u.sa.sa_family = from->sa_family;
    if (from->sa_family == AF_INET || from->sa_family == AF_INET6)
        memcpy(&a->u, from, from->sa_family == AF_INET6 ? sizeof a->u.in6 : sizeof a->u.in);
}

bool sock_addr_eq(const struct sock_addr *a, const struct sock_addr *b) {
    if (a->u.sa.sa_family != b->u.sa.sa_family)
        return false;
    if (a->u.sa.sa_family == AF_INET)
        return a->u.in.sin_port == b->u.in.sin_port &&
               a->u.in.sin_addr.s_addr == b->u.in.sin_addr.s_addr;
    return a->u.in6.sin6_port == b->u.in6.sin6_port &&
           a->u.in6.sin6_scope_id == b->u.in6.sin6_scope_id &&
           IN6_ARE_ADDR_EQUAL(&a->u.in6.sin6_addr, &b->u.in6.sin6_addr);
}
