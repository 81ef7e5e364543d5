#include "rpc/envelope.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static struct json_doc doc;

static int setup(void **state) {
    (void)state;
    json_doc_init(&doc, 1 << 16, 1);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    json_doc_fini(&doc);
    return 0;
}

static int read_text(const char *text, struct envelope *env, struct err *e) {
    assert_int_equal(json_parse(&doc, text, strlen(text), e), 0);
    return envelope_read(json_root(&doc), env, e);
}

static void assert_kind(const char *text, enum envelope_kind kind) {
    _cleanup_err_ struct err e = ERR_INIT;
    struct envelope env;
    if (read_text(text, &env, &e) != 0)
        fail_msg("%s: %s", text, err_msg(&e));
    if (env.kind != kind)
        fail_msg("%s: kind %d", text, (int)env.kind);
}

static void assert_refused(const char *text) {
    _cleanup_err_ struct err e = ERR_INIT;
    struct envelope env;
    if (read_text(text, &env, &e) != -EINVAL)
        fail_msg("%s was not refused", text);
    assert_true(strlen(err_msg(&e)) > 0);
}

static void a_request(void **state) {
    (void)state;
    _cleanup_err_ struct err e = ERR_INIT;
    struct envelope env;
    assert_int_equal(read_text("{\"id\":7,\"method\":\"a/b\",\"params\":[1]}", &env, &e), 0);
    assert_int_equal(env.kind, ENVELOPE_REQUEST);
    assert_true(str_eqz(env.method, "a/b"));
    assert_int_equal(env.id->type, JSON_NUMBER);
    assert_int_equal(env.params->type, JSON_ARRAY);
    assert_int_equal(read_text("{\"method\":\"\",\"id\":\"x\"}", &env, &e), 0);
    assert_int_equal(env.kind, ENVELOPE_REQUEST);
    assert_int_equal(env.method.n, 0);
    assert_int_equal(env.id->type, JSON_STRING);
    assert_null(env.params);
}

static void a_notification(void **state) {
    (void)state;
    _cleanup_err_ struct err e = ERR_INIT;
    struct envelope env;
    assert_int_equal(read_text("{\"method\":\"initialized\",\"params\":null}", &env, &e), 0);
    assert_int_equal(env.kind, ENVELOPE_NOTIFICATION);
    assert_null(env.id);
    assert_int_equal(env.params->type, JSON_NULL);
}

static void kinds(void **state) {
    (void)state;
    assert_kind("{\"id\":1,\"result\":null}", ENVELOPE_RESPONSE);
    assert_kind("{\"id\":1,\"result\":{},\"error\":5}", ENVELOPE_RESPONSE);
    assert_kind("{\"id\":1,\"error\":{\"code\":-1,\"message\":\"\"}}", ENVELOPE_ERROR);
    assert_kind("{\"id\":1,\"method\":\"m\",\"result\":1}", ENVELOPE_REQUEST);
    assert_kind("{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"m\",\"more\":[]}", ENVELOPE_REQUEST);
}

static void ids(void **state) {
    (void)state;
    assert_kind("{\"id\":0,\"method\":\"m\"}", ENVELOPE_REQUEST);
    assert_kind("{\"id\":-9223372036854775808,\"method\":\"m\"}", ENVELOPE_REQUEST);
    assert_kind("{\"id\":9223372036854775807,\"method\":\"m\"}", ENVELOPE_REQUEST);
    assert_kind("{\"id\":\"\",\"method\":\"m\"}", ENVELOPE_REQUEST);
    static const char *const bad[] = {"null", "1.0", "1e2", "9223372036854775808",
                                      "true", "[]",  "{}",  "-9223372036854775809"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[96];
        snprintf(text, sizeof text, "{\"id\":%s,\"method\":\"m\"}", bad[i]);
        assert_refused(text);
        snprintf(text, sizeof text, "{\"id\":%s,\"result\":1}", bad[i]);
        assert_refused(text);
    }
    assert_refused("{\"result\":1}");
    assert_refused("{\"error\":{\"code\":1,\"message\":\"x\"}}");
}

static void not_a_message(void **state) {
    (void)state;
    static const char *const bad[] = {
        "[]",
        "1",
        "null",
        "\"x\"",
        "{}",
        "{\"id\":1}",
        "{\"id\":1,\"params\":{}}",
        "[{\"id\":1,\"method\":\"m\"}]",
        "{\"method\":1,\"id\":1}",
        "{\"method\":null,\"id\":1}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_refused(bad[i]);
}

static void errors_of_a_peer(void **state) {
    (void)state;
    assert_kind("{\"id\":1,\"error\":{\"code\":1,\"message\":\"m\",\"data\":[1]}}", ENVELOPE_ERROR);
    static const char *const bad[] = {"null",
                                      "\"x\"",
                                      "[]",
                                      "{}",
                                      "{\"code\":1}",
                                      "{\"message\":\"m\"}",
                                      "{\"code\":\"1\",\"message\":\"m\"}",
                                      "{\"code\":1.5,\"message\":\"m\"}",
                                      "{\"code\":1,\"message\":null}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[96];
        snprintf(text, sizeof text, "{\"id\":1,\"error\":%s}", bad[i]);
        assert_refused(text);
    }
}

static void trace(void **state) {
    (void)state;
    static const char *const good[] = {"null", "{}", "{\"traceparent\":null}",
                                       "{\"traceparent\":\"a\",\"tracestate\":\"b\",\"x\":1}"};
    static const char *const bad[] = {"1", "\"x\"", "[]", "{\"traceparent\":1}",
                                      "{\"tracestate\":[]}"};
    char text[128];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        snprintf(text, sizeof text, "{\"id\":1,\"method\":\"m\",\"trace\":%s}", good[i]);
        assert_kind(text, ENVELOPE_REQUEST);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(text, sizeof text, "{\"id\":1,\"method\":\"m\",\"trace\":%s}", bad[i]);
        assert_refused(text);
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_request),     TEST(a_notification),   TEST(kinds), TEST(ids),
        TEST(not_a_message), TEST(errors_of_a_peer), TEST(trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
