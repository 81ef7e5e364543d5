#include "client/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

extern char **environ;

static void spawn_on_exit(struct loop_io *io, uint32_t events);
static void spawn_on_stderr(struct loop_io *io, uint32_t events);
static void spawn_on_kill(struct loop_timer *t);

void spawn_init(struct spawn *s, struct xs_client *c, void (*gone)(struct spawn *s)) {
    *s = (struct spawn){.client = c, .gone = gone};
    s->pidfd = (struct loop_io){.fd = -1, .fn = spawn_on_exit};
    s->stderr_io = (struct loop_io){.fd = -1, .fn = spawn_on_stderr};
    s->kill.fn = spawn_on_kill;
}

static void spawn_close(struct spawn *s, struct loop_io *io) {
    loop_io_del(client_loop(s->client), io);
    util_close_fd(&io->fd);
}

/* -- what it says -- */

static void spawn_log_line(struct spawn *s) {
    if (s->line_len > 0)
        client_log(s->client, XS_LOG_INFO, "child: %.*s", (int)s->line_len, s->line);
    s->line_len = 0;
}

static void spawn_take(struct spawn *s, const char *p, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (p[i] == '\n')
            spawn_log_line(s);
        else if (s->line_len < sizeof s->line)
            s->line[s->line_len++] = p[i];
    }
}

static void spawn_on_stderr(struct loop_io *io, uint32_t events) {
    (void)events;
    struct spawn *s = container_of(io, struct spawn, stderr_io);
    char data[4096];
    ssize_t n = read(io->fd, data, sizeof data);
    if (n > 0) {
        spawn_take(s, data, (size_t)n);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        spawn_log_line(s);
        spawn_close(s, io);
    }
}

/* -- its end -- */

static void spawn_signal(const struct spawn *s, int signo) {
    if (s->pid > 0)
        kill(-s->pid, signo);
}

/* Reaps it if it has ended. */
static bool spawn_reap(struct spawn *s) {
    siginfo_t info = {.si_pid = 0};
    int r = waitid(P_PIDFD, (id_t)s->pidfd.fd, &info, WEXITED | WNOHANG | WNOWAIT);
    if (r == 0 && info.si_pid == 0)
        return false;
    /* Its group ends with it. Until it is reaped nobody else has the number. */
    if (r == 0)
        spawn_signal(s, SIGKILL);
    if (r == 0)
        waitid(P_PIDFD, (id_t)s->pidfd.fd, &info, WEXITED | WNOHANG);
    s->signal = r == 0 && info.si_code != CLD_EXITED ? info.si_status : 0;
    s->status = r == 0 && info.si_code == CLD_EXITED ? info.si_status : -1;
    s->pid = 0;
    return true;
}

static void spawn_on_exit(struct loop_io *io, uint32_t events) {
    (void)events;
    struct spawn *s = container_of(io, struct spawn, pidfd);
    if (!spawn_reap(s))
        return;
    spawn_close(s, io);
    loop_timer_del(client_loop(s->client), &s->kill);
    s->gone(s);
}

static void spawn_on_kill(struct loop_timer *t) {
    spawn_signal(container_of(t, struct spawn, kill), SIGKILL);
}

void spawn_end(struct spawn *s) {
    if (s->pid == 0 || s->kill.pos != 0)
        return;
    spawn_signal(s, SIGTERM);
    if (loop_timer_set(client_loop(s->client), &s->kill, loop_ms(SPAWN_GRACE_MS)) < 0)
        spawn_signal(s, SIGKILL);
}

void spawn_fini(struct spawn *s) {
    if (s->pid > 0) {
        spawn_signal(s, SIGTERM);
        struct pollfd p = {.fd = s->pidfd.fd, .events = POLLIN};
        while (poll(&p, 1, SPAWN_GRACE_MS) < 0 && errno == EINTR)
            continue;
        if (!spawn_reap(s)) {
            spawn_signal(s, SIGKILL);
            siginfo_t info;
            while (waitid(P_PIDFD, (id_t)s->pidfd.fd, &info, WEXITED) < 0 && errno == EINTR)
                continue;
            s->pid = 0;
        }
    }
    loop_timer_del(client_loop(s->client), &s->kill);
    spawn_close(s, &s->pidfd);
    spawn_close(s, &s->stderr_io);
}

/* -- its start -- */

