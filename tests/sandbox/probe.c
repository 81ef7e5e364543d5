/*
 * probe name=value...   tries every row and prints "NUMBER\tRESULT" for each
 * probe tty name=value... the rows that need a terminal on stdin
 * probe hold PID KEY    a host process: prints its pid, which is above PID, and the serial number
 *                       of a key of that description; ends with its stdin
 * probe end             exits 0
 *
 * Exit status: 0 all rows were tried; 2 usage; 3 nothing confines this process and it could do
 * harm, so nothing was tried.
 */

#include "probe.h"

#include <fcntl.h>
#include <linux/keyctl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROW_SECONDS 10
#define TEXT_MAX 512

struct probe_aim aim;
long probe_scratch = 1;
char probe_inherited[256];

static char said[TEXT_MAX];

int probe_say(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(said, sizeof(said), format, args);
    va_end(args);
    return PROBE_SAID;
}

const char *probe_error(int error) {
    static char number[16];
    const char *name = strerrorname_np(error);
    if (name)
        return name;
    snprintf(number, sizeof(number), "E%d", error);
    return number;
}

int probe_opened(int fd) {
    if (fd < 0)
        return -errno;
    close(fd);
    return 0;
}

const char *probe_path(const char *path) {
    static char made[4][4096];
    static unsigned next;
    const char *base = NULL;

    if (path[0] == '~') {
        char *out = made[next++ % 4];
        snprintf(out, sizeof(made[0]), "%ssandbox-probe", path + 1);
        return out;
    }
    if (path[1] == '/' || path[1] == '\0')
        base = path[0] == 'W'   ? aim.ws
               : path[0] == 'O' ? aim.outside
               : path[0] == 'D' ? aim.denied
                                : NULL;
    if (!base)
        return path;
    char *out = made[next++ % 4];
    snprintf(out, sizeof(made[0]), "%s%s", base, path + 1);
    return out;
}

ssize_t probe_read(const char *path, char *text, size_t size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    ssize_t n = read(fd, text, size - 1);
    int error = errno;
    close(fd);
    if (n < 0)
        return -error;
    text[n] = '\0';
    return n;
}

int probe_child(int (*fn)(void *), void *arg) {
    int status;
    pid_t pid = fork();
    if (pid < 0)
        return -errno;
    if (pid == 0)
        _exit(fn(arg));
    if (waitpid(pid, &status, 0) < 0)
        return -errno;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 256;
}

static int execute(void *arg) {
    const char *path = arg;
    execl(path, path, "end", (char *)NULL);
    return errno;
}

int probe_execute(const char *path) {
    char name[4096];
    snprintf(name, sizeof(name), "%s", path);
    return -probe_child(execute, name);
}

int probe_open(const struct probe_row *r) {
    return probe_opened(open(probe_path(r->path), r->a | O_CLOEXEC | O_NONBLOCK));
}

int probe_create(const struct probe_row *r) {
    const char *path = probe_path(r->path);
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
    if (fd < 0)
        return -errno;
    int e = write(fd, "x", 1) == 1 ? 0 : -EIO;
    close(fd);
    unlink(path);
    return e;
}

/* The child of a row: its result goes to `out`. */
static _Noreturn void try_row(const struct probe_row *r, int out) {
    int e = r->run(r);
    if (e != PROBE_SAID)
        probe_say("%s", e == 0 ? "OK" : probe_error(-e));
    if (write(out, said, strlen(said)) < 0)
        _exit(1);
    _exit(0);
}

