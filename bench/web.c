// Measurements of http/request; `path` is the URL.
#include "machine.h"
#include "measure.h"
#include "rpc.h"
#include "sample.h"
#include "util.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PARAMS_MAX 1024
#define DELTA_KEY "\"deltaBase64\":\""
#define BODY_KEY "\"bodyBase64\":\""

static void web_params(char *out, const struct measure_options *o, const char *more) {
    if (o->path == NULL)
        fail("a URL as --path is needed");
    if (snprintf(out, PARAMS_MAX, "{\"method\":\"GET\",\"url\":\"%s\",\"requestId\":\"r\"%s}",
                 o->path, more) >= PARAMS_MAX)
        fail("the URL is too long");
}

static uint64_t one_request(struct rpc *r, uint64_t n, const void *arg) {
    uint64_t begin = now_ns(), took;
    uint64_t id = rpc_request(r, "http/request", arg);
    const char *text;
    struct msg m;
    size_t len;

    rpc_flush(r);
    rpc_next(r, &m);
    took = now_ns() - begin;
    if (m.kind != MSG_RESPONSE || m.id != id)
        fail("http/request got another answer");
    text = rpc_text(&m, BODY_KEY, &len);
    if (n == 0 && base64_bytes(text, len) == 0)
        fail("http/request got no body");
    return took;
}

void measure_request(const struct measure_options *o) {
    char params[PARAMS_MAX];
    struct rpc r;

    web_params(params, o, "");
    rpc_open(&r, o->port);
    sample("request", &r, one_request, params, o);
    rpc_close(&r);
}

void measure_stream(const struct measure_options *o) {
    char params[PARAMS_MAX];
    uint64_t begin, bytes = 0, frames = 0;
    bool done = false;
    struct rpc r;
    struct msg m;

    web_params(params, o, ",\"streamResponse\":true");
    rpc_open(&r, o->port);
    begin = now_ns();
    rpc_request(&r, "http/request", params);
    rpc_flush(&r);
    while (!done) {
        size_t len;
        const char *text;

        rpc_next(&r, &m);
        if (m.kind == MSG_RESPONSE)
            continue;
        text = rpc_text(&m, DELTA_KEY, &len);
        bytes += len > 0 ? base64_bytes(text, len) : 0;
        frames++;
        done = len == 0;
        if (done && memmem(m.data, m.len, "\"error\":null", 12) == NULL)
            fail("the stream failed");
    }
    if (bytes != o->bytes)
        fail("%" PRIu64 " bytes instead of %" PRIu64, bytes, o->bytes);
    result_begin("stream");
    result_number("bytes", bytes);
    result_number("frames", frames);
    result_number("wall_ns", now_ns() - begin);
    result_end();
    rpc_close(&r);
}

// -- the machine's own limit: one request through two bare relays --

// Bytes of a request of ours, of its frame to the HTTP program, of the frame and the message with
// the answer.
#define ASKED 120
#define FRAMED 64
#define ANSWERED 400
#define TOLD 576
#define PIECE 4096

// A blocking connection to http://127.0.0.1:PORT/...; stores where its path begins.
static int connect_origin(const char *url, const char **path) {
    struct sockaddr_in sin = {.sin_family = AF_INET};
    unsigned port = 0;
    int one = 1, begin = 0;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (url == NULL || sscanf(url, "http://127.0.0.1:%u%n", &port, &begin) != 1)
        fail("a URL of 127.0.0.1 as --path is needed");
    *path = url + begin;
    sin.sin_port = htons((uint16_t)port);
    sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&sin, sizeof sin) != 0)
        fail("connection to the origin: %s", strerror(errno));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static void send_all(int fd, const char *data, size_t len) {
    if (send(fd, data, len, MSG_NOSIGNAL) != (ssize_t)len)
        fail("send: %s", strerror(errno));
}

// Reads `len` bytes; 0 at the end of the stream.
static int take(int fd, char *data, size_t len) {
    ssize_t n = recv(fd, data, len, MSG_WAITALL);

    if (n != 0 && n != (ssize_t)len)
        fail("a short read");
    return n != 0;
}

// Reads an answer of a small file, which the origin sends at once.
static void take_answer(int fd) {
    char got[PIECE];
    size_t n = 0;

    do {
        ssize_t more = recv(fd, got + n, sizeof got - n, 0);
        if (more <= 0)
            fail("the origin hung up");
        n += (size_t)more;
    } while (memmem(got, n, "\r\n\r\n", 4) == NULL || got[n - 1] == '\n');
}

// In the place of the HTTP program.
static void fetch_all(int server, const char *url) {
    char frame[ANSWERED] = {0}, text[PARAMS_MAX + 64];
    const char *path;
    int origin = connect_origin(url, &path);
    int len =
        snprintf(text, sizeof text, "GET %s HTTP/1.1\r\naccept: */*\r\nhost: a\r\n\r\n", path);

    while (take(server, frame, FRAMED)) {
        send_all(origin, text, (size_t)len);
        take_answer(origin);
        send_all(server, frame, sizeof frame);
    }
    _exit(0);
}

// In the place of the server.
static void serve_all(int client, const char *url) {
    char message[TOLD] = {0};
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        fail("socketpair: %s", strerror(errno));
    if (machine_fork() == 0) {
        close(client);
        close(pair[0]);
        fetch_all(pair[1], url);
    }
    close(pair[1]);
    while (take(client, message, ASKED)) {
        send_all(pair[0], message, FRAMED);
        if (!take(pair[0], message, ANSWERED))
            fail("the relay ended");
        send_all(client, message, sizeof message);
    }
    close(pair[0]);
    waitpid(-1, NULL, 0);
    _exit(0);
}

void machine_request(const struct measure_options *o) {
    char message[TOLD] = {0};
    uint64_t end;
    struct samples s;
    int fd[2];

    machine_tcp_pair(fd);
    if (machine_fork() == 0) {
        close(fd[0]);
        serve_all(fd[1], o->path);
    }
    close(fd[1]);
    samples_init(&s, o->count);
    end = now_ns() + o->millis * 1000000u;
    for (size_t i = 0; s.count < s.cap && now_ns() < end; i++) {
        uint64_t begin = now_ns();
        send_all(fd[0], message, ASKED);
        if (!take(fd[0], message, TOLD))
            fail("the relay ended");
        if (i >= o->warmup)
            samples_add(&s, now_ns() - begin);
    }
    close(fd[0]);
    waitpid(-1, NULL, 0);
    result_begin("machine-request");
    result_samples(&s);
    result_end();
    samples_free(&s);
}
