#include "escalate/escalate_wrapper.h"

#include "base/utf8.h"
#include "escalate/escalate_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#define WRAPPER_NAME "codex-execve-wrapper"
#define WRAPPER_FORWARD_MAX 16 /* descriptors below this are passed on */

extern char **environ;

struct wrapper {
    const char *file;
    char **argv;
    int control; /* the inherited datagram socket */
    int stream;
    struct json_doc doc;
    struct escalate_frame frame;
};

bool escalate_wrapper_is(const char *argv0) {
    const char *slash = argv0 == NULL ? NULL : strrchr(argv0, '/');
    return argv0 != NULL && strcmp(slash == NULL ? argv0 : slash + 1, WRAPPER_NAME) == 0;
}

/* -- messages -- */

static int wrapper_fail(const char *what, const char *cause) {
    if (cause == NULL)
        fprintf(stderr, "Error: %s\n", what);
    else
        fprintf(stderr, "Error: %s\n\nCaused by:\n    %s\n", what, cause);
    return 1;
}

static int wrapper_os(const char *what, int error) {
    char text[256];
    snprintf(text, sizeof text, "%s (os error %d)", err_os_text(error), error);
    return what == NULL ? wrapper_fail(text, NULL) : wrapper_fail(what, text);
}

/* -- the handshake -- */

/* The inherited socket. 0, or the exit status plus 1. */
static int wrapper_control(struct wrapper *w) {
    const char *text = getenv(ESCALATE_SOCKET);
    char *end;
    if (text == NULL)
        return 1 + wrapper_fail("environment variable not found", NULL);
    long n = strtol(text, &end, 10);
    if (*text == '\0' || *end != '\0' || n > INT_MAX || n < INT_MIN)
        return 1 + wrapper_fail(*text == '\0' ? "cannot parse integer from empty string"
                                              : "invalid digit found in string",
                                NULL);
    if (n < 0) {
        fprintf(stderr, "Error: " ESCALATE_SOCKET " is not a valid file descriptor: %ld\n", n);
        return 2;
    }
    w->control = (int)n;
    return fcntl(w->control, F_GETFD) < 0 ? 1 + wrapper_os(NULL, errno) : 0;
}

