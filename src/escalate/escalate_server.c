#include "escalate/escalate_server.h"

#include "base/list.h"
#include "escalate/escalate_run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define SERVER_ARENA_MAX (32u << 20)
#define SERVER_DATAGRAM 8192 /* bytes of a handshake, ignored */

struct escalate_server {
    struct proc_host *host;
    const struct escalate_owner *calls;
    void *owner;
    struct loop_io io; /* the datagram socket */
    struct list sessions;
    size_t count;
    struct json_doc doc;
};

enum session_state {
    SESSION_REQUEST, /* the request is being received */
    SESSION_DECIDE,  /* the owner decides */
    SESSION_FDS,     /* the descriptors are being received */
    SESSION_RUNNING, /* the program runs */
    SESSION_DEAD,    /* to be freed */
};

struct escalate_session {
    struct list node;
    struct escalate_server *server;
    struct loop_io io;
    struct loop_task end;
    enum session_state state;
    struct escalate_frame frame;
    struct arena arena;
    struct escalate_request request;
    struct escalate_peer peer;
    const char *judged; /* path of the file that was judged; NULL: as in the request */
    dev_t dev;          /* of that file */
    ino_t ino;
    struct escalate_run *run;
};

static void server_watch(struct escalate_server *s);

/* -- the end of a session -- */

static void session_free(struct escalate_session *x) {
    struct escalate_server *s = x->server;
    loop_io_del(s->host->loop, &x->io);
    util_close_fd(&x->io.fd);
    loop_task_del(&x->end);
    if (x->run != NULL)
        escalate_run_kill(steal_ptr(&x->run));
    escalate_wire_fini(&x->frame);
    arena_fini(&x->arena);
    list_remove(&x->node);
    s->count--;
    free(x);
}

static void session_on_end(struct loop_task *t) {
    struct escalate_session *x = container_of(t, struct escalate_session, end);
    struct escalate_server *s = x->server;
    session_free(x);
    server_watch(s);
}

/* Closes the stream now and frees the session in a moment. */
static void session_end(struct escalate_session *x, const char *why) {
    struct escalate_server *s = x->server;
    if (x->state == SESSION_DEAD)
        return;
    bool asked = x->state == SESSION_DECIDE;
    x->state = SESSION_DEAD;
    loop_io_del(s->host->loop, &x->io);
    util_close_fd(&x->io.fd);
    if (x->run != NULL)
        escalate_run_kill(steal_ptr(&x->run));
    if (asked)
        s->calls->withdrawn(s->owner, x);
    if (why != NULL)
        s->calls->failed(s->owner, why);
    loop_defer(s->host->loop, &x->end);
}

/* -- running -- */

/* Sends a short frame; the stream has room for it, or nobody reads. */
static bool session_send(struct escalate_session *x, const struct buf *b) {
    return escalate_wire_send(x->io.fd, buf_str(b), NULL, 0) == 0;
}

static void session_tell(struct escalate_session *x, const struct escalate_result *r) {
    _cleanup_buf_ struct buf b = BUF_INIT(65536);
    bool good = escalate_wire_put_result(&b, r) == 0 && session_send(x, &b);
    session_end(x, good ? NULL : "the wrapper did not take the result");
}

/* The status a shell gives for a program that cannot be started. */
static void session_tell_error(struct escalate_session *x, int error) {
    char text[256];
    snprintf(text, sizeof text, "%s (os error %d)", err_os_text(error), error);
    session_tell(x, &(struct escalate_result){.exit_code = error == ENOENT ? 127 : 126,
                                              .error = str_of(text)});
}

static void session_on_ended(void *owner, struct escalate_run *r, int status, int error) {
    struct escalate_session *x = owner;
    (void)r;
    x->run = NULL;
    if (error != 0) {
        session_tell_error(x, error);
        return;
    }
    int signo = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    session_tell(
        x, &(struct escalate_result){.exit_code = signo != 0 ? 128 + signo : WEXITSTATUS(status),
                                     .signal = signo});
}

/* The number behind a name in /proc/PID/status. False: it is not there. */
static bool session_status(const char *text, const char *name, int base, uint64_t *out) {
    const char *line = strstr(text, name);
    if (line == NULL)
        return false;
    *out = strtoull(line + strlen(name), NULL, base);
    return true;
}

