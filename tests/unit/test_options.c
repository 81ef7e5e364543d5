#include "app/options.h"

#include "options_run.h"

#include <arpa/inet.h>
#include <limits.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cmocka.h>

#define EXIT_CLOSE_ENV "CODEX_EXEC_SERVER_EXIT_ON_STDIN_CLOSE"
#define PROXY_ENV "CODEX_EXEC_SERVER_PROXY_PRIVATE_IPS_VIA_UPSTREAM"
#define DIGEST "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" /* of "hello" */

#define CAPABILITY "--ws-auth", "capability-token"
#define SIGNED "--ws-auth", "signed-bearer-token"

static void clear_environment(void) {
    unsetenv(EXIT_CLOSE_ENV);
    unsetenv(PROXY_ENV);
    unsetenv("EXEC_SERVER_LOG");
}

/* A directory of files for the token tests; each test starts inside it. */
static char dir[PATH_MAX] = "/tmp/test-options-XXXXXX";
static char file_text[2 * PATH_MAX];

static void write_file(const char *name, const char *text) {
    FILE *f = fopen(name, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static int group_setup(void **state) {
    (void)state;
    if (mkdtemp(dir) == NULL || chdir(dir) != 0 || mkdir("sub", 0700) != 0)
        return -1;
    if (getcwd(dir, sizeof(dir)) == NULL) /* the name without symbolic links, as messages have it */
        return -1;
    write_file("token", " hello\n");
    write_file("blank", " \n\t");
    write_file("bad", "\xff\xfe");
    write_file("secret", "0123456789abcdef0123456789abcdef\n");
    return 0;
}

static int group_teardown(void **state) {
    static const char *const names[] = {"token", "blank", "bad", "secret"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        unlink(names[i]);
    rmdir("sub");
    return chdir("/") == 0 && rmdir(dir) == 0 ? 0 : -1;
}

static int setup(void **state) {
    (void)state;
    clear_environment();
    return chdir(dir);
}

static void test_defaults(void **state) {
    (void)state;
    _cleanup_run_ struct run r = RUN();
    assert_int_equal(r.result, OPTIONS_RUN);
    assert_int_equal(r.o.listen, OPTIONS_LISTEN_WS);
    const struct sockaddr_in *in = (const struct sockaddr_in *)&r.o.addr;
    assert_int_equal(r.o.addr_len, sizeof(*in));
    assert_int_equal(in->sin_family, AF_INET);
    assert_int_equal(ntohl(in->sin_addr.s_addr), INADDR_LOOPBACK);
    assert_int_equal(in->sin_port, 0);
    assert_int_equal(r.o.concurrent_requests, 1);
    assert_int_equal(r.o.auth.mode, AUTH_NONE);
    assert_null(r.o.auth_file);
    assert_int_equal(r.o.session_ttl_ms, 30000);
    assert_int_equal(r.o.session_ttl_max_ms, 86400000);
    assert_int_equal(r.o.closed_retention_ms, 30000);
    assert_int_equal(r.o.closed_retention_max_ms, 86400000);
    assert_false(r.o.keep_detached);
    assert_false(r.o.require_auth);
    assert_int_equal(r.o.max_connections, 1024);
    assert_int_equal(r.o.log_level, LOG_LEVEL_INFO);
    assert_int_equal(r.o.log_format, LOG_FORMAT_TEXT);
}

static void test_values(void **state) {
    (void)state;
    _cleanup_run_ struct run r =
        RUN("--listen=ws://127.0.0.2:8080", "--concurrent-requests", "4", "--session-ttl=1.5",
            "--keep-detached", "--require-auth", "--max-connections", "7", "--log-level=debug");
    assert_string_equal(r.err, "");
    assert_int_equal(r.result, OPTIONS_RUN);
    const struct sockaddr_in *in = (const struct sockaddr_in *)&r.o.addr;
    assert_int_equal(ntohl(in->sin_addr.s_addr), INADDR_LOOPBACK + 1);
    assert_int_equal(ntohs(in->sin_port), 8080);
    assert_int_equal(r.o.concurrent_requests, 4);
    assert_int_equal(r.o.session_ttl_ms, 1500);
    assert_true(r.o.keep_detached);
    assert_true(r.o.require_auth);
    assert_int_equal(r.o.max_connections, 7);
    assert_int_equal(r.o.log_level, LOG_LEVEL_DEBUG);
}

static void test_leading_word(void **state) {
    (void)state;
    expect_run(ARGS("exec-server", "--listen", "stdio"));
    expect_usage("unexpected argument 'exec-server' found", ARGS("exec-server", "exec-server"));
    expect_usage("unexpected argument 'exec-server' found",
                 ARGS("--listen", "stdio", "exec-server"));
    char *linked[] = {(char *)"/usr/bin/codex", (char *)"exec-server", (char *)"--listen",
                      (char *)"stdio", NULL};
    _cleanup_run_ struct run r = run_argv(4, linked);
    assert_int_equal(r.result, OPTIONS_RUN);
    assert_int_equal(r.o.listen, OPTIONS_LISTEN_STDIO);
    assert_int_equal(r.o.log_level, LOG_LEVEL_WARN); /* the client reads it */
    char *nothing[] = {NULL};
    _cleanup_run_ struct run none = run_argv(0, nothing);
    assert_int_equal(none.result, OPTIONS_RUN);
}

static void expect_address(const char *url, int family, const char *text, unsigned port) {
    _cleanup_run_ struct run r = RUN("--listen", url);
    assert_string_equal(r.err, "");
    assert_int_equal(r.result, OPTIONS_RUN);
    assert_int_equal(r.o.listen, OPTIONS_LISTEN_WS);
    assert_int_equal(r.o.addr.ss_family, family);
    char got[INET6_ADDRSTRLEN];
    const struct sockaddr_in *in = (const struct sockaddr_in *)&r.o.addr;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&r.o.addr;
    const void *addr = family == AF_INET ? (const void *)&in->sin_addr : &in6->sin6_addr;
    assert_non_null(inet_ntop(family, addr, got, sizeof(got)));
    assert_string_equal(got, text);
    assert_int_equal(ntohs(family == AF_INET ? in->sin_port : in6->sin6_port), port);
    assert_int_equal(r.o.addr_len, family == AF_INET ? sizeof(*in) : sizeof(*in6));
}

static void test_listen_addresses(void **state) {
    (void)state;
    expect_address("ws://127.0.0.1:0", AF_INET, "127.0.0.1", 0);
    expect_address("ws://0.0.0.0:65535", AF_INET, "0.0.0.0", 65535);
    expect_address("ws://10.1.2.3:00000000080", AF_INET, "10.1.2.3", 80);
    expect_address("ws://[::1]:0", AF_INET6, "::1", 0);
    expect_address("ws://[::]:9", AF_INET6, "::", 9);
    expect_address("ws://[0:0:0:0:0:0:0:1]:1", AF_INET6, "::1", 1);
    expect_address("ws://[::FFFF:127.0.0.1]:1", AF_INET6, "::ffff:127.0.0.1", 1);
    expect_address("ws://[fe80::1%3]:1", AF_INET6, "fe80::1", 1);

    _cleanup_run_ struct run r = RUN("--listen", "ws://[fe80::1%3]:1");
    assert_int_equal(((const struct sockaddr_in6 *)&r.o.addr)->sin6_scope_id, 3);
}

static void test_listen_stdio(void **state) {
    (void)state;
    static const char *const urls[] = {"stdio", "stdio://"};
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        _cleanup_run_ struct run r = RUN("--listen", urls[i]);
        assert_int_equal(r.result, OPTIONS_RUN);
        assert_int_equal(r.o.listen, OPTIONS_LISTEN_STDIO);
    }
}

static void test_listen_invalid(void **state) {
    (void)state;
    static const char *const urls[] = {
        "ws://",
        "ws://:0",
        "ws://127.0.0.1",
        "ws://127.0.0.1:",
        "ws://127.0.0.1:65536",
        "ws://127.0.0.1:18446744073709551616",
        "ws://127.0.0.1:+1",
        "ws://127.0.0.1:-1",
        "ws://127.0.0.1:1e1",
        "ws://127.0.0.1:0/",
        "ws://127.0.0.1:0/x",
        "ws://127.0.0.1:0?x",
        "ws://127.0.0.1:0#x",
        "ws://127.0.0.1:0 ",
        "ws://127.0.0.1:0\n",
        "ws:// 127.0.0.1:0",
        "ws://127.0.0.1:0:0",
        "ws://localhost:0",
        "ws://user@127.0.0.1:0",
        "ws://127.1:0",
        "ws://127.0.0.01:0",
        "ws://256.0.0.1:0",
        "ws://0x7f.0.0.1:0",
        "ws://::1:0",
        "ws://[::1]",
        "ws://[::1]:",
        "ws://[::1]:0/",
        "ws://[::1]x:0",
        "ws://[[::1]]:0",
        "ws://[]:0",
        "ws://[:0",
        "ws://]:0",
        "ws://[127.0.0.1]:0",
        "ws://[::1%]:0",
        "ws://[::1%lo]:0",
        "ws://[::1%1%1]:0",
        "ws://[::1%4294967296]:0",
        "ws://[1::2:3:4:5:6:7:8]:0",
        "ws://[::00001]:0",
        "ws://[1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa]:0"};
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        char text[256];
        snprintf(text, sizeof(text), "invalid websocket --listen URL `%s`; expected `ws://IP:PORT`",
                 urls[i]);
        expect_error(text, ARGS("--listen", urls[i]));
    }
}

static void test_listen_unsupported(void **state) {
    (void)state;
    static const char *const urls[] = {
        "",
        "-",
        "off",
        " stdio",
        "STDIO",
        "stdio:",
        "stdio:///",
        "WS://127.0.0.1:0",
        " ws://127.0.0.1:0",
        "127.0.0.1:0",
        "ws:/127.0.0.1:0",
        "wss://127.0.0.1:0",
        "http://127.0.0.1:0",
        "unix:/run/x",
        "UNIX:///run/x",
        "fd",
        "fd://3",
    };
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        char text[256];
        snprintf(text, sizeof(text),
                 "unsupported --listen URL `%s`; expected `ws://IP:PORT` or `stdio`", urls[i]);
        expect_error(text, ARGS("--listen", urls[i]));
    }
}

