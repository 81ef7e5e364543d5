/*
 * Runs a command in a sandbox without a server: builds a plan from its arguments, starts the
 * launcher (a copy of itself) as the server would, and ends as the command ends.
 *
 *     run [options] -- command [argument...]
 *     run --probe
 *
 * A sandbox that cannot be set up gives "failed: STEP ERRNO TEXT" on stderr and exit status 125.
 */

#include "sandbox/host/backend.h"
#include "sandbox/host/landlock_abi.h"
#include "sandbox/inside/launch.h"
#include "sandbox/host/placeholder.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>

extern char **environ;

#define RUN_FAILED 125
#define RUN_ENTRIES 8192

struct run {
    struct launch_request q;
    struct plan_entry entries[RUN_ENTRIES];
    struct plan_glob globs[RUN_ENTRIES];
    uint16_t ports[64];
    struct launch_limit limits[LAUNCH_LIMITS_MAX];
    char *env[256];
    size_t env_count;
    unsigned repeat;
    unsigned signals[64]; /* to send, at: */
    unsigned after_ms;
    size_t signal_count;
    bool pty;
    bool list_left; /* print what the launcher has left in its list */
    bool kill_launcher;
    bool share_network;
};

/* One launch. */
struct run_child {
    pid_t pid;
    int control;
    struct placeholders *list;
    int master; /* of the terminal, or -1 */
};

static int run_self, run_network_fd = -1;

static _Noreturn void run_die(const char *what) {
    perror(what);
    exit(RUN_FAILED);
}

/* What LAUNCH_HELPER runs here: answers one request for a file's first bytes. */
static int run_helper(const struct layout *l, int channel) {
    char path[4096], text[4096];
    (void)l;
    ssize_t n = recv(channel, path, sizeof path - 1, 0);
    if (n <= 0)
        return 3;
    path[n] = '\0';
    bool write_it = path[0] == '>';
    int fd = write_it ? open(path + 1, O_WRONLY | O_CREAT | O_CLOEXEC, 0644)
                      : open(path, O_RDONLY | O_CLOEXEC);
    int error = fd < 0 ? errno : 0;
    n = fd < 0 || write_it ? 0 : read(fd, text, sizeof text - 16);
    if (error != 0)
        n = snprintf(text, sizeof text, "errno %d", error);
    send(channel, text, (size_t)(n < 0 ? 0 : n), 0);
    return 7;
}

/* -- starting -- */

