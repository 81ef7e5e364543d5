// Measurements of http/request; `path` is the URL.
#include "measure.h"
#include "rpc.h"
#include "sample.h"
#include "util.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

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
