#include "cli/cli_sink.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>

void cli_sink_init(struct cli_sink *s, int fd) {
    struct stat st;
    char path[32];
    *s = (struct cli_sink){.fd = fd, .rest = BUF_INIT(CLI_SINK_MAX)};
    if (fstat(fd, &st) < 0 || S_ISREG(st.st_mode) || S_ISBLK(st.st_mode))
        return;
    s->careful = true;
    if (!S_ISFIFO(st.st_mode) && !isatty(fd))
        return;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int again = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (again < 0)
        return;
    s->fd = again;
    s->own = true;
    s->careful = false;
}

void cli_sink_fini(struct cli_sink *s) {
    if (s->own)
        close(s->fd);
    s->own = false;
    s->fd = -1;
    buf_fini(&s->rest);
}

static bool writable(int fd) {
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    return poll(&p, 1, 0) > 0;
}

/* As write(2), but -EAGAIN instead of blocking. */
static ssize_t write_some(struct cli_sink *s, const char *p, size_t n) {
    ssize_t done;
    if (s->careful) {
        done = send(s->fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (done >= 0 || errno != ENOTSOCK)
            return done < 0 ? -errno : done;
        if (!writable(s->fd))
            return -EAGAIN;
        n = MIN(n, (size_t)PIPE_BUF); /* a writable pipe has room for that much */
    }
    done = write(s->fd, p, n);
    return done < 0 ? -errno : done;
}

/* Writes what can be written now; the number of bytes, or an error that ends the sink. */
static ssize_t write_now(struct cli_sink *s, const char *p, size_t n) {
    size_t at = 0;
    while (at < n) {
        ssize_t done = write_some(s, p + at, n - at);
        if (done == -EINTR)
            continue;
        if (done == -EAGAIN)
            break;
        if (done < 0)
            return s->error = (int)done;
        at += (size_t)done;
    }
    return (ssize_t)at;
}

int cli_sink_flush(struct cli_sink *s) {
    if (s->error < 0)
        return s->error;
    ssize_t n = write_now(s, s->rest.p, s->rest.len);
    if (n < 0)
        return (int)n;
    if ((size_t)n == s->rest.len)
        buf_fini(&s->rest);
    else
        buf_consume(&s->rest, (size_t)n);
    return s->rest.len > 0;
}

int cli_sink_put(struct cli_sink *s, const void *p, size_t n) {
    if (s->error < 0)
        return s->error;
    ssize_t done = s->rest.len > 0 ? 0 : write_now(s, p, n);
    if (done < 0)
        return (int)done;
    int r = buf_put(&s->rest, (const char *)p + done, n - (size_t)done);
    if (r < 0)
        return s->error = r;
    return s->rest.len > 0;
}

void cli_sink_drain(struct cli_sink *s, int ms) {
    while (cli_sink_waits(s) && cli_sink_flush(s) == 1) {
        struct pollfd p = {.fd = s->fd, .events = POLLOUT};
        if (poll(&p, 1, ms) <= 0)
            return;
    }
}
