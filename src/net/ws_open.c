#include "net/ws_open.h"

#include "json/base64.h"
#include "net/http_head.h"
#include "net/ws.h"

#include <sodium.h>

void ws_open_key(char key[WS_OPEN_KEY]) {
    uint8_t random[16];
    randombytes_buf(random, sizeof random);
    base64_encode(key, random, sizeof random);
}

int ws_open_request(struct buf *b, struct str host, struct str target, struct str token,
                    const char key[WS_OPEN_KEY]) {
    size_t before = b->len;
    int r = buf_putf(b,
                     "GET %.*s HTTP/1.1\r\nHost: %.*s\r\nUpgrade: websocket\r\n"
                     "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                     "Sec-WebSocket-Key: %.*s\r\n",
                     (int)target.n, target.p, (int)host.n, host.p, WS_OPEN_KEY, key);
    if (r == 0 && token.n > 0)
        r = buf_putf(b, "Authorization: Bearer %.*s\r\n", (int)token.n, token.p);
    if (r == 0)
        r = buf_putz(b, "\r\n");
    if (r < 0)
        b->len = before;
    return r;
}

/* What the headers have said. */
struct ws_open_seen {
    struct http_head head; /* first */
    const char *key;
    bool upgrade, connection, accept;
};

/* Whether a list of tokens has `token`. */
static bool ws_open_lists(struct str value, const char *token) {
    while (value.n > 0) {
        const char *comma = memchr(value.p, ',', value.n);
        size_t n = comma != NULL ? (size_t)(comma - value.p) : value.n;
        if (str_ieqz(str_trim((struct str){value.p, n}), token))
            return true;
        str_take(&value, MIN(n + 1, value.n));
    }
    return false;
}

/* Those of other answers than 101 do not matter. */
static int ws_open_field(struct http_head *h, struct str name, struct str value) {
    struct ws_open_seen *seen = container_of(h, struct ws_open_seen, head);
    char accept[28];
    if (h->status != 101)
        return 0;
    if (str_ieqz(name, "upgrade")) {
        if (seen->upgrade || !str_ieqz(value, "websocket"))
            return http_head_fail(h, "the answer upgrades to something else");
        seen->upgrade = true;
    } else if (str_ieqz(name, "connection")) {
        seen->connection = seen->connection || ws_open_lists(value, "upgrade");
    } else if (str_ieqz(name, "sec-websocket-accept")) {
        ws_accept(accept, (struct str){seen->key, WS_OPEN_KEY});
        if (seen->accept || !str_eq(value, (struct str){accept, sizeof accept}))
            return http_head_fail(h, "Sec-WebSocket-Accept is wrong");
        seen->accept = true;
    } else if (str_ieqz(name, "sec-websocket-extensions") ||
               str_ieqz(name, "sec-websocket-protocol")) {
        return http_head_fail(h, "the answer chooses what was not offered");
    }
    return 0;
}

int ws_open_answer(const char *data, size_t n, const char key[WS_OPEN_KEY],
                   struct ws_open_answer *a) {
    struct ws_open_seen seen = {.head.field = ws_open_field, .key = key};
    int r = http_head_read(data, n, &seen.head);
    if (r > 0 && seen.head.status != 101)
        r = http_head_fail(&seen.head, "the server does not open a WebSocket");
    else if (r > 0 && (!seen.upgrade || !seen.connection || !seen.accept))
        r = http_head_fail(&seen.head, "the answer lacks a header of WebSocket");
    *a = (struct ws_open_answer){.status = seen.head.status, .why = seen.head.why};
    return r;
}
