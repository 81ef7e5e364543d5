#include "mcp/mcp_lines.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>

static void lines_end(struct mcp_lines *l) {
    if (l->over)
        return;
    l->over = true;
    loop_io_del(l->loop, &l->in);
    loop_io_del(l->loop, &l->out);
    loop_task_del(&l->more);
    l->ops->ended(l);
}

/* -- output -- */

static void lines_watch_input(struct mcp_lines *l);

/* Writes what the peer takes. False: it takes nothing more for good. */
static bool lines_flush(struct mcp_lines *l) {
    size_t done = 0;
    while (done < l->output.len) {
        ssize_t n = write(l->out.fd, l->output.p + done, l->output.len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0)
            return false;
        done += (size_t)n;
    }
    buf_consume(&l->output, done);
    if (l->output.len == 0 && l->output.cap > MCP_LINES_HIGH)
        buf_fini(&l->output);
    return true;
}

static void lines_send_on(struct mcp_lines *l) {
    if (!lines_flush(l))
        lines_end(l);
    else if (l->output.len == 0)
        loop_io_del(l->loop, &l->out);
    else if (!l->out.added && loop_io_add(l->loop, &l->out, EPOLLOUT) < 0)
        lines_end(l);
}

static void lines_on_writable(struct loop_io *io, uint32_t events) {
    (void)events;
    struct mcp_lines *l = container_of(io, struct mcp_lines, out);
    lines_send_on(l);
    if (!l->over)
        lines_watch_input(l);
}

void mcp_lines_send(struct mcp_lines *l, struct str text) {
    if (l->over)
        return;
    size_t had = l->output.len;
    if (buf_put(&l->output, text.p, text.n) < 0 || buf_putc(&l->output, '\n') < 0) {
        l->output.len = had;
        log_error("the client does not read: too much output waits");
        lines_end(l);
    } else if (had == 0) {
        lines_send_on(l);
    }
}

/* -- input -- */

/* Hands out a line without its newline and carriage return. */
static void lines_hand_out(struct mcp_lines *l, struct str text) {
    if (text.n > 0 && text.p[text.n - 1] == '\r')
        text.n--;
    if (l->skipping)
        l->skipping = false;
    else
        l->ops->line(l, text);
}

/* Hands out complete lines until the slice is over. True: some may be left. */
static bool lines_split(struct mcp_lines *l) {
    uint64_t end = loop_slice(l->loop);
    size_t at = 0;
    bool left = false;
    while (!l->over && l->output.len <= MCP_LINES_HIGH) {
        size_t from = at + l->scanned;
        const char *nl =
            from < l->input.len ? memchr(l->input.p + from, '\n', l->input.len - from) : NULL;
        if (nl == NULL)
            break;
        size_t n = (size_t)(nl - l->input.p) - at;
        l->scanned = 0;
        lines_hand_out(l, (struct str){l->input.p + at, n});
        at += n + 1;
        left = loop_slice_over(l->loop, end);
        if (left)
            break;
    }
    buf_consume(&l->input, at);
    if (!left)
        l->scanned = l->input.len;
    if (l->input.len == 0 && l->input.cap > MCP_LINES_HIGH)
        buf_fini(&l->input);
    return left || l->output.len > MCP_LINES_HIGH;
}

static void lines_check_length(struct mcp_lines *l) {
    if (l->input.len <= MCP_LINES_MAX)
        return;
    if (!l->skipping)
        l->ops->too_long(l);
    l->skipping = true;
    l->input.len = l->scanned = 0;
}

/* Reads once. 1: there may be more; 0: nothing now; -1: the end. */
static int lines_read(struct mcp_lines *l) {
    if (buf_reserve(&l->input, MCP_LINES_CHUNK) < 0)
        return -1;
    ssize_t n = read(l->in.fd, l->input.p + l->input.len, MCP_LINES_CHUNK);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    l->input.len += (size_t)n;
    return n > 0 ? 1 : -1;
}

/* After the end of the input: a last line may lack its newline. */
static void lines_finish(struct mcp_lines *l) {
    if (!l->over && l->input.len > 0)
        lines_hand_out(l, buf_str(&l->input));
    lines_end(l);
}

static void lines_go_on(struct mcp_lines *l, bool may_read) {
    if (l->over)
        return;
    if (may_read && !l->input_ended && l->output.len <= MCP_LINES_HIGH) {
        l->input_ended = lines_read(l) < 0;
    }
    bool left = lines_split(l);
    if (l->over)
        return;
    if (!left)
        lines_check_length(l);
    if (!left && l->input_ended)
        lines_finish(l);
    else
        lines_watch_input(l);
}

/* Reads on when the loop says so; at once, a turn later, what needs no waiting. */
static void lines_watch_input(struct mcp_lines *l) {
    bool held = l->output.len > MCP_LINES_HIGH;
    bool lines_left = l->scanned < l->input.len;
    if (held || l->input_ended || lines_left)
        loop_io_del(l->loop, &l->in);
    if (held)
        return;
    if (l->plain_file || l->input_ended || lines_left) {
        loop_yield(l->loop, &l->more);
        return;
    }
    int r = l->in.added ? 0 : loop_io_add(l->loop, &l->in, EPOLLIN);
    if (r == -EPERM) { /* always ready */
        l->plain_file = true;
        loop_yield(l->loop, &l->more);
    } else if (r < 0) {
        lines_end(l);
    }
}

static void lines_on_readable(struct loop_io *io, uint32_t events) {
    (void)events;
    lines_go_on(container_of(io, struct mcp_lines, in), true);
}

static void lines_on_more(struct loop_task *t) {
    struct mcp_lines *l = container_of(t, struct mcp_lines, more);
    lines_go_on(l, l->plain_file && l->scanned == l->input.len);
}

static int lines_nonblock(int fd) {
    int flags = fcntl(fd, F_GETFL);
    return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
}

int mcp_lines_init(struct mcp_lines *l, struct loop *loop, int in, int out,
                   const struct mcp_lines_ops *ops) {
    *l = (struct mcp_lines){.loop = loop,
                            .ops = ops,
                            .in = {.fd = in, .fn = lines_on_readable},
                            .out = {.fd = out, .fn = lines_on_writable},
                            .more = {.fn = lines_on_more},
                            .input = BUF_INIT(MCP_LINES_MAX + 2 * MCP_LINES_CHUNK),
                            .output = BUF_INIT(MCP_LINES_OUT)};
    list_init(&l->more.node);
    int r = lines_nonblock(in);
    if (r == 0)
        r = lines_nonblock(out);
    if (r == 0)
        lines_watch_input(l);
    return r;
}

void mcp_lines_fini(struct mcp_lines *l) {
    if (l->loop == NULL)
        return;
    (void)lines_flush(l);
    l->over = true;
    loop_io_del(l->loop, &l->in);
    loop_io_del(l->loop, &l->out);
    loop_task_del(&l->more);
    buf_fini(&l->input);
    buf_fini(&l->output);
}