static void test_listen_unix(void **state) {
    (void)state;
    _cleanup_run_ struct run r = RUN("--listen", "unix:///run/a b/%41");
    assert_int_equal(r.result, OPTIONS_RUN);
    assert_int_equal(r.o.listen, OPTIONS_LISTEN_UNIX);
    const struct sockaddr_un *un = (const struct sockaddr_un *)&r.o.addr;
    assert_int_equal(un->sun_family, AF_UNIX);
    assert_string_equal(un->sun_path, "/run/a b/%41");
    assert_int_equal(r.o.addr_len, sizeof(*un));

    expect_error("invalid unix --listen URL `unix://`; expected `unix:///PATH`",
                 ARGS("--listen", "unix://"));
    expect_error("invalid unix --listen URL `unix://run/x`; expected `unix:///PATH`",
                 ARGS("--listen", "unix://run/x"));
    char url[sizeof("unix://") + sizeof(un->sun_path)] = "unix:///";
    memset(url + strlen(url), 'x', sizeof(un->sun_path) - 2);
    expect_run(ARGS("--listen", url));
    url[strlen(url)] = 'x';
    char text[512];
    snprintf(text, sizeof(text),
             "invalid unix --listen URL `%s`; the path is longer than %zu bytes", url,
             sizeof(un->sun_path) - 1);
    expect_error(text, ARGS("--listen", url));
    expect_run(ARGS("--listen", "unix:///x", CAPABILITY, "--ws-token-sha256", DIGEST));
}

