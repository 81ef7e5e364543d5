#include "net/http.h"

#include "guard.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

/* A fixed moment and its date header. */
#define NOW 1794724924
#define DATE "date: Sun, 15 Nov 2026 06:42:04 GMT\r\n"

#define CONNECTION "Connection: Upgrade\r\n"
#define UPGRADE "Upgrade: websocket\r\n"
#define VERSION "Sec-WebSocket-Version: 13\r\n"
#define KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define ALL CONNECTION UPGRADE VERSION KEY

#define EMPTY(status) "HTTP/1.1 " status "\r\ncontent-length: 0\r\n" DATE "\r\n"
#define BAD "HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n" DATE "\r\n"
#define TEXT(status, n, body)                                                                      \
    "HTTP/1.1 " status "\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: " n         \
    "\r\n" DATE "\r\n" body
#define SWITCH                                                                                     \
    "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n"            \
    "sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n" DATE "\r\n"
#define NO_CONNECTION TEXT("400 Bad Request", "43", "Connection header did not include 'upgrade'")
#define NO_UPGRADE TEXT("400 Bad Request", "44", "`Upgrade` header did not include 'websocket'")
#define NO_VERSION                                                                                 \
    TEXT("400 Bad Request", "51", "`Sec-WebSocket-Version` header did not include '13'")
#define NO_GET TEXT("405 Method Not Allowed", "28", "Request method must be `GET`")
#define NOT_ALLOWED                                                                                \
    "HTTP/1.1 405 Method Not Allowed\r\nallow: GET,HEAD\r\ncontent-length: 0\r\n" DATE "\r\n"

struct exchange {
    const char *request;
    const char *response;
    bool close;
};

