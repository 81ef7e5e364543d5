#include "client/link.h"

#include "base/utf8.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* A connection that ended, or another one: the caller must return. */
static bool link_in_is_over(const struct link *l, uint64_t number) {
    return l->number != number || l->state < LINK_UPGRADE;
}

/* -- the answer to the upgrade -- */

static void link_in_refused(struct link *l, const struct ws_open_answer *a) {
    if (a->status == 401 || a->status == 403)
        link_break(l, LINK_REFUSED, XS_EAUTH, "the server refuses the token (HTTP %d)", a->status);
    else if (a->status == 408 || a->status == 429 || (a->status >= 502 && a->status <= 504))
        link_break(l, LINK_LOST, XS_ECONNECT, "HTTP %d", a->status);
    else if (a->status != 0 && a->status != 101)
        link_break(l, LINK_REFUSED, XS_ECONNECT, "%s (HTTP %d)", a->why, a->status);
    else
        link_break(l, LINK_BROKEN, XS_EPROTO, "%s", a->why);
}

/* True: the WebSocket is open. */
static bool link_in_upgrade(struct link *l) {
    struct ws_open_answer a;
    int n = ws_open_answer(l->in_data + l->in_at, l->in_len - l->in_at, l->key, &a);
    if (n < 0)
        link_in_refused(l, &a);
    if (n <= 0)
        return false;
    l->in_at += (size_t)n;
    l->state = LINK_OPEN;
    loop_timer_del(l->loop, &l->limit);
    link_alive_begin(l);
    uint64_t number = l->number;
    l->opened(l);
    return !link_in_is_over(l, number);
}

/* -- messages -- */

static void link_in_closed(struct link *l, unsigned code, const char *reason, size_t n) {
    if (l->state == LINK_OPEN)
        link_out_echo(l, code == 1005 ? 1000 : code);
    link_break(l, code == 1001 ? LINK_LEAVING : LINK_LOST, XS_ELOST,
               "the server closed the connection (%u%s%.*s)", code, n > 0 ? " " : "", (int)n,
               reason);
}

static void link_in_event(struct link *l, struct ws_msg *m) {
    switch (m->kind) {
    case WS_NONE:
    case WS_GOT_PONG: break;
    case WS_MESSAGE:
        if (m->opcode == WS_BINARY && !utf8_valid(m->data, m->n))
            link_break(l, LINK_BROKEN, XS_EPROTO, "a binary message is not UTF-8");
        else
            l->message(l, m->data, m->n);
        break;
    case WS_GOT_PING:
        l->pong_len = (uint8_t)m->n;
        memcpy(l->pong, m->data, m->n);
        l->pong_due = true;
        link_out_flush(l);
        break;
    case WS_GOT_CLOSE: link_in_closed(l, m->code, m->data, m->n); break;
    case WS_FAIL: link_break(l, LINK_BROKEN, XS_EPROTO, "%s", m->reason); break;
    }
}

static void link_in_frames(struct link *l) {
    uint64_t number = l->number;
    while (l->in_at < l->in_len && l->reading) {
        struct ws_msg m;
        l->in_at += ws_feed(&l->parser, l->in_data + l->in_at, l->in_len - l->in_at, &m);
        link_in_event(l, &m);
        if (link_in_is_over(l, number))
            return;
    }
    if (l->in_at == l->in_len)
        ws_parser_release(&l->parser);
}

/* -- lines -- */

static void link_in_line(struct link *l, char *data, size_t n) {
    if (n > 0 && data[n - 1] == '\r')
        n--;
    if (n == 0)
        return;
    if (!utf8_valid(data, n))
        link_break(l, LINK_BROKEN, XS_EPROTO, "a line is not UTF-8");
    else
        l->message(l, data, n);
}

static void link_in_lines(struct link *l) {
    uint64_t number = l->number;
    while (l->in_at < l->in_len && l->reading) {
        char *from = l->in_data + l->in_at, *end = memchr(from, '\n', l->in_len - l->in_at);
        size_t n = end != NULL ? (size_t)(end - from) : l->in_len - l->in_at;
        bool collected = end == NULL || l->line.len > 0;
        if (collected && buf_put(&l->line, from, n) < 0) {
            link_break(l, LINK_BROKEN, XS_EPROTO, "a line is too long");
            return;
        }
        l->in_at += n + (end != NULL);
        if (end == NULL)
            break;
        if (collected)
            link_in_line(l, l->line.p, l->line.len);
        else
            link_in_line(l, from, n);
        if (link_in_is_over(l, number))
            return;
        l->line.len = 0;
        if (l->line.cap > LINK_IN)
            buf_fini(&l->line);
    }
}