static int wrapper_connect(struct wrapper *w) {
    int pair[2];
    char control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec v = {(char *)"", 1};
    struct msghdr m = {
        .msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return 1 + wrapper_os(NULL, errno);
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &pair[1], sizeof(int));
    ssize_t n;
    do
        n = sendmsg(w->control, &m, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    int error = errno;
    close(pair[1]);
    w->stream = pair[0];
    return n < 0 ? 1 + wrapper_os("failed to send handshake datagram", error) : 0;
}

/* -- request and answer -- */

static bool wrapper_is_lossy(char *const *list) {
    for (size_t i = 0; list[i] != NULL; i++) {
        if (!utf8_valid(list[i], strlen(list[i])))
            return true;
    }
    return false;
}

static int wrapper_ask(struct wrapper *w) {
    char cwd[PATH_MAX];
    _cleanup_buf_ struct buf b = BUF_INIT(ESCALATE_FRAME_MAX);
    if (getcwd(cwd, sizeof cwd) == NULL)
        return 1 + wrapper_os(NULL, errno);
    struct escalate_request q = {
        .file = w->file, .argv = w->argv, .workdir = cwd, .envp = environ, .quiet = true};
    while (q.argv[q.argc] != NULL)
        q.argc++;
    q.lossy = wrapper_is_lossy(q.argv) || wrapper_is_lossy(environ) ||
              !utf8_valid(w->file, strlen(w->file)) || !utf8_valid(cwd, strlen(cwd));
    int r = escalate_wire_put_request(&b, &q);
    if (r == 0)
        r = escalate_wire_send(w->stream, buf_str(&b), NULL, 0);
    return r < 0 ? 1 + wrapper_os("failed to send EscalateRequest", r == -ENOBUFS ? E2BIG : -r) : 0;
}

/* Waits for a frame. 0, or the exit status plus 1. */
static int wrapper_read(struct wrapper *w, const char *what) {
    escalate_wire_next(&w->frame);
    int r = escalate_wire_read(w->stream, &w->frame);
    if (r == -ECONNRESET)
        return 1 + wrapper_fail(what, w->frame.head_len < 4
                                          ? "socket closed while receiving frame header"
                                          : "socket closed while receiving frame payload");
    return r < 0 ? 1 + wrapper_os(what, -r) : 0;
}

/* -- running the program here -- */

static int wrapper_exec(const struct wrapper *w) {
    execv(w->file, w->argv);
    int error = errno;
    if (error == ENOEXEC) { /* a script without `#!`, which a shell runs itself */
        size_t n = 0;
        while (w->argv[n] != NULL)
            n++;
        char **argv = calloc(n + 3, sizeof *argv);
        if (argv != NULL) {
            argv[0] = (char *)"sh";
            argv[1] = (char *)w->file;
            for (size_t i = 1; i < n; i++)
                argv[i + 1] = w->argv[i];
            execv("/bin/sh", argv);
        }
    }
    (void)wrapper_os(NULL, error);
    return error == ENOENT ? 127 : 126;
}

/* -- standing for a program that the server runs -- */

/* Passes descriptors 0 to 15 on that an exec would keep, and closes all but stderr. */
static int wrapper_hand_over(struct wrapper *w) {
    int fds[ESCALATE_FDS];
    size_t n = 0;
    _cleanup_buf_ struct buf b = BUF_INIT(4096);
    int r = buf_putz(&b, "{\"fds\":[");
    for (int fd = 0; r == 0 && fd < WRAPPER_FORWARD_MAX; fd++) {
        int flags = fcntl(fd, F_GETFD);
        if (flags < 0 || (flags & FD_CLOEXEC) != 0 || fd == w->control)
            continue;
        fds[n++] = fd;
        r = buf_putf(&b, "%s%d", n > 1 ? "," : "", fd);
    }
    if (r == 0)
        r = buf_putz(&b, "]}");
    if (r == 0)
        r = escalate_wire_send(w->stream, buf_str(&b), fds, n);
    for (size_t i = 0; i < n; i++) {
        if (fds[i] != STDERR_FILENO)
            close(fds[i]);
    }
    return r;
}

/* A signal of the kernel comes from the terminal, which would tell the whole group. */
static void wrapper_forward(const struct wrapper *w, int signo, bool kernel) {
    char text[64];
    int n = snprintf(text, sizeof text, "{\"signal\":%d,\"group\":%s}", signo,
                     kernel ? "true" : "false");
    (void)!escalate_wire_send(w->stream, (struct str){text, (size_t)n}, NULL, 0);
    if (signo == SIGTSTP || signo == SIGTTIN || signo == SIGTTOU)
        raise(SIGSTOP);
}

/* A descriptor that tells which signals come; -1: none. */
static int wrapper_catch(void) {
    static const int signals[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2,
                                  SIGALRM, SIGCONT, SIGTSTP, SIGTTIN, SIGTTOU, SIGWINCH};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        struct sigaction old;
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaddset(&set, signals[i]);
    }
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Ends like the program. */
static int wrapper_end_as(const struct escalate_result *r) {
    if (r->signal > 0 && r->signal < 65) {
        sigset_t one;
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        signal(r->signal, SIG_DFL);
        sigemptyset(&one);
        sigaddset(&one, r->signal);
        raise(r->signal);
        sigprocmask(SIG_UNBLOCK, &one, NULL);
    }
    return r->exit_code;
}

/* Waits for the result; passes signals on meanwhile. */
static int wrapper_await(struct wrapper *w, int signals) {
    struct pollfd p[2] = {{.fd = w->stream, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
    for (;;) {
        struct signalfd_siginfo info;
        if (poll(p, 2, -1) < 0)
            continue;
        while (p[1].fd >= 0 && read(p[1].fd, &info, sizeof info) == sizeof info)
            wrapper_forward(w, (int)info.ssi_signo, info.ssi_code == SI_KERNEL);
        if (p[0].revents != 0)
            break;
    }
    _cleanup_err_ struct err e = ERR_INIT;
    struct escalate_result result;
    int r = wrapper_read(w, "failed to receive SuperExecResult");
    if (r != 0)
        return r - 1;
    if (escalate_wire_get_result(&w->doc, buf_str(&w->frame.body), &result, &e) < 0)
        return wrapper_fail("failed to receive SuperExecResult", err_msg(&e));
    if (result.error.p != NULL)
        fprintf(stderr, "Error: %.*s\n", (int)result.error.n, result.error.p);
    return wrapper_end_as(&result);
}

static int wrapper_obey(struct wrapper *w) {
    static const char what[] = "failed to receive EscalateResponse";
    _cleanup_err_ struct err e = ERR_INIT;
    enum escalate_action action;
    struct str reason;
    int r = wrapper_read(w, what);
    if (r != 0)
        return r - 1;
    if (escalate_wire_get_response(&w->doc, buf_str(&w->frame.body), &action, &reason, &e) < 0)
        return wrapper_fail(what, err_msg(&e));
    if (action == ESCALATE_RUN)
        return wrapper_exec(w);
    if (action == ESCALATE_DENY) {
        fprintf(stderr, "Execution denied%s%.*s\n", reason.p != NULL ? ": " : "", (int)reason.n,
                reason.p != NULL ? reason.p : "");
        return 1;
    }
    int signals = wrapper_catch(); /* from here on they are the program's */
    r = wrapper_hand_over(w);
    return r < 0 ? wrapper_os("failed to send SuperExecMessage", -r) : wrapper_await(w, signals);
}

int escalate_wrapper_main(int argc, char **argv) {
    struct wrapper w = {.control = -1, .stream = -1};
    if (argc < 2) {
        fputs("error: the following required arguments were not provided:\n  <FILE>\n\n"
              "Usage: " WRAPPER_NAME " <FILE> [ARGV]...\n",
              stderr);
        return 2;
    }
    w.file = argv[1];
    w.argv = argv + 2;
    json_doc_init(&w.doc, ESCALATE_FRAME_MAX, 0);
    escalate_wire_init(&w.frame);
    int r = wrapper_control(&w);
    if (r == 0)
        r = wrapper_connect(&w);
    if (r == 0)
        r = wrapper_ask(&w);
    return r != 0 ? r - 1 : wrapper_obey(&w);
}
