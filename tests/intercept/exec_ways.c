/*
 * Starts programs in every way the kernel knows, for tests of interception:
 *
 *     exec-ways WAY PROGRAM [ARG...]   exits with what PROGRAM exited with, or with 200 + errno
 *     exec-ways race-path N GOOD BAD   starts GOOD N times while a thread writes BAD over its path,
 *                                      and prints how often each exit status came
 *     exec-ways race-argv N PROGRAM GOOD BAD   likewise with the first argument
 *     exec-ways race-link N LINK GOOD BAD      likewise with the target of a link
 *     exec-ways exit CODE
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static _Noreturn void failed(void) {
    _exit(200 + (errno & 31));
}

static int outcome(int status) {
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int wait_for(pid_t pid) {
    int status;
    while (waitpid(pid, &status, __WALL) < 0) {
        if (errno != EINTR)
            failed();
    }
    return outcome(status);
}

/* -- ways -- */

static void way_execve(char **argv) {
    execve(argv[0], argv, environ);
}

static void way_execvp(char **argv) {
    execvp(argv[0], argv);
}

static void way_fexecve(char **argv) {
    int fd = open(argv[0], O_RDONLY | O_CLOEXEC);
    syscall(SYS_execveat, fd, "", argv, environ, AT_EMPTY_PATH);
}

static void way_path_fd(char **argv) {
    int fd = open(argv[0], O_PATH | O_CLOEXEC);
    syscall(SYS_execveat, fd, "", argv, environ, AT_EMPTY_PATH);
}

static void way_dev_fd(char **argv) {
    char path[64];
    snprintf(path, sizeof path, "/dev/fd/%d", open(argv[0], O_RDONLY));
    execve(path, argv, environ);
}

static void way_proc_fd(char **argv) {
    char path[64];
    snprintf(path, sizeof path, "/proc/thread-self/fd/%d", open(argv[0], O_RDONLY));
    execve(path, argv, environ);
}

static void way_proc_root(char **argv) {
    char path[4200];
    snprintf(path, sizeof path, "/proc/self/root%s", argv[0]);
    execve(path, argv, environ);
}

static void way_execveat_dir(char **argv) {
    char *slash = strrchr(argv[0], '/');
    *slash = '\0';
    int fd = open(argv[0], O_PATH | O_DIRECTORY);
    *slash = '/';
    syscall(SYS_execveat, fd, slash + 1, argv, environ, 0);
}

static void way_relative(char **argv) {
    char *slash = strrchr(argv[0], '/');
    *slash = '\0';
    if (chdir(argv[0]) < 0)
        failed();
    execve(slash + 1, argv, environ);
}

static void way_dots(char **argv) {
    char path[8400];
    snprintf(path, sizeof path, "/usr/../../usr/bin/../..%s", argv[0]);
    execve(path, argv, environ);
}

static void way_link(char **argv) {
    if (symlink(argv[0], "exec-ways-link") < 0 && errno != EEXIST)
        failed();
    execve("./exec-ways-link", argv, environ);
}

static void way_script(char **argv) {
    FILE *f = fopen("exec-ways-script", "we");
    if (f == NULL || fprintf(f, "#! %s\n", argv[0]) < 0 || fchmod(fileno(f), 0755) < 0 ||
        fclose(f) < 0)
        failed();
    execve("./exec-ways-script", argv, environ);
}

/* A script that a script interprets. */
static void way_nested(char **argv) {
    char here[4096];
    FILE *f = fopen("exec-ways-inner", "we");
    FILE *g = fopen("exec-ways-outer", "we");
    if (f == NULL || g == NULL || getcwd(here, sizeof here) == NULL ||
        fprintf(f, "#!%s\n", argv[0]) < 0 || fchmod(fileno(f), 0755) < 0 ||
        fprintf(g, "#!%s/exec-ways-inner\n", here) < 0 || fchmod(fileno(g), 0755) < 0 ||
        fclose(f) < 0 || fclose(g) < 0)
        failed();
    execve("./exec-ways-outer", argv, environ);
}

static void way_memfd(char **argv) {
    char buffer[65536];
    const char *name = strrchr(argv[0], '/');
    int in = open(argv[0], O_RDONLY | O_CLOEXEC);
    int out = memfd_create(name == NULL ? argv[0] : name + 1, MFD_CLOEXEC);
    for (ssize_t n; (n = read(in, buffer, sizeof buffer)) > 0;) {
        if (write(out, buffer, (size_t)n) != n)
            failed();
    }
    syscall(SYS_execveat, out, "", argv, environ, AT_EMPTY_PATH);
}

static char **thread_argv;

static void *thread_exec(void *unused) {
    (void)unused;
    execve(thread_argv[0], thread_argv, environ);
    failed();
}

static void way_thread(char **argv) {
    pthread_t t;
    thread_argv = argv;
    pthread_create(&t, NULL, thread_exec, NULL);
    pthread_join(t, NULL);
}

static void way_setsid(char **argv) {
    setsid();
    execve(argv[0], argv, environ);
}

#if defined(__x86_64__)
/* As a 32-bit program would, with everything below 4 GiB. */
static void way_int80(char **argv) {
    char *low =
        mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    unsigned *v = (unsigned *)(void *)low;
    char *text = low + 4096;
    size_t i = 0;
    for (; argv[i] != NULL; i++) {
        strcpy(text, argv[i]);
        v[i] = (unsigned)(uintptr_t)text;
        text += strlen(text) + 1;
    }
    v[i] = v[i + 1] = 0;
    long r;
    __asm__ volatile("int $0x80"
                     : "=a"(r)
                     : "a"(11), "b"((long)v[0]), "c"(low), "d"((long)(low + (i + 1) * 4))
                     : "memory", "r8", "r9", "r10", "r11");
    errno = (int)-r;
}