static void test_exposed(void **state) {
    (void)state;
    static const struct {
        const char *url;
        bool exposed;
    } cases[] = {
        {"ws://127.0.0.1:0", false},
        {"ws://127.255.0.1:0", false},
        {"ws://[::1]:0", false},
        {"ws://[::ffff:127.0.0.1]:0", false},
        {"stdio", false},
        {"unix:///run/x", false},
        {"ws://0.0.0.0:0", true},
        {"ws://192.0.2.1:0", true},
        {"ws://[::]:0", true},
        {"ws://[2001:db8::1]:0", true},
        {"ws://[::ffff:192.0.2.1]:0", true},
        {"ws://[::7f00:1]:0", true},
        {"ws://128.0.0.1:0", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        _cleanup_run_ struct run r = RUN("--listen", cases[i].url);
        assert_int_equal(r.result, OPTIONS_RUN);
        assert_int_equal(options_unauthenticated_exposed(&r.o), cases[i].exposed);
        _cleanup_run_ struct run strict = RUN("--require-auth", "--listen", cases[i].url);
        assert_int_equal(strict.result, cases[i].exposed ? OPTIONS_ERROR : OPTIONS_RUN);
    }
    expect_error("--require-auth: `ws://0.0.0.0:80` is not a loopback address and `--ws-auth` is "
                 "not set",
                 ARGS("--listen", "ws://0.0.0.0:80", "--require-auth"));
    _cleanup_run_ struct run r = RUN("--listen", "ws://0.0.0.0:0", "--require-auth", CAPABILITY,
                                     "--ws-token-sha256", DIGEST);
    assert_int_equal(r.result, OPTIONS_RUN);
    assert_false(options_unauthenticated_exposed(&r.o));
}

static void test_usage_form(void **state) {
    (void)state;
    expect_usage("unexpected argument '--bogus' found", ARGS("--bogus"));
    expect_usage("unexpected argument '--bogus' found", ARGS("--bogus=1"));
    expect_usage("unexpected argument '--list' found; did you mean '--listen'?",
                 ARGS("--list", "stdio"));
    expect_usage("unexpected argument '--LISTEN' found", ARGS("--LISTEN", "stdio"));
    expect_usage("unexpected argument '-x' found", ARGS("-x"));
    expect_usage("unexpected argument 'word' found", ARGS("word"));
    expect_usage("unexpected argument '' found", ARGS(""));
    expect_usage("unexpected argument '-' found", ARGS("-"));
    expect_usage("unexpected argument '--listen' found", ARGS("--", "--listen"));
    expect_usage("unexpected argument '--listn' found; did you mean '--listen'?", ARGS("--listn"));
    expect_usage("unexpected argument 'listen' found; did you mean '--listen'?", ARGS("listen"));
    expect_run(ARGS("--"));
}

static void test_missing_value(void **state) {
    (void)state;
    const char *listen = "a value is required for '--listen <URL>' but none was supplied";
    expect_usage(listen, ARGS("--listen"));
    expect_usage(listen, ARGS("--listen", "--name"));
    expect_usage(listen, ARGS("--listen", "--name=x"));
    expect_usage(listen, ARGS("--listen", "-h"));
    expect_usage(listen, ARGS("--listen", "--"));
    expect_usage("unexpected argument '-x' found", ARGS("--listen", "-x"));
    expect_usage("invalid value '-1' for '--session-ttl <SECONDS>': must not be negative",
                 ARGS("--session-ttl", "-1"));
    expect_usage("a value is required for '--config <KEY=VALUE>' but none was supplied",
                 ARGS("-c"));
    expect_usage("a value is required for '--ws-token-file <PATH>' but none was supplied",
                 ARGS(CAPABILITY, "--ws-token-file", ""));
}

static void test_twice(void **state) {
    (void)state;
    expect_usage("the argument '--listen <URL>' cannot be used multiple times",
                 ARGS("--listen=stdio", "--listen", "stdio"));
    expect_usage("the argument '--strict-config' cannot be used multiple times",
                 ARGS("--strict-config", "--strict-config"));
    expect_usage("the argument '--keep-detached' cannot be used multiple times",
                 ARGS("--keep-detached", "--keep-detached"));
    expect_usage("the argument '--name <NAME>' cannot be used multiple times",
                 ARGS("--name", "a", "--name", "b"));
}

static void test_flag_with_value(void **state) {
    (void)state;
    expect_usage("unexpected value '1' for '--keep-detached' found; no more were expected",
                 ARGS("--keep-detached=1"));
    expect_usage("unexpected value '' for '--help' found; no more were expected", ARGS("--help="));
}

static void test_invalid_utf8(void **state) {
    (void)state;
    expect_usage("the value of '--listen <URL>' is not valid UTF-8", ARGS("--listen", "ws://\xff"));
    expect_usage("the value of '--config <KEY=VALUE>' is not valid UTF-8", ARGS("-c\xc3"));
}

static void expect_bad_number(const char *option, const char *label, const char *value,
                              const char *reason) {
    char text[256];
    char arg[128];
    snprintf(text, sizeof(text), "invalid value '%s' for '%s': %s", value, label, reason);
    snprintf(arg, sizeof(arg), "%s=%s", option, value);
    expect_usage(text, ARGS(arg));
}

static void test_whole_numbers(void **state) {
    (void)state;
    static const char *const not_numbers[] = {"",    "abc", "-1",   " 3",    "3 ", "+",
                                              "++1", "1.5", "0x10", "1_000", "1e3"};
    for (size_t i = 0; i < ARRAY_LEN(not_numbers); i++) {
        expect_bad_number("--concurrent-requests", "--concurrent-requests <COUNT>", not_numbers[i],
                          "not a whole number");
        expect_bad_number("--max-connections", "--max-connections <COUNT>", not_numbers[i],
                          "not a whole number");
        expect_bad_number("--ws-max-clock-skew-seconds", "--ws-max-clock-skew-seconds <SECONDS>",
                          not_numbers[i], "not a whole number");
    }
    expect_bad_number("--concurrent-requests", "--concurrent-requests <COUNT>", "0",
                      "must be at least 1");
    expect_bad_number("--concurrent-requests", "--concurrent-requests <COUNT>",
                      "18446744073709551616", "the number is too large");
    _cleanup_run_ struct run most = RUN("--concurrent-requests", "18446744073709551615");
    assert_true(most.o.concurrent_requests == UINT64_MAX);
    _cleanup_run_ struct run plus = RUN("--concurrent-requests", "+007");
    assert_int_equal(plus.o.concurrent_requests, 7);
}

static void test_max_connections(void **state) {
    (void)state;
    static const char *const out_of_range[] = {"0", "1000001", "4294967297",
                                               "18446744073709551617"};
    for (size_t i = 0; i < ARRAY_LEN(out_of_range); i++)
        expect_bad_number("--max-connections", "--max-connections <COUNT>", out_of_range[i],
                          "must be between 1 and 1000000");
    _cleanup_run_ struct run least = RUN("--max-connections", "1");
    assert_int_equal(least.o.max_connections, 1);
    _cleanup_run_ struct run most = RUN("--max-connections", "1000000");
    assert_int_equal(most.o.max_connections, 1000000);
}

static void test_session_ttl(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint64_t ms;
    } good[] = {
        {"0", 0},
        {"0.0", 0},
        {"0.000000", 0},
        {"1", 1000},
        {"0030", 30000},
        {"0.5", 500},
        {"0.25", 250},
        {"0.001", 1},
        {"0.0001", 1},
        {"1.9999", 2000},
        {"2.0010000", 2001},
        {"31536000", 31536000000},
        {"31536000.0", 31536000000},
    };
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        _cleanup_run_ struct run r = RUN("--session-ttl", good[i].text);
        assert_int_equal(r.result, OPTIONS_RUN);
        assert_true(r.o.session_ttl_ms == good[i].ms);
    }
    static const char *const bad[] = {"",    "-1",  ".5",   "5.", ".",  "1.2.3", "1,5", "1e3",
                                      "inf", "nan", "0x10", "1s", " 1", "+1",    "1.-5"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        expect_bad_number("--session-ttl", "--session-ttl <SECONDS>", bad[i], "not a number");
    static const char *const large[] = {"31536001", "31536000.001",
                                        "99999999999999999999999999999999"};
    for (size_t i = 0; i < ARRAY_LEN(large); i++)
        expect_bad_number("--session-ttl", "--session-ttl <SECONDS>", large[i],
                          "must be at most 31536000");
}