/* Recorded exchanges; /healthz is ours. */
static const struct exchange recorded[] = {
    {"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n", EMPTY("200 OK"), false},
    {"HEAD /readyz HTTP/1.1\r\nHost: x\r\n\r\n", EMPTY("200 OK"), false},
    {"POST /readyz HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", NOT_ALLOWED, false},
    {"OPTIONS /readyz HTTP/1.1\r\nHost: x\r\n\r\n", NOT_ALLOWED, false},
    {"get /readyz HTTP/1.1\r\n\r\n", NOT_ALLOWED, false},
    {"GET /readyz?x=1 HTTP/1.1\r\nHost: x\r\n\r\n", EMPTY("200 OK"), false},
    {"GET /readyz#x HTTP/1.1\r\nHost: x\r\n\r\n", EMPTY("200 OK"), false},
    {"GET /readyz/ HTTP/1.1\r\nHost: x\r\n\r\n", EMPTY("404 Not Found"), false},
    {"GET //readyz HTTP/1.1\r\n\r\n", EMPTY("404 Not Found"), false},
    {"GET /%72eadyz HTTP/1.1\r\n\r\n", EMPTY("404 Not Found"), false},
    {"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", EMPTY("200 OK"), false},
    {"POST /healthz HTTP/1.1\r\nHost: x\r\n\r\n", NOT_ALLOWED, false},
    {"GET /health HTTP/1.1\r\nHost: x\r\n\r\n", EMPTY("404 Not Found"), false},
    {"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n", EMPTY("404 Not Found"), false},
    {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", NO_CONNECTION, false},
    {"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n", TEXT("405 Method Not Allowed", "28", ""), false},
    {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 00\r\n\r\n", NO_GET, false},
    {"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", NO_GET, false},
    {"OPTIONS / HTTP/1.1\r\nHost: x\r\n\r\n", NO_GET, false},
    {"OPTIONS * HTTP/1.1\r\n\r\n", EMPTY("404 Not Found"), false},
    {"CONNECT x:80 HTTP/1.1\r\n\r\n", EMPTY("404 Not Found"), false},
    {"GET readyz HTTP/1.1\r\n\r\n", EMPTY("404 Not Found"), false},
    {"GET /nope HTTP/1.1\r\nHost: x\r\n\r\n", EMPTY("404 Not Found"), false},
    {"GET /nope HTTP/1.1\r\nHost: x\r\n" ALL "\r\n", EMPTY("404 Not Found"), false},
    {"GET // HTTP/1.1\r\nHost: x\r\n" ALL "\r\n", EMPTY("404 Not Found"), false},
    {"GET / HTTP/1.1\r\nHost: x\r\n" ALL "\r\n", SWITCH, false},
    {"GET /?a=b HTTP/1.1\r\nHost: x\r\n" ALL "\r\n", SWITCH, false},
    {"GET http://x/ HTTP/1.1\r\nHost: x\r\n" ALL "\r\n", SWITCH, false},
    {"GET http://x HTTP/1.1\r\nHost: x\r\n" ALL "\r\n", SWITCH, false},
    {"GET http://x?/readyz HTTP/1.1\r\nHost: x\r\n" ALL "\r\n", SWITCH, false},
    {"GET ftp://x/readyz HTTP/1.1\r\n\r\n", EMPTY("200 OK"), false},
    {"POST / HTTP/1.1\r\nHost: x\r\n" ALL "\r\n", NO_GET, false},
    {"GET / HTTP/1.1\r\nHost: x\r\n" UPGRADE VERSION KEY "\r\n", NO_CONNECTION, false},
    {"GET / HTTP/1.1\r\nConnection: keep-alive, Upgrade\r\n" UPGRADE VERSION KEY "\r\n", SWITCH,
     false},
    {"GET / HTTP/1.1\r\nConnection: notupgrade\r\n" UPGRADE VERSION KEY "\r\n", SWITCH, false},
    {"GET / HTTP/1.1\r\nConnection: keep-alive\r\n" ALL "\r\n", NO_CONNECTION, false},
    {"GET / HTTP/1.1\r\nconnection: upgrade\r\nupgrade: WebSocket\r\n" VERSION KEY "\r\n", SWITCH,
     false},
    {"GET / HTTP/1.1\r\nHost: x\r\n" CONNECTION VERSION KEY "\r\n", NO_UPGRADE, false},
    {"GET / HTTP/1.1\r\nUpgrade: h2c\r\n" CONNECTION VERSION KEY "\r\n", NO_UPGRADE, false},
    {"GET / HTTP/1.1\r\nUpgrade: websocket, foo\r\n" CONNECTION VERSION KEY "\r\n", NO_UPGRADE,
     false},
    {"GET / HTTP/1.1\r\nHost: x\r\n" CONNECTION UPGRADE KEY "\r\n", NO_VERSION, false},
    {"GET / HTTP/1.1\r\nSec-WebSocket-Version: 8\r\n" CONNECTION UPGRADE KEY "\r\n", NO_VERSION,
     false},
    {"GET / HTTP/1.1\r\nHost: x\r\n" CONNECTION UPGRADE VERSION "\r\n",
     TEXT("400 Bad Request", "34", "`Sec-WebSocket-Key` header missing"), false},
    {"GET / HTTP/1.1\r\n" ALL "\r\n", SWITCH, false},
    {"GET / HTTP/1.0\r\nHost: x\r\n" ALL "\r\n",
     "HTTP/1.0 426 Upgrade Required\r\ncontent-type: text/plain; charset=utf-8\r\n"
     "content-length: 73\r\n" DATE
     "\r\nWebSocket request couldn't be upgraded since no upgrade state was present",
     true},
    {"GET /readyz HTTP/1.0\r\n\r\n", "HTTP/1.0 200 OK\r\ncontent-length: 0\r\n" DATE "\r\n", true},
    {"GET /readyz HTTP/1.1\r\nOrigin: http://a\r\n\r\n", EMPTY("403 Forbidden"), false},
    {"GET / HTTP/1.1\r\nHost: x\r\n" ALL "Origin: http://x\r\n\r\n", EMPTY("403 Forbidden"), false},
    {"GET / HTTP/1.1\r\nHost: x\r\n" ALL "Origin: null\r\n\r\n", EMPTY("403 Forbidden"), false},
    {"GET / HTTP/1.1\r\nHost: x\r\n" ALL "Origin: \r\n\r\n", EMPTY("403 Forbidden"), false},
    {"GET / HTTP/1.1\r\nHost: x\r\n" ALL "Origin:\r\n\r\n", EMPTY("403 Forbidden"), false},
    {"GET /nope HTTP/1.1\r\nHost: x\r\norigin: http://a\r\n\r\n", EMPTY("403 Forbidden"), false},
    {"GET / HTTP/1.1\r\n" ALL "Sec-WebSocket-Protocol: foo\r\n\r\n", SWITCH, false},
    {"GET / HTTP/1.1\r\n" ALL
     "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n\r\n",
     SWITCH, false},
    {"GET / HTTP/1.1\r\n" ALL "Authorization: Bearer x\r\n\r\n", SWITCH, false},
    {"GET / HTTP/1.1\n" CONNECTION "Upgrade: websocket\t \n" VERSION KEY "\n", SWITCH, false},
    {"GET /readyz HTTP/1.1\r\nConnection: close\r\n\r\n",
     "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n" DATE "\r\n", true},
    {"POST /readyz HTTP/1.1\r\nConnection: x,\tCLOSE , y\r\n\r\n",
     "HTTP/1.1 405 Method Not Allowed\r\nallow: GET,HEAD\r\nconnection: close\r\n"
     "content-length: 0\r\n" DATE "\r\n",
     true},
    {"\r\n\n\r\nGET /readyz HTTP/1.1\r\n\r\n", EMPTY("200 OK"), false},
};

/* A body is not read: the connection ends with the answer. */
static const struct exchange bodies[] = {
    {"POST /nope HTTP/1.1\r\nContent-Length: 2\r\n\r\n",
     "HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n" DATE "\r\n", true},
    {"GET /readyz HTTP/1.1\r\nContent-Length: 10\r\nContent-Length: 10\r\n\r\n",
     "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n" DATE "\r\n", true},
    {"GET /readyz HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
     "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n" DATE "\r\n", true},
    {"GET / HTTP/1.1\r\n" ALL "Content-Length: 1\r\n\r\n", BAD, true},
    {"GET / HTTP/1.1\r\n" ALL "Transfer-Encoding: chunked\r\n\r\n", BAD, true},
};

/* Heads that end the connection with 400. */
static const char *const refused[] = {
    "GET  /readyz HTTP/1.1\r\n\r\n",
    "GET /readyz  HTTP/1.1\r\n\r\n",
    "GET /readyz HTTP/1.1 \r\n\r\n",
    "GET /readyz HTTP/1.2\r\n\r\n",
    "GET /readyz HTTP/2.0\r\n\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "GET /readyz http/1.1\r\n\r\n",
    "GET /readyz\r\n\r\n",
    "GET\r\n\r\n",
    "GET \r\n\r\n",
    " GET / HTTP/1.1\r\n\r\n",
    "G(T / HTTP/1.1\r\n\r\n",
    "GET /ready\001z HTTP/1.1\r\n\r\n",
    "GET /r\xE9 HTTP/1.1\r\n\r\n",
    "GET /\"<> HTTP/1.1\r\n\r\n",
    "GET http:// HTTP/1.1\r\n\r\n",
    "GET http:///x HTTP/1.1\r\n\r\n",
    "GET / HTTP/1.1\r\nA : b\r\n\r\n",
    "GET / HTTP/1.1\r\nA\r\n\r\n",
    "GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n",
    "GET / HTTP/1.1\r\n: b\r\n\r\n",
    "GET / HTTP/1.1\r\nA: b\001\r\n\r\n",
    "GET / HTTP/1.1\r\nA: b\rc\r\n\r\n",
    "GET / HTTP/1.1\r\nA: b\r\r\n\r\n",
    "GET / HTTP/1.1\r\nA: \x7F\r\n\r\n",
    "GET / HTTP/1.1\r\nOrigin\r\n\r\n",
    "GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
    "GET / HTTP/1.1\r\nContent-Length: +3\r\n\r\n",
    "GET / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n",
    "GET / HTTP/1.1\r\nContent-Length: 0, 0\r\n\r\n",
    "GET / HTTP/1.1\r\nContent-Length: \r\n\r\n",
    "GET / HTTP/1.1\r\nContent-Length: 1234567890123456789\r\n\r\n",
    "\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\n\r\n",
};

static struct guard memory;

static int setup(void **state) {
    (void)state;
    memory = guard_new(2 * HTTP_HEAD_MAX);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    guard_free(&memory);
    return 0;
}

/* Parses a copy that ends at the guard page. The result's slices stay valid until the next call. */
static int parse(const char *p, size_t n, struct http_request *r) {
    return http_parse(guard_copy(&memory, p, n), n, r);
}

static void check(const struct exchange *x) {
    struct http_request r;
    struct http_answer a;
    _cleanup_buf_ struct buf b = BUF_INIT(4096);
    size_t n = strlen(x->request);
    for (size_t cut = 0; cut < n; cut++)
        assert_int_equal(parse(x->request, cut, &r), 0);
    assert_int_equal(parse(x->request, n, &r), n);
    http_route(&r, &a);
    int rc = a.action == HTTP_UPGRADE ? http_write_upgrade(&b, a.key, NOW)
                                      : http_write_reply(&b, &a, NOW);
    assert_int_equal(rc, 0);
    assert_int_equal(buf_putc(&b, '\0'), 0);
    assert_string_equal(b.p, x->response);
    assert_int_equal(a.close, x->close);
}

static void exchanges(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(recorded); i++)
        check(&recorded[i]);
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++)
        check(&bodies[i]);
}

