/*
 * A URL, and with a line end between them one that is relative to it. The result is in its only
 * form: parsed again it stays the same, and it holds neither user info, a fragment, nor a byte that
 * a request line must not have.
 */
#include "base/utf8.h"
#include "http/http_url.h"

#include <errno.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct http_url *u) {
    _cleanup_http_url_ struct http_url again = HTTP_URL_INIT;
    _cleanup_err_ struct err e = ERR_INIT;
    struct str text = buf_str(&u->text);
    REQUIRE(u->host_at < u->path_at && u->path_at < u->path_end && u->path_end <= text.n);
    REQUIRE(text.p[u->path_at] == '/');
    for (size_t i = 0; i < text.n; i++)
        REQUIRE(text.p[i] > ' ' && text.p[i] < 0x7F && text.p[i] != '#');
    struct str host = http_url_authority(u);
    REQUIRE(memchr(host.p, '@', host.n) == NULL && memchr(host.p, '/', host.n) == NULL);
    if (text.n > HTTP_URL_MAX)
        return;
    REQUIRE(http_url_parse(&again, text, NULL, &e) == 0);
    REQUIRE(str_eq(buf_str(&again.text), text));
    REQUIRE(again.https == u->https && again.port == u->port && !again.has_user);
    REQUIRE(http_url_same_origin(u, &again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str s = {(const char *)data, size}, more = {NULL, 0};
    const char *end = size > 0 ? memchr(data, '\n', size) : NULL;
    _cleanup_http_url_ struct http_url u = HTTP_URL_INIT, to = HTTP_URL_INIT;
    _cleanup_err_ struct err e = ERR_INIT;
    if (!utf8_valid(s.p, s.n))
        return 0;
    if (end != NULL) {
        s.n = (size_t)(end - s.p);
        more = (struct str){end + 1, size - s.n - 1};
    }
    int r = http_url_parse(&u, s, NULL, &e);
    REQUIRE(r == 0 || e.code != 0 || r == -ENOMEM);
    if (r < 0)
        return 0;
    check(&u);
    r = http_url_parse(&to, more, &u, &e);
    if (r == 0)
        check(&to);
    return 0;
}
