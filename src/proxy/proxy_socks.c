#include "proxy/proxy_socks.h"

#include <errno.h>

enum { SOCKS_VERSION = 5, SOCKS_CONNECT = 1, SOCKS_V4 = 1, SOCKS_NAME = 3, SOCKS_V6 = 4 };

int proxy_socks_greeting(struct str bytes, bool *plain) {
    const uint8_t *p = (const uint8_t *)bytes.p;
    if (bytes.n > 0 && p[0] != SOCKS_VERSION)
        return -EINVAL;
    if (bytes.n < 2 || bytes.n < 2u + p[1])
        return 0;
    *plain = p[1] > 0 && memchr(p + 2, 0, p[1]) != NULL;
    return 2 + p[1];
}

/* Takes the address over. 0 or -EINVAL. */
static int socks_host(unsigned type, const uint8_t *p, size_t n, struct proxy_name *host) {
    if (type == SOCKS_NAME)
        return proxy_name_parse((struct str){(const char *)p, n}, host);
    char text[SOCK_PEER_MAX];
    struct sock_addr a = type == SOCKS_V4 ? sock_addr_v4(p, 0) : sock_addr_v6(p, 0);
    sock_peer_name(&a.u.sa, text);
    uint16_t port = 0;
    char *colon = strrchr(text, ':'); /* the name ends with ":0" */
    if (colon != NULL)
        *colon = '\0';
    return proxy_name_authority(str_of(text), host, &port);
}

int proxy_socks_request(struct str bytes, struct proxy_name *host, uint16_t *port,
                        enum proxy_socks_code *code) {
    const uint8_t *p = (const uint8_t *)bytes.p;
    if ((bytes.n > 0 && p[0] != SOCKS_VERSION) || (bytes.n > 2 && p[2] != 0))
        return -EINVAL;
    if (bytes.n < 5)
        return 0;
    unsigned type = p[3];
    size_t at = type == SOCKS_NAME ? 5 : 4;
    size_t n = type == SOCKS_NAME ? p[4] : type == SOCKS_V4 ? 4 : 16;
    if (type != SOCKS_NAME && type != SOCKS_V4 && type != SOCKS_V6) {
        *code = PROXY_SOCKS_NO_ADDRESS;
        return 4;
    }
    if (bytes.n < at + n + 2)
        return 0;
    *port = (uint16_t)(p[at + n] << 8 | p[at + n + 1]);
    *code = p[1] != SOCKS_CONNECT                                 ? PROXY_SOCKS_NO_COMMAND
            : *port == 0 || socks_host(type, p + at, n, host) < 0 ? PROXY_SOCKS_DENIED
                                                                  : PROXY_SOCKS_OK;
    return (int)(at + n + 2);
}
