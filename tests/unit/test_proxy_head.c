#include "proxy/proxy_head.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static void test_targets(void **state) {
    (void)state;
    static const struct {
        const char *text, *host; /* NULL: refused */
        unsigned port;
        const char *path;
    } rows[] = {
        {"GET http://a.b/x?y HTTP/1.1\r\nHost: a.b\r\n\r\n", "a.b", 80, "/x?y"},
        {"GET http://A.B./ HTTP/1.1\r\nHost: a.b\r\n\r\n", "a.b", 80, "/"},
        {"GET HTTP://a.b:81 HTTP/1.1\r\nHost: a.b:81\r\n\r\n", "a.b", 81, ""},
        {"GET http://a.b?q HTTP/1.0\r\n\r\n", "a.b", 80, "?q"},
        {"GET /x HTTP/1.1\r\nHost: a.b:8\r\n\r\n", "a.b", 8, "/x"},
        {"GET http://[::1]:9/ HTTP/1.1\r\nHost: [::1]:9\r\n\r\n", "::1", 9, "/"},
        {"CONNECT a.b:443 HTTP/1.1\r\nHost: a.b:443\r\n\r\n", "a.b", 443, ""},
        {"CONNECT a.b HTTP/1.1\r\nHost: a.b\r\n\r\n", "a.b", 443, ""},
        {"CONNECT a.b:22 HTTP/1.0\r\n\r\n", "a.b", 22, ""},
        {"CONNECT a.b:22 HTTP/1.1\r\nHost: a.b\r\n\r\n", "a.b", 22, ""},
        /* two readings */
        {"GET http://a.b/ HTTP/1.1\r\nHost: evil\r\n\r\n", NULL, 0, NULL},
        {"GET http://a.b/ HTTP/1.1\r\nHost: a.b:81\r\n\r\n", NULL, 0, NULL},
        {"GET http://a.b/ HTTP/1.1\r\nHost: a.b\r\nHost: a.b\r\n\r\n", NULL, 0, NULL},
        {"GET http://a.b/ HTTP/1.1\r\n\r\n", NULL, 0, NULL},
        {"GET http://a.b/#x HTTP/1.1\r\nHost: a.b\r\n\r\n", NULL, 0, NULL},
        {"GET http://u:p@a.b/ HTTP/1.1\r\nHost: a.b\r\n\r\n", NULL, 0, NULL},
        {"GET http://a.b@evil/ HTTP/1.1\r\nHost: evil\r\n\r\n", NULL, 0, NULL},
        {"GET http://a.b\\@evil/ HTTP/1.1\r\nHost: a.b\r\n\r\n", NULL, 0, NULL},
        {"GET http://%61.b/ HTTP/1.1\r\nHost: a.b\r\n\r\n", NULL, 0, NULL},
        {"GET https://a.b/ HTTP/1.1\r\nHost: a.b\r\n\r\n", NULL, 0, NULL},
        {"GET ftp://a.b/ HTTP/1.1\r\nHost: a.b\r\n\r\n", NULL, 0, NULL},
        {"GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n", NULL, 0, NULL},
        {"OPTIONS * HTTP/1.1\r\nHost: a.b\r\n\r\n", NULL, 0, NULL},
        {"GET http://a.b/ HTTP/1.1\nHost: a.b\n\n", NULL, 0, NULL},
        {"GET http://a.b/ HTTP/1.1\r\nHost: a.b\r\n x: y\r\n\r\n", NULL, 0, NULL},
        {"GET http://a.b/ HTTP/1.1\r\nHost : a.b\r\n\r\n", NULL, 0, NULL},
        {"GET http://a.b/ HTTP/2.0\r\nHost: a.b\r\n\r\n", NULL, 0, NULL},
        {"POST http://a.b/ HTTP/1.1\r\nHost: a.b\r\nContent-Length: 1\r\nTransfer-Encoding: "
         "chunked\r\n\r\n",
         NULL, 0, NULL},
        {"POST http://a.b/ HTTP/1.1\r\nHost: a.b\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
         NULL, 0, NULL},
        {"POST http://a.b/ HTTP/1.1\r\nHost: a.b\r\nContent-Length: +1\r\n\r\n", NULL, 0, NULL},
        {"POST http://a.b/ HTTP/1.1\r\nHost: a.b\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", NULL,
         0, NULL},
        {"POST http://a.b/ HTTP/1.1\r\nHost: a.b\r\nTransfer-Encoding: chunked\r\n"
         "Transfer-Encoding: chunked\r\n\r\n",
         NULL, 0, NULL},
        {"POST http://a.b/ HTTP/1.0\r\nHost: a.b\r\nTransfer-Encoding: chunked\r\n\r\n", NULL, 0,
         NULL},
        {"CONNECT a.b:1 HTTP/1.1\r\nHost: a.b\r\nContent-Length: 3\r\n\r\n", NULL, 0, NULL},
        {"CONNECT u@a.b:1 HTTP/1.1\r\nHost: a.b\r\n\r\n", NULL, 0, NULL},
        {"CONNECT http://a.b/ HTTP/1.1\r\nHost: a.b\r\n\r\n", NULL, 0, NULL},
        {"CONNECT a.b:0 HTTP/1.1\r\nHost: a.b\r\n\r\n", NULL, 0, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct proxy_head h;
        const char *why;
        int n = proxy_head_parse(str_of(rows[i].text), &h, &why);
        if ((n > 0) != (rows[i].host != NULL))
            fail_msg("%s: %d", rows[i].text, n);
        if (n < 0) {
            assert_true(n <= -400 && why != NULL);
            continue;
        }
        assert_int_equal(n, strlen(rows[i].text));
        assert_string_equal(h.host.text, rows[i].host);
        assert_int_equal(h.port, rows[i].port);
        assert_true(h.connect || str_eqz(h.path, rows[i].path));
        for (size_t k = 0; k < strlen(rows[i].text); k++) /* no head without its end */
            assert_true(proxy_head_parse((struct str){rows[i].text, k}, &h, &why) <= 0);
    }
}

