#include "proxy/proxy_body.h"

#include <errno.h>

void proxy_body_init(struct proxy_body *b, bool chunked, uint64_t length) {
    *b = (struct proxy_body){.chunked = chunked, .left = chunked ? 0 : length};
    b->done = !chunked && length == 0;
}

static void body_begin_line(struct proxy_body *b, enum proxy_body_state state) {
    b->state = state;
    b->digits = b->extension = b->cr = false;
    b->line = 0;
}

static int body_hex(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 32);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One byte of SIZE[;EXTENSION] CR LF. */
static int body_size(struct proxy_body *b, char c) {
    int digit = body_hex(c);
    if (++b->line > PROXY_BODY_LINE_MAX || (b->cr && c != '\n'))
        return -EINVAL;
    if (c == '\r') {
        b->cr = true;
        return b->digits ? 0 : -EINVAL;
    }
    if (c == '\n') {
        if (!b->cr)
            return -EINVAL;
        body_begin_line(b, b->left > 0 ? PROXY_BODY_DATA : PROXY_BODY_TRAILERS);
        return 0;
    }
    if (b->extension)
        return (unsigned char)c < ' ' || c == 0x7F ? -EINVAL : 0;
    if (c == ';' && b->digits) {
        b->extension = true;
        return 0;
    }
    if (digit < 0 || b->left > UINT64_MAX / 32)
        return -EINVAL;
    b->digits = true;
    b->left = b->left * 16 + (uint64_t)digit;
    return 0;
}

/* One byte of the end of a chunk's data. */
static int body_crlf(struct proxy_body *b, char c) {
    if (c != (b->cr ? '\n' : '\r'))
        return -EINVAL;
    if (b->cr)
        body_begin_line(b, PROXY_BODY_SIZE);
    else
        b->cr = true;
    return 0;
}

/* One byte of the trailers; an empty line ends them. */
static int body_trailer(struct proxy_body *b, char c) {
    if (++b->lines > PROXY_BODY_TRAILERS_MAX || (b->cr && c != '\n'))
        return -EINVAL;
    if (c == '\n') {
        if (!b->cr)
            return -EINVAL;
        b->done = b->line == 0;
        body_begin_line(b, PROXY_BODY_TRAILERS);
        return 0;
    }
    if (c == '\r') {
        b->cr = true;
        return 0;
    }
    if (((unsigned char)c < ' ' && c != '\t') || c == 0x7F)
        return -EINVAL;
    b->line++;
    return 0;
}

ssize_t proxy_body_feed(struct proxy_body *b, struct str bytes) {
    size_t at = 0;
    int r = 0;
    while (at < bytes.n && !b->done && r == 0) {
        if (!b->chunked || b->state == PROXY_BODY_DATA) {
            size_t n = (size_t)MIN((uint64_t)(bytes.n - at), b->left);
            at += n;
            b->left -= n;
            if (b->left > 0)
                break;
            b->done = !b->chunked;
            body_begin_line(b, PROXY_BODY_CRLF);
            continue;
        }
        char c = bytes.p[at++];
        r = b->state == PROXY_BODY_SIZE   ? body_size(b, c)
            : b->state == PROXY_BODY_CRLF ? body_crlf(b, c)
                                          : body_trailer(b, c);
    }
    return r < 0 ? r : (ssize_t)at;
}
