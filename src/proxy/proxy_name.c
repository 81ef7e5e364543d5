#include "proxy/proxy_name.h"

#include <arpa/inet.h>
#include <errno.h>

static bool name_byte_ok(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
}

static int name_address(struct str text, struct proxy_name *out) {
    const char *scope = memchr(text.p, '%', text.n); /* a scope names an interface of this host */
    if (scope != NULL || sock_addr_parse(text, 0, &out->address) < 0)
        return -EINVAL;
    struct sock_addr a = out->address;
    proxy_name_of(&a, out);
    return 0;
}

int proxy_name_parse(struct str text, struct proxy_name *out) {
    *out = (struct proxy_name){.is_address = false};
    if (text.n == 0 || text.n > PROXY_NAME_MAX + 1)
        return -EINVAL;
    if (name_address(text, out) == 0)
        return 0;
    if (text.p[text.n - 1] == '.')
        text.n--;
    if (text.n == 0 || text.n > PROXY_NAME_MAX || text.p[text.n - 1] == '.' || text.p[0] == '.')
        return -EINVAL;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        c = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
        if (!name_byte_ok(c) || (c == '.' && text.p[i + 1 < text.n ? i + 1 : i - 1] == '.'))
            return -EINVAL;
        out->text[i] = c;
    }
    out->text[text.n] = '\0';
    /* "127.0.0.1." is the address, too. */
    struct str plain = {out->text, text.n};
    struct proxy_name again = {.is_address = false};
    if (name_address(plain, &again) == 0)
        *out = again;
    return 0;
}

void proxy_name_of(const struct sock_addr *a, struct proxy_name *out) {
    bool v6 = a->u.sa.sa_family == AF_INET6;
    const void *bytes = v6 ? (const void *)&a->u.in6.sin6_addr : &a->u.in.sin_addr;
    *out = (struct proxy_name){.is_address = true, .address = *a};
    inet_ntop(a->u.sa.sa_family, bytes, out->text, sizeof out->text);
    if (v6)
        out->address.u.in6.sin6_port = 0;
    else
        out->address.u.in.sin_port = 0;
}

/* A decimal port at the end of `text`. 0 or -EINVAL. */
static int name_port(struct str text, uint16_t *port) {
    unsigned n = 0;
    if (text.n == 0 || text.n > 5)
        return -EINVAL;
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] < '0' || text.p[i] > '9')
            return -EINVAL;
        n = n * 10 + (unsigned)(text.p[i] - '0');
    }
    if (n == 0 || n > UINT16_MAX)
        return -EINVAL;
    *port = (uint16_t)n;
    return 0;
}

int proxy_name_authority(struct str text, struct proxy_name *out, uint16_t *port) {
    struct str host = text, rest = {NULL, 0};
    bool brackets = text.n > 0 && text.p[0] == '[';
    if (brackets) {
        const char *end = memchr(text.p, ']', text.n);
        if (end == NULL)
            return -EINVAL;
        host = (struct str){text.p + 1, (size_t)(end - text.p) - 1};
        rest = (struct str){end + 1, text.n - host.n - 2};
    } else {
        const char *colon = text.n > 0 ? memchr(text.p, ':', text.n) : NULL;
        if (colon != NULL) {
            host.n = (size_t)(colon - text.p);
            rest = (struct str){colon, text.n - host.n};
        }
    }
    if (rest.n > 0 && (rest.p[0] != ':' || name_port((struct str){rest.p + 1, rest.n - 1}, port)))
        return -EINVAL;
    int r = proxy_name_parse(host, out);
    bool v6 = brackets && memchr(host.p, ':', host.n) != NULL;
    return r == 0 && brackets != v6 ? -EINVAL : r;
}

/* -- addresses -- */

struct name_range {
    uint8_t bytes[16];
    unsigned bits;
};

/* Whether the first bits of an address are those of the range. */
static bool name_in(const uint8_t *a, const struct name_range *r) {
    unsigned whole = r->bits / 8, rest = r->bits % 8;
    if (memcmp(a, r->bytes, whole) != 0)
        return false;
    return rest == 0 || ((a[whole] ^ r->bytes[whole]) >> (8 - rest)) == 0;
}

static bool name_in_any(const uint8_t *a, const struct name_range *r, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (name_in(a, &r[i]))
            return true;
    }
    return false;
}

static bool name_v4_is_public(const uint8_t a[4]) {
    static const struct name_range inner[] = {
        {{0}, 8},             /* this network */
        {{10}, 8},            /* private */
        {{100, 64}, 10},      /* shared */
        {{127}, 8},           /* loopback */
        {{169, 254}, 16},     /* link-local, also metadata services */
        {{172, 16}, 12},      /* private */
        {{192, 0, 0}, 24},    /* protocol assignments */
        {{192, 0, 2}, 24},    /* documentation */
        {{192, 88, 99}, 24},  /* 6to4 relays */
        {{192, 168}, 16},     /* private */
        {{198, 18}, 15},      /* benchmarks */
        {{198, 51, 100}, 24}, /* documentation */
        {{203, 0, 113}, 24},  /* documentation */
        {{224}, 3},           /* multicast, reserved, broadcast */
    };
    return !name_in_any(a, inner, ARRAY_LEN(inner));
}

static bool name_v6_is_public(const uint8_t a[16]) {
    static const struct name_range global = {{0x20}, 3};
    static const struct name_range six_to_four = {{0x20, 0x02}, 16}; /* an IPv4 address follows */
    static const struct name_range inner[] = {
        {{0x20, 0x01}, 23},             /* protocol assignments, Teredo */
        {{0x20, 0x01, 0x0d, 0xb8}, 32}, /* documentation */
        {{0x3f, 0xff}, 20},             /* documentation */
    };
    if (!name_in(a, &global) || name_in_any(a, inner, ARRAY_LEN(inner)))
        return false;
    return !name_in(a, &six_to_four) || name_v4_is_public(a + 2);
}

bool proxy_name_is_public(const struct sock_addr *a) {
    if (a->u.sa.sa_family == AF_INET)
        return name_v4_is_public((const uint8_t *)&a->u.in.sin_addr);
    return a->u.sa.sa_family == AF_INET6 && name_v6_is_public(a->u.in6.sin6_addr.s6_addr);
}

bool proxy_name_addr_is_loopback(const struct sock_addr *a) {
    if (a->u.sa.sa_family == AF_INET)
        return ntohl(a->u.in.sin_addr.s_addr) >> 24 == 127;
    return a->u.sa.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&a->u.in6.sin6_addr);
}

bool proxy_name_is_loopback(const struct proxy_name *n) {
    return n->is_address ? proxy_name_addr_is_loopback(&n->address)
                         : strcmp(n->text, "localhost") == 0;
}