static void test_choices(void **state) {
    (void)state;
    expect_usage("invalid value 'token' for '--ws-auth <MODE>'; "
                 "possible values: capability-token, signed-bearer-token",
                 ARGS("--ws-auth", "token"));
    expect_usage("invalid value 'Isolate' for '--linux-sandbox-pid-namespace <MODE>'; "
                 "possible values: isolate, inherit",
                 ARGS("--linux-sandbox-pid-namespace", "Isolate"));
    expect_usage("invalid value 'trace' for '--log-level <LEVEL>'; "
                 "possible values: error, warn, info, debug, off",
                 ARGS("--log-level", "trace"));
}

static void test_accepted_and_ignored(void **state) {
    (void)state;
    expect_run(ARGS("-c", "a=b", "-ca=b", "-c=a", "--config", "x", "--config=c=d", "--enable", "f",
                    "--enable=f", "--disable", "f", "--disable=g", "--strict-config", "--name", "n",
                    "--environment-id", "e", "--proxy-private-ips-via-upstream"));
}

static void test_not_available(void **state) {
    (void)state;
    const char *remote = "--remote is not available in this version of exec-server";
    expect_error(remote, ARGS("--remote", "wss://example.org"));
    expect_error(remote, ARGS("--remote=x", "--environment-id", "e", "--name", "n",
                              "--remote-transport", "noise", "--use-agent-identity-auth",
                              "--executor-credential-stdin", "--exit-on-stdin-close"));
    expect_error("WebSocket listener auth cannot be used with --remote or forward",
                 ARGS("--remote", "x", CAPABILITY, "--ws-token-file", "token"));
    expect_usage("the argument '--remote <URL>' cannot be used with '--listen <URL>'",
                 ARGS("--remote", "x", "--listen", "stdio"));
    expect_usage("the argument '--exit-on-stdin-close' requires '--remote <URL>'",
                 ARGS("--exit-on-stdin-close"));
    expect_usage("the argument '--aws-region <REGION>' requires '--remote <URL>'",
                 ARGS("--aws-region", "r"));
}

