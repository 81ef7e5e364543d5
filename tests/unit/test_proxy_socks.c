#include "proxy/proxy_socks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define BYTES(s) ((struct str){(s), sizeof(s) - 1})

static void test_greetings(void **state) {
    (void)state;
    bool plain = false;
    assert_int_equal(proxy_socks_greeting(BYTES("\5\1\0"), &plain), 3);
    assert_true(plain);
    assert_int_equal(proxy_socks_greeting(BYTES("\5\2\2\0rest"), &plain), 4);
    assert_true(plain);
    assert_int_equal(proxy_socks_greeting(BYTES("\5\1\2"), &plain), 3);
    assert_false(plain);
    assert_int_equal(proxy_socks_greeting(BYTES("\5\0"), &plain), 2);
    assert_false(plain);
    assert_int_equal(proxy_socks_greeting(BYTES(""), &plain), 0);
    assert_int_equal(proxy_socks_greeting(BYTES("\5\2\0"), &plain), 0);
    assert_int_equal(proxy_socks_greeting(BYTES("\4\1\0"), &plain), -22);
    assert_int_equal(proxy_socks_greeting(BYTES("GET"), &plain), -22);
}

static void check(struct str bytes, int n, enum proxy_socks_code code, const char *host) {
    struct proxy_name name = {.is_address = false};
    uint16_t port = 0;
    enum proxy_socks_code got = PROXY_SOCKS_FAILED;
    assert_int_equal(proxy_socks_request(bytes, &name, &port, &got), n);
    if (n <= 0)
        return;
    assert_int_equal(got, code);
    if (code == PROXY_SOCKS_OK) {
        assert_string_equal(name.text, host);
        assert_int_equal(port, 0x102);
        for (size_t k = 0; k < (size_t)n; k++)
            assert_int_equal(proxy_socks_request((struct str){bytes.p, k}, &name, &port, &got), 0);
    }
}

static void test_requests(void **state) {
    (void)state;
    check(BYTES("\5\1\0\1\1\2\3\4\1\2"), 10, PROXY_SOCKS_OK, "1.2.3.4");
    check(BYTES("\5\1\0\3\3A.b\1\2x"), 10, PROXY_SOCKS_OK, "a.b");
    check(BYTES("\5\1\0\3\7\61\62\67.0.\61\1\2"), 14, PROXY_SOCKS_OK, "127.0.1");
    check(BYTES("\5\1\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\1\2"), 22, PROXY_SOCKS_OK, "::1");
    check(BYTES("\5\1\0\4\0\0\0\0\0\0\0\0\0\0\xff\xff\177\0\0\1\1\2"), 22, PROXY_SOCKS_OK,
          "127.0.0.1");
    check(BYTES("\5\2\0\1\1\2\3\4\1\2"), 10, PROXY_SOCKS_NO_COMMAND, NULL);
    check(BYTES("\5\3\0\1\1\2\3\4\1\2"), 10, PROXY_SOCKS_NO_COMMAND, NULL);
    check(BYTES("\5\1\0\2\1\2\3\4\1\2"), 4, PROXY_SOCKS_NO_ADDRESS, NULL);
    check(BYTES("\5\1\0\1\1\2\3\4\0\0"), 10, PROXY_SOCKS_DENIED, NULL);
    check(BYTES("\5\1\0\3\3a@b\1\2"), 10, PROXY_SOCKS_DENIED, NULL);
    check(BYTES("\5\1\0\3\0\1\2"), 7, PROXY_SOCKS_DENIED, NULL);
    check(BYTES("\5\1\0\3\3a\0b\1\2"), 10, PROXY_SOCKS_DENIED, NULL);
    check(BYTES("\5\1\1\1\1\2\3\4\1\2"), -22, PROXY_SOCKS_OK, NULL);
    check(BYTES("\4\1"), -22, PROXY_SOCKS_OK, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_greetings),
        cmocka_unit_test(test_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