static void test_forward(void **state) {
    (void)state;
    static const char in[] = "POST http://A.b:81?q HTTP/1.1\r\nHost: a.b:81\r\nX: 1\r\n"
                             "Connection: keep-alive, X-Hop\r\nX-Hop: 2\r\nProxy-Connection: k\r\n"
                             "Proxy-Authorization: Basic x\r\nKeep-Alive: 5\r\nTE: trailers\r\n"
                             "Upgrade: h2c\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    static const char out[] =
        "POST /?q HTTP/1.1\r\nhost: a.b:81\r\nX: 1\r\nExpect: 100-continue\r\n"
        "content-length: 3\r\nconnection: close\r\n\r\n";
    struct proxy_head h;
    const char *why;
    _cleanup_buf_ struct buf b = BUF_INIT(4096);
    assert_int_equal(proxy_head_parse(str_of(in), &h, &why), sizeof in - 1);
    assert_int_equal(proxy_head_forward(&h, &b), 0);
    assert_true(str_eqz(buf_str(&b), out));
}

static void test_answers(void **state) {
    (void)state;
    static const char in[] = "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nKeep-Alive: 5\r\n"
                             "Content-Length: 6\r\n\r\nORIGIN";
    _cleanup_buf_ struct buf b = BUF_INIT(4096);
    struct proxy_answer_head h;
    for (size_t k = 0; k < sizeof in - 7; k++)
        assert_int_equal(proxy_head_answer((struct str){in, k}, false, &b, &h), 0);
    assert_int_equal(b.len, 0);
    assert_int_equal(proxy_head_answer(str_of(in), false, &b, &h), sizeof in - 7);
    assert_true(
        str_eqz(buf_str(&b), "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nconnection: close\r\n\r\n"));
    assert_true(!h.interim && h.measured && h.body.left == 6);
    assert_true(proxy_head_answer(str_of("HTTP/1.1 100 C\r\n\r\n"), false, &b, &h) > 0 &&
                h.interim);
    assert_true(proxy_head_answer(str_of("HTTP/1.1 200 OK\r\n\r\n"), false, &b, &h) > 0 &&
                !h.measured);
    assert_true(proxy_head_answer(str_of("HTTP/1.1 204 N\r\n\r\n"), false, &b, &h) > 0 &&
                h.measured && h.body.done);
    assert_int_equal(proxy_head_answer(str_of("SSH-2.0-x\r\n"), false, &b, &h), -22);
    assert_int_equal(proxy_head_answer(str_of("HTTP/2 200\r\n\r\n"), false, &b, &h), -22);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_targets),
        cmocka_unit_test(test_forward),
        cmocka_unit_test(test_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
