/* A network, a newline, the value of X-Forwarded-For: the client is never a trusted proxy. */
#include "net/forwarded.h"

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uint8_t local[] = {127, 0, 0, 1};
    const struct sock_addr proxy = sock_addr_v4(local, 65535);
    struct forwarded f = {0};
    struct sock_addr a;
    char net[64] = "", peer[SOCK_PEER_MAX];
    const uint8_t *end = size > 0 ? memchr(data, '\n', size) : NULL;
    size_t n = end != NULL ? (size_t)(end - data) : 0;
    if (end == NULL || n >= sizeof net)
        return 0;
    memcpy(net, data, n);
    if (forwarded_add(&f, net) < 0)
        return 0;
    struct str value = {(const char *)end + 1, size - n - 1};
    REQUIRE(f.count + f.unix_socket == 1 && (f.count == 0 || f.nets[0].bits <= 128));
    bool found = forwarded_last(&f, value, &a);
    REQUIRE(!found || !forwarded_trusts(&f, &a.u.sa));
    struct http_request r = {.count = 1, .headers = {{STR_LIT("x-forwarded-for"), value}}};
    forwarded_peer(&f, &r, &proxy, peer);
    REQUIRE(memchr(peer, '\0', sizeof peer) != NULL && (strstr(peer, ", via ") != NULL) == found);
    return 0;
}
