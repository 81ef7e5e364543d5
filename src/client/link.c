#include "client/link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static void link_on_in(struct loop_io *io, uint32_t events);
static void link_on_out(struct loop_io *io, uint32_t events);
static void link_on_limit(struct loop_timer *t);
static void link_on_end(struct loop_task *t);
static void link_on_child(struct spawn *s);

void link_init(struct link *l, struct xs_client *c, const struct target *t,
               const struct xs_options *o) {
    *l = (struct link){.client = c, .loop = client_loop(c), .target = t, .options = o};
    l->in = (struct loop_io){.fd = -1, .fn = link_on_in};
    l->out = (struct loop_io){.fd = -1, .fn = link_on_out};
    l->limit.fn = link_on_limit;
    l->end.fn = link_on_end;
    l->more.fn = link_in_more;
    list_init(&l->end.node);
    list_init(&l->more.node);
    l->dial.fd = -1;
    l->lines = !target_is_ws(t);
    l->masks_at = sizeof l->masks;
    l->line = BUF_INIT(CLIENT_MESSAGE_MAX);
    l->reading = true;
    ws_parser_init(&l->parser, CLIENT_MESSAGE_MAX);
    spawn_init(&l->child, c, link_on_child);
    link_alive_init(l);
}

/* -- the end of a connection -- */

static void link_shut(struct link *l) {
    if (l->session != NULL)
        l->tls->close(l->session);
    l->session = NULL;
    loop_io_del(l->loop, &l->in);
    loop_io_del(l->loop, &l->out);
    util_close_fd(&l->in.fd);
    util_close_fd(&l->out.fd);
    dial_cancel(&l->dial);
    loop_timer_del(l->loop, &l->limit);
    loop_timer_del(l->loop, &l->alive);
    loop_task_del(&l->more);
    l->state = LINK_IDLE;
}

void link_drop(struct link *l) {
    link_shut(l);
    l->obituary = false;
    loop_task_del(&l->end);
    xs_error_fini(&l->error);
    spawn_end(&l->child);
}

void link_fini(struct link *l) {
    link_drop(l);
    spawn_fini(&l->child);
    dial_fini(&l->dial);
    if (l->resolving)
        resolve_fini(&l->resolve);
    l->resolving = false;
    ws_parser_fini(&l->parser);
    buf_fini(&l->line);
    free(l->out_data);
    free(l->in_data);
    l->out_data = l->in_data = NULL;
}

void link_fail(struct link *l, enum link_loss how, struct xs_error *e) {
    if (l->state == LINK_IDLE)
        return;
    l->how = l->state == LINK_CLOSING ? LINK_ENDED : how;
    xs_error_move(&l->error, e);
    link_shut(l);
    if (l->how == LINK_LOST && l->child.pid > 0 &&
        loop_timer_set(l->loop, &l->limit, loop_ms(LINK_OBITUARY_MS)) == 0) {
        l->obituary = true;
        return;
    }
    spawn_end(&l->child);
    loop_defer(l->loop, &l->end);
}

/* The child has ended, or does not. */
static void link_bury(struct link *l, bool ended) {
    const struct spawn *s = &l->child;
    struct xs_error *e = &l->error;
    l->obituary = false;
    loop_timer_del(l->loop, &l->limit);
    if (ended && s->signal > 0)
        xs_error_set(e, e->code, "%s; the program was killed by signal %d", xs_error_text(e),
                     s->signal);
    else if (ended && s->status >= 0)
        xs_error_set(e, e->code, "%s; the program ended with status %d", xs_error_text(e),
                     s->status);
    spawn_end(&l->child);
    loop_defer(l->loop, &l->end);
}

void link_break(struct link *l, enum link_loss how, int code, const char *fmt, ...) {
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    xs_error_set(&e, code, "%s: %s", l->target->shown, text);
    link_fail(l, how, &e);
}

static void link_on_end(struct loop_task *t) {
    struct link *l = container_of(t, struct link, end);
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    xs_error_move(&e, &l->error);
    l->lost(l, l->how, &e);
}

static void link_on_limit(struct loop_timer *t) {
    struct link *l = container_of(t, struct link, limit);
    l->met = false;
    if (l->obituary)
        link_bury(l, false);
    else if (l->state == LINK_CLOSING)
        link_break(l, LINK_ENDED, XS_ELOST, "the server does not say goodbye");
    else
        link_break(l, LINK_LOST, XS_ECONNECT, "no answer within the time to connect");
}

