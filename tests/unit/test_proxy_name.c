#include "proxy/proxy_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void test_names(void **state) {
    (void)state;
    static const struct {
        const char *in, *out; /* NULL: refused */
    } rows[] = {
        {"example.com", "example.com"},
        {"EXAMPLE.Com", "example.com"},
        {"example.com.", "example.com"},
        {"a_b-c.d", "a_b-c.d"},
        {"127.0.0.1", "127.0.0.1"},
        {"127.0.0.1.", "127.0.0.1"},
        {"::1", "::1"},
        {"0:0:0:0:0:0:0:1", "::1"},
        {"::ffff:127.0.0.1", "127.0.0.1"},
        {"2001:DB8::0:1", "2001:db8::1"},
        {"127.1", "127.1"},
        {"0x7f.0.0.1", "0x7f.0.0.1"},
        {"", NULL},
        {".", NULL},
        {"a..b", NULL},
        {".a", NULL},
        {"a.com..", NULL},
        {"ex%61mple.com", NULL},
        {"user@example.com", NULL},
        {"b\xc3\xbc"
         "cher.de",
         NULL},
        {"a b", NULL},
        {"a/b", NULL},
        {"a:b", NULL},
        {"fe80::1%lo", NULL},
        {"fe80::1%25lo", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct proxy_name n;
        int r = proxy_name_parse(str_of(rows[i].in), &n);
        assert_int_equal(r == 0, rows[i].out != NULL);
        if (r == 0)
            assert_string_equal(n.text, rows[i].out);
    }
    struct proxy_name n;
    char nul[] = "a\0b", name[300];
    assert_int_not_equal(proxy_name_parse((struct str){nul, 3}, &n), 0);
    memset(name, 'a', sizeof name);
    assert_int_equal(proxy_name_parse((struct str){name, 253}, &n), 0);
    assert_int_not_equal(proxy_name_parse((struct str){name, 254}, &n), 0);
}

static void test_authorities(void **state) {
    (void)state;
    static const struct {
        const char *in, *host;
        unsigned port;
    } rows[] = {
        {"a.b", "a.b", 80},
        {"a.b:443", "a.b", 443},
        {"[::1]:8080", "::1", 8080},
        {"[::1]", "::1", 80},
        {"1.2.3.4:1", "1.2.3.4", 1},
        {"a.b:", NULL, 0},
        {"a.b:0", NULL, 0},
        {"a.b:65536", NULL, 0},
        {"a.b:+1", NULL, 0},
        {"u@a.b", NULL, 0},
        {"u:p@a.b:1", NULL, 0},
        {"::1", NULL, 0},
        {"[1.2.3.4]", NULL, 0},
        {"[::1", NULL, 0},
        {"[::1]x", NULL, 0},
        {"[a.b]:1", NULL, 0},
        {":80", NULL, 0},
        {"a.b:80:80", NULL, 0},
        {"a.b:00080", "a.b", 80},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct proxy_name n;
        uint16_t port = 80;
        int r = proxy_name_authority(str_of(rows[i].in), &n, &port);
        assert_int_equal(r == 0, rows[i].host != NULL);
        if (r < 0)
            continue;
        assert_string_equal(n.text, rows[i].host);
        assert_int_equal(port, rows[i].port);
    }
}

static void test_public_addresses(void **state) {
    (void)state;
    static const char *const inner[] = {
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "100.64.0.1",
        "100.127.255.255",
        "127.0.0.1",
        "127.9.9.9",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.8",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.1.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.7",
        "203.0.113.9",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:10.1.1.1",
        "::7f00:1",
        "fe80::1",
        "fc00::1",
        "fd12::1",
        "ff02::1",
        "2001:db8::1",
        "2001::1",
        "2002:7f00:1::",
        "2002:a00:1::1",
        "64:ff9b::7f00:1",
        "64:ff9b::808:808",
        "3fff::1",
        "fec0::1",
        "100::1",
        "4000::1",
    };
    static const char *const outer[] = {
        "1.1.1.1",    "8.8.8.8",   "11.0.0.1",        "100.63.0.1",     "100.128.0.1", "172.15.0.1",
        "172.32.0.1", "192.0.1.1", "192.167.0.1",     "198.17.0.1",     "198.20.0.1",  "223.1.1.1",
        "2600::1",    "2a00::1",   "2002:808:808::1", "::ffff:8.8.8.8",
    };
    for (size_t i = 0; i < sizeof inner / sizeof *inner; i++) {
        struct proxy_name n;
        assert_int_equal(proxy_name_parse(str_of(inner[i]), &n), 0);
        assert_true(n.is_address && !proxy_name_is_public(&n.address));
    }
    for (size_t i = 0; i < sizeof outer / sizeof *outer; i++) {
        struct proxy_name n;
        assert_int_equal(proxy_name_parse(str_of(outer[i]), &n), 0);
        assert_true(n.is_address && proxy_name_is_public(&n.address));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_authorities),
        cmocka_unit_test(test_public_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
