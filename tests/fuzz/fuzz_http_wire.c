/*
 * Frames of the HTTP program, and those of the server. The first byte is the size of the pieces in
 * which they come: they do not depend on it. What a frame holds is as the header promises, and
 * stable in a round trip.
 */
#include "base/utf8.h"
#include "http/http_wire.h"

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

#define FRAMES_MAX 1000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_fields(const struct http_field *f, size_t n, bool visible) {
    REQUIRE(n <= HTTP_FIELDS_MAX);
    for (size_t i = 0; i < n; i++) {
        REQUIRE(http_fields_is_name(f[i].name) && http_fields_is_value(f[i].value));
        REQUIRE(!visible || http_fields_is_visible(f[i].value));
    }
}

static void check_round(struct str payload, const struct buf *b) {
    REQUIRE(b->len == HTTP_WIRE_HEAD + payload.n);
    REQUIRE(payload.n == 0 || memcmp(b->p + HTTP_WIRE_HEAD, payload.p, payload.n) == 0);
}

static void check_frame(const struct http_wire_frame *f) {
    _cleanup_arena_ struct arena a = ARENA_INIT(HTTP_WIRE_ARENA_MAX);
    _cleanup_buf_ struct buf b = BUF_INIT(4u << 20);
    struct http_wire_request q;
    struct http_wire_headers h;
    struct http_wire_end e;
    struct str version;
    size_t count;
    REQUIRE(f->payload.n <= HTTP_WIRE_PAYLOAD_MAX);
    if (http_wire_get_request(f->payload, &a, &q) == 0) {
        check_fields(q.fields, q.field_count, false);
        REQUIRE(http_fields_is_token(q.method));
        REQUIRE(http_wire_put_request(&b, f->id, &q) == 0);
        check_round(f->payload, &b);
    }
    b.len = 0;
    if (http_wire_get_headers(f->payload, &a, &h) == 0) {
        check_fields(h.fields, h.field_count, true);
        REQUIRE(h.status >= 100 && h.status <= 999);
        REQUIRE(http_wire_put_headers(&b, f->id, &h) == 0);
        check_round(f->payload, &b);
    }
    b.len = 0;
    if (http_wire_get_end(f->payload, &e) == 0) {
        REQUIRE(e.reason.n <= HTTP_WIRE_REASON_MAX && utf8_valid(e.reason.p, e.reason.n));
        REQUIRE(http_wire_put_end(&b, f->id, &e) == 0);
        check_round(f->payload, &b);
    }
    b.len = 0;
    if (http_wire_get_count(f->payload, HTTP_WIRE_DATA_MAX, &count) == 0) {
        REQUIRE(count > 0 && count <= HTTP_WIRE_DATA_MAX);
        REQUIRE(http_wire_put_count(&b, f->type, f->id, count) == 0);
        check_round(f->payload, &b);
    }
    if (http_wire_get_hello(f->payload, &version) == 0)
        REQUIRE(version.n <= 64);
}

/* Reads all frames. Their number, and in *bad whether there was one that can be none. */
static size_t read_all(struct str s, size_t step, bool *bad, bool check) {
    struct http_wire_reader r;
    struct http_wire_frame f;
    size_t count = 0;
    http_wire_init(&r);
    *bad = false;
    for (size_t at = 0; at < s.n && !*bad && count < FRAMES_MAX; at += step) {
        REQUIRE(http_wire_feed(&r, (struct str){s.p + at, MIN(step, s.n - at)}) == 0);
        int got;
        while ((got = http_wire_next(&r, &f)) > 0 && count < FRAMES_MAX) {
            count++;
            if (check)
                check_frame(&f);
        }
        *bad = got < 0;
    }
    http_wire_fini(&r);
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2 || size > 1u << 20)
        return 0;
    struct str s = {(const char *)data + 1, size - 1};
    bool bad, again;
    size_t whole = read_all(s, s.n + 1, &bad, true);
    size_t parts = read_all(s, 1 + data[0], &again, false);
    REQUIRE(whole == parts && (bad == again || whole == FRAMES_MAX));
    return 0;
}
