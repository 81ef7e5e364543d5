#include "net/conn.h"

#include "base/log.h"
#include "net/conn_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/ioctl.h>

static void conn_resume_input(struct conn *c);

int conn_host_init(struct conn_host *h, struct loop *loop, const struct conn_ops *ops,
                   const struct auth *auth, void *owner) {
    *h =
        (struct conn_host){.loop = loop, .ops = ops, .auth = auth, .owner = owner, .max = UINT_MAX};
    h->proof_ms = CONN_PROOF_MS;
    h->proof_late = "no initialize in time";
    list_init(&h->conns);
    list_init(&h->strangers);
    list_init(&h->guests);
    bufcache_init(&h->bufcache, loop);
    h->scratch = malloc(CONN_READ);
    return h->scratch == NULL ? -ENOMEM : 0;
}

/* -- ending -- */

static void conn_leave(struct conn *c) {
    conn_proof_end(c);
    c->host->count -= c->state != CONN_DROPPED;
    c->state = CONN_DROPPED;
}

static void conn_free(struct conn *c) {
    struct loop *l = c->host->loop;
    conn_leave(c);
    loop_io_del(l, &c->io);
    loop_io_del(l, &c->out);
    loop_timer_del(l, &c->timer);
    loop_timer_del(l, &c->poll);
    loop_task_del(&c->flush_task);
    loop_task_del(&c->free_task);
    loop_task_del(&c->turn_task);
    if (!c->stdio)
        util_close_fd(&c->io.fd);
    ws_parser_fini(&c->ws);
    sendq_fini(&c->sendq);
    sendq_fini(&c->behind);
    buf_fini(&c->in);
    free(c->subject);
    list_remove(&c->node);
    free(c);
}

static void conn_on_free(struct loop_task *t) {
    struct conn *c = container_of(t, struct conn, free_task);
    c->host->ops->closed(c);
    conn_free(c);
}

/* Tells the owner, once, that the connection is not usable. Never inside the owner's call. */
static void conn_say_gone(struct conn *c) {
    if (c->state == CONN_BODY) {
        c->state = CONN_HTTP;
        c->host->ops->cut(c);
    } else if (c->state == CONN_OPEN || c->state == CONN_ENDING) {
        c->state = CONN_FLUSHING;
        c->host->ops->gone(c);
    }
}

void conn_drop(struct conn *c) {
    conn_say_gone(c);
    conn_leave(c);
    loop_io_del(c->host->loop, &c->io);
    loop_io_del(c->host->loop, &c->out);
    loop_defer(c->host->loop, &c->free_task);
}

void conn_host_drop(struct conn_host *h) {
    for (struct list *n; (n = list_first(&h->conns)) != NULL;) {
        struct conn *c = list_entry(n, struct conn, node);
        conn_say_gone(c);
        conn_free(c);
    }
}

void conn_host_fini(struct conn_host *h) {
    conn_host_drop(h);
    sendq_pool_fini(&h->pool);
    bufcache_fini(&h->bufcache);
    free(h->scratch);
}

/* -- output -- */

uint64_t conn_tx_confirmed(const struct conn *c) {
    size_t open = c->stdio ? 0 : sock_unconfirmed(c->io.fd);
    return c->sendq.written - MIN((uint64_t)open, c->sendq.written);
}

/* Whether messages may be handed out. */
static bool conn_takes_input(const struct conn *c) {
    return !c->paused && !c->turn_task.queued && !conn_is_full(c);
}

static bool conn_wants_input(const struct conn *c) {
    if (c->input_done)
        return false;
    return c->state == CONN_LINGERING || (c->state <= CONN_OPEN && conn_takes_input(c));
}