static void test_environment_flags(void **state) {
    (void)state;
    setenv(EXIT_CLOSE_ENV, "true", 1);
    expect_usage("the argument '--exit-on-stdin-close' from the environment variable "
                 "'" EXIT_CLOSE_ENV "' requires '--remote <URL>'",
                 ARGS());
    setenv(EXIT_CLOSE_ENV, "1", 1);
    expect_usage("invalid value '1' for '--exit-on-stdin-close' from the environment variable "
                 "'" EXIT_CLOSE_ENV "'; possible values: true, false",
                 ARGS());
    setenv(EXIT_CLOSE_ENV, "false", 1);
    expect_run(ARGS());
    unsetenv(EXIT_CLOSE_ENV);
    setenv(PROXY_ENV, "true", 1);
    expect_run(ARGS());
    setenv(PROXY_ENV, "bad", 1);
    expect_run(ARGS("--proxy-private-ips-via-upstream"));
    _cleanup_run_ struct run r = RUN();
    assert_int_equal(r.result, OPTIONS_USAGE);
}

static void test_environment_log_level(void **state) {
    (void)state;
    setenv("EXEC_SERVER_LOG", "info", 1);
    _cleanup_run_ struct run from_env = RUN();
    assert_int_equal(from_env.o.log_level, LOG_LEVEL_INFO);
    _cleanup_run_ struct run option = RUN("--log-level", "off");
    assert_int_equal(option.o.log_level, LOG_LEVEL_OFF);
    setenv("EXEC_SERVER_LOG", "", 1);
    _cleanup_run_ struct run empty = RUN();
    assert_int_equal(empty.result, OPTIONS_RUN);
    assert_int_equal(empty.o.log_level, LOG_LEVEL_INFO);
    setenv("EXEC_SERVER_LOG", "loud", 1);
    expect_usage("invalid value 'loud' for '--log-level' from the environment variable "
                 "'EXEC_SERVER_LOG'; possible values: error, warn, info, debug, off",
                 ARGS());
}

