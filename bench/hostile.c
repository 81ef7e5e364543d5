// The other side of the group `hostile`: a client that does its worst.
#include "measure.h"
#include "rpc.h"
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char *read_message(const char *path, size_t *len) {
    struct stat st;
    FILE *f = fopen(path, "r");
    char *text;

    if (f == NULL || fstat(fileno(f), &st) < 0 || (text = malloc((size_t)st.st_size)) == NULL)
        fail("cannot read %s", path);
    *len = (size_t)st.st_size;
    if (fread(text, 1, *len, f) != *len)
        fail("cannot read %s", path);
    fclose(f);
    return text;
}

// Takes whatever comes. Whether the server is still there.
static int drain(int fd) {
    static char sink[1 << 16];
    ssize_t n = read(fd, sink, sizeof sink);

    return n > 0 || (n < 0 && errno == EAGAIN);
}

void measure_attack(const struct measure_options *o) {
    struct rpc r;
    struct ws_frame f;
    size_t len, at = 0;
    uint64_t sent = 0, end = now_ns() + o->millis * 1000000u;
    char *text = read_message(o->path, &len);

    rpc_open(&r, o->port);
    ws_frame_init(&f, text, len);
    if (fcntl(r.ws.fd, F_SETFL, O_NONBLOCK) < 0)
        fail("cannot set O_NONBLOCK");
    while (now_ns() < end) {
        struct pollfd p = {.fd = r.ws.fd, .events = POLLIN | POLLOUT};
        if (poll(&p, 1, 100) < 0)
            fail("cannot poll");
        if ((p.revents & POLLIN) != 0 && !drain(p.fd))
            fail("the server has closed the connection of the hostile client");
        if ((p.revents & POLLOUT) == 0)
            continue;
        ssize_t n = write(p.fd, f.bytes + at, f.len - at);
        if (n < 0 && errno != EAGAIN)
            fail("the server has reset the connection of the hostile client");
        at += n > 0 ? (size_t)n : 0;
        sent += at == f.len;
        at %= f.len;
    }
    close(r.ws.fd);
    result_begin("attack");
    result_number("messages", sent);
    result_end();
    ws_frame_free(&f);
    free(text);
}
