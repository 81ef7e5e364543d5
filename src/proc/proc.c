#include "proc/proc.h"

#include "base/log.h"
#include "base/utc.h"
#include "proc/resources.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>

static void proc_finish_exit(struct proc *p);
static void proc_check_closed(struct proc *p);

int proc_host_init(struct proc_host *h, struct loop *loop, struct rlimit nofile) {
    *h = (struct proc_host){.loop = loop};
    h->scratch = malloc(OUTLOG_CHUNK_MAX);
    if (h->scratch == NULL)
        return -ENOMEM;
    return child_host_init(&h->children, loop, nofile);
}

void proc_host_fini(struct proc_host *h) {
    child_host_fini(&h->children);
    cgroup_host_fini(&h->cgroups);
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

static bool proc_flow_is_closed(const struct proc *p) {
    return p->flow != NULL && p->flow->closed;
}

static bool proc_awaits_ack(const struct proc *p) {
    /* planted: forgotten-output */
    return p->keep_unacked && outlog_is_full_after(&p->log, p->acked_seq);
}

static bool proc_is_held(const struct proc *p) {
    return proc_flow_is_closed(p) || proc_awaits_ack(p);
}

/*
 * Unwatches a held process: epoll reports a hang-up even if no event is wanted. An open flow or an
 * acknowledgement watches it again; if the other one still holds it, the next look says so.
 */
static void proc_hold(struct proc *p) {
    for (size_t i = 0; i < ARRAY_LEN(p->out); i++)
        loop_io_del(p->host->loop, &p->out[i].io);
    if (proc_awaits_ack(p))
        p->unacked_stall = true;
    else if (list_empty(&p->held_node))
        list_append(&p->flow->held, &p->held_node);
}

/* Reads a process again that was held. */
static void proc_unhold(struct proc *p) {
    for (size_t i = 0; i < ARRAY_LEN(p->out); i++)
        proc_stream_watch(p, &p->out[i]);
    if (p->exit_pending)
        proc_finish_exit(p);
}

/*
 * Whether to read on from a terminal that just gave n bytes. After a large piece a kernel thread
 * prepares the next one in a few microseconds. read() and epoll would sleep until then, and to wake
 * the loop takes several times as long. So the loop looks a few times first, unless others wait.
 */
static bool proc_tty_goes_on(const struct proc *p, int fd, size_t n) {
    const struct loop *l = p->host->loop;
    if (n < PROC_TTY_PIECE || l->batch_n > 1 || l->yielders > 0)
        return true; /* read() tells */
    int unread = 0;
    for (int looks = PROC_TTY_LOOKS; looks > 0 && unread == 0; looks--) {
        if (ioctl(fd, FIONREAD, &unread) < 0)
            return false;
    }
    return unread > 0;
}

/*
 * The kernel hands out a terminal's output in pieces of about 4 KiB; a chunk collects a few. With
 * more, the command, which gets at most 12 KiB ahead, would wait until all are encoded. Only the
 * first read() may find nothing: it then asks the kernel for what is still on its way.
 */
static ssize_t proc_read_fd(const struct proc *p, int fd) {
    size_t have = 0;
    for (;;) {
        ssize_t n = read(fd, p->host->scratch + have, OUTLOG_CHUNK_MAX - have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return have > 0 ? (ssize_t)have : n;
        have += (size_t)n;
        if (!p->tty || have >= PROC_TTY_ENOUGH || !proc_tty_goes_on(p, fd, (size_t)n))
            return (ssize_t)have;
    }
}

/* Bytes read and delivered; 0 when nothing is there now or the stream has ended. */
static size_t proc_stream_read(struct proc *p, struct proc_stream *s) {
    ssize_t n = proc_read_fd(p, s->io.fd);
    if (n < 0 && errno == EAGAIN)
        return 0;
    if (n <= 0) { /* end of file; a terminal reports it as EIO */
        proc_stream_end(p, s);
        return 0;
    }
    if (n == OUTLOG_CHUNK_MAX && !p->tty && !s->grown) {
        s->grown = true; /* refused beyond the user's quota: then it stays as it is */
        (void)fcntl(s->io.fd, F_SETPIPE_SZ, PROC_PIPE_SIZE);
    }
    uint64_t seq = p->next_seq++;
    int kept = outlog_append(&p->log, seq, s->name, p->host->scratch, (size_t)n);
    int captured = capture_add(&s->capture, p->host->scratch, (size_t)n);
    if (kept < 0 || captured < 0)
        log_error("out of memory: output of a process is not retained");
    flood_add(&p->flood, (size_t)n * (p->tty ? FLOOD_TTY_WEIGHT : 1));
    /* planted: lost-byte */
    p->ops->output(p, seq, s->name, p->host->scratch, (size_t)n);
    return (size_t)n;
}

static void proc_on_readable(struct loop_io *io, uint32_t events) {
    (void)events;
    /* planted: lost-output */
    struct proc_stream *s = container_of(io, struct proc_stream, io);
    struct proc *p = s->owner;
    for (size_t round = 0; round < PROC_ROUND_MAX && s->io.fd >= 0;) {
        if (proc_is_held(p)) {
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

/* A chunk that the common log evicts may still belong to the tail of its stream. */
static void proc_on_evict(struct outlog *l, const struct outlog_chunk *c) {
    struct proc *p = container_of(l, struct proc, log);
    struct proc_stream *s = &p->out[c->stream == OUTLOG_STDERR];
    struct str gone[2];
    outlog_bytes(l, c, gone);
    if (capture_evicted(&s->capture, gone, l->stream_bytes[c->stream]) < 0)
        log_error("out of memory: output of a process is not retained");
}

size_t proc_retained(const struct proc *p) {
    return outlog_memory(&p->log) + capture_memory(&p->out[0].capture) +
           capture_memory(&p->out[1].capture);
}

void proc_drop_output(struct proc *p) {
    outlog_fini(&p->log);
    for (size_t i = 0; i < ARRAY_LEN(p->out); i++)
        capture_fini(&p->out[i].capture);
}

/* -- flow -- */

void proc_flow_init(struct proc_flow *g) {
    g->closed = false;
    list_init(&g->held);
}

void proc_flow_close(struct proc_flow *g) {
    g->closed = true;
}

void proc_flow_open(struct proc_flow *g) {
    if (!g->closed)
        return;
    g->closed = false;
    /* Delivery may close the flow again; the remaining processes stay held. */
    for (struct list *n; !g->closed && (n = list_first(&g->held)) != NULL;) {
        struct proc *p = list_entry(n, struct proc, held_node);
        list_remove(n);
        proc_unhold(p);
    }
}

/* -- acknowledged output -- */

static void proc_on_go_on(struct loop_task *t) {
    struct proc *p = container_of(t, struct proc, go_on);
    p->unacked_stall = false;
    proc_unhold(p);
}

/* Later, because the caller is about to answer a request or walks a list of processes. */
static void proc_check_stall(struct proc *p) {
    if (p->unacked_stall && !proc_awaits_ack(p))
        loop_defer(p->host->loop, &p->go_on);
}

void proc_keep_unacked(struct proc *p, bool on) {
    p->keep_unacked = on;
    proc_check_stall(p);
}

void proc_ack(struct proc *p, uint64_t seq) {
    p->acked_seq = MAX(p->acked_seq, seq);
    proc_check_stall(p);
}

bool proc_has_unacked(const struct proc *p) {
    return p->keep_unacked && outlog_find(&p->log, p->acked_seq) < p->log.count;
}

/* -- input -- */

static void proc_stdin_end(struct proc *p) {
    loop_io_del(p->host->loop, &p->in);
    /* planted: leaked-stdin */
    util_close_fd(&p->in.fd);
    stdinq_drop(&p->stdinq);
}

/* Watches for room only while input waits: epoll would report a broken pipe for ever. */
static void proc_stdin_watch(struct proc *p) {
    if (p->stdinq.count == 0)
        loop_io_del(p->host->loop, &p->in);
    else if (!p->in.added && loop_io_add(p->host->loop, &p->in, EPOLLOUT) < 0)
        proc_stdin_end(p);
}

static void proc_on_writable(struct loop_io *io, uint32_t events) {
    (void)events;
    struct proc *p = container_of(io, struct proc, in);
    if (stdinq_flush(&p->stdinq, io->fd) < 0 || (p->stdin_closing && p->stdinq.count == 0))
        proc_stdin_end(p);
    else
        proc_stdin_watch(p);
    if (!stdinq_full(&p->stdinq))
        p->ops->stdin_room(p);
}

/* Writes or queues, even beyond the limit of the queue. 0 or -ENOMEM. */
static int proc_put_stdin(struct proc *p, const char *data, size_t n) {
    int r = stdinq_write(&p->stdinq, p->in.fd, data, n);
    if (r == -EPIPE) {
        proc_stdin_end(p);
        return 0;
    }
    if (r == 0)
        proc_stdin_watch(p);
    return r;
}

int proc_write(struct proc *p, const char *data, size_t n) {
    if (!p->has_stdin || p->stdin_closing)
        return -ENOTCONN;
    if (p->terminated)
        return -ECANCELED;
    if (p->in.fd < 0 || n == 0)
        return 0; /* nobody reads any more */
    return stdinq_full(&p->stdinq) ? -EAGAIN : proc_put_stdin(p, data, n);
}

bool proc_stdin_has_room(const struct proc *p, size_t chunks) {
    bool open = p->has_stdin && !p->stdin_closing && !p->terminated && p->in.fd >= 0;
    return !open || (!stdinq_full(&p->stdinq) && p->stdinq.count + chunks <= STDINQ_CHUNKS_MAX);
}

int proc_close_stdin(struct proc *p) {
    struct termios t;
    if (!p->has_stdin || p->stdin_closing)
        return -ENOTCONN;
    if (p->terminated)
        return -ECANCELED;
    if (p->tty) {
        if (p->in.fd < 0 || tcgetattr(p->in.fd, &t) < 0 || t.c_cc[VEOF] == _POSIX_VDISABLE)
            return 0; /* nobody is there to read it, or it has no such character */
        return proc_put_stdin(p, (const char *)&t.c_cc[VEOF], 1);
    }
    p->stdin_closing = true;
    if (p->stdinq.count == 0)
        proc_stdin_end(p);
    return 0;
}

int proc_resize(struct proc *p, unsigned short rows, unsigned short cols) {
    struct winsize size = {.ws_row = rows, .ws_col = cols};
    if (!p->tty)
        return -ENOTTY;
    if (p->in.fd < 0)
        return 0; /* it has ended: there is no terminal to resize */
    return ioctl(p->in.fd, TIOCSWINSZ, &size) < 0 ? -errno : 0;
}

/* -- life -- */

static void proc_check_closed(struct proc *p) {
    if (p->state != PROC_EXITED || p->abandoned)
        return;
    if (p->terminated && (p->child.gone || p->force_close))
        proc_end_streams(p);
    if (proc_streams_open(p) || (p->terminated && !p->child.gone && !p->force_close))
        return;
    p->state = PROC_CLOSED;
    loop_timer_del(p->host->loop, &p->force_timer);
    list_remove(&p->held_node);
    proc_stdin_end(p);
    outlog_shrink(&p->log);
    for (size_t i = 0; i < ARRAY_LEN(p->out); i++)
        capture_shrink(&p->out[i].capture);
    p->closed_seq = p->next_seq++;
    p->ops->closed(p, p->closed_seq);
}

/* Reads the output that was there when the leader was reaped, then numbers `exited`. */
static void proc_finish_exit(struct proc *p) {
    for (size_t got = 1; got > 0 && p->drain_left > 0;) {
        got = 0;
        for (size_t i = 0; i < ARRAY_LEN(p->out); i++) {
            if (p->out[i].io.fd < 0)
                continue;
            if (proc_is_held(p)) {
                proc_hold(p);
                return;
            }
            got += proc_stream_read(p, &p->out[i]);
        }
        p->drain_left -= MIN(got, p->drain_left);
    }
    p->exit_pending = false;
    p->state = PROC_EXITED;
    /* planted: skipped-seq */
    p->exited_seq = p->next_seq++;
    p->ops->exited(p, p->exited_seq);
    proc_check_closed(p);
}

/* The leader's end as the supervisor saw it. */
static struct child_end proc_reaped_end(const struct proc *p) {
    const struct supervisor *s = p->child.sup;
    return (struct child_end){s->status, s->usage, resources_peak_counts(&s->usage)};
}

static void proc_note_exit(struct proc *p, struct child_end end) {
    p->signal = WIFSIGNALED(end.status) ? WTERMSIG(end.status) : 0;
    p->exit_code = p->signal ? 128 + p->signal : WEXITSTATUS(end.status);
    p->usage = end.usage;
    p->peak_known = end.peak_known;
    p->ended = p->host->loop->now;
    p->reaped = true;
}

static void proc_close_channel(struct proc *p) {
    loop_io_del(p->host->loop, &p->channel);
    util_close_fd(&p->channel.fd);
}

static void proc_leader_ended(struct proc *p, struct child_end end) {
    proc_note_exit(p, end);
    proc_close_channel(p);
    loop_timer_del(p->host->loop, &p->timeout_timer);
    p->exit_pending = true;
    p->drain_left = PROC_DRAIN_MAX;
    proc_finish_exit(p);
}

static void proc_running(struct proc *p) {
    p->state = PROC_RUNNING;
    p->pid = p->child.sup->leader;
    p->started_ms = utc_now_ms();
    p->started = p->ended = p->host->loop->now;
    flood_begin(&p->flood, p->child.pid, p->report == NULL ? p->pid : 0);
    if (p->timeout_ms > 0 &&
        loop_timer_set(p->host->loop, &p->timeout_timer, loop_ms(p->timeout_ms)) < 0)
        log_error("out of memory: a process runs without its time limit");
}

/* A sandboxed command has a session of its own: the sandbox's init passes signals on. */
static void proc_send_signal(struct proc *p, int signo) {
    const char byte = (char)signo;
    if (p->report == NULL)
        child_signal(&p->child, signo);
    else if (p->channel.fd >= 0)
        (void)!send(p->channel.fd, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* The command runs: its launcher reported it, or exec of an unconfined one succeeded. */
static void proc_confirm(struct proc *p) {
    proc_running(p);
    p->ops->started(p, 0);
    if (p->early_signal != 0)
        proc_signal(p, p->early_signal);
}

/* The start failed: kills the processes that it made. */
static void proc_refuse(struct proc *p, int error) {
    proc_close_channel(p);
    child_kill(&p->child, false);
    p->ops->started(p, error);
}

/* The launcher reports the command's end: nobody outside waits for the rest of its work. */
static void proc_hear_end(struct proc *p) {
    struct child_end end;
    int r = p->ended_by(p->channel.fd, &end);
    if (r > 0)
        proc_leader_ended(p, end);
    else if (r < 0)
        loop_io_del(p->host->loop, &p->channel); /* epoll always reports a hang-up */
}

/* News from the launcher: the outcome of the start, and then the end. */
static void proc_on_channel(struct loop_io *io, uint32_t events) {
    (void)events;
    struct proc *p = container_of(io, struct proc, channel);
    if (p->state != PROC_STARTING) {
        proc_hear_end(p);
        return;
    }
    int r = p->report(io->fd, &p->refusal);
    if (r > 0) {
        proc_confirm(p);
    } else if (r < 0) {
        loop_io_del(p->host->loop, io);
        proc_refuse(p, -r);
    }
}

/* The launcher runs; whether the command does is still open. */
static void proc_await_launch(struct proc *p) {
    int r = loop_io_add(p->host->loop, &p->channel, EPOLLIN);
    if (r < 0)
        proc_refuse(p, -r);
}

/* The launcher and its tree have ended. Its last message may still be unread. */
static void proc_launcher_ended(struct proc *p) {
    if (p->reaped)
        return;
    if (p->state == PROC_STARTING) {
        int r = p->report(p->channel.fd, &p->refusal);
        if (r <= 0) {
            proc_refuse(p, r < 0 ? -r : EIO);
            return;
        }
        loop_io_del(p->host->loop, &p->channel);
        proc_confirm(p);
    }
    if (p->abandoned)
        proc_note_exit(p, proc_reaped_end(p));
    else
        proc_leader_ended(p, proc_reaped_end(p));
}

static void proc_on_child(struct child *c) {
    struct proc *p = container_of(c, struct proc, child);
    if (c->gone) {
        loop_timer_del(p->host->loop, &p->grace_timer);
        flood_end(&p->flood);
        proc_check_closed(p);
        p->ops->gone(p);
        return;
    }
    if (p->abandoned) {
        if (c->seen == SUPERVISOR_EXITED && !p->reaped)
            proc_note_exit(p, proc_reaped_end(p));
        return;
    }
    switch ((enum supervisor_phase)c->seen) {
    case SUPERVISOR_STARTING: break;
    case SUPERVISOR_FAILED: p->ops->started(p, c->sup->error); break;
    case SUPERVISOR_RUNNING:
        if (p->report != NULL)
            proc_await_launch(p);
        else
            proc_confirm(p);
        break;
    case SUPERVISOR_EXITED:
        if (p->report != NULL)
            proc_launcher_ended(p);
        else
            proc_leader_ended(p, proc_reaped_end(p));
        break;
    }
}

static void proc_on_force_close(struct loop_timer *t) {
    struct proc *p = container_of(t, struct proc, force_timer);
    uint64_t again = PROC_FORCE_AGAIN_MS * LOOP_MS;
    /* Waits for processes that die or fork, not for those that hang in the kernel. */
    if (child_is_killing(&p->child) && loop_timer_set(p->host->loop, t, again) == 0)
        return;
    p->force_close = true;
    proc_check_closed(p);
}

/* Kills the whole tree; `closed` follows, even if another process holds the streams. */
static void proc_force(struct proc *p) {
    if (p->terminated)
        return;
    p->terminated = true;
    loop_timer_del(p->host->loop, &p->grace_timer);
    stdinq_drop(&p->stdinq);
    if (loop_timer_set(p->host->loop, &p->force_timer, PROC_FORCE_CLOSE_MS * LOOP_MS) < 0)
        p->force_close = true;
    child_kill(&p->child, false);
}

static void proc_on_grace(struct loop_timer *t) {
    struct proc *p = container_of(t, struct proc, grace_timer);
    if (p->abandoned || p->state == PROC_CLOSED) {
        child_kill(&p->child, false); /* only descendants are left */
        return;
    }
    proc_force(p);
    p->ops->stdin_room(p); /* waiting writes fail now */
}

static void proc_on_timeout(struct loop_timer *t) {
    struct proc *p = container_of(t, struct proc, timeout_timer);
    p->timed_out = true;
    proc_terminate(p, PROC_GRACE_MS);
}

void proc_init(struct proc *p, struct proc_host *h, const struct proc_ops *ops,
               struct proc_flow *flow, size_t retain) {
    *p = (struct proc){.host = h, .ops = ops, .flow = flow, .next_seq = 1};
    list_init(&p->held_node);
    list_init(&p->child.node);
    p->child.changed = proc_on_child;
    for (size_t i = 0; i < ARRAY_LEN(p->out); i++) {
        p->out[i] = (struct proc_stream){.io = {.fd = -1, .fn = proc_on_readable}, .owner = p};
        capture_init(&p->out[i].capture, retain / 2);
    }
    p->in = (struct loop_io){.fd = -1, .fn = proc_on_writable};
    p->channel = (struct loop_io){.fd = -1, .fn = proc_on_channel};
    p->force_timer.fn = proc_on_force_close;
    p->grace_timer.fn = proc_on_grace;
    p->timeout_timer.fn = proc_on_timeout;
    p->go_on.fn = proc_on_go_on;
    stdinq_init(&p->stdinq);
    flood_init(&p->flood, h->loop, &h->floods);
    outlog_init(&p->log, retain);
    p->log.evict = proc_on_evict;
}

int proc_start(struct proc *p, const struct child_spec *spec) {
    struct child_fds fds;
    int r = child_start(&p->host->children, &p->child, spec, &fds);
    if (r < 0)
        return r;
    p->tty = spec->tty;
    p->has_stdin = spec->tty || spec->pipe_stdin;
    p->out[0].io.fd = fds.out;
    p->out[0].name = spec->tty ? OUTLOG_PTY : OUTLOG_STDOUT;
    p->out[1].io.fd = fds.err;
    p->out[1].name = OUTLOG_STDERR;
    p->in.fd = fds.in;
    if (spec->launch != NULL) {
        p->channel.fd = spec->launch->channel;
        p->report = spec->launch->report;
        p->ended_by = spec->launch->ended;
    }
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
        proc_send_signal(p, signo);
}

void proc_ask_to_end(struct proc *p) {
    if (p->state == PROC_STARTING)
        p->early_signal = SIGTERM;
    if (p->report != NULL)
        proc_signal(p, SIGTERM);
    child_ask_to_end(&p->child);
}

bool proc_terminate(struct proc *p, uint64_t grace_ms) {
    if (p->state >= PROC_EXITED || p->exit_pending)
        return false;
    if (p->terminated)
        return true;
    if (grace_ms == 0 || loop_timer_set(p->host->loop, &p->grace_timer, loop_ms(grace_ms)) < 0)
        proc_force(p);
    else
        proc_send_signal(p, SIGTERM);
    return true;
}

void proc_abandon(struct proc *p, bool kill, bool spare_setsid) {
    p->abandoned = true;
    p->flow = NULL;
    loop_timer_del(p->host->loop, &p->force_timer);
    loop_timer_del(p->host->loop, &p->timeout_timer);
    if (kill) /* else survivors of a SIGTERM keep their grace period */
        loop_timer_del(p->host->loop, &p->grace_timer);
    list_remove(&p->held_node);
    loop_task_del(&p->go_on);
    proc_close_channel(p);
    err_fini(&p->refusal);
    proc_end_streams(p);
    proc_stdin_end(p);
    stdinq_fini(&p->stdinq);
    proc_drop_output(p);
    if (kill)
        child_kill(&p->child, spare_setsid);
}

void proc_fini(struct proc *p) {
    loop_timer_del(p->host->loop, &p->grace_timer);
    flood_end(&p->flood);
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