void conn_update_watch(struct conn *c) {
    struct loop *l = c->host->loop;
    bool reading = conn_wants_input(c);
    bool writing = c->blocked || (c->state == CONN_BODY && c->want_out);
    if (!c->stdio) {
        /* Elsewhere bytes that came before the end still count: the end is seen when it is read. */
        bool ahead = c->state == CONN_OPEN && !c->input_done && !c->turn_task.queued;
        uint32_t watch_end = ahead ? EPOLLRDHUP : 0u;
        loop_io_want(l, &c->io, (reading ? EPOLLIN : 0u) | watch_end | (writing ? EPOLLOUT : 0u));
        return;
    }
    if (reading && !c->io.added && !c->poll.pos && loop_io_add(l, &c->io, EPOLLIN) < 0)
        (void)!loop_timer_set(l, &c->poll, 1); /* a plain file is always ready */
    else if (!reading)
        loop_io_del(l, &c->io);
    if (!writing)
        loop_io_del(l, &c->out);
    else if (!c->out.added)
        (void)!loop_io_add(l, &c->out, EPOLLOUT);
}

/* The queue is empty: a flushing connection goes on. */
static void conn_sent_all(struct conn *c) {
    if (c->state != CONN_FLUSHING)
        return;
    if (c->stdio || c->input_done) {
        conn_drop(c);
        return;
    }
    /* Half-close and wait for the peer: a close with unread input would reset the last bytes. */
    c->state = CONN_LINGERING;
    shutdown(c->io.fd, SHUT_WR);
    if (loop_timer_set(c->host->loop, &c->timer, CONN_LINGER_MS * LOOP_MS) < 0)
        conn_drop(c);
}

/* The first reason counts. */
static void conn_note_why(struct conn *c, const char *why) {
    if (c->why == NULL)
        c->why = why;
}

void conn_flush(struct conn *c) {
    size_t before = c->sendq.bytes;
    int sent = c->sendq.bytes > 0 ? sendq_flush(&c->sendq, c->stdio ? c->out.fd : c->io.fd) : 0;
    if (c->broken || sent < 0) {
        conn_note_why(c, sent < 0 ? err_os_text(-sent) : "out of memory");
        conn_drop(c);
        return;
    }
    c->blocked = c->sendq.bytes > 0;
    if (c->state == CONN_HTTP && c->sendq.bytes < before)
        conn_proof_await_head(c);
    if (c->state == CONN_ENDING)
        conn_say_gone(c);
    if (c->sendq.bytes == 0)
        conn_sent_all(c);
    conn_update_watch(c);
    if (c->high && conn_backlog(c) <= CONN_OUT_LOW) {
        c->high = false;
        if (c->state == CONN_OPEN)
            c->host->ops->pressure(c, false);
    }
    if (c->state == CONN_BODY && c->want_out && c->sendq.bytes == 0) {
        c->want_out = false;
        c->host->ops->writable(c);
    }
    if (c->state == CONN_BODY && !c->paused && c->in.len > 0)
        c->host->ops->body(c);
    if (c->state == CONN_HTTP && c->in.len > 0)
        loop_yield(c->host->loop, &c->turn_task); /* other connections come first */
    if (c->state == CONN_OPEN && c->streaming && c->sendq.bytes <= CONN_OUT_LOW)
        c->host->ops->drained(c);
    if (c->state == CONN_OPEN && conn_takes_input(c))
        conn_resume_input(c);
}

static void conn_on_flush(struct loop_task *t) {
    conn_flush(container_of(t, struct conn, flush_task));
}

void conn_queued(struct conn *c) {
    loop_defer(c->host->loop, &c->flush_task);
    if (!c->high && conn_backlog(c) >= CONN_OUT_HIGH && c->state == CONN_OPEN) {
        c->high = true;
        c->host->ops->pressure(c, true);
    }
}

/* Takes no more messages or requests. A transfer goes on until its owner hears of its end. */
static void conn_stop(struct conn *c) {
    if (c->state == CONN_OPEN)
        c->state = CONN_ENDING;
    else if (c->state == CONN_HTTP)
        c->state = CONN_FLUSHING;
    loop_defer(c->host->loop, &c->flush_task);
}

