#include "proxy/proxy_conn.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

#define ROUNDS 6000 /* only end a hang */

static struct proxy_decision last;
static char last_reason[64];

static bool on_ask(struct proxy *p, struct proxy_question *q) {
    (void)p;
    (void)q;
    return false;
}

static void on_withdraw(struct proxy *p, struct proxy_question *q) {
    (void)p;
    (void)q;
    fail();
}

static void on_decided(struct proxy *p, const struct proxy_decision *d) {
    (void)p;
    last = *d;
    snprintf(last_reason, sizeof last_reason, "%s", d->reason);
}

static const struct proxy_ops ops = {.ask = on_ask, .withdraw = on_withdraw, .decided = on_decided};

struct fixture {
    struct loop loop;
    struct proxy_host host;
    struct proxy a, b;
};

static struct fixture f;

static void start(struct proxy *p) {
    struct proxy_config c = PROXY_CONFIG_INIT;
    proxy_init(p, &f.host, &c);
    assert_int_equal(proxy_listen(p), 0);
}

static int setup(void **state) {
    (void)state;
    assert_int_equal(loop_init(&f.loop, NULL), 0);
    proxy_host_init(&f.host, &f.loop, &ops, NULL);
    start(&f.a);
    start(&f.b);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    proxy_fini(&f.a);
    proxy_fini(&f.b);
    proxy_host_fini(&f.host);
    loop_fini(&f.loop);
    return 0;
}

static int dial(const struct proxy *p) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    a.sin_port = htons(proxy_port(p, PROXY_LISTEN_HTTP));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

static void wait_count(const struct proxy *p, size_t count) {
    for (int i = 0; p->count != count && i < ROUNDS; i++)
        assert_int_equal(loop_once(&f.loop, 10 * LOOP_MS), 0);
    assert_int_equal(p->count, count);
}

/* The server's maximum is reached: a process with fewer connections still gets one. */
static void test_a_process_cannot_take_all_connections(void **state) {
    (void)state;
    int fds[8];
    f.host.conns = PROXY_HOST_CONNS_MAX - 4; /* of others, it seems */
    for (size_t i = 0; i < 4; i++)
        fds[i] = dial(&f.a);
    wait_count(&f.a, 4);
    for (size_t i = 4; i < 6; i++)
        fds[i] = dial(&f.b);
    wait_count(&f.b, 2);
    assert_int_equal(f.a.count, 2);
    char byte;
    assert_int_equal(recv(fds[3], &byte, 1, 0), 0); /* the newest ones were ended */
    assert_int_equal(recv(fds[2], &byte, 1, 0), 0);
    assert_int_equal(recv(fds[0], &byte, 1, MSG_DONTWAIT), -1);
    fds[6] = dial(&f.b); /* both have as many: it is closed */
    for (ssize_t n = -1; n < 0; n = recv(fds[6], &byte, 1, MSG_DONTWAIT))
        assert_int_equal(loop_once(&f.loop, 10 * LOOP_MS), 0);
    assert_int_equal(f.a.count + f.b.count, 4);
    for (size_t i = 0; i < 7; i++)
        close(fds[i]);
    wait_count(&f.a, 0);
    wait_count(&f.b, 0);
    f.host.conns = 0;
}

/* Without descriptors the loop does not spin, and the connection is accepted later. */
static void test_descriptors_run_out(void **state) {
    (void)state;
    struct rlimit old, few;
    int fd = dial(&f.a), highest = dup(fd);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    few = old;
    few.rlim_cur = (rlim_t)highest;
    close(highest);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    for (int i = 0; !f.a.starved && i < ROUNDS; i++)
        assert_int_equal(loop_once(&f.loop, 10 * LOOP_MS), 0);
    assert_true(f.a.starved && f.a.paused);
    assert_int_equal(f.a.count, 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    wait_count(&f.a, 1);
    assert_false(f.a.starved || f.a.paused);
    close(fd);
    wait_count(&f.a, 0);
}

/* What a half-closed client leaves unfinished is not kept. */
static void test_a_head_without_its_end(void **state) {
    (void)state;
    int fd = dial(&f.a);
    assert_int_equal(send(fd, "GET / HTT", 9, 0), 9);
    wait_count(&f.a, 1);
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    wait_count(&f.a, 0);
    close(fd);
}

static void test_a_refusal_is_told(void **state) {
    (void)state;
    char answer[4096];
    int fd = dial(&f.a);
    static const char text[] = "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n";
    assert_int_equal(send(fd, text, sizeof text - 1, 0), sizeof text - 1);
    ssize_t n = -1;
    for (int i = 0; n < 0 && i < ROUNDS; i++) {
        assert_int_equal(loop_once(&f.loop, 10 * LOOP_MS), 0);
        n = recv(fd, answer, sizeof answer, MSG_DONTWAIT);
    }
    assert_true(n > 12);
    assert_memory_equal(answer, "HTTP/1.1 403", 12);
    assert_string_equal(last_reason, "not_allowed");
    assert_int_equal(last.port, 443);
    close(fd);
    wait_count(&f.a, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_process_cannot_take_all_connections, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_descriptors_run_out, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_head_without_its_end, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_refusal_is_told, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
