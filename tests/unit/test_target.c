#include "client/target.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static void same(const char *a, const char *b) {
    if (a == NULL || b == NULL)
        assert_true(a == b);
    else
        assert_string_equal(a, b);
}

static void parses(void **state) {
    (void)state;
    static const struct {
        const char *url;
        enum target_kind kind;
        const char *shown, *host, *authority, *resource, *path, *user;
        uint16_t port;
        int in, out;
    } good[] = {
        {"ws://h", TARGET_WS, "ws://h", "h", "h", "/", NULL, NULL, 80, -1, -1},
        {"WS://[::1]:8080/a?b#c", TARGET_WS, "WS://[::1]:8080/a", "::1", "[::1]:8080", "/a?b", NULL,
         NULL, 8080, -1, -1},
        {"wss://H.example/x y", TARGET_WSS, "wss://H.example/x y", "h.example", "h.example",
         "/x%20y", NULL, NULL, 443, -1, -1},
        {"unix:///a%20b", TARGET_UNIX, "unix:///a%20b", NULL, "localhost", "/", "/a b", NULL, 0, -1,
         -1},
        {"stdio:", TARGET_STDIO, "stdio:", NULL, NULL, NULL, NULL, NULL, 0, -1, -1},
        {"local:", TARGET_LOCAL, "local:", NULL, NULL, NULL, NULL, NULL, 0, -1, -1},
        {"fd:3", TARGET_FD, "fd:3", NULL, NULL, NULL, NULL, NULL, 0, 3, 3},
        {"fd:0,1", TARGET_FD, "fd:0,1", NULL, NULL, NULL, NULL, NULL, 0, 0, 1},
        {"ssh://h", TARGET_SSH, "ssh://h", "h", NULL, NULL, NULL, NULL, 0, -1, -1},
        {"ssh://u@h:22/", TARGET_SSH, "ssh://u@h:22/", "h", NULL, NULL, NULL, "u", 22, -1, -1},
        {"ssh://[fe80::1]:22/p", TARGET_SSH, "ssh://[fe80::1]:22/p", "fe80::1", NULL, NULL, "p",
         NULL, 22, -1, -1},
        {"ssh://h/opt/a%20b", TARGET_SSH, "ssh://h/opt/a%20b", "h", NULL, NULL, "/opt/a b", NULL, 0,
         -1, -1},
        {"ssh://h/~/bin/x", TARGET_SSH, "ssh://h/~/bin/x", "h", NULL, NULL, "bin/x", NULL, 0, -1,
         -1},
    };
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        struct target t;
        _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
        assert_int_equal(target_parse(&t, good[i].url, &e), 0);
        assert_int_equal(t.kind, good[i].kind);
        same(t.shown, good[i].shown);
        same(t.host, good[i].host);
        same(t.authority, good[i].authority);
        same(t.resource, good[i].resource);
        same(t.path, good[i].path);
        same(t.user, good[i].user);
        assert_int_equal(t.port, good[i].port);
        assert_int_equal(t.in, good[i].in);
        assert_int_equal(t.out, good[i].out);
        target_fini(&t);
    }
}

static void refuses(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",           "x",           "http://h",       "ws:",         "ws://",      "ws://:1",
        "ws://a b/",  "ws://u@h",    "ws://h:65536",   "unix://",     "unix://a",   "unix:///%00",
        "unix:///%4", "fd:",         "fd:-1",          "fd:1,",       "fd:1,x",     "fd:1,2,3",
        "fd:9999999", "ssh://",      "ssh://-x",       "ssh://-x@h",  "ssh://@h",   "ssh://u:p@h",
        "ssh://h:",   "ssh://h:0",   "ssh://h:99999",  "ssh://h:1x",  "ssh://h/-x", "ssh://[::1",
        "stdio",      "stdio:/path", "ssh://[::1]x/y", "local://host"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct target t;
        _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
        assert_int_equal(target_parse(&t, bad[i], &e), XS_EINVAL);
        assert_int_equal(e.code, XS_EINVAL);
        target_fini(&t);
    }
    struct target t;
    _cleanup_xs_error_ struct xs_error e = XS_ERROR_INIT;
    assert_int_equal(target_parse(&t, NULL, &e), XS_EINVAL);
    target_fini(&t);
    assert_int_equal(target_parse(&t, "ws://u:secret@h/?secret", &e), XS_EINVAL);
    assert_null(strstr(xs_error_text(&e), "secret"));
    target_fini(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parses),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