void conn_break(struct conn *c) {
    log_error("out of memory: ending connection %s", c->peer);
    c->broken = true;
    conn_stop(c);
}

/* Queues one frame in any state; out of memory ends the connection. */
static void conn_queue_frame(struct conn *c, struct sendq *q, enum ws_opcode op, bool fin,
                             struct str payload) {
    size_t head = ws_header_len(payload.n);
    char *p = sendq_reserve(q, head + payload.n);
    if (p == NULL) {
        conn_break(c);
        return;
    }
    ws_header(p, op, fin, payload.n);
    if (payload.n > 0)
        memcpy(p + head, payload.p, payload.n);
    sendq_commit(q, head + payload.n);
    conn_queued(c);
}

/* The queue for whole messages. */
static struct sendq *conn_messages(struct conn *c) {
    return c->streaming ? &c->behind : &c->sendq;
}

char *conn_reserve(struct conn *c, size_t n) {
    if (c->state != CONN_OPEN)
        return NULL;
    size_t head = c->stdio ? 0 : ws_header_len(n);
    char *p = sendq_reserve(conn_messages(c), head + n + 1);
    if (p == NULL) {
        conn_break(c);
        return NULL;
    }
    if (!c->stdio)
        ws_header(p, WS_TEXT, true, n);
    return p + head;
}

void conn_commit(struct conn *c, size_t n) {
    struct sendq *q = conn_messages(c);
    if (c->stdio) {
        char *p = sendq_reserve(q, n + 1); /* as reserved by conn_reserve() */
        p[n] = '\n';
        sendq_commit(q, n + 1);
    } else {
        sendq_commit(q, ws_header_len(n) + n);
    }
    conn_queued(c);
}

static size_t conn_parts_len(const struct conn_parts *p) {
    size_t n = p->after.n;
    for (size_t i = 0; i < p->before_count; i++)
        n += p->before[i].n;
    for (const struct sendq_seg *s = p->chain; s != NULL; s = s->next)
        n += s->len;
    return n;
}

/* Appends a frame (stdio: a piece of a line), made of parts, to q. */
static void conn_put_parts(struct conn *c, struct sendq *q, enum ws_opcode op, bool fin,
                           const struct conn_parts *p) {
    size_t n = conn_parts_len(p), room = WS_HEADER_MAX;
    for (size_t i = 0; i < p->before_count; i++)
        room += p->before[i].n;
    char *head = sendq_reserve(q, room);
    if (head == NULL) {
        sendq_seg_free(&c->host->pool, p->chain);
        conn_break(c);
        return;
    }
    char *at = c->stdio ? head : head + ws_header(head, op, fin, n);
    for (size_t i = 0; i < p->before_count; i++)
        at = p->before[i].n > 0 ? mempcpy(at, p->before[i].p, p->before[i].n) : at;
    sendq_commit(q, (size_t)(at - head));
    sendq_append(q, p->chain);
    char *tail = sendq_reserve(q, p->after.n + 1);
    if (tail == NULL) {
        conn_break(c);
        return;
    }
    if (p->after.n > 0)
        memcpy(tail, p->after.p, p->after.n);
    tail[p->after.n] = '\n';
    sendq_commit(q, p->after.n + (c->stdio && fin ? 1 : 0));
}

void conn_send_parts(struct conn *c, const struct conn_parts *p) {
    if (c->state != CONN_OPEN) {
        sendq_seg_free(&c->host->pool, p->chain);
        return;
    }
    conn_put_parts(c, conn_messages(c), WS_TEXT, true, p);
    conn_queued(c);
}