static void link_on_child(struct spawn *s) {
    struct link *l = container_of(s, struct link, child);
    if (l->obituary)
        link_bury(l, true);
    if (l->state == LINK_IDLE)
        return;
    /* What it has said last is still in the socket. */
    uint64_t number = l->number;
    if (l->state >= LINK_OPEN && l->reading)
        link_in_ready(l);
    if (l->obituary)
        link_bury(l, true);
    if (l->number == number && l->state != LINK_IDLE)
        link_break(l, LINK_LOST, XS_ELOST, "the program ended, but not all that it started");
}

/* -- the beginning -- */

static bool link_prepare(struct link *l, uint64_t limit_ms) {
    l->number++;
    l->state = LINK_DIALING;
    l->out_at = l->out_len = 0;
    l->in_at = l->in_len = 0;
    l->put = l->frame_left = l->frame_done = 0;
    l->pong_due = l->ping_due = l->close_due = l->finished = l->hung_up = false;
    l->token_blocked = l->met = false;
    l->line.len = 0;
    ws_parser_fini(&l->parser);
    ws_parser_init(&l->parser, CLIENT_MESSAGE_MAX);
    ws_parser_set_client(&l->parser);
    if (l->out_data == NULL)
        l->out_data = malloc(LINK_OUT);
    if (l->in_data == NULL)
        l->in_data = malloc(LINK_IN);
    if (l->out_data != NULL && l->in_data != NULL &&
        loop_timer_set(l->loop, &l->limit, loop_ms(limit_ms)) == 0)
        return true;
    link_break(l, LINK_LOST, XS_ENOMEM, "out of memory");
    return false;
}

void link_open(struct link *l, uint64_t limit_ms) {
    if (link_prepare(l, limit_ms))
        link_dial_begin(l, limit_ms);
}

void link_open_fd(struct link *l, int fd, uint64_t limit_ms) {
    if (!link_prepare(l, limit_ms)) {
        close(fd);
        return;
    }
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    link_dial_connected(l, fd);
}

/* -- events -- */

static bool link_is_up(const struct link *l) {
    return l->state >= LINK_UPGRADE;
}

static void link_on_out(struct loop_io *io, uint32_t events) {
    (void)events;
    struct link *l = container_of(io, struct link, out);
    if (link_is_up(l) && link_out_flush(l) && l->state == LINK_OPEN)
        l->writable(l);
}

static void link_on_in(struct loop_io *io, uint32_t events) {
    struct link *l = container_of(io, struct link, in);
    if (l->state == LINK_TLS) {
        link_dial_tls(l);
        return;
    }
    uint64_t number = l->number;
    if ((events & EPOLLOUT) != 0 && link_is_up(l) && link_out_flush(l) && l->state == LINK_OPEN)
        l->writable(l);
    if (l->number != number || l->state == LINK_IDLE)
        return;
    if ((events & ~(uint32_t)EPOLLOUT) != 0 && l->reading) {
        link_in_ready(l);
    } else if ((events & (EPOLLHUP | EPOLLERR)) != 0) {
        /* Epoll would tell us again and again. The bytes before the end are read later. */
        l->hung_up = true;
        loop_io_del(l->loop, &l->in);
    }
}

void link_read(struct link *l, bool on) {
    if (l->reading == on)
        return;
    l->reading = on;
    if (!link_is_up(l))
        return;
    link_alive_check(l);
    if (on) {
        if (l->hung_up && loop_io_add(l->loop, &l->in, EPOLLIN) < 0)
            link_break(l, LINK_LOST, XS_ELOST, "the connection cannot be watched");
        l->hung_up = false;
        loop_defer(l->loop, &l->more);
    }
    link_out_arm(l);
}

void link_await(struct link *l, bool on) {
    if (l->awaited == on)
        return;
    l->awaited = on;
    if (link_is_up(l))
        link_alive_check(l);
}

void link_close(struct link *l) {
    if (l->state == LINK_IDLE || l->state == LINK_CLOSING)
        return;
    if (l->state != LINK_OPEN) {
        l->state = LINK_CLOSING;
        link_break(l, LINK_ENDED, XS_ECANCELED, "closed");
        return;
    }
    l->state = LINK_CLOSING;
    l->close_due = true;
    l->close_code = 1000;
    l->reading = true;
    if (loop_timer_set(l->loop, &l->limit, loop_ms(LINK_GOODBYE_MS)) < 0) {
        link_break(l, LINK_ENDED, XS_ENOMEM, "out of memory");
        return;
    }
    link_out_flush(l);
    loop_defer(l->loop, &l->more);
}
