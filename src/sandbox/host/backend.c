#include "sandbox/host/backend.h"

#include "base/fdpass.h"
#include "base/nullfd.h"
#include "sandbox/host/landlock_abi.h"
#include "sandbox/host/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define BACKEND_PATIENCE_MS 10000 /* for a launcher to report, and then to end */
#define BACKEND_FD_MIN 20         /* clear of the launcher's descriptors */

const char *backend_name(enum launch_backend b) {
    static const char *const names[] = {"userns", "root", "landlock"};
    return (unsigned)b < ARRAY_LEN(names) ? names[b] : "?";
}

/* -- probing -- */

/* Starts a launcher for the request; its pid or -errno. */
static pid_t backend_spawn(int self, int request, int control) {
    _cleanup_close_ int null = nullfd_open(O_RDWR);
    if (null < 0)
        return null;
    char path[64];
    char *none[] = {NULL};
    pid_t pid = -1;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    snprintf(path, sizeof path, "/proc/self/fd/%d", self);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attr);
    int r = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
    sigset_t mask;
    sigemptyset(&mask);
    if (r == 0)
        r = posix_spawnattr_setsigmask(&attr, &mask);
    for (int fd = 0; r == 0 && fd <= 2; fd++)
        r = posix_spawn_file_actions_adddup2(&actions, null, fd);
    if (r == 0)
        r = posix_spawn_file_actions_adddup2(&actions, request, LAUNCH_REQUEST_FD);
    if (r == 0)
        r = posix_spawn_file_actions_adddup2(&actions, control, LAUNCH_CONTROL_FD);
    if (r == 0)
        r = posix_spawn(&pid, path, &actions, &attr, launcher_argv, none);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attr);
    return r == 0 ? pid : -r;
}

static bool backend_poll(int control, short events) {
    struct pollfd p = {.fd = control, .events = events};
    int ready;
    while ((ready = poll(&p, 1, BACKEND_PATIENCE_MS)) < 0 && errno == EINTR)
        ;
    return ready > 0;
}

