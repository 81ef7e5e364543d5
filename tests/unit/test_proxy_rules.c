#include "proxy/proxy_rules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static bool matches(const char *pattern, const char *host) {
    _cleanup_arena_ struct arena a = ARENA_INIT(1u << 20);
    _cleanup_err_ struct err e = ERR_INIT;
    struct proxy_rules r = {.count = 0};
    struct proxy_name n;
    assert_int_equal(proxy_rules_add(&r, PROXY_ALLOW, str_of(pattern), &a, &e), 0);
    assert_int_equal(proxy_name_parse(str_of(host), &n), 0);
    return proxy_rules_match(&r, PROXY_ALLOW, &n);
}

/* Found by asking the reference. */
static void test_matching(void **state) {
    (void)state;
    static const struct {
        const char *pattern, *yes, *no; /* hosts, each with a blank behind it */
    } rows[] = {
        {"*.example.com", "a.example.com a.b.example.com ",
         "example.com evil-example.com x.com .com.example "},
        {"**.example.com", "example.com a.example.com a.b.example.com ",
         "evil-example.com example.com.evil.net "},
        {"*", "example.com 8.8.8.8 localhost h.local ", ""},
        {"EXAMPLE.com.", "example.com EXAMPLE.COM example.com. ", "a.example.com "},
        {"x.com:80", "x.com ", "a.x.com "},
        {"ex*mple.com", "example.com exmple.com ", "a.example.com "},
        {"a?c.com", "abc.com a.c.com ", "ac.com abbc.com "},
        {"*.*.com", "a.example.com a.b.example.com ", "example.com "},
        {"10.*", "10.1.1.1 ", "110.1.1.1 "},
        {"[::1]", "::1 0:0::1 ", "::2 localhost "},
        {"::1", "::1 ", "::2 "},
        {"127.0.0.1", "127.0.0.1 ::ffff:127.0.0.1 ", "127.0.0.2 127.1 "},
        {"localhost", "localhost LOCALHOST. ", "a.localhost "},
        {"b\xc3\xbc"
         "cher.de",
         "xn--bcher-kva.de ", "bucher.de "},
        {"*.b\xc3\xbc"
         "cher.de",
         "a.xn--bcher-kva.de ", "xn--bcher-kva.de "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int yes = 0; yes < 2; yes++) {
            const char *p = yes ? rows[i].yes : rows[i].no;
            for (const char *end; (end = strchr(p, ' ')) != NULL; p = end + 1) {
                char host[64];
                snprintf(host, sizeof host, "%.*s", (int)(end - p), p);
                struct proxy_name n;
                if (proxy_name_parse(str_of(host), &n) == 0 &&
                    matches(rows[i].pattern, host) != (yes != 0))
                    fail_msg("%s and %s", rows[i].pattern, host);
            }
        }
    }
}

static void test_refused_patterns(void **state) {
    (void)state;
    static const struct {
        const char *pattern, *text;
        enum proxy_list list;
    } rows[] = {
        {"", "domain pattern is empty", PROXY_ALLOW},
        {"*.", "domain pattern is empty", PROXY_ALLOW},
        {"**",
         "invalid value for network.denied_domains: * (allowed exact hosts or scoped wildcards "
         "like *.example.com or **.example.com)",
         PROXY_DENY},
        {"http://x.com", "unsupported domain pattern syntax: http://x.com", PROXY_ALLOW},
        {"exa mple", "unsupported domain pattern syntax: exa mple", PROXY_ALLOW},
        {"{a,b}.com", "unsupported domain pattern syntax: {a,b}.com", PROXY_DENY},
        {"[a-c].com", "brackets are only supported for IPv6 literals or [*]: [a-c].com",
         PROXY_ALLOW},
        {"***.com", "unsupported repeated wildcard: ***.com", PROXY_REVIEW},
        {"*",
         "invalid value for network.denied_domains: * (allowed exact hosts or scoped wildcards "
         "like *.example.com or **.example.com)",
         PROXY_DENY},
        {"a..b", "unsupported domain pattern syntax: a..b", PROXY_DENY},
        {"u@x.com", "unsupported domain pattern syntax: u@x.com", PROXY_DENY},
        {"ex%61mple.com", "unsupported domain pattern syntax: ex%61mple.com", PROXY_DENY},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        _cleanup_arena_ struct arena a = ARENA_INIT(1u << 20);
        _cleanup_err_ struct err e = ERR_INIT;
        struct proxy_rules r = {.count = 0};
        char text[256];
        assert_int_equal(proxy_rules_add(&r, rows[i].list, str_of(rows[i].pattern), &a, &e), -22);
        snprintf(text, sizeof text, "invalid network proxy config: %s", rows[i].text);
        assert_string_equal(err_msg(&e), text);
        assert_int_equal(e.code, ERR_INVALID_PARAMS);
        assert_int_equal(r.count, 0);
    }
}

static void test_maxima(void **state) {
    (void)state;
    _cleanup_arena_ struct arena a = ARENA_INIT(8u << 20);
    struct proxy_rules r = {.count = 0};
    char text[1024];
    int n = 0, ok = 0;
    for (; ok == 0 && n < 10000; n++) {
        _cleanup_err_ struct err e = ERR_INIT;
        snprintf(text, sizeof text, "h%d.example", n);
        ok = proxy_rules_add(&r, PROXY_ALLOW, str_of(text), &a, &e);
    }
    assert_int_equal(r.count, PROXY_RULES_MAX);
    r = (struct proxy_rules){.count = 0};
    memset(text, 'a', sizeof text - 1);
    text[0] = '*';
    text[sizeof text - 1] = '\0';
    for (n = 0, ok = 0; ok == 0 && n < 10000; n++) {
        _cleanup_err_ struct err e = ERR_INIT;
        ok = proxy_rules_add(&r, PROXY_ALLOW, str_of(text), &a, &e);
    }
    assert_true(r.wild <= PROXY_RULES_WILD_MAX && r.count > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matching),
        cmocka_unit_test(test_refused_patterns),
        cmocka_unit_test(test_maxima),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