void conn_stream(struct conn *c, const struct conn_parts *p, bool last) {
    if (c->state != CONN_OPEN) {
        sendq_seg_free(&c->host->pool, p->chain);
        return;
    }
    conn_put_parts(c, &c->sendq, c->streaming ? WS_CONT : WS_TEXT, last, p);
    c->streaming = !last;
    if (last)
        sendq_move(&c->sendq, &c->behind);
    conn_queued(c);
}

void conn_send(struct conn *c, struct str text) {
    if (c->stdio || text.n <= CONN_FRAME_OUT_MAX) {
        char *p = conn_reserve(c, text.n);
        if (p == NULL)
            return;
        memcpy(p, text.p, text.n);
        conn_commit(c, text.n);
        return;
    }
    enum ws_opcode op = WS_TEXT;
    while (text.n > 0 && c->state == CONN_OPEN) {
        struct str part = {text.p, MIN(text.n, (size_t)CONN_FRAME_OUT_MAX)};
        text.p += part.n;
        text.n -= part.n;
        conn_queue_frame(c, conn_messages(c), op, text.n == 0, part);
        op = WS_CONT;
    }
}

void conn_ping(struct conn *c) {
    if (!c->stdio && c->state == CONN_OPEN)
        conn_queue_frame(c, &c->sendq, WS_PING, true, (struct str){NULL, 0});
}

void conn_begin_flush(struct conn *c) {
    if (c->state != CONN_OPEN && c->state != CONN_HTTP)
        return;
    conn_stop(c);
    if (loop_timer_set(c->host->loop, &c->timer, CONN_GOODBYE_MS * LOOP_MS) < 0)
        c->broken = true;
}

void conn_end(struct conn *c, unsigned code, const char *reason) {
    bool close_frame = c->state == CONN_OPEN && !c->stdio;
    conn_note_why(c, reason[0] != '\0' ? reason : "the server closed it");
    conn_begin_flush(c);
    if (!close_frame)
        return;
    char payload[125];
    payload[0] = (char)(code >> 8);
    payload[1] = (char)(code & 0xFF);
    size_t n = MIN(strlen(reason), sizeof payload - 2);
    memcpy(payload + 2, reason, n);
    conn_queue_frame(c, &c->sendq, WS_CLOSE, true, (struct str){payload, code == 1005 ? 0 : n + 2});
}

/* -- input: WebSocket -- */

static void conn_ws_message(struct conn *c, const struct ws_msg *m) {
    struct conn_message message = {m->data, m->n, m->opcode == WS_TEXT, m->predecoded, &c->ws.msg};
    c->host->ops->message(c, &message);
}

static void conn_ws_event(struct conn *c, struct ws_msg *m) {
    switch (m->kind) {
    case WS_NONE:
    case WS_GOT_PONG: break;
    case WS_MESSAGE: conn_ws_message(c, m); break;
    case WS_GOT_PING:
        conn_queue_frame(c, &c->sendq, WS_PONG, true, (struct str){m->data, m->n});
        break;
    case WS_GOT_CLOSE:
        conn_note_why(c, "the client closed it");
        conn_end(c, m->code, "");
        break;
    case WS_FAIL:
        log_warn("closing connection %s: %s", c->peer, m->reason);
        conn_end(c, m->code, m->reason);
        break;
    }
}

/* Keeps bytes that cannot be handled now. */
static void conn_stash(struct conn *c, const char *data, size_t n) {
    if (buf_put(&c->in, data, n) < 0) {
        log_error("out of memory: ending connection %s", c->peer);
        conn_drop(c);
    }
}

/* Acts on the parser's event; the memory of a large message goes to the cache. */
static void conn_ws_parsed(struct conn *c, struct ws_msg *m) {
    conn_ws_event(c, m);
    if (m->kind == WS_NONE && c->ws.left >= BUFCACHE_MIN)
        bufcache_lend(&c->host->bufcache, &c->ws.msg);
    else if (m->kind == WS_MESSAGE && c->ws.msg.cap >= BUFCACHE_MIN)
        bufcache_give(&c->host->bufcache, &c->ws.msg);
    ws_parser_release(&c->ws);
}

