#include "app/sdnotify.h"

#include "options_run.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/un.h>

#define FIRST SDNOTIFY_FIRST_FD

static char dir[] = "/tmp/test-sdnotify-XXXXXX";

static int group_setup(void **state) {
    (void)state;
    return mkdtemp(dir) != NULL && chdir(dir) == 0 ? 0 : -1;
}

static int group_teardown(void **state) {
    (void)state;
    return chdir("/") == 0 && rmdir(dir) == 0 ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    close(FIRST);
    return 0;
}

static void set_variables(const char *pid, const char *fds) {
    char own[16];
    snprintf(own, sizeof(own), "%d", (int)getpid());
    setenv("LISTEN_PID", pid != NULL ? pid : own, 1);
    setenv("LISTEN_FDS", fds, 1);
    setenv("LISTEN_FDNAMES", "a:b", 1);
}

/* Puts a descriptor where a service manager would. */
static void pass(int fd) {
    assert_true(fd >= 0);
    if (fd != FIRST) {
        assert_int_equal(dup2(fd, FIRST), FIRST);
        close(fd);
    }
}

static int tcp_socket(uint32_t ip, int backlog) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr = {htonl(ip)}};
    assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
    if (backlog > 0)
        assert_int_equal(listen(fd, backlog), 0);
    return fd;
}

static void expect_count(unsigned count, const char *pid, const char *fds) {
    set_variables(pid, fds);
    assert_int_equal(sdnotify_take_fds(), count);
    assert_null(getenv("LISTEN_PID"));
    assert_null(getenv("LISTEN_FDS"));
    assert_null(getenv("LISTEN_FDNAMES"));
    assert_int_equal(sdnotify_take_fds(), 0);
}

static void test_take_fds(void **state) {
    (void)state;
    pass(open("/dev/null", O_RDONLY));
    assert_int_equal(fcntl(FIRST, F_GETFD), 0);
    expect_count(1, NULL, "1");
    assert_int_equal(fcntl(FIRST, F_GETFD), FD_CLOEXEC);
    expect_count(2, NULL, "2");
    expect_count(0, "1", "1"); /* another process's */
    static const char *const bad[] = {"", "0", "-1", "+1", " 1", "1 ", "x", "99999999999999999999"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        expect_count(0, NULL, bad[i]);
        expect_count(0, bad[i], "1");
    }
}

static void expect_refused(unsigned count, const char *text) {
    _cleanup_err_ struct err e = ERR_INIT;
    struct sockaddr_storage addr;
    socklen_t len;
    int fd = -1;
    assert_true(sdnotify_socket(count, &fd, &addr, &len, &e) < 0);
    assert_string_equal(err_msg(&e), text);
    assert_int_equal(fd, -1);
}

static void test_refused_sockets(void **state) {
    (void)state;
    const char *not_listening =
        "the descriptor passed (LISTEN_FDS) is not a listening stream socket";
    expect_refused(
        0,
        "--listen fd://: no socket was passed (LISTEN_FDS): start it from a systemd socket unit");
    expect_refused(2, "2 sockets were passed (LISTEN_FDS); expected one");
    close(FIRST);
    expect_refused(1, not_listening);
    pass(open("/dev/null", O_RDONLY));
    expect_refused(1, not_listening);
    pass(tcp_socket(INADDR_LOOPBACK, 0));
    expect_refused(1, not_listening);
    pass(socket(AF_INET, SOCK_DGRAM, 0));
    expect_refused(1, not_listening);
}

static void test_socket(void **state) {
    (void)state;
    _cleanup_err_ struct err e = ERR_INIT;
    struct sockaddr_storage addr;
    socklen_t len;
    int fd = -1;
    pass(tcp_socket(INADDR_LOOPBACK, 1));
    assert_int_equal(sdnotify_socket(1, &fd, &addr, &len, &e), 0);
    assert_int_equal(fd, FIRST);
    assert_int_equal(addr.ss_family, AF_INET);
    assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);

    struct sockaddr_un un = {.sun_family = AF_UNIX, .sun_path = "listening"};
    int server = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(server, (struct sockaddr *)&un, sizeof(un)), 0);
    assert_int_equal(listen(server, 1), 0);
    pass(server);
    assert_int_equal(sdnotify_socket(1, &fd, &addr, &len, &e), 0);
    assert_int_equal(addr.ss_family, AF_UNIX);
    unlink("listening");
}

