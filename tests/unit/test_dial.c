#include "net/dial.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#define ROUNDS 6000 /* only end a hang */

static uint64_t fake_now;

static uint64_t fake_clock(void) {
    return fake_now;
}

struct fixture {
    struct loop loop;
    struct resolve resolve;
    struct dial dial;
    int done;
    int listener[2]; /* 127.0.0.1 and 127.0.0.2, one port; nobody accepts */
    uint16_t port;
    int silent; /* a name server that never answers */
    int filler[8];
    char dir[64], hosts[96], conf[96], path[96];
};

static struct fixture f;

static void write_file(const char *path, const char *text) {
    FILE *out = fopen(path, "we");
    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    assert_int_equal(fclose(out), 0);
}

static void on_done(struct dial *d) {
    assert_null(d->loop);
    assert_int_equal(d->fd >= 0, d->err.code == 0);
    f.done++;
}

static struct sockaddr_in loopback(int last, uint16_t port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + (uint32_t)last);
    return a;
}

/* A bound socket on 127.0.0.<last>, or -1; port 0: any, stored in f.port. */
static int bound(int type, int last, uint16_t port) {
    struct sockaddr_in a = loopback(last, port);
    socklen_t n = sizeof a;
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    if (bind(fd, (struct sockaddr *)&a, n) < 0) {
        close(fd);
        return -1;
    }
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
    f.port = ntohs(a.sin_port);
    return fd;
}

static int setup(void **state) {
    (void)state;
    memset(&f, 0, sizeof f);
    fake_now = 1000 * LOOP_SEC;
    const char *scratch = getenv("TEST_SCRATCH");
    snprintf(f.dir, sizeof f.dir, "%.40s/dial.XXXXXX", scratch ? scratch : "/tmp");
    assert_non_null(mkdtemp(f.dir));
    snprintf(f.hosts, sizeof f.hosts, "%s/hosts", f.dir);
    snprintf(f.conf, sizeof f.conf, "%s/resolv.conf", f.dir);
    snprintf(f.path, sizeof f.path, "%s/socket", f.dir);
    write_file(f.hosts, "127.0.0.1 box\n127.0.0.2 box\n");
    write_file(f.conf, "nameserver 127.0.0.1\nsearch .\n");
    f.silent = bound(SOCK_DGRAM, 1, 0);
    uint16_t dns = f.port;
    do {
        f.listener[0] = bound(SOCK_STREAM, 1, 0);
        f.listener[1] = bound(SOCK_STREAM, 2, f.port);
        if (f.listener[1] < 0)
            close(f.listener[0]);
    } while (f.listener[1] < 0);
    for (size_t i = 0; i < ARRAY_LEN(f.filler); i++)
        f.filler[i] = -1;
    assert_int_equal(loop_init(&f.loop, fake_clock), 0);
    struct resolve_options options = {.hosts_path = f.hosts, .conf_path = f.conf, .port = dns};
    resolve_init(&f.resolve, &f.loop, &options);
    f.dial.done = on_done;
    return 0;
}

static int teardown(void **state) {
    (void)state;
    dial_fini(&f.dial);
    assert_int_equal(f.loop.ios, 0);
    assert_int_equal(f.loop.timers, 0);
    assert_int_equal(f.resolve.requests, 0);
    resolve_fini(&f.resolve);
    loop_fini(&f.loop);
    close(f.silent);
    for (int i = 0; i < 2; i++)
        close(f.listener[i]);
    for (size_t i = 0; i < ARRAY_LEN(f.filler); i++)
        util_close_fd(&f.filler[i]);
    unlink(f.hosts);
    unlink(f.conf);
    unlink(f.path);
    return rmdir(f.dir);
}

static void pump(void) {
    struct pollfd p = {.fd = f.loop.epfd, .events = POLLIN};
    poll(&p, 1, 10);
    assert_int_equal(loop_once(&f.loop, 0), 0);
}

#define PUMP_UNTIL(condition)                                                                      \
    do {                                                                                           \
        for (int rounds = 0; !(condition); rounds++) {                                             \
            assert_in_range(rounds, 0, ROUNDS);                                                    \
            pump();                                                                                \
        }                                                                                          \
    } while (0)

static void advance(uint64_t by) {
    fake_now += by;
    assert_int_equal(loop_once(&f.loop, 0), 0);
}

static void start(const char *host) {
    assert_int_equal(dial_host(&f.dial, &f.resolve, str_of(host), f.port, 9000), 0);
    assert_int_equal(f.done, 0);
}

