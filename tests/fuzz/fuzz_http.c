/*
 * Request heads: parse, route, write the answer. The verdict on a head does not depend on what
 * follows it, and every slice lies within the head.
 */
#include "net/http.h"

#include <errno.h>
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

static void check_route_files(const struct http_request *r) {
    static char *const hosts[] = {"box"};
    struct http_answer a;
    http_route_files(r, hosts, ARRAY_LEN(hosts), &a);
    bool page = http_header_get(r, "Origin").p != NULL;
    REQUIRE(!page || a.refusal == HTTP_FROM_PAGE);
    REQUIRE((a.refusal != HTTP_ADMITTED) == (a.action == HTTP_REPLY && a.status == 403));
    REQUIRE(a.action == HTTP_FILES || a.status == 403 || a.status == 405);
    int64_t n = http_body_len(r);
    REQUIRE(n >= -1 && n < 1000000000000000000);
    if (a.action == HTTP_FILES && n != 0 && !str_eqz(r->method, "PUT"))
        REQUIRE(a.close);
}

static void check_query(const struct http_request *r) {
    _cleanup_buf_ struct buf b = BUF_INIT(HTTP_TARGET_MAX);
    int n = http_query_get(r, "path", &b);
    REQUIRE(n == -ENOENT || (n == 0 && b.len + 5 <= r->query.n));
    REQUIRE(n == 0 || b.len == 0);
}

static void check_range(struct str value) {
    static const uint64_t sizes[] = {0, 1, 10, 1u << 20, INT64_MAX, UINT64_MAX};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        uint64_t from = 7, to = 3;
        int n = http_range(value, sizes[i], &from, &to);
        REQUIRE(n == 0 || n == 1 || n == -ERANGE);
        REQUIRE(n == 1 ? from < to && to <= sizes[i] : from == 7 && to == 3);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct http_request r;
    check_range((struct str){(const char *)data, size});
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
    check_route_files(&r);
    check_query(&r);
    if (http_header_get(&r, "range").p != NULL)
        check_range(http_header_get(&r, "range"));
    /* Parse the head alone, and without its last byte. */
    char *copy = malloc(n);
    REQUIRE(copy != NULL);
    memcpy(copy, data, n);
    REQUIRE(http_parse(copy, n, &r) == len);
    REQUIRE(http_parse(copy, n - 1, &r) == 0);
    free(copy);
    return 0;
}