static void way_x32(char **argv) {
    errno = 0;
    syscall(0x40000000 | 520, argv[0], argv, environ);
}
#endif

static int way_vfork(char **argv) {
    pid_t pid = vfork();
    if (pid == 0) {
        execve(argv[0], argv, environ);
        failed();
    }
    return wait_for(pid);
}

static int way_spawn(char **argv) {
    pid_t pid;
    errno = posix_spawn(&pid, argv[0], NULL, NULL, argv, environ);
    return errno != 0 ? 200 + (errno & 31) : wait_for(pid);
}

/* Traced by us, as under a debugger. */
static int way_traced(char **argv) {
    pid_t pid = fork();
    if (pid == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        execve(argv[0], argv, environ);
        failed();
    }
    for (int status;;) {
        if (waitpid(pid, &status, 0) < 0)
            failed();
        if (!WIFSTOPPED(status))
            return outcome(status);
        int signo = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
        ptrace(PTRACE_CONT, pid, NULL, (void *)(intptr_t)signo);
    }
}

static const struct way {
    const char *name;
    void (*exec)(char **argv);
    int (*start)(char **argv);
} ways[] = {
    {"execve", way_execve, NULL},       {"execvp", way_execvp, NULL},
    {"fexecve", way_fexecve, NULL},     {"path-fd", way_path_fd, NULL},
    {"dev-fd", way_dev_fd, NULL},       {"proc-fd", way_proc_fd, NULL},
    {"proc-root", way_proc_root, NULL}, {"execveat-dir", way_execveat_dir, NULL},
    {"relative", way_relative, NULL},   {"dots", way_dots, NULL},
    {"link", way_link, NULL},           {"script", way_script, NULL},
    {"nested", way_nested, NULL},       {"memfd", way_memfd, NULL},
    {"thread", way_thread, NULL},       {"setsid", way_setsid, NULL},
#if defined(__x86_64__)
    {"int80", way_int80, NULL},         {"x32", way_x32, NULL},
#endif
    {"vfork", NULL, way_vfork},         {"spawn", NULL, way_spawn},
    {"traced", NULL, way_traced},
};

static int start(const struct way *w, char **argv) {
    if (w->start != NULL)
        return w->start(argv);
    pid_t pid = fork();
    if (pid == 0) {
        w->exec(argv);
        failed();
    }
    return wait_for(pid);
}

/* -- races -- */

static struct {
    char text[4096];
    const char *texts[2];
    const char *link;
    _Atomic bool stop;
} race;

static void *race_text(void *unused) {
    (void)unused;
    size_t n = strlen(race.texts[0]) + 1;
    for (unsigned i = 0; !atomic_load(&race.stop); i++) {
        memcpy(race.text, race.texts[i & 1], n);
        for (volatile int k = 0; k < (int)(i % 64) * 8; k++)
            ;
    }
    return NULL;
}

static void *race_link(void *unused) {
    (void)unused;
    for (unsigned i = 0; !atomic_load(&race.stop); i++) {
        unlink("exec-ways-new");
        if (symlink(race.texts[i & 1], "exec-ways-new") == 0)
            rename("exec-ways-new", race.link);
        if (i % 4 == 3)
            sched_yield();
    }
    return NULL;
}

static int race_run(void *(*run)(void *), int n, const char *path, char **argv) {
    int counts[512] = {0};
    pthread_t t;
    pthread_create(&t, NULL, run, NULL);
    for (int i = 0; i < n; i++) {
        pid_t pid = vfork(); /* it shares our memory, in which the thread writes */
        if (pid == 0) {
            execve(path, argv, environ);
            _exit(200 + (errno & 31));
        }
        counts[wait_for(pid)]++;
    }
    atomic_store(&race.stop, true);
    pthread_join(t, NULL);
    for (int i = 0; i < 512; i++) {
        if (counts[i] > 0)
            printf("%d:%d\n", i, counts[i]);
    }
    return 0;
}

static int race_main(const char *what, int argc, char **argv) {
    int n = atoi(argv[0]);
    race.texts[0] = argv[argc - 2];
    race.texts[1] = argv[argc - 1];
    strcpy(race.text, race.texts[0]);
    if (strcmp(what, "race-path") == 0)
        return race_run(race_text, n, race.text, (char *[]){"raced", NULL});
    if (strcmp(what, "race-argv") == 0)
        return race_run(race_text, n, argv[1], (char *[]){"raced", race.text, NULL});
    race.link = argv[1];
    (void)!symlink(race.texts[0], race.link);
    return race_run(race_link, n, race.link, (char *[]){"raced", NULL});
}

int main(int argc, char **argv) {
    if (argc >= 3 && strcmp(argv[1], "exit") == 0)
        return atoi(argv[2]);
    if (argc >= 5 && strncmp(argv[1], "race-", 5) == 0)
        return race_main(argv[1], argc - 2, argv + 2);
    for (size_t i = 0; argc >= 3 && i < sizeof ways / sizeof ways[0]; i++) {
        if (strcmp(argv[1], ways[i].name) == 0)
            return start(&ways[i], argv + 2);
    }
    fprintf(stderr, "exec-ways: no such way\n");
    return 2;
}