static void run_open_tty(struct run_child *c, int *slave) {
    c->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (c->master < 0 || grantpt(c->master) < 0 || unlockpt(c->master) < 0)
        run_die("pty");
    struct winsize size = {.ws_row = 24, .ws_col = 80};
    ioctl(c->master, TIOCSWINSZ, &size);
    *slave = open(ptsname(c->master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (*slave < 0)
        run_die("pty");
}

static _Noreturn void run_exec(int request, int control, int list, int slave) {
    char *none[] = {NULL};
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    setsid();
    /* Clear of the numbers they are to have. */
    int fds[4] = {fcntl(request, F_DUPFD_CLOEXEC, 20), fcntl(control, F_DUPFD_CLOEXEC, 20),
                  fcntl(list, F_DUPFD_CLOEXEC, 20), fcntl(run_network_fd, F_DUPFD_CLOEXEC, 20)};
    int self = fcntl(run_self, F_DUPFD_CLOEXEC, 20);
    for (int i = 0; slave >= 0 && i < 3; i++)
        dup2(slave, i);
    syscall(SYS_close_range, 6, 19, 0);
    for (int i = 0; i < 4; i++)
        dup2(fds[i], 3 + i);
    syscall(SYS_close_range, 7, ~0u, CLOSE_RANGE_CLOEXEC);
    syscall(SYS_execveat, self, "", launcher_argv, none, AT_EMPTY_PATH);
    _exit(126);
}

static struct run_child run_start(const struct run *r, int request) {
    struct run_child c = {.master = -1};
    int pair[2], slave = -1;
    int list = memfd_create("list", MFD_CLOEXEC);
    if (list < 0 || ftruncate(list, PLACEHOLDERS_BYTES) < 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        run_die("start");
    c.list = mmap(NULL, PLACEHOLDERS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, list, 0);
    if (r->pty)
        run_open_tty(&c, &slave);
    c.pid = fork();
    if (c.pid == 0)
        run_exec(request, pair[1], list, slave);
    if (c.pid < 0)
        run_die("fork");
    close(pair[1]);
    close(list);
    util_close_fd(&slave);
    c.control = pair[0];
    return c;
}

/* Copies the terminal's output until the command has closed it. */
static void run_copy_tty(struct run_child *c) {
    char text[4096];
    for (ssize_t n; (n = read(c->master, text, sizeof text)) > 0;) {
        if (write(STDOUT_FILENO, text, (size_t)n) < 0)
            break;
    }
    close(c->master);
}

static bool run_report(struct run_child *c) {
    struct launch_report report = {0};
    ssize_t n = recv(c->control, &report, sizeof report, 0);
    if (n >= (ssize_t)offsetof(struct launch_report, text) && report.kind == LAUNCH_RUNNING)
        return true;
    if (n < (ssize_t)offsetof(struct launch_report, text))
        fprintf(stderr, "failed: no report (%zd)\n", n);
    else
        fprintf(stderr, "failed: %u %d %.*s\n", report.step, report.error,
                (int)((size_t)n - offsetof(struct launch_report, text)), report.text);
    return false;
}

static void run_signals(const struct run *r, const struct run_child *c) {
    for (size_t i = 0; i < r->signal_count; i++) {
        nanosleep(&(struct timespec){.tv_sec = r->after_ms / 1000,
                                     .tv_nsec = (long)(r->after_ms % 1000) * 1000000},
                  NULL);
        unsigned char n = (unsigned char)r->signals[i];
        if (r->kill_launcher)
            kill(c->pid, SIGKILL);
        else
            send(c->control, &n, 1, MSG_NOSIGNAL);
    }
}

static void run_helper_call(const struct run *r, struct run_child *c) {
    char text[4096];
    send(c->control, r->q.argv[0], strlen(r->q.argv[0]), 0);
    ssize_t n = recv(c->control, text, sizeof text, 0);
    if (n > 0)
        fwrite(text, 1, (size_t)n, stdout);
    fflush(stdout);
}

/* Runs it once; the exit status. */
static int run_once(const struct run *r, int request) {
    struct run_child c = run_start(r, request);
    bool running = run_report(&c);
    if (running && r->q.mode == LAUNCH_HELPER)
        run_helper_call(r, &c);
    if (running)
        run_signals(r, &c);
    if (c.master >= 0)
        run_copy_tty(&c);
    int status;
    if (waitpid(c.pid, &status, 0) < 0)
        run_die("wait");
    close(c.control);
    if (r->list_left)
        fprintf(stderr, "left: %u\n", atomic_load(&c.list->used));
    while (r->kill_launcher && waitpid(-1, NULL, 0) > 0)
        ; /* as a subreaper we get init */
    placeholder_sweep(c.list);
    munmap(c.list, PLACEHOLDERS_BYTES);
    if (!running)
        return RUN_FAILED;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int run_compare(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static int run_measure(const struct run *r, int request) {
    double *us = calloc(r->repeat, sizeof *us);
    int code = 0;
    for (unsigned i = 0; us != NULL && code == 0 && i < r->repeat; i++) {
        struct timespec t0, t1;
        clock_gettime(CLOCK_MONOTONIC, &t0);
        code = run_once(r, request);
        clock_gettime(CLOCK_MONOTONIC, &t1);
        us[i] = (double)(t1.tv_sec - t0.tv_sec) * 1e6 + (double)(t1.tv_nsec - t0.tv_nsec) / 1e3;
    }
    qsort(us, r->repeat, sizeof *us, run_compare);
    fprintf(stderr, "%u runs: min %.0f median %.0f p95 %.0f max %.0f us\n", r->repeat, us[0],
            us[r->repeat / 2], us[r->repeat * 95 / 100], us[r->repeat - 1]);
    free(us);
    return code;
}

/* What this host can do: a line for each backend, and what a read-only plan would use. */
static int run_probe(void) {
    static const struct plan plan = {.confine_files = true, .full_read = true, .cwd = "/"};
    struct backend b;
    enum launch_backend chosen;
    _cleanup_err_ struct err e = ERR_INIT;
    backend_probe(run_self, true, &b);
    for (int i = 0; i < LAUNCH_BACKENDS; i++) {
        const struct backend_try *t = &b.tries[i];
        printf("%s %s %s\n", backend_name((enum launch_backend)i), t->works ? "yes" : "no",
               !t->works        ? t->fault.text
               : t->shares_proc ? "shared proc"
                                : "own proc");
    }
    if (backend_choose(&b, &plan, &chosen, &e) == 0)
        printf("chosen %s\n", backend_name(chosen));
    else
        printf("none %s\n", err_msg(&e));
    return 0;
}

/* -- arguments -- */

enum run_option {
    OPT_FULL = 256,
    OPT_MINIMAL,
    OPT_RW,
    OPT_READ,
    OPT_DENY,
    OPT_GLOB,
    OPT_DEPTH,
    OPT_NET,
    OPT_PORT,
    OPT_UNIX,
    OPT_NO_FILES,
    OPT_BACKEND,
    OPT_LANDLOCK,
    OPT_INHERIT,
    OPT_CWD,
    OPT_TTY,
    OPT_ENV,
    OPT_REPEAT,
    OPT_SIGNAL,
    OPT_AFTER,
    OPT_HELPER,
    OPT_SEARCH,
    OPT_PROGRAM,
    OPT_LIMIT,
    OPT_LEFT,
    OPT_KILL,
    OPT_UID,
    OPT_PROBE,
    OPT_SHARE,
};

static const struct option run_options[] = {
    {"full", 0, NULL, OPT_FULL},
    {"minimal", 0, NULL, OPT_MINIMAL},
    {"rw", 1, NULL, OPT_RW},
    {"read", 1, NULL, OPT_READ},
    {"deny", 1, NULL, OPT_DENY},
    {"glob", 1, NULL, OPT_GLOB},
    {"depth", 1, NULL, OPT_DEPTH},
    {"net", 1, NULL, OPT_NET},
    {"port", 1, NULL, OPT_PORT},
    {"unix", 0, NULL, OPT_UNIX},
    {"no-files", 0, NULL, OPT_NO_FILES},
    {"backend", 1, NULL, OPT_BACKEND},
    {"landlock", 1, NULL, OPT_LANDLOCK},
    {"inherit", 0, NULL, OPT_INHERIT},
    {"cwd", 1, NULL, OPT_CWD},
    {"tty", 0, NULL, OPT_TTY},
    {"env", 1, NULL, OPT_ENV},
    {"repeat", 1, NULL, OPT_REPEAT},
    {"signal", 1, NULL, OPT_SIGNAL},
    {"after", 1, NULL, OPT_AFTER},
    {"helper", 0, NULL, OPT_HELPER},
    {"search", 1, NULL, OPT_SEARCH},
    {"program", 1, NULL, OPT_PROGRAM},
    {"limit", 1, NULL, OPT_LIMIT},
    {"left", 0, NULL, OPT_LEFT},
    {"kill", 0, NULL, OPT_KILL},
    {"probe", 0, NULL, OPT_PROBE},
    {"share-network", 0, NULL, OPT_SHARE},
    {"uid", 1, NULL, OPT_UID},
    {NULL, 0, NULL, 0},
};

static void run_entry(struct run *r, const char *path, enum plan_access access) {
    if (r->q.plan.entry_count < RUN_ENTRIES)
        r->entries[r->q.plan.entry_count++] = (struct plan_entry){path, access};
}

/* The directories before the first component with a special character. */
static void run_glob(struct run *r, const char *pattern) {
    const char *special = strpbrk(pattern, "*?[{\\");
    size_t n = special ? (size_t)(special - pattern) : strlen(pattern);
    while (n > 1 && pattern[n] != '/')
        n--;
    r->globs[r->q.plan.glob_count++] = (struct plan_glob){pattern, (uint32_t)n, 0};
}

static void run_limit(struct run *r, const char *text) {
    int resource = 0;
    unsigned long long value = 0;
    if (sscanf(text, "%d=%llu", &resource, &value) == 2)
        r->limits[r->q.limit_count++] = (struct launch_limit){resource, value, value};
}

static enum plan_network run_network(const char *name) {
    return strcmp(name, "enabled") == 0   ? PLAN_NET_ENABLED
           : strcmp(name, "managed") == 0 ? PLAN_NET_MANAGED
                                          : PLAN_NET_RESTRICTED;
}

static enum launch_backend run_backend(const char *name) {
    return strcmp(name, "root") == 0       ? LAUNCH_ROOT
           : strcmp(name, "landlock") == 0 ? LAUNCH_LANDLOCK
                                           : LAUNCH_USERNS;
}

static void run_become(const char *uid) {
    uid_t id = (uid_t)strtoul(uid, NULL, 10);
    if (setresgid(id, id, id) < 0 || setresuid(id, id, id) < 0)
        run_die("uid");
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* as a server that was started so would be */
}

static bool run_plan_option(struct run *r, int opt) {
    struct plan *p = &r->q.plan;
    switch (opt) {
    case OPT_FULL: p->full_read = true; return true;
    case OPT_MINIMAL: p->minimal = true; return true;
    case OPT_RW: run_entry(r, optarg, PLAN_WRITE); return true;
    case OPT_READ: run_entry(r, optarg, PLAN_READ); return true;
    case OPT_DENY: run_entry(r, optarg, PLAN_DENY); return true;
    case OPT_GLOB: run_glob(r, optarg); return true;
    case OPT_DEPTH: r->globs[p->glob_count - 1].max_depth = (uint32_t)atoi(optarg); return true;
    case OPT_NET: p->network = run_network(optarg); return true;
    case OPT_PORT: r->ports[p->port_count++] = (uint16_t)atoi(optarg); return true;
    case OPT_UNIX: p->all_unix_sockets = true; return true;
    case OPT_NO_FILES: p->confine_files = false; return true;
    case OPT_INHERIT: p->inherit_pids = true; return true;
    case OPT_CWD: p->cwd = optarg; return true;
    default: return false;
    }
}

static bool run_option(struct run *r, int opt) {
    switch (opt) {
    case OPT_BACKEND: r->q.backend = run_backend(optarg); return true;
    case OPT_LANDLOCK: r->q.landlock_max = (uint32_t)atoi(optarg); return true;
    case OPT_TTY: r->pty = r->q.tty = true; return true;
    case OPT_ENV: r->env[r->env_count++] = optarg; return true;
    case OPT_REPEAT: r->repeat = (unsigned)atoi(optarg); return true;
    case OPT_SIGNAL: r->signals[r->signal_count++] = (unsigned)atoi(optarg); return true;
    case OPT_AFTER: r->after_ms = (unsigned)atoi(optarg); return true;
    case OPT_HELPER: r->q.mode = LAUNCH_HELPER; return true;
    case OPT_SEARCH: r->q.search = optarg; return true;
    case OPT_PROGRAM: r->q.program = optarg; return true;
    case OPT_LIMIT: run_limit(r, optarg); return true;
    case OPT_LEFT: r->list_left = true; return true;
    case OPT_KILL: r->kill_launcher = true; return true;
    case OPT_UID: run_become(optarg); return true;
    case OPT_SHARE: r->share_network = true; return true;
    case OPT_PROBE: exit(run_probe());
    default: return run_plan_option(r, opt);
    }
}

static int run_by_path(const void *x, const void *y) {
    const struct plan_entry *a = x, *b = y;
    return strcmp(a->path, b->path);
}

int main(int argc, char **argv) {
    if (launcher_is_stage(argc, argv))
        launch_main(run_helper);
    static struct run r;
    char cwd[4096];
    run_self = launcher_open_self();
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    r.q.landlock_max = LANDLOCK_ABI_MAX;
    r.q.plan.confine_files = true;
    r.q.plan.cwd = getcwd(cwd, sizeof cwd);
    r.q.search = getenv("PATH");
    r.after_ms = 100;
    for (int opt; (opt = getopt_long(argc, argv, "+", run_options, NULL)) != -1;) {
        if (!run_option(&r, opt))
            return RUN_FAILED;
    }
    if (optind == argc) {
        fprintf(stderr, "usage: run [options] -- command [argument...]\n");
        return RUN_FAILED;
    }
    r.q.argv = argv + optind;
    r.q.envp = r.env_count > 0 ? r.env : environ;
    if (r.q.program == NULL)
        r.q.program = argv[optind];
    if (strchr(r.q.program, '/') != NULL)
        r.q.search = NULL;
    qsort(r.entries, r.q.plan.entry_count, sizeof r.entries[0], run_by_path);
    r.q.plan.entries = r.entries;
    r.q.plan.globs = r.globs;
    r.q.plan.ports = r.ports;
    r.q.limits = r.limits;
    if (r.share_network && (run_network_fd = backend_network(run_self, r.q.backend)) < 0)
        run_die("network");
    int request = launch_request_memfd(&r.q);
    if (request < 0)
        run_die("request");
    return r.repeat > 0 ? run_measure(&r, request) : run_once(&r, request);
}