static void refusals(void **state) {
    (void)state;
    struct http_request r;
    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        assert_int_equal(parse(refused[i], strlen(refused[i]), &r), -400);
    struct http_answer a = {.action = HTTP_REPLY, .status = 400, .body = "", .close = true};
    _cleanup_buf_ struct buf b = BUF_INIT(4096);
    assert_int_equal(http_write_reply(&b, &a, NOW), 0);
    assert_int_equal(b.len, strlen(BAD));
    assert_memory_equal(b.p, BAD, b.len);
}

/* What cannot begin a request is refused before its first line ends. */
static void early_refusals(void **state) {
    (void)state;
    struct http_request r;
    assert_int_equal(parse("\x16\x03\x01\x02\0\x01\0\x01\xFC", 9, &r), -400);
    assert_int_equal(parse("\x16", 1, &r), -400);
    assert_int_equal(parse("\0\1garbage\r\n\r\n", 13, &r), -400);
    assert_int_equal(parse("{\"id\":1}", 8, &r), -400);
    assert_int_equal(parse("A-METHOD-OF-MORE-THAN-THIRTY-TWO-BYTES", 38, &r), -400);
    assert_int_equal(parse("GET", 3, &r), 0);
}

/* Fields of a parsed request, and what follows the head is left alone. */
static void fields(void **state) {
    (void)state;
    static const char text[] =
        "GET http://h:1/p/q?x=1?y HTTP/1.1\r\nA:1\r\nb-C: \t two words \t\r\n"
        "A: 2\r\nEmpty:\r\nHigh: \xE9\r\n\r\nGET /next HTTP/1.1\r\n";
    struct http_request r;
    int len = parse(text, sizeof text - 1, &r);
    assert_int_equal(len, (int)(strstr(text, "GET /next") - text));
    assert_true(str_eqz(r.method, "GET"));
    assert_true(str_eqz(r.target, "http://h:1/p/q?x=1?y"));
    assert_true(str_eqz(r.path, "/p/q"));
    assert_true(str_eqz(r.query, "x=1?y"));
    assert_int_equal(r.minor, 1);
    assert_int_equal(r.count, 5);
    assert_true(str_eqz(http_header_get(&r, "a"), "1"));
    assert_true(str_eqz(http_header_get(&r, "B-c"), "two words"));
    assert_true(str_eqz(http_header_get(&r, "high"), "\xE9"));
    struct str empty = http_header_get(&r, "empty");
    assert_non_null(empty.p);
    assert_int_equal(empty.n, 0);
    assert_null(http_header_get(&r, "absent").p);
    assert_int_equal(parse("GET /? HTTP/1.0\r\n\r\n", 19, &r), 19);
    assert_true(str_eqz(r.path, "/"));
    assert_int_equal(r.query.n, 0);
    assert_int_equal(r.minor, 0);
}