static void conn_websocket(struct conn *c, char *data, size_t n) {
    uint64_t end = loop_slice(c->host->loop);
    size_t at = 0;
    while (at < n && c->state == CONN_OPEN) {
        if (!conn_takes_input(c)) {
            conn_stash(c, data + at, n - at);
            return;
        }
        struct ws_msg m;
        at += ws_feed(&c->ws, data + at, n - at, &m);
        conn_ws_parsed(c, &m);
        if (at < n && loop_slice_over(c->host->loop, end))
            loop_yield(c->host->loop, &c->turn_task);
    }
}

/* -- input: lines -- */

static void conn_line(struct conn *c, char *line, size_t n) {
    struct str s = str_trim((struct str){line, n});
    if (s.n > 0)
        c->host->ops->message(c, &(struct conn_message){.p = line + (s.p - line), .n = s.n});
}

/* Hands out the lines of c->in; at the end of input also the last, unterminated one. */
static void conn_lines(struct conn *c) {
    uint64_t slice = loop_slice(c->host->loop);
    size_t at = 0;
    while (c->state == CONN_OPEN && conn_takes_input(c)) {
        size_t from = MAX(at, c->line_seen);
        char *nl = c->in.len > from ? memchr(c->in.p + from, '\n', c->in.len - from) : NULL;
        c->line_seen = c->in.len;
        if (nl == NULL && !(c->input_done && at < c->in.len))
            break;
        size_t end = nl ? (size_t)(nl - c->in.p) : c->in.len;
        size_t next = nl ? end + 1 : end;
        c->line_seen = 0;
        if (end - at > c->msg_max)
            break;
        conn_line(c, c->in.p + at, end - at);
        at = next;
        if (at < c->in.len && loop_slice_over(c->host->loop, slice))
            loop_yield(c->host->loop, &c->turn_task);
    }
    buf_consume(&c->in, at);
    c->line_seen -= MIN(c->line_seen, at);
    if (c->in.len == 0)
        buf_fini(&c->in);
    if (c->state == CONN_OPEN && c->in.len > c->msg_max && !c->paused && !c->turn_task.queued) {
        log_warn("closing stdio: a line has more than %zu bytes", c->msg_max);
        conn_end(c, 1009, "");
    }
}

/* stdio: tells the owner the end of input, once all lines were handed out. */
static void conn_check_input_end(struct conn *c) {
    if (c->state != CONN_OPEN || !c->input_done || c->in.len > 0 || c->end_told)
        return;
    c->end_told = true;
    c->host->ops->input_end(c);
}

/* -- input: common -- */

/* Handles input that had to wait. */
static void conn_resume_input(struct conn *c) {
    if (c->stdio) {
        if (c->in.len > 0)
            conn_lines(c);
        conn_check_input_end(c);
    } else if (c->state == CONN_HTTP) {
        conn_http(c);
        conn_update_watch(c);
    } else if (c->in.len > 0) {
        struct buf stash = c->in;
        c->in = BUF_INIT(stash.max);
        conn_process(c, stash.p, stash.len);
        buf_fini(&stash);
        conn_update_watch(c);
    }
}

void conn_process(struct conn *c, char *data, size_t n) {
    if (c->state == CONN_OPEN && !c->stdio) {
        conn_websocket(c, data, n);
        return;
    }
    if (c->state > CONN_OPEN)
        return; /* thrown away until the peer hangs up */
    conn_stash(c, data, n);
    if (c->state == CONN_HTTP)
        conn_http(c);
    else if (c->state == CONN_BODY)
        c->host->ops->body(c);
    else if (c->state == CONN_OPEN)
        conn_lines(c);
}

