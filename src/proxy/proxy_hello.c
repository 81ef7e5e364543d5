#include "proxy/proxy_hello.h"

#include <stdint.h>

enum { HELLO_HANDSHAKE = 22, HELLO_CLIENT = 1, HELLO_SNI = 0, HELLO_HOST = 0 };

/* Cuts off a vector with a length of `width` bytes. */
static bool hello_vector(struct str *s, unsigned width, struct str *out) {
    const uint8_t *p = (const uint8_t *)str_take(s, width);
    size_t n = 0;
    for (unsigned i = 0; p != NULL && i < width; i++)
        n = n << 8 | p[i];
    const char *body = p != NULL ? str_take(s, n) : NULL;
    *out = (struct str){body, n};
    return body != NULL;
}

/* The names of the extension; exactly one must be there. */
static enum proxy_hello hello_names(struct str body, char name[256]) {
    struct str list, host;
    if (!hello_vector(&body, 2, &list) || body.n > 0)
        return PROXY_HELLO_BAD;
    const uint8_t *type = (const uint8_t *)str_take(&list, 1);
    if (type == NULL || *type != HELLO_HOST || !hello_vector(&list, 2, &host) || list.n > 0 ||
        host.n == 0 || host.n > 255 || str_has_nul(host))
        return PROXY_HELLO_BAD;
    memcpy(name, host.p, host.n);
    name[host.n] = '\0';
    return PROXY_HELLO_NAMED;
}

static enum proxy_hello hello_extensions(struct str list, char name[256]) {
    enum proxy_hello found = PROXY_HELLO_PLAIN;
    while (list.n > 0) {
        struct str body;
        const uint8_t *type = (const uint8_t *)str_take(&list, 2);
        if (type == NULL || !hello_vector(&list, 2, &body))
            return PROXY_HELLO_BAD;
        if ((type[0] << 8 | type[1]) != HELLO_SNI)
            continue;
        if (found != PROXY_HELLO_PLAIN)
            return PROXY_HELLO_BAD;
        found = hello_names(body, name);
        if (found == PROXY_HELLO_BAD)
            return found;
    }
    return found;
}

/* The body of a ClientHello. */
static enum proxy_hello hello_body(struct str s, char name[256]) {
    struct str part;
    if (str_take(&s, 2 + 32) == NULL || !hello_vector(&s, 1, &part) ||
        !hello_vector(&s, 2, &part) || !hello_vector(&s, 1, &part))
        return PROXY_HELLO_BAD;
    if (s.n == 0)
        return PROXY_HELLO_PLAIN;
    if (!hello_vector(&s, 2, &part) || s.n > 0)
        return PROXY_HELLO_BAD;
    return hello_extensions(part, name);
}

enum proxy_hello proxy_hello_read(struct str bytes, char name[256]) {
    char message[PROXY_HELLO_MAX];
    size_t have = 0;
    const uint8_t *first = (const uint8_t *)bytes.p;
    if (bytes.n > 0 && first[0] != HELLO_HANDSHAKE)
        return PROXY_HELLO_NONE;
    if (bytes.n > 1 && first[1] != 3)
        return PROXY_HELLO_NONE;
    /* A message may lie in several records. */
    for (;;) {
        struct str record;
        if (have >= 4) {
            const uint8_t *m = (const uint8_t *)message;
            size_t n = (size_t)m[1] << 16 | (size_t)m[2] << 8 | m[3];
            if (m[0] != HELLO_CLIENT || n > sizeof message - 4)
                return PROXY_HELLO_BAD;
            if (have >= 4 + n)
                return hello_body((struct str){message + 4, n}, name);
        }
        if (bytes.n < 5)
            return PROXY_HELLO_MORE;
        const uint8_t *p = (const uint8_t *)bytes.p;
        size_t n = (size_t)p[3] << 8 | p[4];
        if (p[0] != HELLO_HANDSHAKE || p[1] != 3 || n == 0)
            return PROXY_HELLO_BAD;
        if (bytes.n < 5 + n)
            return PROXY_HELLO_MORE;
        record = (struct str){bytes.p + 5, n};
        if (record.n > sizeof message - have)
            return PROXY_HELLO_BAD;
        memcpy(message + have, record.p, record.n);
        have += record.n;
        bytes.p += 5 + n;
        bytes.n -= 5 + n;
    }
}
