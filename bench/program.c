// Measurements of programs that somebody types: exec to exit, and one key on a terminal.
#include "measure.h"
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

extern char **environ;

// A terminal may print a message before it is ready; a key that it swallows is pressed again.
#define PRESS_AGAIN_MS 500
#define READY_MS 30000

static uint64_t run_once(const struct measure_options *o) {
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status;

    if (posix_spawn_file_actions_init(&actions) != 0 ||
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0) != 0 ||
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0) != 0)
        fail("out of memory");
    uint64_t begin = now_ns();
    if (posix_spawnp(&pid, o->command[0], &actions, NULL, o->command, environ) != 0)
        fail("%s cannot be run", o->command[0]);
    if (waitpid(pid, &status, 0) != pid)
        fail("waitpid: %s", strerror(errno));
    uint64_t took = now_ns() - begin;
    posix_spawn_file_actions_destroy(&actions);
    if (status != 0)
        fail("%s ended with status %d", o->command[0], status);
    return took;
}

void measure_program(const struct measure_options *o) {
    struct samples s;
    uint64_t end;

    if (o->command == NULL || o->command[0] == NULL)
        fail("program needs a command");
    for (size_t i = 0; i < o->warmup; i++)
        run_once(o);
    samples_init(&s, o->count);
    end = now_ns() + o->millis * 1000000;
    while (s.count < o->count && (s.count == 0 || now_ns() < end))
        samples_add(&s, run_once(o));
    result_begin("program");
    result_samples(&s);
    result_end();
    samples_free(&s);
}

// Waits for that byte on the terminal; 0 after `ms`.
static int comes(int fd, char byte, int ms) {
    char got[4096];
    struct pollfd p = {.fd = fd, .events = POLLIN};

    for (;;) {
        int r = poll(&p, 1, ms);
        if (r < 0)
            fail("poll: %s", strerror(errno));
        if (r == 0)
            return 0;
        ssize_t n = read(fd, got, sizeof got);
        if (n <= 0)
            fail("the program on the terminal ended");
        if (memchr(got, byte, (size_t)n) != NULL)
            return 1;
    }
}

static void press(int fd, char byte) {
    if (write(fd, &byte, 1) != 1)
        fail("write to the terminal: %s", strerror(errno));
}

// Echoes of the pressed keys that are still on their way.
static void drain(int fd) {
    char got[4096];
    struct pollfd p = {.fd = fd, .events = POLLIN};

    while (poll(&p, 1, 300) > 0 && read(fd, got, sizeof got) > 0)
        ;
}

static uint64_t key(int fd, size_t i) {
    char byte = (char)('b' + i % 25);
    uint64_t begin = now_ns();

    press(fd, byte);
    if (!comes(fd, byte, 10000))
        fail("a key was not echoed");
    return now_ns() - begin;
}

static void sample_keys(int fd, const struct measure_options *o) {
    struct samples s;
    uint64_t end = now_ns() + (uint64_t)READY_MS * 1000000;

    do {
        if (now_ns() > end)
            fail("the terminal echoes nothing");
        press(fd, 'a');
    } while (!comes(fd, 'a', PRESS_AGAIN_MS));
    drain(fd);
    for (size_t i = 0; i < o->warmup; i++)
        key(fd, i);
    samples_init(&s, o->count);
    end = now_ns() + o->millis * 1000000;
    while (s.count < o->count && now_ns() < end)
        samples_add(&s, key(fd, s.count));
    result_begin("key");
    result_samples(&s);
    result_end();
    samples_free(&s);
}

void measure_key(const struct measure_options *o) {
    struct termios raw = {0};
    struct winsize size = {.ws_row = 24, .ws_col = 80};
    int master, status;

    if (o->command == NULL || o->command[0] == NULL)
        fail("key needs a command");
    cfmakeraw(&raw); // the echo is the other side's
    pid_t pid = forkpty(&master, NULL, &raw, &size);
    if (pid < 0)
        fail("forkpty: %s", strerror(errno));
    if (pid == 0) {
        execvp(o->command[0], o->command);
        _exit(127);
    }
    sample_keys(master, o);
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    close(master);
}