static void finish(void) {
    PUMP_UNTIL(f.done > 0);
    assert_int_equal(f.done, 1);
    f.done = 0;
}

/* The address at the other end; closes the connection. */
static void assert_connected(int last) {
    struct sockaddr_in a, want = loopback(last, f.port);
    socklen_t n = sizeof a;
    int value = 0;
    socklen_t len = sizeof value;
    assert_true(f.dial.fd >= 0);
    assert_int_equal(getpeername(f.dial.fd, (struct sockaddr *)&a, &n), 0);
    assert_int_equal(a.sin_addr.s_addr, want.sin_addr.s_addr);
    assert_int_equal(a.sin_port, want.sin_port);
    assert_true(fcntl(f.dial.fd, F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(f.dial.fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(getsockopt(f.dial.fd, IPPROTO_TCP, TCP_NODELAY, &value, &len), 0);
    assert_int_not_equal(value, 0);
    close(f.dial.fd);
}

static void assert_failed(const char *text) {
    assert_int_equal(f.dial.fd, -1);
    if (strstr(err_msg(&f.dial.err), text) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", text, err_msg(&f.dial.err));
}

/* Fills the queue of a listener, so that further connections get no answer. */
static void stuff(int i) {
    assert_int_equal(listen(f.listener[i], 0), 0);
    for (size_t n = 0; n < ARRAY_LEN(f.filler); n++) {
        struct sockaddr_in a = loopback(i + 1, f.port);
        f.filler[n] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        assert_true(connect(f.filler[n], (struct sockaddr *)&a, sizeof a) < 0);
        struct pollfd p = {.fd = f.filler[n], .events = POLLOUT};
        if (n > 0 && poll(&p, 1, 20) == 0)
            return;
    }
    fail_msg("the queue never fills");
}

/* -- hosts -- */

static void test_connects(void **state) {
    (void)state;
    assert_int_equal(listen(f.listener[0], 8), 0);
    start("127.0.0.1");
    finish();
    assert_connected(1);
    start("box");
    finish();
    assert_connected(1);
}

static void test_goes_on_after_a_refusal(void **state) {
    (void)state;
    assert_int_equal(listen(f.listener[1], 8), 0);
    start("box"); /* the clock stands: no stagger passes */
    finish();
    assert_connected(2);
}

static void test_names_each_failure(void **state) {
    (void)state;
    char want[256];
    start("box");
    finish();
    snprintf(want, sizeof want,
             "cannot connect to box port %u: 127.0.0.1:%u: Connection refused; "
             "127.0.0.2:%u: Connection refused",
             f.port, f.port, f.port);
    assert_string_equal(err_msg(&f.dial.err), want);
}

static void test_stagger(void **state) {
    (void)state;
    stuff(0);
    assert_int_equal(listen(f.listener[1], 8), 0);
    start("box");
    PUMP_UNTIL(f.dial.tried == 1);
    advance(loop_ms(DIAL_STAGGER_MS) - 1);
    assert_int_equal(f.dial.tried, 1);
    advance(1);
    finish();
    assert_connected(2);
}

static void test_deadline(void **state) {
    (void)state;
    stuff(0);
    start("box");
    PUMP_UNTIL(f.dial.tried == 1);
    advance(loop_ms(DIAL_STAGGER_MS));
    PUMP_UNTIL(f.dial.attempt[1].error != 0);
    assert_int_equal(f.done, 0);
    advance(9000 * LOOP_MS);
    finish();
    assert_failed("cannot connect to box port ");
    assert_failed(" within 9000 ms: 127.0.0.1:");
    assert_failed(": no answer; 127.0.0.2:");
    assert_failed(": Connection refused");
}

static void test_deadline_while_resolving(void **state) {
    (void)state;
    start("silent.example");
    PUMP_UNTIL(f.loop.ios == 2);
    advance(9000 * LOOP_MS);
    finish();
    assert_failed("within 9000 ms: the name has no address yet");
}

static void test_unknown_name(void **state) {
    (void)state;
    start("a b");
    finish();
    assert_failed("cannot resolve a b: neither an address nor a host name");
}

static void test_an_old_clock_costs_no_time(void **state) {
    (void)state;
    assert_int_equal(listen(f.listener[0], 8), 0);
    fake_now += 3600 * LOOP_SEC; /* the loop has not looked at its clock for an hour */
    start("127.0.0.1");
    finish();
    assert_connected(1);
}

static bool allow_second(struct dial *d, const struct sock_addr *a) {
    assert_ptr_equal(d, &f.dial);
    return a->u.in.sin_addr.s_addr == loopback(2, 0).sin_addr.s_addr;
}

static void test_allow(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++)
        assert_int_equal(listen(f.listener[i], 8), 0);
    f.dial.allow = allow_second;
    start("box");
    finish();
    assert_connected(2);
    start("127.0.0.1");
    finish();
    assert_failed(": not permitted");
}

/* -- Unix sockets -- */

static int listen_unix(const char *path, size_t n, int backlog) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    memcpy(a.sun_path, path, n);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, len), 0);
    assert_int_equal(listen(fd, backlog), 0);
    return fd;
}

