#pragma once
/* Answers of the proxy itself. All append to a buffer: 0 or as buf_put(). */

#include "base/buf.h"
#include "proxy/proxy.h"
#include "proxy/proxy_socks.h"

/* A refused request: 403 with the reason as JSON. */
MUST_CHECK int proxy_reply_blocked(struct buf *b, const struct proxy_decision *d);

/* A refused CONNECT: 403 with a text. */
MUST_CHECK int proxy_reply_blocked_tunnel(struct buf *b, const struct proxy_decision *d);

/* Any other status, with a text. */
MUST_CHECK int proxy_reply_text(struct buf *b, int status, const char *text);

/* 200: the tunnel is open. */
MUST_CHECK int proxy_reply_tunnel(struct buf *b);

MUST_CHECK int proxy_reply_socks(struct buf *b, enum proxy_socks_code code);
