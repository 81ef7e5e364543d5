#include "net/dns_conf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static struct dns_conf conf;

static struct str text_of(const char *z) {
    return (struct str){z, strlen(z)};
}

/* Servers, search list and options in one line. */
static const char *summary(void) {
    static char line[1024];
    char name[SOCK_PEER_MAX];
    size_t n = 0;
    line[0] = '\0';
    for (size_t i = 0; i < conf.servers; i++) {
        sock_peer_name(&conf.server[i].u.sa, name);
        n += (size_t)snprintf(line + n, sizeof line - n, "%s ", name);
    }
    n += (size_t)snprintf(line + n, sizeof line - n, "|");
    for (size_t i = 0; i < conf.searches; i++)
        n += (size_t)snprintf(line + n, sizeof line - n, " %s", conf.search[i]);
    snprintf(line + n, sizeof line - n, " | %u %u %u%s%s%s", conf.ndots, conf.timeout,
             conf.attempts, conf.rotate ? " rotate" : "", conf.use_vc ? " vc" : "",
             conf.single_request ? " single" : "");
    return line;
}

static void test_resolv_conf(void **state) {
    (void)state;
    static const struct {
        const char *text, *host, *want;
    } rows[] = {
        {"", "", "127.0.0.1:53 | | 1 5 2"},
        {"", "box.example.org", "127.0.0.1:53 | example.org | 1 5 2"},
        {"", "box.", "127.0.0.1:53 | | 1 5 2"},
        {"nameserver 192.0.2.1\n", "", "192.0.2.1:53 | | 1 5 2"},
        {"nameserver 192.0.2.1", "", "192.0.2.1:53 | | 1 5 2"},
        {"nameserver\t 192.0.2.1 \r\n", "", "192.0.2.1:53 | | 1 5 2"},
        {"nameserver ::1\nnameserver fe80::1%3\n", "", "[::1]:53 [fe80::1]:53 | | 1 5 2"},
        {"nameserver 1.1.1.1\nnameserver 1.1.1.2\nnameserver 1.1.1.3\nnameserver 1.1.1.4\n", "",
         "1.1.1.1:53 1.1.1.2:53 1.1.1.3:53 | | 1 5 2"},
        {"nameserver no\nnameserver\nnameserver 1.1.1.1 1.1.1.2\n", "", "1.1.1.1:53 | | 1 5 2"},
        {"# nameserver 1.1.1.1\n;nameserver 1.1.1.1\n nameserver 1.1.1.1\n", "",
         "127.0.0.1:53 | | 1 5 2"},
        {"nameservers 1.1.1.1\nNameserver 1.1.1.1\n", "", "127.0.0.1:53 | | 1 5 2"},
        {"search a.example b.example. bad..name\n", "x.y",
         "127.0.0.1:53 | a.example b.example | 1 5 2"},
        {"search a b\ndomain c d\n", "", "127.0.0.1:53 | c | 1 5 2"},
        {"domain c\nsearch a b\n", "", "127.0.0.1:53 | a b | 1 5 2"},
        {"search\n", "x.y", "127.0.0.1:53 | | 1 5 2"},
        {"search .\n", "x.y", "127.0.0.1:53 | | 1 5 2"},
        {"options ndots:3 timeout:1 attempts:4 rotate use-vc single-request\n", "",
         "127.0.0.1:53 | | 3 1 4 rotate vc single"},
        {"options ndots:99 timeout:99 attempts:99\noptions single-request-reopen\n", "",
         "127.0.0.1:53 | | 15 30 5 single"},
        {"options ndots:0 timeout:0 attempts:0\n", "", "127.0.0.1:53 | | 0 1 1"},
        {"options ndots: ndots:x timeout:-1 attempts:1x timeout edns0\n", "",
         "127.0.0.1:53 | | 1 5 2"},
        {"options timeout:99999999999999999999\n", "", "127.0.0.1:53 | | 1 30 2"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        dns_conf_parse(text_of(rows[i].text), text_of(rows[i].host), &conf);
        assert_string_equal(summary(), rows[i].want);
    }
}

static void test_search_is_bounded(void **state) {
    (void)state;
    char text[1024] = "search";
    for (int i = 0; i < 2 * DNS_CONF_SEARCHES; i++)
        strcat(text, " example");
    dns_conf_parse(text_of(text), text_of(""), &conf);
    assert_int_equal(conf.searches, DNS_CONF_SEARCHES);
}

static void test_hosts(void **state) {
    (void)state;
    static const char text[] = "127.0.0.1 localhost\n"
                               "192.0.2.1 one ONE.example alias # two\n"
                               "# 192.0.2.9 one\n"
                               "2001:db8::1\tone\n"
                               "192.0.2.1 one\n"
                               "no-address one\n"
                               "192.0.2.3\n"
                               "fe80::5%4 scoped\r\n"
                               "::ffff:192.0.2.7 mapped\n"
                               "192.0.2.8 last";
    static const struct {
        const char *name, *want;
    } rows[] = {
        {"one", "192.0.2.1:80 [2001:db8::1]:80 "},
        {"One", "192.0.2.1:80 [2001:db8::1]:80 "},
        {"one.", "192.0.2.1:80 [2001:db8::1]:80 "},
        {"one.example", "192.0.2.1:80 "},
        {"alias", "192.0.2.1:80 "},
        {"two", ""},
        {"on", ""},
        {"", ""},
        {".", ""},
        {"192.0.2.3", ""},
        {"scoped", "[fe80::5]:80 "},
        {"mapped", "192.0.2.7:80 "},
        {"last", "192.0.2.8:80 "},
        {"as", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct sock_addr a[4];
        char got[256] = "", name[SOCK_PEER_MAX];
        size_t n = dns_conf_hosts(text_of(text), text_of(rows[i].name), 80, a, ARRAY_LEN(a));
        for (size_t j = 0; j < n; j++) {
            sock_peer_name(&a[j].u.sa, name);
            strcat(strcat(got, name), " ");
        }
        assert_string_equal(got, rows[i].want);
    }
    struct sock_addr one;
    assert_int_equal(dns_conf_hosts(text_of(text), text_of("one"), 80, &one, 1), 1);
    assert_int_equal(dns_conf_hosts((struct str){NULL, 0}, text_of("one"), 80, &one, 1), 0);
}

static void test_localhost(void **state) {
    (void)state;
    static const char *const yes[] = {"localhost", "LocalHost", "localhost.", "a.localhost",
                                      "a.b.localhost."};
    static const char *const no[] = {"",           ".",           "localhos",
                                     "xlocalhost", "localhost.x", "localhost.localdomain"};
    for (size_t i = 0; i < ARRAY_LEN(yes); i++)
        assert_true(dns_conf_is_localhost(text_of(yes[i])));
    for (size_t i = 0; i < ARRAY_LEN(no); i++)
        assert_false(dns_conf_is_localhost(text_of(no[i])));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resolv_conf),
        cmocka_unit_test(test_search_is_bounded),
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_localhost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
