#include "proxy/proxy_judge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

/* A config with "allow", "-deny" and "?review" patterns. */
static struct proxy_config config(const char *const *patterns, size_t n) {
    struct proxy_config c = PROXY_CONFIG_INIT;
    for (size_t i = 0; i < n; i++) {
        const char *p = patterns[i];
        enum proxy_list list = *p == '-' ? PROXY_DENY : *p == '?' ? PROXY_REVIEW : PROXY_ALLOW;
        _cleanup_err_ struct err e = ERR_INIT;
        assert_int_equal(
            proxy_rules_add(&c.rules, list, str_of(p + (list != PROXY_ALLOW)), &c.arena, &e), 0);
    }
    return c;
}

static struct proxy_verdict judge(const struct proxy_config *c, const char *host) {
    struct proxy_name n;
    assert_int_equal(proxy_name_parse(str_of(host), &n), 0);
    return proxy_judge_host(c, &n);
}

static void test_lists(void **state) {
    (void)state;
    static const char *const patterns[] = {"a.com",      "*.b.com",   "-bad.b.com", "?r.b.com",
                                           "-127.0.0.2", "127.0.0.1", "*.9.9.9"};
    struct proxy_config c = config(patterns, ARRAY_LEN(patterns));
    static const struct {
        const char *host, *reason;
    } rows[] = {
        {"a.com", "allow"},
        {"x.b.com", "allow"},
        {"bad.b.com", "denied"},
        {"r.b.com", "not_allowed"},
        {"c.com", "not_allowed"},
        {"127.0.0.1", "allow"},
        {"127.0.0.2", "denied"},
        {"127.0.0.3", "not_allowed_local"},
        {"::ffff:127.0.0.3", "not_allowed_local"},
        {"10.9.9.9", "not_allowed_local"}, /* a wildcard opens no local network */
        {"11.9.9.9", "allow"},
        {"localhost", "not_allowed_local"},
        {"169.254.169.254", "not_allowed_local"},
        {"0.0.0.0", "not_allowed_local"},
        {"2130706433", "not_allowed"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct proxy_verdict v = judge(&c, rows[i].host);
        assert_string_equal(v.reason, rows[i].reason);
        assert_int_equal(v.answer, strcmp(v.reason, "allow") == 0 ? PROXY_ALLOWED : PROXY_DENIED);
        assert_string_equal(v.source, "baseline_policy");
    }
    c.asks = true;
    assert_int_equal(judge(&c, "c.com").answer, PROXY_ASK);
    assert_int_equal(judge(&c, "r.b.com").answer, PROXY_ASK);
    assert_int_equal(judge(&c, "a.com").answer, PROXY_ALLOWED);
    assert_int_equal(judge(&c, "bad.b.com").answer, PROXY_DENIED);
    assert_int_equal(judge(&c, "10.9.9.9").answer, PROXY_DENIED);
    c.local = true;
    assert_int_equal(judge(&c, "10.9.9.9").answer, PROXY_ALLOWED);
    assert_int_equal(judge(&c, "10.9.9.8").answer, PROXY_ASK);
    arena_fini(&c.arena);
}

static bool address(const struct proxy_config *c, const char *host, const char *text) {
    struct proxy_name n, a;
    assert_int_equal(proxy_name_parse(str_of(host), &n), 0);
    assert_int_equal(proxy_name_parse(str_of(text), &a), 0);
    assert_true(a.is_address);
    return proxy_judge_address(c, &n, &a.address);
}

static void test_addresses(void **state) {
    (void)state;
    static const char *const patterns[] = {"a.com", "localhost", "127.0.0.1", "*"};
    struct proxy_config c = config(patterns, ARRAY_LEN(patterns));
    assert_true(address(&c, "a.com", "8.8.8.8"));
    assert_false(address(&c, "a.com", "127.0.0.1"));
    assert_false(address(&c, "a.com", "10.0.0.1"));
    assert_false(address(&c, "a.com", "::1"));
    assert_true(address(&c, "localhost", "127.0.0.1"));
    assert_true(address(&c, "localhost", "::1"));
    assert_false(address(&c, "localhost", "10.0.0.1")); /* the hosts file may say anything */
    assert_true(address(&c, "127.0.0.1", "127.0.0.1"));
    assert_false(address(&c, "x.localhost", "127.0.0.1"));
    c.local = true;
    assert_true(address(&c, "a.com", "10.0.0.1"));
    arena_fini(&c.arena);
}

static void test_limited(void **state) {
    (void)state;
    struct proxy_config c = PROXY_CONFIG_INIT;
    assert_null(proxy_judge_mode(&c, PROXY_HTTP, str_of("POST")));
    c.limited = true;
    assert_null(proxy_judge_mode(&c, PROXY_HTTP, str_of("GET")));
    assert_null(proxy_judge_mode(&c, PROXY_HTTP, str_of("HEAD")));
    assert_null(proxy_judge_mode(&c, PROXY_HTTP, str_of("OPTIONS")));
    assert_string_equal(proxy_judge_mode(&c, PROXY_HTTP, str_of("POST")), "method_not_allowed");
    assert_string_equal(proxy_judge_mode(&c, PROXY_HTTP, str_of("get")), "method_not_allowed");
    assert_string_equal(proxy_judge_mode(&c, PROXY_CONNECT, str_of("CONNECT")), "mitm_required");
    assert_string_equal(proxy_judge_mode(&c, PROXY_SOCKS_TCP, str_of("")), "method_not_allowed");
    assert_string_equal(proxy_judge_class("whatever"), "blocked-by-policy");
    assert_string_equal(proxy_judge_class("denied"), "blocked-by-denylist");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