static void test_help_and_version(void **state) {
    (void)state;
    _cleanup_run_ struct run help = RUN("--help", "--bogus");
    assert_int_equal(help.result, OPTIONS_EXIT_0);
    assert_string_equal(help.err, "");
    assert_non_null(strstr(help.out, "Usage: exec-server [OPTIONS]\n"));
    static const char *const shown[] = {
        "--listen <URL>",
        "--concurrent-requests <COUNT>",
        "--max-connections <COUNT>",
        "--ws-auth <MODE>",
        "--ws-token-file <PATH>",
        "--session-ttl <SECONDS>",
        "--keep-detached",
        "--require-auth",
        "--log-level <LEVEL>",
        "--config-file <FILE>",
        "--print-config",
        "--allow-direct-exec <BOOL>",
        "--http-host <NAME>",
        "-c, --config",
        "-h, --help",
        "-V, --version",
    };
    for (size_t i = 0; i < ARRAY_LEN(shown); i++)
        assert_non_null(strstr(help.out, shown[i]));
    assert_null(strstr(help.out, "--remote"));
    for (const char *line = help.out; *line != '\0';) {
        size_t n = strcspn(line, "\n");
        assert_true(n <= 100);
        line += n + (line[n] == '\n');
    }

    _cleanup_run_ struct run small = RUN("-hx");
    assert_string_equal(small.out, help.out);
    _cleanup_run_ struct run version = RUN("-V");
    assert_int_equal(version.result, OPTIONS_EXIT_0);
    static const char begin[] = "exec-server " EXEC_SERVER_VERSION " (";
    assert_memory_equal(version.out, begin, strlen(begin));
    assert_string_equal(version.out + strlen(version.out) - 2, ")\n");
    _cleanup_run_ struct run version_long = RUN("exec-server", "--version");
    assert_string_equal(version_long.out, version.out);
}

static void test_first_error_wins(void **state) {
    (void)state;
    expect_usage("unexpected argument '--bogus' found", ARGS("--bogus", "--help"));
    _cleanup_run_ struct run r = RUN("--remote", "x", "--listen", "y", "--help");
    assert_int_equal(r.result, OPTIONS_EXIT_0);
}

static void test_help_to_full_device(void **state) {
    (void)state;
    char *argv[] = {(char *)"exec-server", (char *)"--help", NULL};
    struct options o;
    char *text = NULL;
    size_t n;
    FILE *full = fopen("/dev/full", "w");
    FILE *err = open_memstream(&text, &n);
    assert_non_null(full);
    assert_non_null(err);
    assert_int_equal(options_parse(2, argv, &o, full, err), OPTIONS_ERROR);
    fclose(full);
    fclose(err);
    assert_string_equal(text, "Error: cannot write to standard output\n");
    free(text);
    options_fini(&o);
}

static void test_auth_combinations(void **state) {
    (void)state;
    const char *no_mode = "websocket auth flags require `--ws-auth capability-token` or "
                          "`--ws-auth signed-bearer-token`";
    expect_error(no_mode, ARGS("--ws-token-file", "token"));
    expect_error(no_mode, ARGS("--ws-token-sha256", DIGEST));
    expect_error(no_mode, ARGS("--ws-shared-secret-file", "secret"));
    expect_error(no_mode, ARGS("--ws-issuer", ""));
    expect_error(no_mode, ARGS("--ws-audience", "x"));
    expect_error(no_mode, ARGS("--ws-max-clock-skew-seconds", "5"));

    expect_error("`--ws-token-file` or `--ws-token-sha256` is required when "
                 "`--ws-auth capability-token` is set",
                 ARGS(CAPABILITY));
    expect_error("`--ws-token-file` and `--ws-token-sha256` are mutually exclusive",
                 ARGS(CAPABILITY, "--ws-token-file", "token", "--ws-token-sha256", DIGEST));
    const char *jwt = "`--ws-shared-secret-file`, `--ws-issuer`, `--ws-audience`, and "
                      "`--ws-max-clock-skew-seconds` require `--ws-auth signed-bearer-token`";
    expect_error(jwt, ARGS(CAPABILITY, "--ws-issuer", "x"));
    expect_error(jwt, ARGS(CAPABILITY, "--ws-token-file", "token", "--ws-audience", ""));
    expect_error(jwt, ARGS(CAPABILITY, "--ws-token-file", "token", "--ws-token-sha256", DIGEST,
                           "--ws-max-clock-skew-seconds", "1"));
    const char *token = "`--ws-token-file` and `--ws-token-sha256` require "
                        "`--ws-auth capability-token`, not `signed-bearer-token`";
    expect_error(token, ARGS(SIGNED, "--ws-token-file", "token"));
    expect_error(token,
                 ARGS(SIGNED, "--ws-token-sha256", DIGEST, "--ws-shared-secret-file", "secret"));
    expect_error("`--ws-shared-secret-file` is required when `--ws-auth signed-bearer-token` is "
                 "set",
                 ARGS(SIGNED));
}