/* A launcher ends by itself after its report, once its sandbox is gone. */
static void backend_await_end(int control, pid_t pid, bool reported) {
    if (!reported || !backend_poll(control, 0)) /* wait until nobody holds the other end */
        kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* Waits for the report and for the end. *fd is the descriptor that came along. */
static void backend_hear(int control, pid_t pid, struct backend_try *t, int *fd) {
    struct launch_report r = {0};
    bool ready = backend_poll(control, POLLIN);
    ssize_t n = ready ? fdpass_receive(control, &r, sizeof r, MSG_DONTWAIT, fd) : -1;
    backend_await_end(control, pid, n > 0);
    size_t head = offsetof(struct launch_report, text);
    if (n >= (ssize_t)head && r.kind == LAUNCH_RUNNING) {
        t->works = true;
        t->fault.error = r.error;
        t->shares_proc = r.error == EXDEV;
    } else if (n > (ssize_t)head && (size_t)n <= sizeof r) {
        t->fault.step = r.step;
        t->fault.error = r.error;
        memcpy(t->fault.text, r.text, (size_t)n - head);
        t->fault.text[MIN((size_t)n - head, sizeof t->fault.text - 1)] = '\0';
    } else {
        fault_text(&t->fault, FAULT_LOST, "the launcher exited before reporting a result");
    }
}

/* Opens the descriptors of one launch. 0 or -errno. */
static int backend_open(const struct launch_request *q, int *request, int pair[2]) {
    int fd = launch_request_memfd(q);
    if (fd < 0)
        return fd;
    *request = fcntl(fd, F_DUPFD_CLOEXEC, BACKEND_FD_MIN);
    close(fd);
    int ends[2];
    if (*request < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return -errno;
    pair[0] = ends[0];
    pair[1] = fcntl(ends[1], F_DUPFD_CLOEXEC, BACKEND_FD_MIN);
    int error = errno;
    close(ends[1]);
    return pair[1] < 0 ? -error : 0;
}

static const struct plan_entry backend_root = {.path = "/", .access = PLAN_READ};

/* Everything is readable, nothing writable. */
static const struct plan backend_plan = {.confine_files = true,
                                         .full_read = true,
                                         .entries = &backend_root,
                                         .entry_count = 1,
                                         .cwd = "/"};

/* Runs a launcher in some mode. *fd is the descriptor it sent, to be closed. */
static void backend_run(int self, enum launch_mode mode, enum launch_backend b,
                        const struct plan *plan, struct backend_try *t, int *fd) {
    struct launch_request q = {
        .mode = mode, .backend = b, .landlock_max = LANDLOCK_ABI_MAX, .plan = *plan};
    _cleanup_close_ int request = -1;
    int pair[2] = {-1, -1};
    *fd = -1;
    *t = (struct backend_try){.tried = true};
    int r = backend_open(&q, &request, pair);
    if (r < 0)
        fault_os(&t->fault, FAULT_REQUEST, -r, "descriptors");
    pid_t pid = r == 0 ? backend_spawn(self, request, pair[1]) : r;
    util_close_fd(&pair[1]);
    if (pid > 0)
        backend_hear(pair[0], pid, t, fd);
    else
        fault_os(&t->fault, FAULT_EXEC, -pid, "launcher");
    util_close_fd(&pair[0]);
}

int backend_network(int self, enum launch_backend backend) {
    struct backend_try t;
    int fd;
    if (backend == LAUNCH_LANDLOCK)
        return -ENOSYS;
    _cleanup_close_ int program = fcntl(self, F_DUPFD_CLOEXEC, BACKEND_FD_MIN);
    backend_run(program, LAUNCH_NETWORK, backend, &backend_plan, &t, &fd);
    return fd >= 0 ? fd : t.fault.error > 0 ? -t.fault.error : -EIO;
}

void backend_try_plan(int self, enum launch_backend b, const struct plan *plan,
                      struct backend_try *out) {
    int fd;
    backend_run(self, LAUNCH_PROBE, b, plan, out, &fd);
    util_close_fd(&fd);
}

/* Collects facts about the host. If a filter kills the launcher, that is one. */
static void backend_look(int self, struct cause_facts *f) {
    struct backend_try t;
    int fd;
    cause_look(f);
    if (f->seccomp == 0)
        return;
    backend_run(self, LAUNCH_CALLS, LAUNCH_LANDLOCK, &backend_plan, &t, &fd);
    util_close_fd(&fd);
    unsigned bits = t.works ? (unsigned)t.fault.error : ~0u;
    f->clone_filtered = (bits & CAUSE_CLONE_FILTERED) != 0;
    f->mounts_filtered = (bits & CAUSE_MOUNTS_FILTERED) != 0;
}

void backend_probe(int self, bool all, struct backend *out) {
    *out = (struct backend){.landlock = landlock_abi(LANDLOCK_ABI_MAX)};
    _cleanup_close_ int program = fcntl(self, F_DUPFD_CLOEXEC, BACKEND_FD_MIN);
    bool found = false;
    for (unsigned i = 0; i < LAUNCH_BACKENDS && (all || !found); i++) {
        backend_try_plan(program, (enum launch_backend)i, &backend_plan, &out->tries[i]);
        found |= out->tries[i].works;
    }
    if (all || !(out->tries[LAUNCH_USERNS].works || out->tries[LAUNCH_ROOT].works))
        backend_look(program, &out->facts);
}

int backend_best(const struct backend *b) {
    for (int i = 0; i < LAUNCH_BACKENDS; i++) {
        if (b->tries[i].works)
            return i;
    }
    return -1;
}

/* -- choosing -- */

void backend_advise(const struct backend *b, char *out) {
    unsigned causes = cause_find(&b->facts, &b->tries[LAUNCH_USERNS].fault);
    cause_describe(&b->facts, causes, out, BACKEND_ADVICE_MAX);
    if (causes == 0)
        snprintf(out, BACKEND_ADVICE_MAX, "; exec-server doctor tells more");
}

int backend_choose(const struct backend *b, const struct plan *p, enum launch_backend *out,
                   struct err *e) {
    const char *why = NULL;
    bool bare = !p->confine_files && p->network != PLAN_NET_MANAGED; /* just a seccomp filter */
    for (int i = 0; i < LAUNCH_BACKENDS; i++) {
        *out = (enum launch_backend)i;
        bool can = *out != LAUNCH_LANDLOCK || landlock_abi_suffices(p, b->landlock, &why);
        if (bare || (b->tries[i].works && can))
            return 0;
    }
    char advice[BACKEND_ADVICE_MAX];
    backend_advise(b, advice);
    return err_set(e, ERR_INTERNAL, "%s%s; without namespaces: %s",
                   b->tries[LAUNCH_USERNS].fault.text, advice,
                   why != NULL ? why : b->tries[LAUNCH_LANDLOCK].fault.text);
}

/* -- settings -- */

const char *backend_setting(size_t i) {
    static const char *const names[] = {
        "user.max_user_namespaces",         "user.max_mnt_namespaces",
        "user.max_pid_namespaces",          "user.max_net_namespaces",
        "kernel.unprivileged_userns_clone", "kernel.apparmor_restrict_unprivileged_userns",
    };
    return i < ARRAY_LEN(names) ? names[i] : NULL;
}

void backend_setting_value(const char *name, char *value, size_t size) {
    char path[128];
    snprintf(path, sizeof path, "/proc/sys/%s", name);
    for (char *p = path; *p != '\0'; p++)
        *p = *p == '.' ? '/' : *p;
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, value, size - 1);
    value[MAX(n, (ssize_t)0)] = '\0';
    value[strcspn(value, "\n")] = '\0';
}