/* What the wrapper has from the shell. False: unknown. */
static bool session_heritage(const struct escalate_session *x, struct supervisor_heritage *h) {
    char path[64], text[4096];
    uint64_t mask;
    snprintf(path, sizeof path, "/proc/%d/status", (int)x->peer.pid);
    _cleanup_close_ int fd = x->peer.pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (n <= 0)
        return false;
    text[n] = '\0';
    *h = (struct supervisor_heritage){0};
    if (!session_status(text, "\nUmask:\t", 8, &mask))
        return false;
    h->umask = (mode_t)mask & 0777;
    h->umask_only = !session_status(text, "\nSigIgn:\t", 16, &h->ignored);
    if (!x->request.quiet)
        h->ignored &= ~(UINT64_C(1) << (SIGPIPE - 1));
    for (int i = 0; i < RLIM_NLIMITS; i++) {
        if (prlimit(x->peer.pid, (__rlimit_resource_t)i, NULL, &h->limits[i]) < 0)
            h->umask_only = true;
    }
    h->nice = MAX(getpriority(PRIO_PROCESS, (id_t)x->peer.pid), getpriority(PRIO_PROCESS, 0));
    return true;
}

/* Whether the file that was judged still lies where it lay. */
static bool session_is_judged(const struct escalate_session *x) {
    struct stat st;
    return x->judged == NULL ||
           (stat(x->judged, &st) == 0 && st.st_dev == x->dev && st.st_ino == x->ino);
}

static void session_run(struct escalate_session *x, const int *numbers, size_t n) {
    static char *none[] = {NULL};
    const struct escalate_request *q = &x->request;
    struct supervisor_heritage heritage;
    bool known = session_heritage(x, &heritage);
    char *argv[] = {(char *)q->file, NULL};
    const struct escalate_program p = {.file = x->judged != NULL ? x->judged : q->file,
                                       .argv = q->argc > 0 ? q->argv : argv,
                                       .envp = q->envp != NULL ? q->envp : none,
                                       .cwd = q->workdir,
                                       .fds = x->frame.fds,
                                       .numbers = numbers,
                                       .fd_count = n,
                                       .heritage = known ? &heritage : NULL};
    int r = -ESTALE;
    if (session_is_judged(x))
        r = escalate_run_start(x->server->host, &p, session_on_ended, x, &x->run);
    x->state = SESSION_RUNNING;
    if (r < 0)
        session_tell_error(x, -r);
}

/* -- frames -- */

static void session_on_request(struct escalate_session *x) {
    struct escalate_server *s = x->server;
    _cleanup_err_ struct err e = ERR_INIT;
    int r = escalate_wire_get_request(&s->doc, buf_str(&x->frame.body), &x->arena, &x->request, &e);
    if (r < 0) {
        session_end(x, r == -ENOMEM ? "out of memory" : err_msg(&e));
        return;
    }
    x->state = SESSION_DECIDE;
    s->calls->decide(s->owner, x, &x->request, &x->peer);
}

static void session_on_fds(struct escalate_session *x) {
    _cleanup_err_ struct err e = ERR_INIT;
    int numbers[ESCALATE_FDS];
    int n = escalate_wire_get_fds(&x->server->doc, buf_str(&x->frame.body), numbers, &e);
    if (n >= 0 && (size_t)n != x->frame.fd_count)
        n = err_set(&e, ERR_INVALID_PARAMS,
                    "mismatched number of fds in SuperExecMessage: %d in the message, %zu from the "
                    "control message",
                    n, x->frame.fd_count);
    if (n < 0)
        session_end(x, err_msg(&e));
    else
        session_run(x, numbers, (size_t)n);
}

static void session_on_frame(struct escalate_session *x) {
    if (x->state == SESSION_REQUEST) {
        session_on_request(x);
    } else if (x->state == SESSION_FDS) {
        session_on_fds(x);
    } else if (x->state == SESSION_RUNNING && x->run != NULL) {
        bool group;
        int signo = escalate_wire_get_signal(&x->server->doc, buf_str(&x->frame.body), &group);
        if (signo > 0)
            escalate_run_signal(x->run, signo, group);
    }
}

static void session_on_readable(struct loop_io *io, uint32_t events) {
    (void)events;
    struct escalate_session *x = container_of(io, struct escalate_session, io);
    int r = escalate_wire_read(io->fd, &x->frame);
    if (r == 0)
        return;
    if (r < 0) {
        bool quiet = r == -ECONNRESET && x->state != SESSION_REQUEST;
        session_end(x, quiet ? NULL : err_os_text(-r));
        return;
    }
    if (x->state == SESSION_DECIDE) { /* it speaks out of turn */
        session_end(x, "a frame before the answer");
        return;
    }
    session_on_frame(x);
    if (x->state != SESSION_DEAD)
        escalate_wire_next(&x->frame);
}

