#include "net/forwarded.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

#define FORWARDED_V4_BITS 96 /* before the 32 of a mapped IPv4 address */

/* The address in 16 bytes; false for other families. */
static bool forwarded_bytes(const struct sockaddr *addr, uint8_t out[16]) {
    static const uint8_t mapped[12] = {[10] = 0xFF, [11] = 0xFF};
    if (addr->sa_family == AF_INET) {
        memcpy(out, mapped, sizeof mapped);
        memcpy(out + sizeof mapped, &((const struct sockaddr_in *)(const void *)addr)->sin_addr, 4);
        return true;
    }
    if (addr->sa_family != AF_INET6)
        return false;
    memcpy(out, &((const struct sockaddr_in6 *)(const void *)addr)->sin6_addr, 16);
    return true;
}

/* A number of at most three digits after the slash; -1 = none. */
static int forwarded_bits(struct str text) {
    int n = 0;
    if (text.n == 0 || text.n > 3)
        return -1;
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] < '0' || text.p[i] > '9')
            return -1;
        n = n * 10 + (text.p[i] - '0');
    }
    return n;
}

static bool forwarded_parse_addr(struct str text, struct sock_addr *a) {
    bool scoped = text.n > 0 && memchr(text.p, '%', text.n) != NULL;
    return !scoped && sock_addr_parse(text, 0, a) == 0;
}

int forwarded_add(struct forwarded *f, const char *text) {
    const char *slash = strchr(text, '/');
    struct str ip = {text, slash != NULL ? (size_t)(slash - text) : strlen(text)};
    struct sock_addr a;
    if (strcmp(text, "unix") == 0) {
        f->unix_socket = true;
        return 0;
    }
    if (!forwarded_parse_addr(ip, &a))
        return -EINVAL;
    bool dotted = memchr(ip.p, ':', ip.n) == NULL;
    int most = dotted ? 32 : 128, bits = slash != NULL ? forwarded_bits(str_of(slash + 1)) : most;
    if (bits < 0 || bits > most)
        return -EINVAL;
    if (f->count == FORWARDED_NETS_MAX)
        return -ENOSPC;
    struct forwarded_net *net = &f->nets[f->count++];
    net->bits = (unsigned)bits + (dotted ? FORWARDED_V4_BITS : 0);
    (void)forwarded_bytes(&a.u.sa, net->addr);
    return 0;
}

static bool forwarded_matches(const struct forwarded_net *net, const uint8_t addr[16]) {
    unsigned whole = net->bits / 8, rest = net->bits % 8;
    uint8_t mask = (uint8_t)(0xFF00u >> rest);
    return memcmp(net->addr, addr, whole) == 0 &&
           (rest == 0 || ((net->addr[whole] ^ addr[whole]) & mask) == 0);
}

bool forwarded_trusts(const struct forwarded *f, const struct sockaddr *addr) {
    uint8_t bytes[16];
    if (addr->sa_family == AF_UNIX)
        return f->unix_socket;
    if (!forwarded_bytes(addr, bytes))
        return false;
    for (size_t i = 0; i < f->count; i++) {
        if (forwarded_matches(&f->nets[i], bytes))
            return true;
    }
    return false;
}

/* The address of one element: "IP", "IP:PORT", "[IP]" or "[IP]:PORT". */
static bool forwarded_element(struct str s, struct sock_addr *a) {
    s = str_trim(s);
    if (s.n > 0 && s.p[0] == '[') {
        const char *end = memchr(s.p, ']', s.n);
        return end != NULL &&
               forwarded_parse_addr((struct str){s.p + 1, (size_t)(end - s.p) - 1}, a);
    }
    const char *colon = s.n > 0 ? memchr(s.p, ':', s.n) : NULL;
    if (colon != NULL && memrchr(s.p, ':', s.n) == colon)
        s.n = (size_t)(colon - s.p);
    return forwarded_parse_addr(s, a);
}

/* Goes from the end to the front. True: *addr is the client. False: all are proxies, or *bad. */
static bool forwarded_scan(const struct forwarded *f, struct str value, struct sock_addr *addr,
                           bool *bad) {
    while (value.n > 0) {
        const char *comma = memrchr(value.p, ',', value.n);
        size_t at = comma != NULL ? (size_t)(comma - value.p) + 1 : 0;
        if (!forwarded_element((struct str){value.p + at, value.n - at}, addr)) {
            *bad = true;
            return false;
        }
        if (!forwarded_trusts(f, &addr->u.sa))
            return true;
        value.n = comma != NULL ? at - 1 : 0;
    }
    return false;
}

bool forwarded_last(const struct forwarded *f, struct str value, struct sock_addr *addr) {
    bool bad = false;
    return forwarded_scan(f, value, addr, &bad);
}

void forwarded_peer(const struct forwarded *f, const struct http_request *r,
                    const struct sock_addr *proxy, char peer[SOCK_PEER_MAX]) {
    char via[SOCK_PEER_MAX], ip[INET6_ADDRSTRLEN];
    struct sock_addr a;
    bool bad = false, found = false;
    sock_peer_name(&proxy->u.sa, via);
    for (size_t i = r->count; i > 0 && !found && !bad; i--) {
        if (str_ieqz(r->headers[i - 1].name, "x-forwarded-for"))
            found = forwarded_scan(f, r->headers[i - 1].value, &a, &bad);
    }
    if (!found) {
        memcpy(peer, via, SOCK_PEER_MAX);
        return;
    }
    bool v6 = a.u.sa.sa_family == AF_INET6;
    inet_ntop(a.u.sa.sa_family, v6 ? (const void *)&a.u.in6.sin6_addr : &a.u.in.sin_addr, ip,
              sizeof ip);
    snprintf(peer, SOCK_PEER_MAX, "%s, via %.70s", ip, via);
}