/* The environment with `add` in front, whose values win. Owned array of borrowed strings. */
static char **spawn_environment(const char *const *add) {
    size_t extra = 0, own = 0, n = 0;
    while (add[extra] != NULL)
        extra++;
    while (environ != NULL && environ[own] != NULL)
        own++;
    char **list = calloc(extra + own + 1, sizeof *list);
    for (size_t i = 0; list != NULL && i < extra; i++)
        list[n++] = (char *)add[i];
    for (size_t i = 0; list != NULL && i < own; i++) {
        bool replaced = false;
        for (size_t k = 0; k < extra && !replaced; k++) {
            size_t len = strcspn(add[k], "=") + 1;
            replaced = strncmp(environ[i], add[k], len) == 0;
        }
        if (!replaced)
            list[n++] = environ[i];
    }
    return list;
}

/* 0 or an errno. The child gets no other descriptor and no signal ignored by us. */
static int spawn_exec(pid_t *pid, const char *const *argv, char **env, const char *cwd, int io,
                      int err) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int r = posix_spawn_file_actions_init(&files);
    if (r != 0)
        return r;
    r = posix_spawnattr_init(&attr);
    if (r != 0) {
        posix_spawn_file_actions_destroy(&files);
        return r;
    }
    r = cwd != NULL ? posix_spawn_file_actions_addchdir_np(&files, cwd) : 0;
    r = r != 0 ? r : posix_spawn_file_actions_adddup2(&files, io, 0);
    r = r != 0 ? r : posix_spawn_file_actions_adddup2(&files, io, 1);
    r = r != 0 ? r : posix_spawn_file_actions_adddup2(&files, err, 2);
    r = r != 0 ? r : posix_spawn_file_actions_addclosefrom_np(&files, 3);
    r = r != 0 ? r : posix_spawnattr_setpgroup(&attr, 0);
    r = r != 0 ? r : posix_spawnattr_setsigmask(&attr, &none);
    r = r != 0 ? r : posix_spawnattr_setsigdefault(&attr, &all);
    r = r != 0 ? r
               : posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                                     POSIX_SPAWN_SETSIGDEF);
    r = r != 0 ? r : posix_spawnp(pid, argv[0], &files, &attr, (char *const *)argv, env);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&files);
    return r;
}

/* A descriptor that dup2 to 0, 1 and 2 leaves alone. */
static int spawn_above_stdio(int *fd) {
    if (*fd > 2)
        return 0;
    int high = fcntl(*fd, F_DUPFD_CLOEXEC, 3);
    if (high < 0)
        return errno;
    close(*fd);
    *fd = high;
    return 0;
}

static int spawn_watch(struct spawn *s, int err) {
    struct loop *loop = client_loop(s->client);
    s->pidfd.fd = (int)syscall(SYS_pidfd_open, s->pid, 0);
    s->stderr_io.fd = err;
    if (s->pidfd.fd < 0)
        return errno;
    int r = loop_io_add(loop, &s->pidfd, EPOLLIN);
    return r < 0 ? -r : -loop_io_add(loop, &s->stderr_io, EPOLLIN);
}

int spawn_start(struct spawn *s, const char *const *argv, const char *const *env, const char *cwd,
                struct xs_error *e) {
    int io[2] = {-1, -1}, err[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, io) < 0)
        return xs_error_sys(e, XS_ELOCAL, errno, "cannot make a socket");
    _cleanup_close_ int ours = io[0], theirs = io[1];
    if (pipe2(err, O_CLOEXEC) < 0)
        return xs_error_sys(e, XS_ELOCAL, errno, "cannot make a pipe");
    _cleanup_close_ int err_in = err[0], err_out = err[1];
    fcntl(ours, F_SETFL, O_NONBLOCK);
    fcntl(err_in, F_SETFL, O_NONBLOCK);
    _cleanup_free_ char **environment = spawn_environment(env);
    if (environment == NULL)
        return xs_error_set(e, XS_ENOMEM, "out of memory");
    pid_t pid = 0;
    int r = spawn_above_stdio(&theirs);
    r = r != 0 ? r : spawn_above_stdio(&err_out);
    r = r != 0 ? r : spawn_exec(&pid, argv, environment, cwd, theirs, err_out);
    if (r != 0)
        return xs_error_sys(e, XS_ELOCAL, r, "cannot start %s", argv[0]);
    s->pid = pid;
    r = spawn_watch(s, steal_fd(&err_in));
    if (r != 0) {
        spawn_signal(s, SIGKILL);
        while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
            continue;
        s->pid = 0;
        spawn_fini(s);
        return xs_error_sys(e, XS_ELOCAL, r, "cannot watch %s", argv[0]);
    }
    return steal_fd(&ours);
}