/* Appends "name: a" n times and the blank line, and parses the result. */
static int parse_with_headers(size_t n, struct http_request *r) {
    _cleanup_buf_ struct buf b = BUF_INIT(2 * HTTP_HEAD_MAX);
    assert_int_equal(buf_putz(&b, "GET /readyz HTTP/1.1\r\n"), 0);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(buf_putf(&b, "X%zu: a\r\n", i), 0);
    assert_int_equal(buf_putz(&b, "\r\n"), 0);
    return parse(b.p, b.len, r);
}

static void header_count(void **state) {
    (void)state;
    struct http_request r;
    assert_true(parse_with_headers(HTTP_HEADERS_MAX, &r) > 0);
    assert_int_equal(r.count, HTTP_HEADERS_MAX);
    assert_int_equal(parse_with_headers(HTTP_HEADERS_MAX + 1, &r), -431);
    assert_int_equal(parse_with_headers(HTTP_HEADERS_MAX + 50, &r), -431);
}

/* Parses before + fill bytes 'a' + after. */
static int parse_filled(const char *before, size_t fill, const char *after) {
    _cleanup_buf_ struct buf b = BUF_INIT(2 * HTTP_HEAD_MAX);
    struct http_request r;
    assert_int_equal(buf_putz(&b, before), 0);
    for (size_t i = 0; i < fill; i++)
        assert_int_equal(buf_putc(&b, 'a'), 0);
    assert_int_equal(buf_putz(&b, after), 0);
    return parse(b.p, b.len, &r);
}

static void sizes(void **state) {
    (void)state;
    const char *head = "GET / HTTP/1.1\r\nX: ";
    size_t fits = HTTP_HEAD_MAX - strlen(head) - 4;
    assert_int_equal(parse_filled(head, fits, "\r\n\r\n"), HTTP_HEAD_MAX);
    assert_int_equal(parse_filled(head, fits + 1, "\r\n\r\n"), -431);
    assert_int_equal(parse_filled(head, fits + 3, ""), 0);
    assert_int_equal(parse_filled(head, fits + 4, ""), -431);
    assert_int_equal(parse_filled("GET /", HTTP_HEAD_MAX - 6, ""), 0);
    assert_int_equal(parse_filled("GET /", HTTP_HEAD_MAX - 5, ""), -414);
    assert_int_equal(parse_filled("GET /", HTTP_TARGET_MAX, " HTTP/1.1\r\n\r\n"), -414);
    assert_int_equal(parse_filled("GET /", 60000, " HTTP/1.1\r\n\r\n"), 60018);
}

