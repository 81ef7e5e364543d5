#include "client/link.h"

#include "net/ws_mask.h"

#include <errno.h>
#include <signal.h>
#include <sodium.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define LINK_OUT_CONTROL (WS_HEADER_MAX + 4 + 125)
#define LINK_OUT_PIECE 4096 /* less room than this is not worth a frame's piece */

/* Moves what waits to the front of the buffer; the room behind it. */
static size_t link_out_room(struct link *l) {
    if (l->out_at == l->out_len) {
        l->out_at = l->out_len = 0;
    } else if (l->out_at > LINK_OUT / 2) {
        memmove(l->out_data, l->out_data + l->out_at, l->out_len - l->out_at);
        l->out_len -= l->out_at;
        l->out_at = 0;
    }
    return LINK_OUT - l->out_len;
}

static void link_out_took(struct link *l, size_t n) {
    l->out_len += n;
    l->put += n;
}

bool link_out_raw(struct link *l, const char *data, size_t n) {
    if (link_out_room(l) < n)
        return false;
    memcpy(l->out_data + l->out_len, data, n);
    link_out_took(l, n);
    return true;
}

char *link_out_space(struct link *l, size_t *n) {
    *n = link_out_room(l);
    return l->out_data + l->out_len;
}

void link_out_fill(struct link *l, size_t n) {
    link_out_took(l, n);
}

/* A mask that nobody can foretell. */
static void link_out_mask(struct link *l) {
    if (l->masks_at + sizeof l->mask > sizeof l->masks) {
        randombytes_buf(l->masks, sizeof l->masks);
        l->masks_at = 0;
    }
    memcpy(l->mask, l->masks + l->masks_at, sizeof l->mask);
    l->masks_at += sizeof l->mask;
}

/* -- control frames: between the frames of messages -- */

static bool link_out_control(struct link *l, enum ws_opcode opcode, const char *data, size_t n) {
    if (link_out_room(l) < LINK_OUT_CONTROL)
        return false;
    link_out_mask(l);
    char *dst = l->out_data + l->out_len;
    size_t len = ws_masked_header(dst, opcode, true, n, l->mask);
    ws_mask_undo(dst + len, data, n, l->mask, 0);
    link_out_took(l, len + n);
    return true;
}

static void link_out_controls(struct link *l) {
    if (l->lines || l->bytes != NULL || l->frame_left > 0 || l->state < LINK_OPEN)
        return;
    if (l->pong_due && link_out_control(l, WS_PONG, l->pong, l->pong_len))
        l->pong_due = false;
    if (l->ping_due && link_out_control(l, WS_PING, "", 0))
        l->ping_due = false;
    const char code[2] = {(char)(l->close_code >> 8), (char)l->close_code};
    if (l->close_due && link_out_control(l, WS_CLOSE, code, sizeof code)) {
        l->close_due = false;
        l->finished = true;
    }
}

/* -- messages -- */

/* Puts the header of the frame for the message's bytes from `at` on. False: no room. */
static bool link_out_frame(struct link *l, size_t n, size_t at) {
    if (link_out_room(l) < LINK_OUT_CONTROL)
        return false;
    link_out_mask(l);
    size_t len = MIN(n - at, (size_t)LINK_FRAME_MAX);
    link_out_took(l, ws_masked_header(l->out_data + l->out_len, at == 0 ? WS_TEXT : WS_CONT,
                                      at + len == n, len, l->mask));
    l->frame_left = len;
    l->frame_done = 0;
    return true;
}

static size_t link_out_put_frame(struct link *l, const char *data, size_t n, size_t at) {
    while (at < n) {
        link_out_controls(l);
        if (l->frame_left == 0 && !link_out_frame(l, n, at))
            break;
        size_t room = link_out_room(l), take = (size_t)MIN(l->frame_left, (uint64_t)room);
        if (take < l->frame_left && take < LINK_OUT_PIECE)
            break;
        ws_mask_undo(l->out_data + l->out_len, data + at, take, l->mask, l->frame_done);
        link_out_took(l, take);
        l->frame_left -= take;
        l->frame_done += take;
        at += take;
    }
    return at;
}