/* The peer sends no more. stdio first answers what it received. */
static void conn_input_end(struct conn *c) {
    c->input_done = true;
    if (c->state == CONN_LINGERING) {
        conn_drop(c);
    } else if (c->stdio && c->state == CONN_OPEN) {
        conn_update_watch(c);
        conn_lines(c);
        conn_check_input_end(c);
    } else if (c->state == CONN_BODY) {
        conn_update_watch(c);
        c->host->ops->body(c);
    } else if (c->state <= CONN_OPEN) {
        conn_note_why(c, "the client hung up");
        conn_begin_flush(c);
        conn_say_gone(c); /* now: its session may be resumed in this turn */
    } else {
        loop_defer(c->host->loop, &c->flush_task);
    }
}

/* Reads once and handles the bytes. Whether there may be more. */
static bool conn_read_once(struct conn *c) {
    size_t room = 0;
    char *direct = c->state == CONN_OPEN && !c->stdio ? ws_room(&c->ws, &room) : NULL;
    if (direct == NULL)
        room = c->state == CONN_HTTP ? CONN_HTTP_READ : CONN_READ;
    ssize_t n = read(c->io.fd, direct != NULL ? direct : c->host->scratch, room);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n < 0 && !c->stdio) {
        conn_note_why(c, err_os_text(errno));
        conn_drop(c);
        return false;
    }
    if (n <= 0) {
        conn_input_end(c);
        return false;
    }
    c->rx_bytes += (uint64_t)n;
    if (direct != NULL) {
        struct ws_msg m;
        ws_filled(&c->ws, (size_t)n, &m);
        conn_ws_parsed(c, &m);
    } else {
        conn_process(c, c->host->scratch, (size_t)n);
    }
    return (size_t)n == room;
}

void conn_read(struct conn *c) {
    if (!conn_wants_input(c)) /* not any more */
        return;
    if (c->state == CONN_OPEN && !c->stdio && c->in.len > 0) {
        loop_defer(c->host->loop, &c->flush_task); /* the stash comes first */
        return;
    }
    /* Heads are read in small pieces, so that few bytes behind a head are kept. All pieces are read
     * in one turn: no deadline may pass while a head waits in the socket. */
    for (size_t n = 0; conn_read_once(c) && c->state == CONN_HTTP && conn_wants_input(c);) {
        n += CONN_HTTP_READ;
        if (n >= CONN_READ)
            break;
    }
    if (c->state != CONN_DROPPED)
        conn_update_watch(c);
}

uint64_t conn_received(const struct conn *c) {
    int unread = 0;
    (void)ioctl(c->io.fd, FIONREAD, &unread);
    return c->rx_bytes + (uint64_t)MAX(unread, 0);
}

static void conn_on_io(struct loop_io *io, uint32_t events) {
    struct conn *c = container_of(io, struct conn, io);
    if (events & EPOLLOUT)
        conn_flush(c);
    if (c->state == CONN_DROPPED)
        return;
    if (events & EPOLLIN) {
        conn_read(c);
    } else if (events & (EPOLLHUP | EPOLLERR) && !c->stdio) {
        conn_note_why(c, "the connection was cut");
        conn_drop(c);
    } else if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR) && !c->input_done) {
        conn_input_end(c); /* seen while input is not read */
    }
}

static void conn_on_out(struct loop_io *io, uint32_t events) {
    (void)events;
    conn_flush(container_of(io, struct conn, out));
}

static void conn_on_turn(struct loop_task *t) {
    struct conn *c = container_of(t, struct conn, turn_task);
    if (c->state == CONN_DROPPED)
        return;
    if ((c->state == CONN_HTTP || c->state == CONN_OPEN) && conn_takes_input(c))
        conn_resume_input(c);
    conn_update_watch(c);
}

static void conn_on_poll(struct loop_timer *t) {
    conn_read(container_of(t, struct conn, poll));
}

