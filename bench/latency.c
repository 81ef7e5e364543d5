// Measurements of one thing at a time.
#include "measure.h"
#include "rpc.h"
#include "sample.h"
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

// Number of the process that echoes.
#define CAT 1

static const char *const TRUE_ARGV[] = {"/bin/true", NULL};

static uint64_t run_true(struct rpc *r, uint64_t proc, const void *arg) {
    const struct measure_options *o = arg;
    struct launch l = {.proc = proc, .argv = TRUE_ARGV, .cwd = o->cwd, .sandbox = o->sandbox};
    struct tally t = {0};
    uint64_t begin = now_ns(), took = 0;
    uint64_t id = rpc_start(r, &l);
    struct msg m;

    rpc_flush(r);
    while (!t.closed || !t.started) {
        rpc_next(r, &m);
        if (m.kind == MSG_RESPONSE) {
            t.started |= m.id == id;
        } else if (m.kind != MSG_OTHER && m.proc == proc) {
            tally_add(&t, &m);
            if (t.closed)
                took = now_ns() - begin;
        }
    }
    if (t.exit_code != 0 || t.bytes != 0)
        fail("/bin/true ended with %lld", (long long)t.exit_code);
    return took;
}

void measure_start(const struct measure_options *o) {
    struct rpc r;

    rpc_open(&r, o->port);
    sample("start", &r, run_true, o, o);
    rpc_close(&r);
}

static uint64_t run_login(struct rpc *r, uint64_t proc, const char *home) {
    static const char *const argv[] = {"/bin/bash", "-lc", "true", NULL};
    struct launch l = {.proc = proc,
                       .argv = argv,
                       .home = home,
                       .more = ",\"shellSnapshot\":{\"scopeId\":\"bench\",\"shell\":"
                               "{\"name\":\"bash\",\"path\":\"/bin/bash\"}}"};
    struct tally t = {0};
    uint64_t begin = now_ns(), id = rpc_start(r, &l);

    rpc_flush(r);
    rpc_drain(r, proc, id, &t);
    if (t.exit_code != 0 || t.bytes != 0)
        fail("the login shell ended with %lld", (long long)t.exit_code);
    return now_ns() - begin;
}

void measure_login(const struct measure_options *o) {
    struct samples s;
    struct rpc r;

    if (o->path == NULL)
        fail("login needs --path");
    samples_init(&s, 2 * o->count);
    for (size_t i = 0; i < o->count; i++) {
        rpc_open(&r, o->port);
        for (uint64_t proc = 1; proc <= 2; proc++)
            samples_add(&s, run_login(&r, proc, o->path));
        rpc_close(&r);
    }
    result_begin("login");
    result_samples(&s);
    result_end();
    samples_free(&s);
}

static uint64_t echo_byte(struct rpc *r, uint64_t n, const void *arg) {
    char byte = (char)('a' + n % 26);
    uint64_t begin = now_ns(), took = 0;
    uint64_t id = rpc_write_byte(r, CAT, byte);
    bool answered = false, echoed = false;
    struct msg m;
    uint8_t got[1];

    (void)arg;
    rpc_flush(r);
    while (!answered || !echoed) {
        rpc_next(r, &m);
        if (m.kind == MSG_RESPONSE && m.id == id) {
            answered = true;
        } else if (m.kind == MSG_OUTPUT && m.proc == CAT) {
            took = now_ns() - begin;
            if (echoed || base64_bytes(m.chunk, m.chunk_len) != 1)
                fail("the echo of one byte is not one byte");
            base64_decode(m.chunk, m.chunk_len, got);
            if (got[0] != (uint8_t)byte)
                fail("the echo is another byte");
            echoed = true;
        } else {
            fail("an unexpected message during the echo");
        }
    }
    return took;
}

// Starts cat, in a PTY behind a stty that makes the terminal transparent; a mark on stdout tells
// when it is.
static void start_cat(struct rpc *r, const struct measure_options *o) {
    static const char *const pipe_argv[] = {"/bin/sh", "-c", "printf R; exec cat", NULL};
    static const char *const tty_argv[] = {"/bin/sh", "-c", "stty raw -echo; printf R; exec cat",
                                           NULL};
    struct launch l = {.proc = CAT, .tty = o->tty != 0, .pipe_stdin = o->tty == 0};
    bool started = false, ready = false;
    uint64_t id;
    struct msg m;

    l.argv = o->tty ? tty_argv : pipe_argv;
    id = rpc_start(r, &l);
    rpc_flush(r);
    while (!started || !ready) {
        rpc_next(r, &m);
        started |= m.kind == MSG_RESPONSE && m.id == id;
        ready |= m.kind == MSG_OUTPUT;
        if (m.kind == MSG_EXITED)
            fail("cat ended at once");
    }
}

void measure_echo(const struct measure_options *o) {
    struct rpc r;
    struct msg m;

    rpc_open(&r, o->port);
    start_cat(&r, o);
    sample(o->tty ? "echo-pty" : "echo-pipe", &r, echo_byte, NULL, o);
    rpc_terminate(&r, CAT);
    rpc_flush(&r);
    do {
        rpc_next(&r, &m);
    } while (m.kind != MSG_CLOSED);
    rpc_close(&r);
}

static uint64_t one_status(struct rpc *r, uint64_t n, const void *arg) {
    uint64_t begin = now_ns(), took;
    uint64_t id = rpc_request(r, "environment/status", "{}");
    struct msg m;

    (void)n;
    (void)arg;
    rpc_flush(r);
    rpc_next(r, &m);
    took = now_ns() - begin;
    if (m.kind != MSG_RESPONSE || m.id != id)
        fail("environment/status got another answer");
    return took;
}

void measure_status(const struct measure_options *o) {
    struct rpc r;

    rpc_open(&r, o->port);
    sample("status", &r, one_status, NULL, o);
    rpc_close(&r);
}

// Reads from `fd` until a line end; gives up after 20 seconds.
static void await_line(int fd) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char text[256];
    ssize_t n;

    for (;;) {
        if (poll(&p, 1, 20000) <= 0)
            fail("the server printed no line");
        n = read(fd, text, sizeof text);
        if (n <= 0)
            fail("the server ended without a line");
        if (memchr(text, '\n', (size_t)n) != NULL)
            return;
    }
}

static uint64_t one_startup(char **command) {
    posix_spawn_file_actions_t actions;
    uint64_t begin, took;
    int out[2];
    pid_t pid;
    int rc;

    if (pipe2(out, O_CLOEXEC) != 0)
        fail("pipe: %s", strerror(errno));
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    begin = now_ns();
    rc = posix_spawn(&pid, command[0], &actions, NULL, command, environ);
    if (rc != 0)
        fail("%s: %s", command[0], strerror(rc));
    close(out[1]);
    await_line(out[0]);
    took = now_ns() - begin;
    close(out[0]);
    kill(pid, SIGTERM);
    if (waitpid(pid, NULL, 0) != pid)
        fail("waitpid: %s", strerror(errno));
    posix_spawn_file_actions_destroy(&actions);
    return took;
}

void measure_startup(const struct measure_options *o) {
    struct samples s;

    if (o->command == NULL || o->command[0] == NULL)
        fail("startup needs a command");
    samples_init(&s, o->count);
    for (size_t i = 0; i < o->warmup; i++)
        one_startup(o->command);
    for (size_t i = 0; i < o->count; i++)
        samples_add(&s, one_startup(o->command));
    result_begin("startup");
    result_samples(&s);
    result_end();
    samples_free(&s);
}
