#include "proc/proc.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static void proc_finish_exit(struct proc *p);
static void proc_check_closed(struct proc *p);

int proc_host_init(struct proc_host *h, struct loop *loop, struct rlimit nofile) {
    *h = (struct proc_host){.loop = loop};
    h->scratch = malloc(OUTLOG_CHUNK_MAX);
    if (h->scratch == NULL)
        return -ENOMEM;
    return spawner_init(&h->spawner, loop, nofile);
}

void proc_host_fini(struct proc_host *h) {
    spawner_fini(&h->spawner);
    free(h->scratch);
}

/* -- streams -- */

static void proc_stream_end(struct proc *p, struct proc_stream *s) {
    loop_io_del(p->host->loop, &s->io);
    util_close_fd(&s->io.fd);
}

static void proc_stream_watch(struct proc *p, struct proc_stream *s) {
    if (s->io.fd < 0 || s->io.added)
        return;
    int r = loop_io_add(p->host->loop, &s->io, EPOLLIN);
    if (r < 0) {
        log_error("cannot watch output of a process: %s", err_os_text(-r));
        proc_stream_end(p, s);
    }
}

static void proc_end_streams(struct proc *p) {
    for (size_t i = 0; i < ARRAY_LEN(p->out); i++)
        proc_stream_end(p, &p->out[i]);
}

static bool proc_streams_open(const struct proc *p) {
    return p->out[0].io.fd >= 0 || p->out[1].io.fd >= 0;
}

/* A held process is not watched at all: a hang-up would be reported even with nothing wanted. */
static void proc_hold(struct proc *p) {
    for (size_t i = 0; i < ARRAY_LEN(p->out); i++)
        loop_io_del(p->host->loop, &p->out[i].io);
    if (list_empty(&p->held_node))
        list_append(&p->gate->held, &p->held_node);
}

static bool proc_gated(const struct proc *p) {
    return p->gate != NULL && p->gate->closed;
}

