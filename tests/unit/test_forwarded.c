#include "net/forwarded.h"

#include "base/util.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <cmocka.h>

static bool trusts(const struct forwarded *f, const char *ip) {
    struct sock_addr a;
    assert_int_equal(sock_addr_parse(str_of(ip), 80, &a), 0);
    return forwarded_trusts(f, &a.u.sa);
}

static void networks(void **state) {
    (void)state;
    struct forwarded f = {0};
    assert_int_equal(forwarded_add(&f, "10.0.0.0/8"), 0);
    assert_int_equal(forwarded_add(&f, "192.0.2.129/25"), 0);
    assert_int_equal(forwarded_add(&f, "198.51.100.7"), 0);
    assert_int_equal(forwarded_add(&f, "2001:db8::/33"), 0);
    assert_true(trusts(&f, "10.255.0.1"));
    assert_true(trusts(&f, "::ffff:10.0.0.1"));
    assert_false(trusts(&f, "11.0.0.1"));
    assert_true(trusts(&f, "192.0.2.128"));
    assert_false(trusts(&f, "192.0.2.127"));
    assert_true(trusts(&f, "198.51.100.7"));
    assert_false(trusts(&f, "198.51.100.6"));
    assert_true(trusts(&f, "2001:db8:7fff::1"));
    assert_false(trusts(&f, "2001:db8:8000::1"));
    assert_false(trusts(&f, "::1"));
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    assert_false(forwarded_trusts(&f, (const struct sockaddr *)&un));
    assert_int_equal(forwarded_add(&f, "unix"), 0);
    assert_true(forwarded_trusts(&f, (const struct sockaddr *)&un));
    struct forwarded all = {0};
    assert_int_equal(forwarded_add(&all, "0.0.0.0/0"), 0);
    assert_true(trusts(&all, "203.0.113.5"));
    assert_false(trusts(&all, "::1"));
    assert_int_equal(forwarded_add(&all, "::/0"), 0);
    assert_true(trusts(&all, "::1"));
}

static void bad_networks(void **state) {
    (void)state;
    static const char *const bad[] = {"",          "a",      "10.0.0.0/33", "10.0.0.0/",
                                      "10.0.0/8",  "::/129", "10.0.0.1/-1", "10.0.0.1/08x",
                                      "fe80::1%1", "/8",     "unix:/x",     "10.0.0.0/0008"};
    struct forwarded f = {0};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(forwarded_add(&f, bad[i]), -EINVAL);
    for (int i = 0; i < FORWARDED_NETS_MAX; i++)
        assert_int_equal(forwarded_add(&f, "::1"), 0);
    assert_int_equal(forwarded_add(&f, "::1"), -ENOSPC);
}

static const char *peer_of(const char *const *values, size_t count) {
    static char peer[SOCK_PEER_MAX];
    struct forwarded f = {0};
    static const uint8_t local[] = {127, 0, 0, 1};
    struct sock_addr proxy = sock_addr_v4(local, 99);
    struct http_request r = {.count = count};
    assert_int_equal(forwarded_add(&f, "127.0.0.0/8"), 0);
    assert_int_equal(forwarded_add(&f, "10.0.0.0/8"), 0);
    for (size_t i = 0; i < count; i++)
        r.headers[i] = (struct http_header){STR_LIT("X-Forwarded-For"), str_of(values[i])};
    forwarded_peer(&f, &r, &proxy, peer);
    return peer;
}

static void expect_peer(const char *value, const char *want) {
    assert_string_equal(peer_of(&value, 1), want);
}

static void clients(void **state) {
    (void)state;
    static const char alone[] = "127.0.0.1:99";
    expect_peer("203.0.113.5", "203.0.113.5, via 127.0.0.1:99");
    expect_peer(" 203.0.113.5:1234 ", "203.0.113.5, via 127.0.0.1:99");
    expect_peer("2001:db8::5", "2001:db8::5, via 127.0.0.1:99");
    expect_peer("[2001:db8::5]:443", "2001:db8::5, via 127.0.0.1:99");
    expect_peer("8.8.8.8, 203.0.113.5", "203.0.113.5, via 127.0.0.1:99"); /* the first is forged */
    expect_peer("8.8.8.8, 203.0.113.5, 10.1.1.1,10.2.2.2", "203.0.113.5, via 127.0.0.1:99");
    expect_peer("8.8.8.8, junk", alone);
    expect_peer("8.8.8.8, junk, 10.1.1.1", alone);
    expect_peer("10.1.1.1", alone);
    expect_peer("", alone);
    expect_peer(",", alone);
    expect_peer("fe80::1%lo", alone);
    expect_peer("[::1", alone);
    assert_string_equal(peer_of(NULL, 0), alone);
    const char *two[] = {"8.8.8.8", "203.0.113.5"};
    assert_string_equal(peer_of(two, 2), "203.0.113.5, via 127.0.0.1:99");
    const char *chain[] = {"203.0.113.5", "10.1.1.1"};
    assert_string_equal(peer_of(chain, 2), "203.0.113.5, via 127.0.0.1:99");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(networks), cmocka_unit_test(bad_networks),
                                       cmocka_unit_test(clients)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