/* -- bytes -- */

static bool link_in_bytes(struct link *l) {
    uint64_t number = l->number;
    size_t n = l->bytes(l, l->in_data + l->in_at, l->in_len - l->in_at);
    if (link_in_is_over(l, number))
        return false;
    l->in_at += n;
    memmove(l->in_data, l->in_data + l->in_at, l->in_len - l->in_at);
    l->in_len -= l->in_at;
    l->in_at = 0;
    if (l->in_len == LINK_IN)
        link_break(l, LINK_BROKEN, XS_EPROTO, "the head of the answer is too long");
    return !link_in_is_over(l, number);
}

/* Hands out what is in the buffer. False: the connection is over. */
static bool link_in_serve(struct link *l) {
    uint64_t number = l->number;
    if (l->bytes != NULL)
        return link_in_bytes(l);
    if (l->state == LINK_UPGRADE && !link_in_upgrade(l))
        return !link_in_is_over(l, number);
    if (l->lines)
        link_in_lines(l);
    else
        link_in_frames(l);
    return !link_in_is_over(l, number);
}

/* -- reading -- */

static ssize_t link_in_read(struct link *l, void *data, size_t n) {
    if (l->session != NULL)
        return l->tls->read(l->session, data, n);
    ssize_t r = l->in_is_socket ? recv(l->in.fd, data, n, MSG_DONTWAIT) : read(l->in.fd, data, n);
    return r < 0 ? -errno : r;
}

static void link_in_ended(struct link *l, ssize_t r) {
    const char *why = r == 0 ? "the server closed the connection" : err_os_text((int)-r);
    if (l->state == LINK_CLOSING)
        link_break(l, LINK_ENDED, XS_ELOST, "%s", why);
    else
        link_break(l, LINK_LOST, l->state == LINK_UPGRADE ? XS_ECONNECT : XS_ELOST,
                   r == 0 ? "%s" : "the connection was lost: %s", why);
}

/* Reads once. False: nothing more now, or the connection is over. */
static bool link_in_once(struct link *l) {
    size_t room = 0;
    if (l->in_at < l->in_len && l->state >= LINK_OPEN && l->bytes == NULL)
        return link_in_serve(l);
    bool framed = l->state >= LINK_OPEN && !l->lines && l->bytes == NULL;
    char *direct = framed ? ws_room(&l->parser, &room) : NULL;
    if (direct == NULL) {
        if (l->in_at == l->in_len)
            l->in_at = l->in_len = 0;
        direct = l->in_data + l->in_len;
        room = LINK_IN - l->in_len;
    }
    ssize_t n = link_in_read(l, direct, room);
    if (n == -EINTR)
        return true;
    if (n == -EAGAIN)
        return false;
    if (n <= 0) {
        link_in_ended(l, n);
        return false;
    }
    link_alive_heard(l);
    l->heard(l);
    if (direct == l->in_data + l->in_len) {
        l->in_len += (size_t)n;
        return link_in_serve(l);
    }
    struct ws_msg m;
    uint64_t number = l->number;
    ws_filled(&l->parser, (size_t)n, &m);
    link_in_event(l, &m);
    return !link_in_is_over(l, number);
}

void link_in_ready(struct link *l) {
    /* One more recv() is as cheap as a turn of epoll. */
    for (int i = 0; i < LINK_BURST && l->reading && l->state >= LINK_UPGRADE; i++) {
        if (!link_in_once(l))
            return;
    }
    if (l->session != NULL && l->state >= LINK_OPEN && l->tls->pending(l->session) > 0)
        loop_yield(l->loop, &l->more);
}

void link_in_more(struct loop_task *t) {
    struct link *l = container_of(t, struct link, more);
    if (l->state < LINK_UPGRADE || !l->reading)
        return;
    if (l->in_at == l->in_len || link_in_serve(l)) {
        if (l->session != NULL && l->tls->pending(l->session) > 0)
            link_in_ready(l);
    }
}
