/*
 * resolv.conf, the hosts file and addresses. The bounds of the headers hold; what is read can be
 * used; an address as text survives a round trip.
 */
#include "net/dns_conf.h"

#include <arpa/inet.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_conf(struct str text) {
    static struct dns_conf c;
    dns_conf_parse(text, text, &c);
    REQUIRE(c.servers >= 1 && c.servers <= DNS_CONF_SERVERS);
    REQUIRE(c.searches <= DNS_CONF_SEARCHES && c.ndots <= DNS_CONF_NDOTS_MAX);
    REQUIRE(c.timeout >= 1 && c.timeout <= DNS_CONF_TIMEOUT_MAX);
    REQUIRE(c.attempts >= 1 && c.attempts <= DNS_CONF_ATTEMPTS_MAX);
    for (size_t i = 0; i < c.searches; i++) {
        struct dns_wire_name name;
        REQUIRE(dns_wire_name_parse(str_of(c.search[i]), &name) == 0);
    }
}

static void check_hosts(struct str text) {
    struct sock_addr all[8], first;
    size_t n = dns_conf_hosts(text, STR_LIT("a"), 80, all, ARRAY_LEN(all));
    REQUIRE(n <= ARRAY_LEN(all));
    REQUIRE(dns_conf_hosts(text, STR_LIT("A."), 80, &first, 1) == (n > 0));
    REQUIRE(n == 0 || sock_addr_eq(&first, &all[0]));
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < i; j++)
            REQUIRE(!sock_addr_eq(&all[i], &all[j]));
    }
}

static void check_addr(struct str text) {
    struct sock_addr a, b;
    char z[INET6_ADDRSTRLEN];
    if (sock_addr_parse(text, 7, &a) < 0)
        return;
    bool v6 = a.u.sa.sa_family == AF_INET6;
    REQUIRE(inet_ntop(a.u.sa.sa_family, v6 ? (void *)&a.u.in6.sin6_addr : (void *)&a.u.in.sin_addr,
                      z, sizeof z) != NULL);
    REQUIRE(sock_addr_parse(str_of(z), 7, &b) == 0);
    if (v6)
        b.u.in6.sin6_scope_id = a.u.in6.sin6_scope_id;
    REQUIRE(sock_addr_eq(&a, &b));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str text = {(const char *)data, size};
    check_conf(text);
    check_hosts(text);
    check_addr(text);
    (void)dns_conf_is_localhost(text);
    return 0;
}