static void status_lines(void **state) {
    (void)state;
    static const struct {
        int status;
        const char *line;
    } cases[] = {
        {401, "HTTP/1.1 401 Unauthorized\r\n"},
        {414, "HTTP/1.1 414 URI Too Long\r\n"},
        {431, "HTTP/1.1 431 Request Header Fields Too Large\r\n"},
        {503, "HTTP/1.1 503 Service Unavailable\r\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct http_answer a = {.status = cases[i].status, .body = ""};
        _cleanup_buf_ struct buf b = BUF_INIT(4096);
        assert_int_equal(http_write_reply(&b, &a, NOW), 0);
        assert_memory_equal(b.p, cases[i].line, strlen(cases[i].line));
    }
}

/* A 401 on top of a passed upgrade check, as the server makes it. */
static void unauthorized(void **state) {
    (void)state;
    static const char text[] = "GET / HTTP/1.1\r\n" ALL "\r\n";
    struct http_request r;
    struct http_answer a;
    assert_true(parse(text, sizeof text - 1, &r) > 0);
    http_route(&r, &a);
    assert_int_equal(a.action, HTTP_UPGRADE);
    assert_true(str_eqz(a.key, "dGhlIHNhbXBsZSBub25jZQ=="));
    a.action = HTTP_REPLY;
    a.status = 401;
    a.body = "missing websocket bearer token";
    static const char want[] = TEXT("401 Unauthorized", "30", "missing websocket bearer token");
    _cleanup_buf_ struct buf b = BUF_INIT(4096);
    assert_int_equal(http_write_reply(&b, &a, NOW), 0);
    assert_int_equal(b.len, sizeof want - 1);
    assert_memory_equal(b.p, want, b.len);
}

/* -- /metrics -- */

static char *const hosts[] = {"box", "Box.example"};

static void ask_metrics(const char *method, const char *headers, struct http_answer *a) {
    char text[512];
    struct http_request r;
    int n = snprintf(text, sizeof text, "%s /metrics HTTP/1.1\r\n%s\r\n", method, headers);
    assert_int_equal(parse(text, (size_t)n, &r), n);
    http_route_metrics(&r, hosts, ARRAY_LEN(hosts), a);
}

static void metrics_hosts(void **state) {
    (void)state;
    static const char *const good[] = {
        "127.0.0.1",  "127.0.0.1:80", "10.1.2.3:65535", "[::1]",
        "[::1]:8080", "[fe80::1]",    "localhost",      "LocalHost:1",
        "box",        "BOX:9090",     "box.example",    "[::ffff:1.2.3.4]",
    };
    static const char *const bad[] = {
        "",           "example.com", "box.evil",     "evil.box",   "localhost.evil",
        "localhost.", "127.0.0.1.x", "1.2.3",        "0x7f000001", "127.1",
        "[::1",       "[]",          "::1",          "[::1]x",     "[1.2.3.4]",
        "box:",       "box:x",       "box:1:2",      "box:999999", "user@localhost",
        "[::1%lo]",   ":80",         "localhost:-1", "256.0.0.1",  "127.0.0.1,localhost",
        "2130706433", "[::1]:",      "box:80 ,x",    "localhost/", "[::1]80",
    };
    struct http_answer a;
    char header[128];
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        snprintf(header, sizeof header, "Host: %s\r\n", good[i]);
        ask_metrics("GET", header, &a);
        assert_int_equal(a.action, HTTP_METRICS);
        assert_int_equal(a.refusal, HTTP_ADMITTED);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        snprintf(header, sizeof header, "Host: %s\r\n", bad[i]);
        ask_metrics("GET", header, &a);
        assert_int_equal(a.action, HTTP_REPLY);
        assert_int_equal(a.status, 403);
        assert_int_equal(a.refusal, HTTP_BAD_HOST);
    }
}

static void metrics_guards(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",
        "Host: localhost\r\nHost: localhost\r\n",
        "Host: localhost\r\nSec-Fetch-Mode: cors\r\n",
        "sec-fetch-site: none\r\nHost: localhost\r\n",
        "Host: localhost\r\nSEC-FETCH-USER:\r\n",
        "Host: localhost\r\nSec-Fetch-Anything: x\r\n",
    };
    struct http_answer a;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        ask_metrics("GET", bad[i], &a);
        assert_int_equal(a.status, 403);
        assert_int_equal(a.refusal, HTTP_BAD_HOST);
    }
    ask_metrics("GET", "Host: localhost\r\nOrigin: http://localhost\r\n", &a);
    assert_int_equal(a.status, 403);
    assert_int_equal(a.refusal, HTTP_FROM_PAGE);
    ask_metrics("POST", "Host: localhost\r\n", &a);
    assert_int_equal(a.status, 405);
    assert_string_equal(a.allow, "GET,HEAD");
    ask_metrics("GET", "Host: localhost\r\nSec-Fetched: x\r\nReferer: x\r\n", &a);
    assert_int_equal(a.action, HTTP_METRICS);
}

static void metrics_replies(void **state) {
    (void)state;
    static const char head[] = "HTTP/1.1 200 OK\r\n"
                               "content-type: text/plain; version=0.0.4; charset=utf-8\r\n"
                               "content-length: 5\r\n" DATE "\r\n";
    struct http_answer a;
    _cleanup_buf_ struct buf b = BUF_INIT(4096);
    ask_metrics("HEAD", "Host: localhost\r\n", &a);
    a.body = "text\n";
    assert_int_equal(http_write_reply(&b, &a, NOW), 0);
    assert_int_equal(b.len, sizeof head - 1);
    assert_memory_equal(b.p, head, b.len);
    b.len = 0;
    ask_metrics("GET", "Host: localhost\r\n", &a);
    a.body = "text\n";
    assert_int_equal(http_write_reply(&b, &a, NOW), 0);
    assert_int_equal(b.len, sizeof head - 1 + 5);
    assert_memory_equal(b.p + sizeof head - 1, "text\n", 5);
}