static void test_options(void **state) {
    (void)state;
    pass(tcp_socket(INADDR_LOOPBACK, 1));
    set_variables(NULL, "1");
    _cleanup_run_ struct run by_default = RUN();
    assert_int_equal(by_default.result, OPTIONS_RUN);
    assert_int_equal(by_default.o.listen, OPTIONS_LISTEN_FD);
    assert_int_equal(by_default.o.listen_fd, FIRST);
    assert_false(options_exposed(&by_default.o));

    set_variables(NULL, "1");
    _cleanup_run_ struct run asked = RUN("--listen", "fd://");
    assert_int_equal(asked.o.listen, OPTIONS_LISTEN_FD);

    set_variables(NULL, "1");
    _cleanup_run_ struct run other = RUN("--listen", "ws://127.0.0.1:0");
    assert_int_equal(other.o.listen, OPTIONS_LISTEN_WS);
    assert_int_equal(other.o.listen_fd, -1);
    assert_null(getenv("LISTEN_FDS"));

    set_variables("1", "1");
    _cleanup_run_ struct run stranger = RUN();
    assert_int_equal(stranger.o.listen, OPTIONS_LISTEN_WS);
    expect_error(
        "--listen fd://: no socket was passed (LISTEN_FDS): start it from a systemd socket unit",
        ARGS("--listen", "fd://"));
    set_variables(NULL, "2");
    expect_error("2 sockets were passed (LISTEN_FDS); expected one", ARGS());
}

/* Where a passed socket is bound decides about authentication as for any other. */
static void test_exposed(void **state) {
    (void)state;
    pass(tcp_socket(INADDR_ANY, 1));
    set_variables(NULL, "1");
    _cleanup_run_ struct run r = RUN();
    assert_int_equal(r.result, OPTIONS_RUN);
    assert_true(options_unauthenticated_exposed(&r.o));
    set_variables(NULL, "1");
    expect_error("--require-auth: `fd://` is not a loopback address and `--ws-auth` is not set",
                 ARGS("--require-auth"));
}

/* A datagram socket, bound; n counts the bytes of the name. */
static int receiver(const char *name, size_t n) {
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    memcpy(un.sun_path, name, n);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    assert_int_equal(bind(fd, (struct sockaddr *)&un, len), 0);
    return fd;
}

static void expect_state(int fd, const char *state) {
    char got[64] = "";
    ssize_t n = recv(fd, got, sizeof(got) - 1, 0);
    assert_int_equal(n, strlen(state));
    assert_string_equal(got, state);
}

static void test_send(void **state) {
    (void)state;
    char path[64], name[64];
    snprintf(path, sizeof(path), "%s/notify", dir);
    int n = snprintf(name, sizeof(name), "@test-sdnotify-%d", (int)getpid());
    int file = receiver(path, strlen(path));
    sdnotify_send(path, "READY=1");
    expect_state(file, "READY=1");
    close(file);
    unlink(path);

    name[0] = '\0';
    int abstract = receiver(name, (size_t)n);
    name[0] = '@';
    sdnotify_send(name, "STOPPING=1");
    expect_state(abstract, "STOPPING=1");
    close(abstract);
}

/* Nothing of this fails loudly or waits. */
static void test_send_nowhere(void **state) {
    (void)state;
    char path[256];
    memset(path, 'x', sizeof(path) - 1);
    path[0] = '/';
    path[sizeof(path) - 1] = '\0';
    log_init(LOG_LEVEL_OFF, STDERR_FILENO);
    sdnotify_send(NULL, "READY=1");
    sdnotify_send("relative", "READY=1");
    sdnotify_send("/nonexistent/socket", "READY=1");
    sdnotify_send(path, "READY=1");
    assert_int_equal(log_dropped(), 0);
}

static void test_take_socket(void **state) {
    (void)state;
    setenv("NOTIFY_SOCKET", "/run/x", 1);
    _cleanup_run_ struct run r = RUN();
    assert_string_equal(r.o.notify_socket, "/run/x");
    assert_null(getenv("NOTIFY_SOCKET"));
    setenv("NOTIFY_SOCKET", "", 1);
    assert_null(sdnotify_take_socket());
    assert_null(getenv("NOTIFY_SOCKET"));
}

#define TEST(name) cmocka_unit_test_teardown(name, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_take_fds),     TEST(test_refused_sockets), TEST(test_socket),
        TEST(test_options),      TEST(test_exposed),         TEST(test_send),
        TEST(test_send_nowhere), TEST(test_take_socket),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
