#include "net/ws_open.h"

#include "json/base64.h"
#include "net/ws.h"

#include <errno.h>
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
    bool upgrade, connection, accept;
};

static int ws_open_fail(struct ws_open_answer *a, const char *why) {
    a->why = why;
    return -EPROTO;
}

/* "HTTP/1.1 NNN" with a reason that does not matter. */
static int ws_open_status(struct str line, struct ws_open_answer *a) {
    static const char version[] = "HTTP/1.1 ";
    const size_t at = sizeof version - 1;
    if (line.n < at + 3 || memcmp(line.p, version, at) != 0)
        return ws_open_fail(a, "the answer is not HTTP/1.1");
    int status = 0;
    for (size_t i = at; i < at + 3; i++) {
        if (line.p[i] < '0' || line.p[i] > '9')
            return ws_open_fail(a, "the status line is malformed");
        status = status * 10 + (line.p[i] - '0');
    }
    if (status < 100 || (line.n > at + 3 && line.p[at + 3] != ' '))
        return ws_open_fail(a, "the status line is malformed");
    a->status = status;
    return 0;
}

static bool ws_open_is_token(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

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

static int ws_open_header(struct str name, struct str value, const char key[WS_OPEN_KEY],
                          struct ws_open_seen *seen, struct ws_open_answer *a) {
    char accept[28];
    if (str_ieqz(name, "upgrade")) {
        if (seen->upgrade || !str_ieqz(value, "websocket"))
            return ws_open_fail(a, "the answer upgrades to something else");
        seen->upgrade = true;
    } else if (str_ieqz(name, "connection")) {
        seen->connection = seen->connection || ws_open_lists(value, "upgrade");
    } else if (str_ieqz(name, "sec-websocket-accept")) {
        ws_accept(accept, (struct str){key, WS_OPEN_KEY});
        if (seen->accept || !str_eq(value, (struct str){accept, sizeof accept}))
            return ws_open_fail(a, "Sec-WebSocket-Accept is wrong");
        seen->accept = true;
    } else if (str_ieqz(name, "sec-websocket-extensions") ||
               str_ieqz(name, "sec-websocket-protocol")) {
        return ws_open_fail(a, "the answer chooses what was not offered");
    }
    return 0;
}

/* One header line; those of other answers than 101 are only checked for their form. */
static int ws_open_line(struct str line, const char key[WS_OPEN_KEY], struct ws_open_seen *seen,
                        struct ws_open_answer *a) {
    size_t n = 0;
    while (n < line.n && ws_open_is_token(line.p[n]))
        n++;
    if (n == 0 || n == line.n || line.p[n] != ':')
        return ws_open_fail(a, "a header is malformed");
    for (size_t i = n; i < line.n; i++) {
        unsigned char c = (unsigned char)line.p[i];
        if ((c < ' ' && c != '\t') || c == 0x7F)
            return ws_open_fail(a, "a header has a control character");
    }
    struct str value = str_trim((struct str){line.p + n + 1, line.n - n - 1});
    return a->status != 101 ? 0 : ws_open_header((struct str){line.p, n}, value, key, seen, a);
}

static int ws_open_end(const struct ws_open_seen *seen, struct ws_open_answer *a) {
    if (a->status != 101)
        return ws_open_fail(a, "the server does not open a WebSocket");
    if (!seen->upgrade || !seen->connection || !seen->accept)
        return ws_open_fail(a, "the answer lacks a header of WebSocket");
    return 0;
}

/* Cuts the next line, without its CRLF, off *rest. 1, 0: incomplete, or -EPROTO. */
static int ws_open_cut(struct str *rest, struct str *line, struct ws_open_answer *a) {
    const char *lf = rest->n > 0 ? memchr(rest->p, '\n', rest->n) : NULL;
    if (lf == NULL)
        return 0;
    size_t n = (size_t)(lf - rest->p);
    if (n == 0 || lf[-1] != '\r')
        return ws_open_fail(a, "a line does not end with CRLF");
    *line = (struct str){rest->p, n - 1};
    str_take(rest, n + 1);
    return 1;
}

int ws_open_answer(const char *data, size_t n, const char key[WS_OPEN_KEY],
                   struct ws_open_answer *a) {
    *a = (struct ws_open_answer){.status = 0};
    struct ws_open_seen seen = {false, false, false};
    struct str rest = {data, MIN(n, (size_t)WS_OPEN_HEAD_MAX)}, line = STR_LIT("");
    for (size_t count = 0;; count++) {
        int r = ws_open_cut(&rest, &line, a);
        if (r == 0)
            return n < WS_OPEN_HEAD_MAX ? 0 : ws_open_fail(a, "the head is too long");
        if (r > 0 && count > 0 && line.n == 0)
            return ws_open_end(&seen, a) < 0 ? -EPROTO : (int)(rest.p - data);
        if (r > 0 && count > WS_OPEN_HEADERS_MAX)
            r = ws_open_fail(a, "the head has too many headers");
        if (r > 0)
            r = count == 0 ? ws_open_status(line, a) : ws_open_line(line, key, &seen, a);
        if (r < 0)
            return r;
    }
}
