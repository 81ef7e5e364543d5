#include "console/console_http.h"

#include "net/sock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static char *const hosts[] = {"box.example", "10.9.8.7"};

static bool host_ok(const char *listener, uint16_t port, const char *host) {
    struct sock_addr a;
    assert_int_equal(sock_addr_parse(str_of(listener), port, &a), 0);
    return console_http_host_ok(str_of(host), &a.u.sa, hosts, ARRAY_LEN(hosts));
}

static void own_names(void **state) {
    (void)state;
    static const struct {
        const char *listener;
        uint16_t port;
        const char *host;
        bool ok;
    } rows[] = {
        {"127.0.0.1", 8080, "127.0.0.1:8080", true},
        {"127.0.0.1", 8080, "localhost:8080", true},
        {"127.0.0.1", 8080, "LocalHost:8080", true},
        {"127.0.0.1", 8080, "localhost", false},
        {"127.0.0.1", 80, "localhost", true}, /* what a browser sends for port 80 */
        {"127.0.0.1", 80, "127.0.0.1:80", true},
        {"127.0.0.1", 8080, "127.0.0.1:8081", false},
        {"127.0.0.1", 8080, "127.0.0.1:08080", false},
        {"127.0.0.1", 8080, "127.0.0.1:", false},
        {"127.0.0.1", 8080, "127.0.0.1:8080x", false},
        {"127.0.0.1", 8080, "127.0.0.2:8080", false},
        {"127.0.0.1", 8080, "[::1]:8080", false},
        {"127.0.0.1", 8080, "[127.0.0.1]:8080", false},
        {"127.0.0.2", 8080, "localhost:8080", true},
        {"127.0.0.1", 8080, "evil.example:8080", false},
        {"127.0.0.1", 8080, "localhost.evil.example:8080", false},
        {"127.0.0.1", 8080, "box.example", true},
        {"127.0.0.1", 8080, "BOX.example:1", true},
        {"127.0.0.1", 8080, "box.example.", false},
        {"127.0.0.1", 8080, "box.example:", false},
        {"127.0.0.1", 8080, "box.example:x", false},
        {"127.0.0.1", 8080, "10.9.8.7:443", true},
        {"127.0.0.1", 8080, "", false},
        {"127.0.0.1", 8080, ":8080", false},
        {"127.0.0.1", 8080, "[", false},
        {"127.0.0.1", 8080, "[]", false},
        {"::1", 8080, "[::1]:8080", true},
        {"::1", 8080, "localhost:8080", true},
        {"::1", 8080, "::1:8080", false},
        {"::1", 8080, "[::1]", false},
        {"::1", 8080, "[0:0:0:0:0:0:0:1]:8080", false}, /* no browser writes it so */
        {"192.0.2.1", 8080, "192.0.2.1:8080", true},
        {"192.0.2.1", 8080, "localhost:8080", false}, /* not its own */
        {"2001:db8::1", 80, "[2001:db8::1]", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool ok = host_ok(rows[i].listener, rows[i].port, rows[i].host);
        if (ok != rows[i].ok)
            print_error("listener %s, Host %s\n", rows[i].listener, rows[i].host);
        assert_int_equal(ok, rows[i].ok);
    }
}

static void other_sockets(void **state) {
    (void)state;
    struct sockaddr local = {.sa_family = AF_UNIX};
    assert_false(console_http_host_ok(STR_LIT("localhost:80"), &local, hosts, ARRAY_LEN(hosts)));
    assert_true(console_http_host_ok(STR_LIT("box.example"), &local, hosts, ARRAY_LEN(hosts)));
    assert_false(console_http_host_ok((struct str){NULL, 0}, &local, NULL, 0));
}

static void gzip(void **state) {
    (void)state;
    static const char *const yes[] = {"gzip", "a, gzip", "gzip;q=0.1", "gzip; q=1", "*", "GZip,x"};
    static const char *const no[] = {"",       "a", "gzip;q=0", "gzip;q=0.0", "xgzip",
                                     "gzip;q", ",", "gzip;",    "*;q=0",      "gzip;q=0, gzip"};
    for (size_t i = 0; i < ARRAY_LEN(yes); i++)
        assert_true(console_http_takes_gzip(str_of(yes[i])));
    for (size_t i = 0; i < ARRAY_LEN(no); i++)
        assert_false(console_http_takes_gzip(str_of(no[i])));
    assert_false(console_http_takes_gzip((struct str){NULL, 0}));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_names),
        cmocka_unit_test(other_sockets),
        cmocka_unit_test(gzip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
