#include "net/resolve_order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

/* Plays the kernel: 192.0.2.* and 2001:* are good, fd* is poor, the rest has no route. */
static enum resolve_order_reach probe(const struct sock_addr *a) {
    char name[SOCK_PEER_MAX];
    sock_peer_name(&a->u.sa, name);
    if (strncmp(name, "192.0.2.", 8) == 0 || strncmp(name, "[2001:", 6) == 0)
        return RESOLVE_ORDER_GOOD;
    return strncmp(name, "[fd", 3) == 0 ? RESOLVE_ORDER_POOR : RESOLVE_ORDER_NONE;
}

static void test_order(void **state) {
    (void)state;
    static const struct {
        const char *in[8];
        const char *want;
    } rows[] = {
        {{NULL}, ""},
        {{"10.0.0.1"}, "10.0.0.1:0 "},
        {{"192.0.2.1", "192.0.2.2", "2001::1", "2001::2"},
         "[2001::1]:0 192.0.2.1:0 [2001::2]:0 192.0.2.2:0 "},
        {{"192.0.2.1", "192.0.2.2", "192.0.2.3", "2001::1"},
         "[2001::1]:0 192.0.2.1:0 192.0.2.2:0 192.0.2.3:0 "},
        {{"3001::1", "192.0.2.1", "fd00::1"}, "192.0.2.1:0 [fd00::1]:0 [3001::1]:0 "},
        {{"192.0.2.1", "192.0.2.1", "2001::1", "192.0.2.1"}, "[2001::1]:0 192.0.2.1:0 "},
        {{"10.0.0.1", "3001::1", "2001::1"}, "[2001::1]:0 [3001::1]:0 10.0.0.1:0 "},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct sock_addr a[8];
        size_t n = 0;
        for (; rows[i].in[n] != NULL; n++)
            assert_int_equal(sock_addr_parse(str_of(rows[i].in[n]), 0, &a[n]), 0);
        n = resolve_order(a, n, probe);
        char got[512] = "", name[SOCK_PEER_MAX];
        for (size_t j = 0; j < n; j++) {
            sock_peer_name(&a[j].u.sa, name);
            strcat(strcat(got, name), " ");
        }
        assert_string_equal(got, rows[i].want);
    }
}

static void test_kernel_reaches_loopback(void **state) {
    (void)state;
    struct sock_addr a;
    assert_int_equal(sock_addr_parse(STR_LIT("127.0.0.1"), 0, &a), 0);
    assert_int_equal(resolve_order_probe(&a), RESOLVE_ORDER_GOOD);
    /* A link-local address without an interface has no route anywhere. */
    assert_int_equal(sock_addr_parse(STR_LIT("fe80::1"), 0, &a), 0);
    assert_int_equal(resolve_order_probe(&a), RESOLVE_ORDER_NONE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_kernel_reaches_loopback),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