/* "BEFORE DIR/NAME AFTER", in a static buffer. */
static const char *about_file(const char *before, const char *name, const char *after) {
    snprintf(file_text, sizeof(file_text), "%s %s/%s%s", before, dir, name, after);
    return file_text;
}

static void test_auth_files(void **state) {
    (void)state;
    const char *failed = "failed to read websocket auth secret";
    const char *missing = ": No such file or directory (os error 2)";
    expect_error(about_file(failed, "nope", missing), ARGS(CAPABILITY, "--ws-token-file", "nope"));
    expect_error(about_file(failed, "nope", missing),
                 ARGS(CAPABILITY, "--ws-token-file", ".//./nope/"));
    expect_error(about_file(failed, "nope", missing),
                 ARGS(SIGNED, "--ws-shared-secret-file", "nope"));
    expect_error(about_file(failed, "sub", ": Is a directory (os error 21)"),
                 ARGS(CAPABILITY, "--ws-token-file", "sub"));
    expect_error(about_file(failed, "bad", ": stream did not contain valid UTF-8"),
                 ARGS(CAPABILITY, "--ws-token-file", "bad"));
    expect_error(about_file("websocket auth secret", "blank", " must not be empty"),
                 ARGS(CAPABILITY, "--ws-token-file", "blank"));
    expect_error(
        about_file("signed websocket bearer secret", "token", " must be at least 32 bytes"),
        ARGS(SIGNED, "--ws-shared-secret-file", "token"));
    expect_error("--ws-token-sha256 must be a 64-character hex SHA-256 digest",
                 ARGS(CAPABILITY, "--ws-token-sha256", "zz"));
}

static void test_auth_order(void **state) {
    (void)state;
    const char *huge = "9223372036854775808";
    const char *invalid = "invalid websocket --listen URL `ws://x`; expected `ws://IP:PORT`";
    expect_error(
        "websocket auth clock skew must fit in a signed 64-bit integer",
        ARGS(SIGNED, "--ws-shared-secret-file", "secret", "--ws-max-clock-skew-seconds", huge));
    expect_error(
        about_file("signed websocket bearer secret", "token", " must be at least 32 bytes"),
        ARGS(SIGNED, "--ws-shared-secret-file", "token", "--ws-max-clock-skew-seconds", huge));
    expect_error("WebSocket auth requires a WebSocket listener, not stdio",
                 ARGS("--listen", "stdio", CAPABILITY, "--ws-token-file", "nope"));
    expect_error("WebSocket auth requires a WebSocket listener, not stdio",
                 ARGS("--listen", "stdio", CAPABILITY, "--ws-token-sha256", DIGEST));
    expect_error(invalid, ARGS("--listen", "ws://x", CAPABILITY, "--ws-token-file", "nope"));
    expect_error("--ws-token-sha256 must be a 64-character hex SHA-256 digest",
                 ARGS("--listen", "ws://x", CAPABILITY, "--ws-token-sha256", "zz"));
    expect_error("`--ws-shared-secret-file` is required when `--ws-auth signed-bearer-token` is "
                 "set",
                 ARGS("--listen", "ws://x", SIGNED));
}

static void test_auth_loaded(void **state) {
    (void)state;
    _cleanup_run_ struct run file = RUN(CAPABILITY, "--ws-token-file", "token");
    _cleanup_run_ struct run digest = RUN(CAPABILITY, "--ws-token-sha256", " " DIGEST "\n");
    assert_int_equal(file.result, OPTIONS_RUN);
    assert_int_equal(digest.result, OPTIONS_RUN);
    assert_int_equal(file.o.auth.mode, AUTH_CAPABILITY);
    assert_int_equal(digest.o.auth.mode, AUTH_CAPABILITY);
    assert_memory_equal(file.o.auth.digest, digest.o.auth.digest, sizeof(file.o.auth.digest));
    assert_string_equal(file.o.auth_file, about_file("", "token", "") + 1);
    assert_null(digest.o.auth_file);

    _cleanup_run_ struct run jwt =
        RUN(SIGNED, "--ws-shared-secret-file", "secret", "--ws-issuer", " me ", "--ws-audience",
            " ", "--ws-max-clock-skew-seconds", "9223372036854775807");
    assert_int_equal(jwt.result, OPTIONS_RUN);
    assert_int_equal(jwt.o.auth.mode, AUTH_SIGNED);
    assert_int_equal(jwt.o.auth.secret_len, 32);
    assert_string_equal(jwt.o.auth.issuer, "me");
    assert_null(jwt.o.auth.audience);
    assert_true(jwt.o.auth.skew == INT64_MAX);
    _cleanup_run_ struct run skew = RUN(SIGNED, "--ws-shared-secret-file", "secret");
    assert_int_equal(skew.o.auth.skew, 30);
}