/* The kernel hands out a terminal's output in small pieces: collect what is there. */
static ssize_t proc_read_fd(const struct proc *p, int fd) {
    size_t have = 0;
    for (;;) {
        ssize_t n = read(fd, p->host->scratch + have, OUTLOG_CHUNK_MAX - have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return have > 0 ? (ssize_t)have : n;
        have += (size_t)n;
        if (!p->tty || have == OUTLOG_CHUNK_MAX)
            return (ssize_t)have;
    }
}

/* Bytes read and delivered; 0 when nothing is there now or the stream has ended. */
static size_t proc_stream_read(struct proc *p, struct proc_stream *s) {
    ssize_t n = proc_read_fd(p, s->io.fd);
    if (n < 0 && errno == EAGAIN)
        return 0;
    if (n <= 0) { /* end of file; EIO is how a terminal says it */
        proc_stream_end(p, s);
        return 0;
    }
    if (n == OUTLOG_CHUNK_MAX && !p->tty && !s->grown) {
        s->grown = true; /* refused beyond the user's quota: then it stays as it is */
        (void)fcntl(s->io.fd, F_SETPIPE_SZ, PROC_PIPE_SIZE);
    }
    uint64_t seq = p->next_seq++;
    if (outlog_append(&p->log, seq, s->name, p->host->scratch, (size_t)n) < 0)
        log_error("out of memory: output of a process is not retained");
    p->ops->output(p, seq, s->name, p->host->scratch, (size_t)n);
    return (size_t)n;
}

static void proc_on_readable(struct loop_io *io, uint32_t events) {
    (void)events;
    struct proc_stream *s = container_of(io, struct proc_stream, io);
    struct proc *p = s->owner;
    for (size_t round = 0; round < PROC_ROUND_MAX && s->io.fd >= 0;) {
        if (proc_gated(p)) {
            proc_hold(p);
            return;
        }
        size_t n = proc_stream_read(p, s);
        if (n < OUTLOG_CHUNK_MAX)
            break; /* drained for now; the loop tells when there is more */
        round += n;
    }
    proc_check_closed(p);
}

/* -- gate -- */

void proc_gate_init(struct proc_gate *g) {
    g->closed = false;
    list_init(&g->held);
}

void proc_gate_close(struct proc_gate *g) {
    g->closed = true;
}

void proc_gate_open(struct proc_gate *g) {
    if (!g->closed)
        return;
    g->closed = false;
    /* Delivering may close the gate again; those that are left stay held. */
    for (struct list *n; !g->closed && (n = list_first(&g->held)) != NULL;) {
        struct proc *p = list_entry(n, struct proc, held_node);
        list_remove(n);
        for (size_t i = 0; i < ARRAY_LEN(p->out); i++)
            proc_stream_watch(p, &p->out[i]);
        if (p->exit_pending)
            proc_finish_exit(p);
    }
}

/* -- input -- */

static void proc_stdin_end(struct proc *p) {
    loop_io_del(p->host->loop, &p->in);
    util_close_fd(&p->in.fd);
    inq_drop(&p->inq);
}

/* Watches for room only while something waits: a broken pipe would be reported for ever. */
static void proc_stdin_watch(struct proc *p) {
    if (p->inq.count == 0)
        loop_io_del(p->host->loop, &p->in);
    else if (!p->in.added && loop_io_add(p->host->loop, &p->in, EPOLLOUT) < 0)
        proc_stdin_end(p);
}

static void proc_on_writable(struct loop_io *io, uint32_t events) {
    (void)events;
    struct proc *p = container_of(io, struct proc, in);
    if (inq_flush(&p->inq, io->fd) < 0)
        proc_stdin_end(p);
    else
        proc_stdin_watch(p);
    if (!inq_full(&p->inq))
        p->ops->stdin_room(p);
}

int proc_write(struct proc *p, const char *data, size_t n) {
    if (!p->has_stdin)
        return -ENOTCONN;
    if (p->terminated)
        return -ECANCELED;
    if (p->in.fd < 0 || n == 0)
        return 0;
    if (inq_full(&p->inq))
        return -EAGAIN;
    int r = inq_write(&p->inq, p->in.fd, data, n);
    if (r == -EPIPE) {
        proc_stdin_end(p);
        return 0;
    }
    if (r == 0)
        proc_stdin_watch(p);
    return r;
}

/* -- life -- */

static void proc_check_closed(struct proc *p) {
    if (p->state != PROC_EXITED || p->abandoned)
        return;
    if (p->terminated && (p->spawn.gone || p->force_close))
        proc_end_streams(p);
    if (proc_streams_open(p) || (p->terminated && !p->spawn.gone && !p->force_close))
        return;
    p->state = PROC_CLOSED;
    loop_timer_del(p->host->loop, &p->force_timer);
    list_remove(&p->held_node);
    proc_stdin_end(p);
    outlog_shrink(&p->log);
    p->ops->closed(p, p->next_seq++);
}

/* Reads what was readable when the leader was reaped, then numbers `exited`. */
static void proc_finish_exit(struct proc *p) {
    for (size_t got = 1; got > 0 && p->drain_left > 0;) {
        got = 0;
        for (size_t i = 0; i < ARRAY_LEN(p->out); i++) {
            if (p->out[i].io.fd < 0)
                continue;
            if (proc_gated(p)) {
                proc_hold(p);
                return;
            }
            got += proc_stream_read(p, &p->out[i]);
        }
        p->drain_left -= MIN(got, p->drain_left);
    }
    p->exit_pending = false;
    p->state = PROC_EXITED;
    p->ops->exited(p, p->next_seq++);
    proc_check_closed(p);
}

static void proc_leader_reaped(struct proc *p) {
    int status = p->spawn.sup->status;
    p->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    p->exit_code = p->signal ? 128 + p->signal : WEXITSTATUS(status);
    p->usage = p->spawn.sup->usage;
    p->exit_pending = true;
    p->drain_left = PROC_DRAIN_MAX;
    proc_finish_exit(p);
}

static void proc_on_spawn(struct spawn *c) {
    struct proc *p = container_of(c, struct proc, spawn);
    if (c->gone) {
        proc_check_closed(p);
        p->ops->gone(p);
        return;
    }
    if (p->abandoned)
        return;
    switch ((enum supervisor_phase)c->seen) {
    case SUPERVISOR_STARTING:
        break;
    case SUPERVISOR_FAILED:
        p->ops->started(p, c->sup->error);
        break;
    case SUPERVISOR_RUNNING:
        p->state = PROC_RUNNING;
        p->ops->started(p, 0);
        if (p->early_signal != 0)
            spawn_signal(&p->spawn, p->early_signal);
        break;
    case SUPERVISOR_EXITED:
        proc_leader_reaped(p);
        break;
    }
}

static void proc_on_force_close(struct loop_timer *t) {
    struct proc *p = container_of(t, struct proc, force_timer);
    p->force_close = true;
    proc_check_closed(p);
}

void proc_init(struct proc *p, struct proc_host *h, const struct proc_ops *ops,
               struct proc_gate *gate, size_t retain) {
    *p = (struct proc){.host = h, .ops = ops, .gate = gate, .next_seq = 1};
    list_init(&p->held_node);
    list_init(&p->spawn.node);
    p->spawn.changed = proc_on_spawn;
    for (size_t i = 0; i < ARRAY_LEN(p->out); i++)
        p->out[i] = (struct proc_stream){.io = {.fd = -1, .fn = proc_on_readable}, .owner = p};
    p->in = (struct loop_io){.fd = -1, .fn = proc_on_writable};
    p->force_timer.fn = proc_on_force_close;
    inq_init(&p->inq);
    outlog_init(&p->log, retain);
}

int proc_start(struct proc *p, const struct spawn_spec *spec) {
    struct spawn_fds fds;
    int r = spawn_start(&p->host->spawner, &p->spawn, spec, &fds);
    if (r < 0)
        return r;
    p->tty = spec->tty;
    p->has_stdin = spec->tty || spec->pipe_stdin;
    p->out[0].io.fd = fds.out;
    p->out[0].name = spec->tty ? OUTLOG_PTY : OUTLOG_STDOUT;
    p->out[1].io.fd = fds.err;
    p->out[1].name = OUTLOG_STDERR;
    /* A descriptor of its own: input and output of a terminal are watched independently. */
    p->in.fd = spec->tty ? fcntl(fds.out, F_DUPFD_CLOEXEC, 3) : fds.in;
    return 0;
}

void proc_begin_output(struct proc *p) {
    for (size_t i = 0; i < ARRAY_LEN(p->out); i++)
        proc_stream_watch(p, &p->out[i]);
}

void proc_signal(struct proc *p, int signo) {
    if (p->state == PROC_STARTING)
        p->early_signal = signo;
    else if (p->state == PROC_RUNNING && !p->exit_pending)
        spawn_signal(&p->spawn, signo);
}

bool proc_terminate(struct proc *p) {
    if (p->state >= PROC_EXITED || p->exit_pending)
        return false;
    if (!p->terminated) {
        p->terminated = true;
        inq_drop(&p->inq);
        if (loop_timer_set(p->host->loop, &p->force_timer, PROC_FORCE_CLOSE_MS * LOOP_MS) < 0)
            p->force_close = true;
        spawn_kill(&p->spawn, false);
    }
    return true;
}

void proc_abandon(struct proc *p, bool kill, bool spare_setsid) {
    p->abandoned = true;
    p->gate = NULL;
    loop_timer_del(p->host->loop, &p->force_timer);
    list_remove(&p->held_node);
    proc_end_streams(p);
    proc_stdin_end(p);
    inq_fini(&p->inq);
    outlog_fini(&p->log);
    if (kill)
        spawn_kill(&p->spawn, spare_setsid);
}

void proc_fini(struct proc *p) {
    proc_abandon(p, false, false);
}

void proc_signal_name(int signo, char dst[16]) {
    const char *name = sigabbrev_np(signo);
    if (name != NULL)
        snprintf(dst, 16, "SIG%s", name);
    else if (signo >= SIGRTMIN)
        snprintf(dst, 16, "SIGRTMIN+%d", signo - SIGRTMIN);
    else
        snprintf(dst, 16, "SIG%d", signo); /* 32 and 33 are the C library's own */
}