static size_t link_out_put_line(struct link *l, const char *data, size_t n, size_t at) {
    size_t room = link_out_room(l);
    if (room < 2)
        return at;
    size_t take = MIN(n - at, room - 1);
    memcpy(l->out_data + l->out_len, data + at, take);
    link_out_took(l, take);
    at += take;
    if (at == n)
        link_out_raw(l, "\n", 1);
    return at;
}

size_t link_out_put(struct link *l, const char *data, size_t n, size_t at) {
    return l->lines ? link_out_put_line(l, data, n, at) : link_out_put_frame(l, data, n, at);
}

/* -- writing -- */

/* A write to a pipe without SIGPIPE: blocked, and taken if it came. */
static ssize_t link_out_pipe(int fd, const void *data, size_t n) {
    sigset_t pipe_set, before, pending;
    sigemptyset(&pipe_set);
    sigaddset(&pipe_set, SIGPIPE);
    sigpending(&pending);
    bool was_pending = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_set, &before);
    ssize_t r = write(fd, data, n);
    int num = errno;
    const struct timespec now = {0, 0};
    if (r < 0 && num == EPIPE && !was_pending) {
        while (sigtimedwait(&pipe_set, NULL, &now) < 0 && errno == EINTR)
            continue;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = num;
    return r;
}

static ssize_t link_out_write(struct link *l, const void *data, size_t n) {
    if (l->session != NULL)
        return l->tls->write(l->session, data, n);
    int fd = l->out.fd >= 0 ? l->out.fd : l->in.fd;
    ssize_t r = l->out_is_socket ? send(fd, data, n, MSG_NOSIGNAL | MSG_DONTWAIT)
                                 : link_out_pipe(fd, data, n);
    return r < 0 ? -errno : r;
}

void link_out_arm(struct link *l) {
    if (l->state < LINK_UPGRADE)
        return;
    bool pending = l->out_at < l->out_len;
    uint32_t in = l->reading ? EPOLLIN : 0;
    if (l->out.fd >= 0)
        loop_io_want(l->loop, &l->out, pending ? EPOLLOUT : 0);
    else if (pending)
        in |= EPOLLOUT;
    loop_io_want(l->loop, &l->in, in);
}

/* Lines: the end of our input, once everything is out. */
static void link_out_finish(struct link *l) {
    if (!l->lines || !l->close_due || l->finished)
        return;
    l->close_due = false;
    l->finished = true;
    if (l->out.fd >= 0) {
        loop_io_del(l->loop, &l->out);
        util_close_fd(&l->out.fd);
        l->out_is_socket = true; /* nothing is written any more */
    } else {
        shutdown(l->in.fd, SHUT_WR);
    }
}

void link_out_echo(struct link *l, unsigned code) {
    l->close_due = true;
    l->close_code = code;
    link_out_controls(l);
    if (l->out_at == l->out_len)
        return;
    ssize_t n = link_out_write(l, l->out_data + l->out_at, l->out_len - l->out_at);
    if (n > 0)
        l->out_at += (size_t)n; /* link_sent(): a request in it must not be sent twice */
}

bool link_out_flush(struct link *l) {
    if (l->state < LINK_UPGRADE)
        return false;
    link_out_controls(l);
    while (l->out_at < l->out_len) {
        ssize_t n = link_out_write(l, l->out_data + l->out_at, l->out_len - l->out_at);
        if (n == -EINTR)
            continue;
        if (n == -EAGAIN)
            break;
        if (n < 0) {
            link_break(l, LINK_LOST, l->state == LINK_UPGRADE ? XS_ECONNECT : XS_ELOST,
                       "the connection was lost: %s", err_os_text((int)-n));
            return false;
        }
        l->out_at += (size_t)n;
        if (l->out_at == l->out_len)
            link_out_controls(l);
    }
    bool all = l->out_at == l->out_len;
    if (all)
        link_out_finish(l);
    link_out_arm(l);
    return all;
}
