#include "net/resolve_order.h"

#include <arpa/inet.h>
#include <errno.h>

#define RESOLVE_ORDER_PORT 9 /* any will do: connect() of a datagram socket sends nothing */

/* A unique local address as the source for a global one: a network without a way out. */
static bool resolve_order_is_inner(const struct in6_addr *source, const struct in6_addr *target) {
    return (source->s6_addr[0] & 0xFE) == 0xFC && (target->s6_addr[0] & 0xE0) == 0x20;
}

enum resolve_order_reach resolve_order_probe(const struct sock_addr *a) {
    struct sock_addr to = *a, from;
    if (to.u.sa.sa_family == AF_INET6)
        to.u.in6.sin6_port = htons(RESOLVE_ORDER_PORT);
    else
        to.u.in.sin_port = htons(RESOLVE_ORDER_PORT);
    _cleanup_close_ int fd = socket(to.u.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) /* no descriptor left says nothing about the route */
        return errno == EAFNOSUPPORT ? RESOLVE_ORDER_NONE : RESOLVE_ORDER_GOOD;
    if (connect(fd, &to.u.sa, sock_addr_len(&to)) < 0)
        return RESOLVE_ORDER_NONE;
    socklen_t len = sizeof from;
    if (to.u.sa.sa_family == AF_INET6 && getsockname(fd, &from.u.sa, &len) == 0 &&
        resolve_order_is_inner(&from.u.in6.sin6_addr, &to.u.in6.sin6_addr))
        return RESOLVE_ORDER_POOR;
    return RESOLVE_ORDER_GOOD;
}

static size_t resolve_order_unique(struct sock_addr *a, size_t n) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        size_t j = 0;
        while (j < kept && !sock_addr_eq(&a[j], &a[i]))
            j++;
        if (j == kept)
            a[kept++] = a[i];
    }
    return kept;
}

/* The next address from *at on with this family and class; moves *at behind it. Or NULL. */
static const struct sock_addr *resolve_order_next(const struct sock_addr *a,
                                                  const enum resolve_order_reach *reach, size_t n,
                                                  size_t *at, int family,
                                                  enum resolve_order_reach class) {
    while (*at < n) {
        size_t i = (*at)++;
        if (a[i].u.sa.sa_family == family && reach[i] == class)
            return &a[i];
    }
    return NULL;
}

size_t resolve_order(struct sock_addr *a, size_t n,
                     enum resolve_order_reach (*probe)(const struct sock_addr *a)) {
    struct sock_addr sorted[RESOLVE_ORDER_MAX];
    enum resolve_order_reach reach[RESOLVE_ORDER_MAX];
    size_t out = 0;
    n = resolve_order_unique(a, MIN(n, RESOLVE_ORDER_MAX));
    for (size_t i = 0; i < n; i++)
        reach[i] = n > 1 ? probe(&a[i]) : RESOLVE_ORDER_GOOD;
    for (enum resolve_order_reach class = 0; class < RESOLVE_ORDER_CLASSES; class ++) {
        size_t at6 = 0, at4 = 0;
        const struct sock_addr *v6, *v4;
        do {
            v6 = resolve_order_next(a, reach, n, &at6, AF_INET6, class);
            v4 = resolve_order_next(a, reach, n, &at4, AF_INET, class);
            if (v6 != NULL)
                sorted[out++] = *v6;
            if (v4 != NULL)
                sorted[out++] = *v4;
        } while (v6 != NULL || v4 != NULL);
    }
    if (out > 0)
        memcpy(a, sorted, out * sizeof *a);
    return out;
}