/* -- handshakes -- */

static void session_new(struct escalate_server *s, int fd) {
    struct escalate_session *x = calloc(1, sizeof *x);
    struct ucred cred;
    socklen_t n = sizeof cred;
    int type = 0;
    socklen_t type_len = sizeof type;
    bool stream = getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len) == 0 && type == SOCK_STREAM;
    if (x == NULL || !stream || fcntl(fd, F_SETFL, O_NONBLOCK) < 0) {
        s->calls->failed(s->owner, x == NULL ? "out of memory" : "the handshake has no stream");
        free(x);
        close(fd);
        return;
    }
    x->server = s;
    x->io = (struct loop_io){.fd = fd, .fn = session_on_readable};
    x->end.fn = session_on_end;
    x->arena = ARENA_INIT(SERVER_ARENA_MAX);
    escalate_wire_init(&x->frame);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) == 0)
        x->peer.pid = cred.pid;
    list_append(&s->sessions, &x->node);
    s->count++;
    if (loop_io_add(s->host->loop, &x->io, EPOLLIN) < 0)
        session_end(x, "out of memory");
}

/* One datagram: one descriptor, whatever the bytes. */
static void server_on_readable(struct loop_io *io, uint32_t events) {
    (void)events;
    struct escalate_server *s = container_of(io, struct escalate_server, io);
    char control[CMSG_SPACE(ESCALATE_FDS * sizeof(int))], ignored[SERVER_DATAGRAM];
    struct iovec v = {ignored, sizeof ignored};
    struct msghdr m = {
        .msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    if (recvmsg(io->fd, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) < 0)
        return;
    int first = -1, count = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c != NULL; c = CMSG_NXTHDR(&m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            if (count++ == 0)
                first = fd;
            else
                close(fd);
        }
    }
    if (count == 1)
        session_new(s, steal_fd(&first));
    else
        s->calls->failed(s->owner, "expected 1 fd in datagram handshake");
    util_close_fd(&first);
    server_watch(s);
}

/* Takes more handshakes while there is room for sessions. */
static void server_watch(struct escalate_server *s) {
    if (s->count >= ESCALATE_SERVER_SESSIONS)
        loop_io_del(s->host->loop, &s->io);
    else if (!s->io.added && loop_io_add(s->host->loop, &s->io, EPOLLIN) < 0)
        s->calls->failed(s->owner, "out of memory");
}

int escalate_server_new(struct proc_host *h, const struct escalate_owner *calls, void *owner,
                        struct escalate_server **out, int *fd) {
    int pair[2];
    struct escalate_server *s = calloc(1, sizeof *s);
    *out = NULL;
    *fd = -1;
    if (s == NULL)
        return -ENOMEM;
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair) < 0) {
        free(s);
        return -errno;
    }
    s->host = h;
    s->calls = calls;
    s->owner = owner;
    s->io = (struct loop_io){.fd = pair[0], .fn = server_on_readable};
    list_init(&s->sessions);
    json_doc_init(&s->doc, ESCALATE_FRAME_MAX, 0);
    server_watch(s);
    *out = s;
    *fd = pair[1];
    return 0;
}

void escalate_server_free(struct escalate_server *s) {
    if (s == NULL)
        return;
    list_for_each(n, &s->sessions) {
        struct escalate_session *x = list_entry(n, struct escalate_session, node);
        if (x->state == SESSION_DECIDE)
            s->calls->withdrawn(s->owner, x);
        session_free(x);
    }
    loop_io_del(s->host->loop, &s->io);
    util_close_fd(&s->io.fd);
    json_doc_fini(&s->doc);
    free(s);
}

int escalate_server_judged(struct escalate_session *x, const char *file, const struct stat *st) {
    x->judged = arena_strdup(&x->arena, str_of(file));
    x->dev = st->st_dev;
    x->ino = st->st_ino;
    return x->judged == NULL ? -ENOMEM : 0;
}

void escalate_server_answer(struct escalate_session *x, enum escalate_action action,
                            struct str reason) {
    _cleanup_buf_ struct buf b = BUF_INIT(1u << 20);
    if (x->state != SESSION_DECIDE)
        return;
    x->state = action == ESCALATE_OUTSIDE ? SESSION_FDS : SESSION_RUNNING;
    bool good = escalate_wire_put_response(&b, action, reason) == 0 && session_send(x, &b);
    if (!good)
        session_end(x, "the wrapper did not take the answer");
    else if (action != ESCALATE_OUTSIDE)
        session_end(x, NULL);
}