/* -- /v1/files -- */

/* Parses a request whose start line is `start`; its slices stay valid until the next one. */
static struct http_request request(const char *start, const char *headers) {
    char text[4096];
    struct http_request r;
    int n = snprintf(text, sizeof text, "%s HTTP/1.1\r\n%s\r\n", start, headers);
    assert_int_equal(parse(text, (size_t)n, &r), n);
    return r;
}

static void ask_files(const char *method, const char *headers, struct http_answer *a) {
    char start[64];
    snprintf(start, sizeof start, "%s /v1/files?path=/x", method);
    struct http_request r = request(start, headers);
    http_route_files(&r, hosts, ARRAY_LEN(hosts), a);
}

static void files_guards(void **state) {
    (void)state;
    static const struct {
        const char *headers;
        enum http_refusal why;
    } bad[] = {
        {"", HTTP_BAD_HOST},
        {"Host: example.com\r\n", HTTP_BAD_HOST},
        {"Host: localhost\r\nHost: localhost\r\n", HTTP_BAD_HOST},
        {"Host: box\r\nSec-Fetch-Site: same-origin\r\n", HTTP_BAD_HOST},
        {"Host: box\r\nOrigin: http://box\r\n", HTTP_FROM_PAGE},
        {"Origin:\r\n", HTTP_FROM_PAGE},
    };
    static const char *const methods[] = {"GET", "HEAD", "PUT", "POST", "DELETE"};
    struct http_answer a;
    for (size_t i = 0; i < ARRAY_LEN(bad) * ARRAY_LEN(methods); i++) {
        ask_files(methods[i % ARRAY_LEN(methods)], bad[i / ARRAY_LEN(methods)].headers, &a);
        assert_int_equal(a.action, HTTP_REPLY);
        assert_int_equal(a.status, 403);
        assert_int_equal(a.refusal, bad[i / ARRAY_LEN(methods)].why);
    }
}

static void files_methods(void **state) {
    (void)state;
    static const char *const good[] = {"GET", "HEAD", "PUT"};
    static const char *const bad[] = {"POST", "DELETE", "PATCH", "OPTIONS", "get", "put", "PUTS"};
    struct http_answer a;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        ask_files(good[i], "Host: box\r\n", &a);
        assert_int_equal(a.action, HTTP_FILES);
        assert_int_equal(a.refusal, HTTP_ADMITTED);
        assert_false(a.close);
        assert_int_equal(a.head_only, i == 1);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        ask_files(bad[i], "Host: box\r\n", &a);
        assert_int_equal(a.action, HTTP_REPLY);
        assert_int_equal(a.status, 405);
        assert_string_equal(a.allow, "GET,HEAD,PUT");
    }
}

/* Only the body of a PUT is read: any other ends the connection. */
static void files_close(void **state) {
    (void)state;
    static const struct {
        const char *method, *headers;
        bool close;
    } cases[] = {
        {"PUT", "Host: box\r\nContent-Length: 5\r\n", false},
        {"PUT", "Host: box\r\nContent-Length: 5\r\nConnection: close\r\n", true},
        {"GET", "Host: box\r\nContent-Length: 5\r\n", true},
        {"GET", "Host: box\r\nContent-Length: 0\r\n", false},
        {"GET", "Host: box\r\nTransfer-Encoding: chunked\r\n", true},
        {"HEAD", "Host: box\r\nContent-Length: 5\r\n", true},
        {"HEAD", "Host: box\r\nConnection: close\r\n", true},
        {"POST", "Host: box\r\nContent-Length: 5\r\n", true},
        {"PUT", "Host: evil\r\nContent-Length: 5\r\n", true},
    };
    struct http_answer a;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        ask_files(cases[i].method, cases[i].headers, &a);
        assert_int_equal(a.close, cases[i].close);
    }
    struct http_request r = request("PUT /v1/files?path=/x", "Host: box\r\n");
    r.minor = 0;
    http_route_files(&r, hosts, ARRAY_LEN(hosts), &a);
    assert_true(a.close && a.http10);
}