static void test_paths(void **state) {
    (void)state;
    const char *failed = "failed to read websocket auth secret";
    const char *missing = ": No such file or directory (os error 2)";
    setenv("HOME", dir, 1);
    expect_error(about_file(failed, "nope", missing),
                 ARGS(CAPABILITY, "--ws-token-file", "~/nope"));
    expect_run(ARGS(CAPABILITY, "--ws-token-file=~/token"));
    expect_run(ARGS(CAPABILITY, "--ws-token-file", "sub/../token"));
    expect_error(about_file(failed, "~x", missing), ARGS(CAPABILITY, "--ws-token-file", "~x"));
    expect_error("failed to read websocket auth secret /: Is a directory (os error 21)",
                 ARGS(CAPABILITY, "--ws-token-file", "//."));
    assert_int_equal(chdir("/"), 0);
    expect_error("failed to read websocket auth secret /no-such-file: No such file or directory "
                 "(os error 2)",
                 ARGS(CAPABILITY, "--ws-token-file", "no-such-file"));
}

static void test_reload(void **state) {
    (void)state;
    _cleanup_err_ struct err e = ERR_INIT;
    write_file("secret", "first-secret-first-secret-first-secret");
    _cleanup_run_ struct run r = RUN(SIGNED, "--ws-shared-secret-file", "secret", "--ws-issuer",
                                     "me", "--ws-max-clock-skew-seconds", "9");
    assert_int_equal(r.result, OPTIONS_RUN);

    write_file("secret", "second-secret-second-secret-second");
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(options_reload_auth(&r.o, &e), 0);
    assert_memory_equal(r.o.auth.secret, "second-secret-second-secret-second", r.o.auth.secret_len);
    assert_string_equal(r.o.auth.issuer, "me");
    assert_null(r.o.auth.audience);
    assert_int_equal(r.o.auth.skew, 9);

    assert_int_equal(chdir(dir), 0);
    write_file("secret", "short");
    assert_true(options_reload_auth(&r.o, &e) < 0);
    assert_string_equal(err_msg(&e), about_file("signed websocket bearer secret", "secret",
                                                " must be at least 32 bytes"));
    assert_memory_equal(r.o.auth.secret, "second-secret-second-secret-second", r.o.auth.secret_len);
    write_file("secret", "0123456789abcdef0123456789abcdef\n");
}

static void test_reload_token(void **state) {
    (void)state;
    _cleanup_err_ struct err e = ERR_INIT;
    uint8_t before[sizeof(((struct auth *)NULL)->digest)];
    _cleanup_run_ struct run r = RUN(CAPABILITY, "--ws-token-file", "token");
    memcpy(before, r.o.auth.digest, sizeof(before));
    write_file("token", "other");
    assert_int_equal(options_reload_auth(&r.o, &e), 0);
    assert_memory_not_equal(r.o.auth.digest, before, sizeof(before));
    write_file("token", " hello\n");
    assert_int_equal(options_reload_auth(&r.o, &e), 0);
    assert_memory_equal(r.o.auth.digest, before, sizeof(before));

    _cleanup_run_ struct run fixed = RUN(CAPABILITY, "--ws-token-sha256", DIGEST);
    assert_int_equal(options_reload_auth(&fixed.o, &e), 0);
    assert_int_equal(fixed.o.auth.mode, AUTH_CAPABILITY);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(test_defaults),
                                       TEST(test_values),
                                       TEST(test_leading_word),
                                       TEST(test_listen_addresses),
                                       TEST(test_listen_stdio),
                                       TEST(test_listen_invalid),
                                       TEST(test_listen_unsupported),
                                       TEST(test_listen_unix),
                                       TEST(test_exposed),
                                       TEST(test_usage_form),
                                       TEST(test_missing_value),
                                       TEST(test_twice),
                                       TEST(test_flag_with_value),
                                       TEST(test_invalid_utf8),
                                       TEST(test_whole_numbers),
                                       TEST(test_max_connections),
                                       TEST(test_session_ttl),
                                       TEST(test_choices),
                                       TEST(test_accepted_and_ignored),
                                       TEST(test_not_available),
                                       TEST(test_environment_flags),
                                       TEST(test_environment_log_level),
                                       TEST(test_help_and_version),
                                       TEST(test_first_error_wins),
                                       TEST(test_help_to_full_device),
                                       TEST(test_auth_combinations),
                                       TEST(test_auth_files),
                                       TEST(test_auth_order),
                                       TEST(test_auth_loaded),
                                       TEST(test_paths),
                                       TEST(test_reload),
                                       TEST(test_reload_token)};
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
