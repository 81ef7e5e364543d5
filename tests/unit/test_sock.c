#include "net/sock.h"

#include "dns_message.h"

#include <errno.h>
#include <net/if.h>

static struct str text_of(const char *z) {
    return (struct str){z, strlen(z)};
}

/* sock_addr_parse() and inet_pton() agree, except that a mapped address becomes IPv4. */
static void assert_like_libc(const char *text) {
    struct sock_addr a;
    uint8_t v4[4], v6[16];
    int r = sock_addr_parse(text_of(text), 443, &a);
    if (inet_pton(AF_INET, text, v4) == 1) {
        assert_int_equal(r, 0);
        assert_int_equal(a.u.sa.sa_family, AF_INET);
        assert_int_equal(ntohs(a.u.in.sin_port), 443);
        assert_memory_equal(&a.u.in.sin_addr, v4, 4);
        assert_int_equal(sock_addr_len(&a), sizeof a.u.in);
    } else if (inet_pton(AF_INET6, text, v6) == 1) {
        assert_int_equal(r, 0);
        bool mapped = IN6_IS_ADDR_V4MAPPED((struct in6_addr *)v6);
        assert_int_equal(a.u.sa.sa_family, mapped ? AF_INET : AF_INET6);
        if (mapped)
            assert_memory_equal(&a.u.in.sin_addr, v6 + 12, 4);
        else
            assert_memory_equal(&a.u.in6.sin6_addr, v6, 16);
    } else {
        assert_int_equal(r, -EINVAL);
    }
}

static void test_addresses_as_inet_pton(void **state) {
    (void)state;
    static const char *const texts[] = {
        "",
        "0.0.0.0",
        "127.0.0.1",
        "255.255.255.255",
        "256.0.0.1",
        "1.2.3",
        "1.2.3.4.",
        "01.2.3.4",
        "0x7f.1",
        "1.2.3.4 ",
        " 1.2.3.4",
        "1.2.3.4/8",
        "::",
        "::1",
        "1::",
        "1:2:3:4:5:6:7:8",
        ":1",
        "1:2:3:4:5:6:7:8:9",
        "::1.2.3.4",
        "::ffff:1.2.3.4",
        "fe80::1",
        "FE80::A",
        "1::2::3",
        "12345::",
        "[::1]",
        "localhost",
        "1:2:3:4:5:6:1.2.3.4",
        "::ffff:7f00:1",
        "-1.2.3.4",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        assert_like_libc(texts[i]);
}

/* Every text of up to five characters of an alphabet, so that no short form is forgotten. */
static void test_short_texts_as_inet_pton(void **state) {
    (void)state;
    static const char alphabet[] = ":.1fg";
    char text[6] = "";
    for (unsigned n = 0; n < 6 * 6 * 6 * 6 * 6; n++) {
        unsigned rest = n;
        size_t len = 0;
        for (size_t i = 0; i < 5; i++, rest /= 6) {
            if (rest % 6 < 5)
                text[len++] = alphabet[rest % 6];
        }
        text[len] = '\0';
        assert_like_libc(text);
    }
}

static void test_scopes(void **state) {
    (void)state;
    struct sock_addr a;
    unsigned lo = if_nametoindex("lo");
    if (lo != 0) {
        assert_int_equal(sock_addr_parse(STR_LIT("fe80::1%lo"), 1, &a), 0);
        assert_int_equal(a.u.in6.sin6_scope_id, lo);
    }
    assert_int_equal(sock_addr_parse(STR_LIT("fe80::1%7"), 1, &a), 0);
    assert_int_equal(a.u.in6.sin6_scope_id, 7);
    assert_int_equal(sock_addr_parse(STR_LIT("fe80::1%4294967295"), 1, &a), 0);
    assert_int_equal(a.u.in6.sin6_scope_id, UINT32_MAX);
    static const char *const bad[] = {
        "fe80::1%",
        "fe80::1%0",
        "fe80::1%4294967296",
        "fe80::1%99999999999",
        "fe80::1%no such",
        "2001:db8::1%1",
        "127.0.0.1%1",
        "::ffff:1.2.3.4%1",
        "fe80::1%1%1",
        "%1",
        "fe80::1%an-interface-with-a-very-long-name-that-does-not-fit",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct sock_addr before;
        memset(&before, 0x5A, sizeof before);
        a = before;
        assert_int_equal(sock_addr_parse(text_of(bad[i]), 1, &a), -EINVAL);
        assert_true(sock_addr_eq(&a, &before));
    }
}

static void test_nul_is_no_end(void **state) {
    (void)state;
    struct sock_addr a;
    assert_int_equal(sock_addr_parse(STR_LIT("127.0.0.1\0x"), 1, &a), -EINVAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses_as_inet_pton),
        cmocka_unit_test(test_short_texts_as_inet_pton),
        cmocka_unit_test(test_scopes),
        cmocka_unit_test(test_nul_is_no_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