static void start_unix(const char *path) {
    assert_int_equal(dial_unix(&f.dial, &f.loop, str_of(path), 9000), 0);
    assert_int_equal(f.done, 0);
}

static void test_unix(void **state) {
    (void)state;
    start_unix(f.path);
    finish();
    assert_failed("/socket: No such file or directory");
    int fd = listen_unix(f.path, strlen(f.path) + 1, 4);
    start_unix(f.path);
    finish();
    assert_true(f.dial.fd >= 0);
    assert_true(fcntl(f.dial.fd, F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(f.dial.fd, F_GETFD) & FD_CLOEXEC);
    close(f.dial.fd);
    close(fd);
    start_unix(f.path);
    finish();
    assert_failed("/socket: Connection refused");
}

static void test_abstract(void **state) {
    (void)state;
    char name[80];
    int n = snprintf(name, sizeof name, "@dial-%s", f.dir);
    name[0] = '\0';
    int fd = listen_unix(name, (size_t)n, 4);
    name[0] = '@';
    start_unix(name);
    finish();
    assert_true(f.dial.fd >= 0);
    close(f.dial.fd);
    close(fd);
}

static void test_unix_with_a_full_queue(void **state) {
    (void)state;
    int fd = listen_unix(f.path, strlen(f.path) + 1, 0), got = 0;
    while (f.dial.next.pos == 0 || got == 0) { /* until it waits to try again */
        assert_in_range(got, 0, ARRAY_LEN(f.filler) - 1);
        start_unix(f.path);
        PUMP_UNTIL(f.done > 0 || f.dial.next.pos != 0);
        if (f.done > 0)
            f.filler[got++] = f.dial.fd;
        else
            break;
        f.done = 0;
    }
    assert_in_range(got, 1, ARRAY_LEN(f.filler));
    int peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    assert_true(peer >= 0);
    advance(loop_ms(DIAL_RETRY_MS));
    finish();
    assert_true(f.dial.fd >= 0);
    close(f.dial.fd);
    close(peer);
    close(fd);
}

static void test_unix_paths(void **state) {
    (void)state;
    char path[109];
    memset(path, 'x', sizeof path);
    struct str s = {path, 108};
    assert_int_equal(dial_unix(&f.dial, &f.loop, s, 1), -ENAMETOOLONG);
    assert_int_equal(dial_unix(&f.dial, &f.loop, STR_LIT(""), 1), -ENAMETOOLONG);
}

/* -- cancelling -- */

static void test_cancel_at_every_step(void **state) {
    (void)state;
    assert_int_equal(listen(f.listener[1], 64), 0);
    for (int steps = 0; f.done == 0; steps++) {
        assert_in_range(steps, 0, ROUNDS);
        start("box");
        for (int i = 0; i < steps && f.done == 0; i++)
            pump();
        dial_cancel(&f.dial);
        assert_int_equal(f.loop.ios, 0);
        assert_int_equal(f.loop.timers, 0);
    }
    assert_connected(2);
}

static void test_resolver_is_full(void **state) {
    (void)state;
    f.resolve.requests = RESOLVE_REQUESTS;
    assert_int_equal(dial_host(&f.dial, &f.resolve, STR_LIT("box"), 1, 1), -EAGAIN);
    assert_int_equal(f.loop.timers, 0);
    f.resolve.requests = 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_connects),
        TEST(test_goes_on_after_a_refusal),
        TEST(test_names_each_failure),
        TEST(test_stagger),
        TEST(test_deadline),
        TEST(test_deadline_while_resolving),
        TEST(test_unknown_name),
        TEST(test_an_old_clock_costs_no_time),
        TEST(test_allow),
        TEST(test_unix),
        TEST(test_abstract),
        TEST(test_unix_with_a_full_queue),
        TEST(test_unix_paths),
        TEST(test_cancel_at_every_step),
        TEST(test_resolver_is_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
