/*
 * DNS answers. The first byte selects the query, the rest is the message. The verdict on a message
 * does not depend on bytes behind it, addresses have the type that was asked, and the query itself
 * is never taken for an answer.
 */
#include "net/dns_wire.h"

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_answer(const struct dns_wire_query *q, enum dns_wire_verdict verdict,
                         const struct dns_wire_answer *a) {
    REQUIRE(a->n <= DNS_WIRE_ADDRS);
    REQUIRE(a->rcode <= 15);
    REQUIRE(verdict != DNS_WIRE_REFUSED || *dns_wire_rcode_text(a->rcode) != '\0');
    for (size_t i = 0; i < a->n; i++) {
        int family = a->addr[i].u.sa.sa_family;
        REQUIRE(family == AF_INET || (family == AF_INET6 && q->type == DNS_WIRE_AAAA));
    }
}

/* A text that is a name makes a query that is no answer. */
static void check_name(const uint8_t *data, size_t size) {
    struct dns_wire_query q = {.id = 0x1234, .type = DNS_WIRE_A};
    struct dns_wire_answer a;
    uint8_t dst[DNS_WIRE_QUERY_MAX];
    if (dns_wire_name_parse((struct str){(const char *)data, size}, &q.name) < 0)
        return;
    REQUIRE(q.name.len >= 3 && q.name.len <= DNS_WIRE_NAME_MAX);
    size_t n = dns_wire_query(&q, dst);
    REQUIRE(n == 12 + q.name.len + 4);
    REQUIRE(dns_wire_read(&q, dst, n, &a) == DNS_WIRE_STRAY);
    dst[2] |= 0x80;
    REQUIRE(dns_wire_read(&q, dst, n, &a) == DNS_WIRE_ADDRESSES && a.n == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0 || size > DNS_WIRE_ANSWER_MAX)
        return 0;
    struct dns_wire_query q = {.id = 0x1234, .exact = (data[0] & 2) != 0};
    q.type = (data[0] & 1) != 0 ? DNS_WIRE_AAAA : DNS_WIRE_A;
    REQUIRE(dns_wire_name_parse(STR_LIT("a.b"), &q.name) == 0);
    data++;
    size--;
    check_name(data, size);
    struct dns_wire_answer a = {0};
    enum dns_wire_verdict verdict = dns_wire_read(&q, data, size, &a);
    if (verdict != DNS_WIRE_STRAY)
        check_answer(&q, verdict, &a);
    if (verdict != DNS_WIRE_STRAY && verdict != DNS_WIRE_MALFORMED) {
        struct dns_wire_answer b = {0};
        uint8_t *longer = calloc(1, size + 64);
        REQUIRE(longer != NULL);
        memcpy(longer, data, size);
        REQUIRE(dns_wire_read(&q, longer, size + 64, &b) == verdict && b.n == a.n);
        free(longer);
    }
    return 0;
}
