/*
 * Request heads: parse, route, write the answer. The verdict on a head does not depend on what
 * follows it, and every slice lies within the head.
 */
#include "net/http.h"

#include <stdlib.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_slice(struct str s, const char *head, size_t n) {
    REQUIRE(s.n == 0 || (s.p >= head && s.p + s.n <= head + n));
}

static void check_request(const struct http_request *r, const char *head, size_t n) {
    check_slice(r->method, head, n);
    check_slice(r->target, head, n);
    check_slice(r->query, head, n);
    REQUIRE(r->path.n > 0);
    if (!str_eqz(r->path, "/"))
        check_slice(r->path, head, n);
    REQUIRE(r->minor == 0 || r->minor == 1);
    REQUIRE(r->count <= HTTP_HEADERS_MAX);
    for (size_t i = 0; i < r->count; i++) {
        check_slice(r->headers[i].name, head, n);
        check_slice(r->headers[i].value, head, n);
        REQUIRE(r->headers[i].name.n > 0 && r->headers[i].value.p != NULL);
    }
}

static void check_answer(const struct http_request *r) {
    struct http_answer a;
    http_route(r, &a);
    _cleanup_buf_ struct buf b = BUF_INIT(4096);
    if (http_header_get(r, "Origin").p != NULL)
        REQUIRE(a.action == HTTP_REPLY && a.status == 403);
    if (a.action == HTTP_UPGRADE)
        REQUIRE(http_write_upgrade(&b, a.key, 0) == 0);
    else
        REQUIRE(http_write_reply(&b, &a, 0) == 0);
    REQUIRE(b.len > 17 && memcmp(b.p, "HTTP/1.", 7) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct http_request r;
    int len = http_parse((const char *)data, size, &r);
    if (len < 0) {
        REQUIRE(len == -400 || len == -414 || len == -431);
        return 0;
    }
    REQUIRE((size_t)len <= size && (len > 0 || size < HTTP_HEAD_MAX + 16));
    if (len == 0)
        return 0;
    size_t n = (size_t)len;
    check_request(&r, (const char *)data, n);
    check_answer(&r);
    /* The same head alone, and without its last byte. */
    char *copy = malloc(n);
    REQUIRE(copy != NULL);
    memcpy(copy, data, n);
    REQUIRE(http_parse(copy, n, &r) == len);
    REQUIRE(http_parse(copy, n - 1, &r) == 0);
    free(copy);
    return 0;
}
