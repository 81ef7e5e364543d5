#include "proxy/proxy_reply.h"

#include "json/jsonw.h"
#include "net/http.h"

#include <stdio.h>
#include <time.h>

#define REPLY_BODY_MAX (PROXY_REASON_MAX * 6 + 2048)

static int reply_put(struct buf *b, int status, const char *type, const char *more,
                     const char *body) {
    struct http_answer a = {
        .status = status, .type = type, .more = more, .body = body, .close = true};
    return http_write_reply(b, &a, (long long)time(NULL));
}

static int reply_blocked(struct buf *b, const struct proxy_decision *d, const char *type,
                         const char *body) {
    char more[96];
    snprintf(more, sizeof more, "x-proxy-error: %s\r\n", proxy_judge_class(d->reason));
    return reply_put(b, 403, type, more, body);
}

int proxy_reply_blocked(struct buf *b, const struct proxy_decision *d) {
    _cleanup_buf_ struct buf body = BUF_INIT(REPLY_BODY_MAX);
    int r = buf_putf(&body, "{\"status\":\"blocked\",\"host\":\"%s\",\"reason\":", d->host);
    if (r == 0)
        r = jsonw_str(&body, str_of(d->reason));
    if (r == 0)
        r = buf_putf(&body,
                     ",\"decision\":\"%s\",\"source\":\"%s\",\"protocol\":\"%s\",\"port\":%u,"
                     "\"message\":\"%s\"}",
                     proxy_judge_answer(d->answer), d->source, proxy_judge_protocol(d->protocol),
                     d->port, proxy_judge_text(d->reason));
    if (r == 0)
        r = buf_putc(&body, '\0');
    return r < 0 ? r : reply_blocked(b, d, "application/json", body.p);
}

int proxy_reply_blocked_tunnel(struct buf *b, const struct proxy_decision *d) {
    return reply_blocked(b, d, "text/plain", proxy_judge_text(d->reason));
}

int proxy_reply_text(struct buf *b, int status, const char *text) {
    return reply_put(b, status, "text/plain", NULL, text);
}

int proxy_reply_tunnel(struct buf *b) {
    return buf_putz(b, "HTTP/1.1 200 OK\r\n\r\n");
}

int proxy_reply_socks(struct buf *b, enum proxy_socks_code code) {
    const char bytes[] = {5, (char)code, 0, 1, 0, 0, 0, 0, 0, 0};
    return buf_put(b, bytes, sizeof bytes);
}