/* Waits for the child's text; 0 when none came. A hang and a death are results too. */
static size_t hear(int in, char *text, size_t size) {
    struct pollfd wait = {.fd = in, .events = POLLIN};
    if (poll(&wait, 1, ROW_SECONDS * 1000) <= 0) {
        snprintf(text, size, "TIMEOUT");
        return 0;
    }
    ssize_t n = read(in, text, size - 1);
    text[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

static void run_row(const struct probe_row *r) {
    char text[TEXT_MAX] = "";
    int ends[2], status;
    if (pipe2(ends, O_CLOEXEC) < 0) {
        perror("pipe");
        exit(2);
    }
    pid_t pid = fork();
    if (pid == 0)
        try_row(r, ends[1]);
    close(ends[1]);
    if (hear(ends[0], text, sizeof(text)) == 0 && text[0])
        kill(pid, SIGKILL);
    close(ends[0]);
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        snprintf(text, sizeof(text), "no child");
    else if (!text[0] && WIFSIGNALED(status))
        snprintf(text, sizeof(text), "KILLED by %s", sigabbrev_np(WTERMSIG(status)));
    else if (!text[0])
        snprintf(text, sizeof(text), "no result, exit status %d", WEXITSTATUS(status));
    printf("%d\t%s\n", r->number, text);
    fflush(stdout);
}

static void run_group(const struct probe_row *rows) {
    for (const struct probe_row *r = rows; r->number; r++)
        run_row(r);
}

static void note_inherited(void) {
    char *end = probe_inherited;
    snprintf(probe_inherited, sizeof(probe_inherited), "none");
    for (int fd = 3; fd < 4096; fd++) {
        size_t left = sizeof(probe_inherited) - (size_t)(end - probe_inherited);
        if (fcntl(fd, F_GETFD) >= 0 && left > 8)
            end += snprintf(end, left, end == probe_inherited ? "%d" : ",%d", fd);
    }
}

/* A process with the rights of the host's root: the rows would really do what they try. */
static bool dangerous(void) {
    char text[4096] = "", map[128] = "";
    const char *caps;
    if (probe_read("/proc/self/status", text, sizeof(text)) < 0 ||
        probe_read("/proc/self/uid_map", map, sizeof(map)) < 0)
        return geteuid() == 0;
    caps = strstr(text, "CapEff:");
    unsigned long long effective = caps ? strtoull(caps + 7, NULL, 16) : 0;
    return effective != 0 && strstr(map, "4294967295");
}

static const struct {
    const char *name;
    const char **text;
    int *number;
} names[] = {
    {"ws", &aim.ws, NULL},
    {"outside", &aim.outside, NULL},
    {"denied", &aim.denied, NULL},
    {"disk", &aim.disk, NULL},
    {"shm", &aim.shm, NULL},
    {"mqueue", &aim.mqueue, NULL},
    {"abstract", &aim.abstract, NULL},
    {"key", &aim.key, NULL},
    {"address", &aim.address, NULL},
    {"terminal", &aim.terminal, NULL},
    {"pid", NULL, &aim.pid},
    {"serial", NULL, &aim.serial},
    {"ipc", NULL, &aim.ipc},
    {"tcp", NULL, &aim.tcp},
    {"udp", NULL, &aim.udp},
};

/* False for a name that is not known. */
static bool take_argument(const char *arg) {
    const char *value = strchr(arg, '=');
    for (size_t i = 0; value && i < sizeof(names) / sizeof(names[0]); i++) {
        size_t length = (size_t)(value - arg);
        if (strlen(names[i].name) != length || memcmp(names[i].name, arg, length) != 0)
            continue;
        if (names[i].text)
            *names[i].text = value + 1;
        else
            *names[i].number = atoi(value + 1);
        return true;
    }
    return false;
}

static bool complete(void) {
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].text ? !*names[i].text : !*names[i].number)
            return false;
    return true;
}

/* Lives until its stdin ends; leaves a key in the user keyring meanwhile. */
static _Noreturn void be_held(const char *key) {
    char byte;
    long serial = syscall(SYS_add_key, "user", key, "secret", 6, KEY_SPEC_USER_KEYRING);
    if (serial > 0)
        syscall(SYS_keyctl, KEYCTL_SETPERM, serial, 0x3f3f0000u);
    printf("%d %ld\n", (int)getpid(), serial);
    fflush(stdout);
    while (read(0, &byte, 1) > 0)
        ;
    if (serial > 0)
        syscall(SYS_keyctl, KEYCTL_UNLINK, serial, KEY_SPEC_USER_KEYRING, 0, 0);
    _exit(1);
}

/* Forks until the kernel gives a number that no sandbox of few processes has. */
static int hold(int above, const char *key) {
    for (;;) {
        int status = 0;
        pid_t pid = fork();
        if (pid < 0)
            return 2;
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getpid() <= above)
                _exit(0);
            be_held(key);
        }
        if (waitpid(pid, &status, 0) != pid || status != 0)
            return 0;
    }
}

static void run_all(void) {
    run_group(probe_files);
    run_group(probe_system);
    run_group(probe_spaces);
    run_group(probe_tasks);
    run_group(probe_kernel);
    run_group(probe_net);
    run_group(probe_ipc);
}

int main(int argc, char **argv) {
    note_inherited();
    if (argc == 2 && strcmp(argv[1], "end") == 0)
        return 0;
    if (argc == 4 && strcmp(argv[1], "hold") == 0)
        return hold(atoi(argv[2]), argv[3]);
    bool terminal = argc > 1 && strcmp(argv[1], "tty") == 0;
    for (int i = terminal ? 2 : 1; i < argc; i++)
        if (!take_argument(argv[i])) {
            fprintf(stderr, "probe: unknown argument %s\n", argv[i]);
            return 2;
        }
    if (!complete()) {
        fprintf(stderr, "probe: arguments are missing\n");
        return 2;
    }
    if (dangerous()) {
        fprintf(stderr, "probe: this process has the rights of the host's root\n");
        return 3;
    }
    signal(SIGPIPE, SIG_IGN);
    if (terminal)
        run_group(probe_tty);
    else
        run_all();
    return 0;
}