static void body_lengths(void **state) {
    (void)state;
    static const struct {
        const char *start, *headers;
        int64_t n;
    } cases[] = {
        {"GET /", "", 0},
        {"GET /", "Content-Length: 0\r\n", 0},
        {"GET /", "Content-Length: 12\r\n", 12},
        {"GET /", "Transfer-Encoding: chunked\r\n", -1},
        {"PUT /", "", -1},
        {"PUT /", "Content-Length: 0\r\n", 0},
        {"PUT /", "Content-Length: 000\r\n", 0},
        {"PUT /", "content-LENGTH: 0012\r\nContent-Length: 0012\r\n", 12},
        {"PUT /", "Content-Length: 999999999999999999\r\n", 999999999999999999},
        {"PUT /", "Content-Length: 5\r\nTransfer-Encoding: identity\r\n", -1},
        {"PUTS /", "", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct http_request r = request(cases[i].start, cases[i].headers);
        assert_true(http_body_len(&r) == cases[i].n);
    }
}

static void queries(void **state) {
    (void)state;
    static const struct {
        const char *target, *value; /* NULL: there is none */
    } cases[] = {
        {"/", NULL},
        {"/?", NULL},
        {"/?path", NULL},
        {"/?path&x=1", NULL},
        {"/?paths=1", NULL},
        {"/?xpath=1", NULL},
        {"/?Path=1", NULL},
        {"/?p%61th=1", NULL},
        {"/?path=", ""},
        {"/?path=&path=2", ""},
        {"/?path=/a", "/a"},
        {"/?x=1&path=/a&y=2", "/a"},
        {"/?&&path=/a&path=/b", "/a"},
        {"/?path=/a=b?c", "/a=b?c"},
        {"/?path=/a+b", "/a+b"},
        {"/?path=%2Fa%20b%26%3D%2b", "/a b&=+"},
        {"/?path=%FF%fe%0A", "\xFF\xFE\n"},
        {"/?path=%", "%"},
        {"/?path=%4", "%4"},
        {"/?path=%4&x", "%4"},
        {"/?path=%zz%4g%g4", "%zz%4g%g4"},
        {"/?path=%%41%2541", "%A%41"},
        {"/?path=a;x=b", "a;x=b"},
        {"/?path=a#&path=b", "a"},
        {"http://h?path=/a", "/a"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char start[128];
        snprintf(start, sizeof start, "GET %s", cases[i].target);
        struct http_request r = request(start, "");
        _cleanup_buf_ struct buf b = BUF_INIT(64);
        int rc = http_query_get(&r, "path", &b);
        assert_int_equal(rc, cases[i].value ? 0 : -ENOENT);
        assert_true(str_eqz(buf_str(&b), cases[i].value ? cases[i].value : ""));
    }
    struct http_request r = request("GET /?path=a%00b", "");
    _cleanup_buf_ struct buf b = BUF_INIT(3);
    assert_int_equal(http_query_get(&r, "path", &b), 0);
    assert_memory_equal(b.p, "a\0b", 3);
    assert_int_equal(http_query_get(&r, "path", &b), -ENOBUFS);
}

static void ranges(void **state) {
    (void)state;
    static const struct {
        const char *value;
        uint64_t size;
        int r;
        uint64_t from, to;
    } cases[] = {
        {"bytes=0-", 10, 1, 0, 10},
        {"bytes=0-0", 10, 1, 0, 1},
        {"bytes=3-5", 10, 1, 3, 6},
        {"BYTES=3-5", 10, 1, 3, 6},
        {"bytes=9-", 10, 1, 9, 10},
        {"bytes=9-9", 10, 1, 9, 10},
        {"bytes=0-9", 10, 1, 0, 10},
        {"bytes=0-10", 10, 1, 0, 10},
        {"bytes=007-0008", 10, 1, 7, 9},
        {"bytes=0-18446744073709551614", 10, 1, 0, 10},
        {"bytes=0-18446744073709551615", 10, 1, 0, 10},
        {"bytes=0-99999999999999999999999999", 10, 1, 0, 10},
        {"bytes=-1", 10, 1, 9, 10},
        {"bytes=-10", 10, 1, 0, 10},
        {"bytes=-11", 10, 1, 0, 10},
        {"bytes=-99999999999999999999999999", 10, 1, 0, 10},
        {"bytes=18446744073709551614-", UINT64_MAX, 1, UINT64_MAX - 1, UINT64_MAX},
        {"bytes=10-", 10, -ERANGE, 0, 0},
        {"bytes=10-11", 10, -ERANGE, 0, 0},
        {"bytes=99999999999999999999999999-", 10, -ERANGE, 0, 0},
        {"bytes=18446744073709551616-18446744073709551617", 10, -ERANGE, 0, 0},
        {"bytes=-0", 10, -ERANGE, 0, 0},
        {"bytes=0-", 0, -ERANGE, 0, 0},
        {"bytes=0-0", 0, -ERANGE, 0, 0},
        {"bytes=-5", 0, -ERANGE, 0, 0},
        {"", 10, 0, 0, 0},
        {"bytes", 10, 0, 0, 0},
        {"bytes=", 10, 0, 0, 0},
        {"bytes=-", 10, 0, 0, 0},
        {"bytes=5", 10, 0, 0, 0},
        {"bytes=5-2", 10, 0, 0, 0},
        {"bytes=20-15", 10, 0, 0, 0},
        {"bytes=5-6,8-9", 10, 0, 0, 0},
        {"bytes=5-,8-9", 10, 0, 0, 0},
        {"bytes=-5,0-1", 10, 0, 0, 0},
        {"bytes=--5", 10, 0, 0, 0},
        {"bytes=-5-", 10, 0, 0, 0},
        {"bytes=5-x", 10, 0, 0, 0},
        {"bytes=5x-6", 10, 0, 0, 0},
        {"bytes=+5-6", 10, 0, 0, 0},
        {"bytes= 5-6", 10, 0, 0, 0},
        {"bytes=5 -6", 10, 0, 0, 0},
        {"bytes = 5-6", 10, 0, 0, 0},
        {"items=5-6", 10, 0, 0, 0},
        {"5-6", 10, 0, 0, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint64_t from = 77, to = 88;
        size_t n = strlen(cases[i].value);
        struct str value = {guard_copy(&memory, cases[i].value, n), n};
        assert_int_equal(http_range(value, cases[i].size, &from, &to), cases[i].r);
        assert_true(from == (cases[i].r > 0 ? cases[i].from : 77));
        assert_true(to == (cases[i].r > 0 ? cases[i].to : 88));
    }
}

static void heads(void **state) {
    (void)state;
    static const struct {
        struct http_answer a;
        int64_t len;
        const char *text;
    } cases[] = {
        {{.status = 204}, -1, "HTTP/1.1 204 No Content\r\n" DATE "\r\n"},
        {{.status = 201, .close = true},
         0,
         "HTTP/1.1 201 Created\r\nconnection: close\r\ncontent-length: 0\r\n" DATE "\r\n"},
        {{.status = 206, .type = "application/octet-stream", .more = "a: b\r\nc: d\r\n"},
         5000000000,
         "HTTP/1.1 206 Partial Content\r\ncontent-type: application/octet-stream\r\n"
         "a: b\r\nc: d\r\ncontent-length: 5000000000\r\n" DATE "\r\n"},
        {{.status = 416, .http10 = true, .close = true},
         0,
         "HTTP/1.0 416 Range Not Satisfiable\r\ncontent-length: 0\r\n" DATE "\r\n"},
        {{.status = 411}, 0, "HTTP/1.1 411 Length Required\r\ncontent-length: 0\r\n" DATE "\r\n"},
        {{.status = 507},
         0,
         "HTTP/1.1 507 Insufficient Storage\r\ncontent-length: 0\r\n" DATE "\r\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        _cleanup_buf_ struct buf b = BUF_INIT(4096);
        assert_int_equal(http_write_head(&b, &cases[i].a, cases[i].len, NOW), 0);
        assert_true(str_eqz(buf_str(&b), cases[i].text));
    }
}

static void dates(void **state) {
    (void)state;
    static const struct {
        long long now;
        const char *line;
    } cases[] = {
        {0, "date: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n"},
        {951782400, "date: Tue, 29 Feb 2000 00:00:00 GMT\r\n\r\n"},
        {784111777, "date: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n"},
        {4102444799, "date: Thu, 31 Dec 2099 23:59:59 GMT\r\n\r\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct http_answer a = {.status = 200, .body = ""};
        _cleanup_buf_ struct buf b = BUF_INIT(4096);
        assert_int_equal(http_write_reply(&b, &a, cases[i].now), 0);
        size_t n = strlen(cases[i].line);
        assert_true(b.len > n);
        assert_memory_equal(b.p + b.len - n, cases[i].line, n);
    }
}

/* A full buffer keeps what it had. */
static void full_buffer(void **state) {
    (void)state;
    struct http_answer a = {.status = 400, .body = "text"};
    for (size_t room = 4; room < 120; room++) {
        _cleanup_buf_ struct buf b = BUF_INIT(room);
        assert_int_equal(buf_putz(&b, "kept"), 0);
        assert_int_equal(http_write_reply(&b, &a, NOW), -ENOBUFS);
        assert_int_equal(b.len, 4);
        assert_int_equal(http_write_upgrade(&b, STR_LIT("key"), NOW), -ENOBUFS);
        assert_int_equal(b.len, 4);
        assert_memory_equal(b.p, "kept", 4);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exchanges),       cmocka_unit_test(refusals),
        cmocka_unit_test(early_refusals),  cmocka_unit_test(fields),
        cmocka_unit_test(header_count),    cmocka_unit_test(sizes),
        cmocka_unit_test(status_lines),    cmocka_unit_test(unauthorized),
        cmocka_unit_test(dates),           cmocka_unit_test(full_buffer),
        cmocka_unit_test(metrics_hosts),   cmocka_unit_test(metrics_guards),
        cmocka_unit_test(metrics_replies), cmocka_unit_test(files_guards),
        cmocka_unit_test(files_methods),   cmocka_unit_test(files_close),
        cmocka_unit_test(body_lengths),    cmocka_unit_test(queries),
        cmocka_unit_test(ranges),          cmocka_unit_test(heads),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
