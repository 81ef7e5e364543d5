#include "proxy/proxy_hello.h"

#include "proxy_hello.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void test_names(void **state) {
    (void)state;
    for (size_t record = 1; record < 100; record += 7) {
        _cleanup_buf_ struct buf names = BUF_INIT(4096), b = BUF_INIT(65536);
        char name[256];
        hello_name(&names, "a.example");
        hello_build(&b, buf_str(&names), record);
        assert_int_equal(proxy_hello_read(buf_str(&b), name), PROXY_HELLO_NAMED);
        assert_string_equal(name, "a.example");
        for (size_t k = 0; k < b.len; k++)
            assert_int_equal(proxy_hello_read((struct str){b.p, k}, name), PROXY_HELLO_MORE);
    }
}

static void test_others(void **state) {
    (void)state;
    _cleanup_buf_ struct buf none = BUF_INIT(4096), two = BUF_INIT(4096), b = BUF_INIT(65536);
    char name[256];
    hello_build(&none, (struct str){NULL, 0}, 1000);
    assert_int_equal(proxy_hello_read(buf_str(&none), name), PROXY_HELLO_PLAIN);
    hello_number(&two, 12, 2);
    hello_put(&two, "\0\0\3a.b\0\0\3c.d", 12);
    hello_build(&b, buf_str(&two), 1000);
    assert_int_equal(proxy_hello_read(buf_str(&b), name), PROXY_HELLO_BAD);
    assert_int_equal(proxy_hello_read(str_of("GET / HTTP/1.1\r\n"), name), PROXY_HELLO_NONE);
    assert_int_equal(proxy_hello_read(str_of("\x16\x16"), name), PROXY_HELLO_NONE);
    assert_int_equal(proxy_hello_read(str_of(""), name), PROXY_HELLO_MORE);
    static const char server[] = "\x16\3\3\0\5\2\0\0\1\0";
    assert_int_equal(proxy_hello_read((struct str){server, 10}, name), PROXY_HELLO_BAD);
    /* Every byte of a hello may be another one. */
    for (size_t i = 0; i < none.len; i++) {
        for (int v = 0; v < 256; v += 5) {
            char old = none.p[i];
            none.p[i] = (char)v;
            (void)!proxy_hello_read(buf_str(&none), name);
            none.p[i] = old;
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