static void conn_on_timer(struct loop_timer *t) {
    struct conn *c = container_of(t, struct conn, timer);
    if (c->state == CONN_HTTP && c->turn_task.queued) { /* a request that came in time waits */
        (void)!loop_timer_set(c->host->loop, t, CONN_PROOF_LATE_MS * LOOP_MS);
        return;
    }
    if ((c->state == CONN_BODY || c->state == CONN_FLUSHING) &&
        c->host->loop->now - t->when > LOOP_SEC) { /* the server was stopped and sent nothing */
        uint64_t ms = c->state == CONN_BODY ? CONN_BODY_MS : CONN_GOODBYE_MS;
        (void)!loop_timer_set(c->host->loop, t, ms * LOOP_MS);
        return;
    }
    if (c->state != CONN_OPEN) {
        log_debug("connection %s timed out", c->peer);
        conn_note_why(c, "it took nothing in time");
        conn_drop(c);
        return;
    }
    if (c->standing != CONN_PROVEN) {
        conn_proof_over(c);
        return;
    }
    conn_ping(c);
    if (loop_timer_set(c->host->loop, &c->timer, CONN_PING_MS * LOOP_MS) < 0)
        conn_drop(c);
}

void conn_pause(struct conn *c, bool paused) {
    if (c->paused == paused)
        return;
    c->paused = paused;
    /* The flush task handles the stash: no message is handed out inside the owner's call. */
    loop_defer(c->host->loop, &c->flush_task);
}

/* -- new connections -- */

static struct conn *conn_new(struct conn_host *h, int in_fd, int out_fd) {
    struct conn *c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    c->host = h;
    c->io = (struct loop_io){.fd = in_fd, .fn = conn_on_io};
    c->out = (struct loop_io){.fd = out_fd, .fn = conn_on_out};
    c->timer.fn = conn_on_timer;
    c->poll.fn = conn_on_poll;
    c->flush_task.fn = conn_on_flush;
    c->free_task.fn = conn_on_free;
    c->turn_task.fn = conn_on_turn;
    c->msg_max = CONN_MSG_EARLY_MAX;
    list_init(&c->unproven);
    sendq_init(&c->sendq, &h->pool);
    sendq_init(&c->behind, &h->pool);
    list_append(&h->conns, &c->node);
    h->count++;
    return c;
}

int conn_accept(struct conn_host *h, int fd, const struct sockaddr *addr) {
    struct conn *c = conn_new(h, fd, -1);
    if (c == NULL) {
        close(fd);
        return -ENOMEM;
    }
    sock_peer_name(addr, c->peer);
    if (h->trusted != NULL && forwarded_trusts(h->trusted, addr))
        sock_addr_copy(&c->proxy, addr);
    if (addr->sa_family != AF_UNIX)
        sock_tune_tcp(fd);
    c->in = BUF_INIT(HTTP_HEAD_MAX + CONN_READ);
    ws_parser_init(&c->ws, CONN_MSG_EARLY_MAX);
    int r = loop_io_add(h->loop, &c->io, EPOLLIN | EPOLLRDHUP);
    if (r == 0)
        r = conn_proof_begin(c);
    if (r < 0)
        conn_free(c);
    return r;
}

int conn_stdio(struct conn_host *h, int in_fd, int out_fd) {
    struct conn *c = conn_new(h, in_fd, out_fd);
    if (c == NULL)
        return -ENOMEM;
    c->stdio = true;
    c->standing = CONN_PROVEN; /* it is the one who started the server */
    c->state = CONN_OPEN;
    c->in = BUF_INIT((size_t)CONN_MSG_MAX + CONN_READ + 1);
    snprintf(c->peer, sizeof c->peer, "stdio");
    (void)fcntl(in_fd, F_SETFL, fcntl(in_fd, F_GETFL) | O_NONBLOCK);
    (void)fcntl(out_fd, F_SETFL, fcntl(out_fd, F_GETFL) | O_NONBLOCK);
    h->ops->open(c);
    conn_update_watch(c);
    return 0;
}
