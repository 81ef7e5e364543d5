#include "cli/cli_sink.h"

#include "base/util.h"
#include "cli/cli_json.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#define BIG ((size_t)1 << 20)

/* Reads until `want` bytes have come; the sink goes on writing meanwhile. */
static void take(struct cli_sink *s, int fd, size_t want) {
    _cleanup_free_ char *got = malloc(want);
    for (size_t at = 0; at < want;) {
        ssize_t n = read(fd, got + at, want - at);
        assert_true(n > 0);
        for (ssize_t i = 0; i < n; i++)
            assert_int_equal((unsigned char)got[at + (size_t)i], (at + (size_t)i) % 251);
        at += (size_t)n;
        assert_true(cli_sink_flush(s) >= 0);
    }
    assert_false(cli_sink_waits(s));
}

static char *pattern(void) {
    char *p = malloc(BIG);
    for (size_t i = 0; i < BIG; i++)
        p[i] = (char)(i % 251);
    return p;
}

static void try_pair(int reader, int writer) {
    struct cli_sink s;
    _cleanup_free_ char *p = pattern();
    cli_sink_init(&s, writer);
    assert_int_equal(cli_sink_put(&s, p, BIG), 1); /* it does not block */
    assert_true(cli_sink_waits(&s));
    take(&s, reader, BIG);
    close(reader);
    assert_int_equal(cli_sink_put(&s, p, 1), -EPIPE);
    assert_int_equal(cli_sink_put(&s, p, 1), -EPIPE); /* and stays so */
    assert_int_equal(cli_sink_flush(&s), -EPIPE);
    assert_false(cli_sink_waits(&s));
    cli_sink_fini(&s);
}

/* The pipe itself stays blocking for those who share it. */
static void pipes(void **state) {
    int fds[2];
    (void)state;
    assert_int_equal(pipe(fds), 0);
    int writer = fds[1];
    try_pair(fds[0], writer);
    assert_int_equal(fcntl(writer, F_GETFL) & O_NONBLOCK, 0);
    close(writer);
}

static void sockets(void **state) {
    int fds[2];
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    try_pair(fds[0], fds[1]);
    close(fds[1]);
}

static void full_disk(void **state) {
    struct cli_sink s;
    (void)state;
    int fd = open("/dev/full", O_WRONLY);
    cli_sink_init(&s, fd);
    assert_int_equal(cli_sink_put(&s, "x", 1), -ENOSPC);
    cli_sink_fini(&s);
    close(fd);
}

/* Text that is no UTF-8 stands beside its bytes. */
static void json(void **state) {
    _cleanup_cli_json_ struct cli_json j = CLI_JSON_INIT;
    char text[256] = "";
    int fds[2];
    (void)state;
    assert_int_equal(pipe(fds), 0);
    cli_json_open(&j, NULL, '{');
    cli_json_path(&j, "path", STR_LIT("a\xff"));
    cli_json_open(&j, "list", '[');
    cli_json_int(&j, NULL, -1);
    cli_json_null(&j, NULL);
    cli_json_bytes(&j, NULL, "abc", 3);
    cli_json_close(&j, ']');
    cli_json_str(&j, "s", STR_LIT("\"\033\n"));
    cli_json_bool(&j, "b", true);
    cli_json_close(&j, '}');
    assert_int_equal(cli_json_print(&j, fds[1]), 0);
    assert_true(read(fds[0], text, sizeof text - 1) > 0);
    assert_string_equal(text,
                        "{\"path\":\"a?\",\"pathBase64\":\"Yf8=\",\"list\":[-1,null,\"YWJj\"],"
                        "\"s\":\"\\\"\\u001b\\n\",\"b\":true}\n");
    close(fds[0]);
    assert_int_equal(cli_json_print(&j, fds[1]), -EPIPE);
    close(fds[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pipes),
        cmocka_unit_test(sockets),
        cmocka_unit_test(full_disk),
        cmocka_unit_test(json),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
