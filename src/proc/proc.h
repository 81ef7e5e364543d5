#pragma once
/*
 * One managed process: its streams, its numbered events, its retained output and its input.
 *
 *   starting ── exec ok ──> running ── leader reaped ──> exited ── all streams ended ──> closed
 *       └── exec failed: the owner hears of it and drops the process
 *
 * Events (output, exited, closed) share one counter that starts at 1 and has no gaps, and reach the
 * owner in that order. Output that was readable when the leader was reaped comes before `exited`
 * (at most PROC_DRAIN_MAX bytes).
 *
 * Slow client rule: the server reads a process only while its flow is open. It closes the flow
 * while the owner's connection has output queued up to a mark. Bytes then stay in the kernel's pipe
 * and stall the command. Nothing is dropped, the order stays, other flows are not affected.
 *
 * Acknowledged output: with proc_keep_unacked() the server reads a process only while its log has
 * room for a chunk beside all those that proc_ack() has not covered. Bytes beyond stay in the pipe
 * too, with a client or without one, and stall this command alone.
 */

#include "proc/capture.h"
#include "proc/flood.h"
#include "proc/stdinq.h"
#include "proc/outlog.h"
#include "proc/child.h"

#define PROC_DRAIN_MAX (1024 * 1024) /* read between the leader's end and `exited` */
#define PROC_PIPE_SIZE (256 * 1024)  /* asked of the kernel for a busy pipe; more is slower */
#define PROC_ROUND_MAX (128 * 1024)  /* read from one stream per turn of the loop */
#define PROC_TTY_ENOUGH (16 * 1024)  /* bytes of a terminal that are collected for a chunk */
#define PROC_TTY_PIECE (2 * 1024)    /* bytes after which a terminal probably has more at once */
#define PROC_TTY_LOOKS 40            /* looks for it, about half a microsecond each */
#define PROC_FORCE_CLOSE_MS 1000     /* until a killed process counts as closed, dead or not */
#define PROC_FORCE_AGAIN_MS 50       /* more, while its supervisor is still killing */
#define PROC_GRACE_MS 2000           /* default time between SIGTERM and SIGKILL */

/* Shared by all processes of a server. */
struct proc_host {
    struct loop *loop;
    struct child_host children;
    struct cgroup_host cgroups;
    char *scratch; /* OUTLOG_CHUNK_MAX bytes, owned */
    size_t floods; /* commands that flood now, see flood.h */
};

/* 0 or -errno. */
MUST_CHECK int proc_host_init(struct proc_host *h, struct loop *loop, struct rlimit nofile);
void proc_host_fini(struct proc_host *h);

/* Backpressure from the owner; see the slow client rule. */
struct proc_flow {
    bool closed;
    struct list held; /* processes that wait for it */
};

void proc_flow_init(struct proc_flow *g);
void proc_flow_close(struct proc_flow *g);
void proc_flow_open(struct proc_flow *g);

struct proc;

/* Callbacks of the owner. */
struct proc_ops {
    /* 0, or the errno of the failed start; p->refusal has the text if its code is set. */
    void (*started)(struct proc *p, int error);
    void (*output)(struct proc *p, uint64_t seq, enum outlog_stream stream, const char *data,
                   size_t n);
    void (*exited)(struct proc *p, uint64_t seq);
    void (*closed)(struct proc *p, uint64_t seq);
    void (*stdin_room)(struct proc *p); /* proc_write() may succeed again */
    void (*gone)(struct proc *p);       /* no descendant is left; last call, may free p */
};

enum proc_state { PROC_STARTING, PROC_RUNNING, PROC_EXITED, PROC_CLOSED };

struct proc_stream {
    struct loop_io io; /* fd -1 = ended */
    enum outlog_stream name;
    bool grown; /* the pipe was enlarged */
    struct proc *owner;
    struct capture capture;
};

struct proc {
    struct proc_host *host;
    const struct proc_ops *ops;
    struct proc_flow *flow; /* borrowed; NULL = always open */
    struct list held_node;
    struct child child;
    struct loop_io channel; /* to the launcher of a sandboxed command; fd -1 = none, or gone */
    int (*report)(int channel, struct err *e); /* child_launch.report; NULL: not sandboxed */
    int (*ended_by)(int channel, struct child_end *end); /* child_launch.ended */
    struct err refusal;                                  /* why the launcher could not start it */
    enum proc_state state;
    bool tty, has_stdin;
    bool terminated;     /* killed on request */
    bool timed_out;      /* its own timeout ended it */
    bool stdin_closing;  /* stdin ends after the queued input */
    bool exit_pending;   /* leader reaped, `exited` not yet numbered */
    bool force_close;    /* do not wait for the streams to end */
    bool abandoned;      /* the owner only waits for `gone` */
    bool reaped;         /* the leader has ended: exit_code, signal, usage are set */
    bool keep_unacked;   /* the log evicts only output that was acknowledged */
    bool unacked_stall;  /* not read until an acknowledgement; see proc_hold() */
    pid_t pid;           /* of the leader, from PROC_RUNNING on */
    int exit_code;       /* from PROC_EXITED on */
    int signal;          /* the one that killed the leader, or 0 */
    int early_signal;    /* to send once it runs, or 0 */
    struct rusage usage; /* of the leader and the children it awaited; from PROC_EXITED on */
    uint64_t started;    /* loop time of the exec, nanoseconds */
    uint64_t ended;      /* loop time of the leader's end */
    int64_t started_ms;  /* Unix time of the exec, milliseconds */
    bool peak_known;     /* usage.ru_maxrss is the command's own (resources_peak_counts()) */
    uint64_t next_seq;   /* number of the next event */
    uint64_t exited_seq, closed_seq; /* numbers of those events; 0 = not yet */
    uint64_t acked_seq;              /* the client has the events up to this one; 0 = none */
    struct loop_task go_on;          /* ends an unacked_stall */
    size_t drain_left;
    struct proc_stream out[2];
    struct loop_io in; /* fd -1 = none or ended */
    struct stdinq stdinq;
    struct outlog log;
    struct flood flood;
    struct loop_timer force_timer;
    struct loop_timer grace_timer;   /* SIGKILL follows a SIGTERM */
    struct loop_timer timeout_timer; /* the process's own limit */
    uint64_t timeout_ms;             /* of timeout_timer, from the exec on; 0 = none */
};

/* Prepares *p to keep `retain` bytes of output. */
void proc_init(struct proc *p, struct proc_host *h, const struct proc_ops *ops,
               struct proc_flow *flow, size_t retain);

/* Starts it; 0 or -errno. ops->started follows, never before this returns. */
MUST_CHECK int proc_start(struct proc *p, const struct child_spec *spec);

/* Begins to read output. Call after queueing the answer to the start. */
void proc_begin_output(struct proc *p);

/*
 * Takes input. 0: accepted (written, queued, or discarded because nobody reads); -EAGAIN: the queue
 * is full (ops->stdin_room follows); -ENOTCONN: no stdin; -ECANCELED: terminated; -ENOMEM.
 */
MUST_CHECK int proc_write(struct proc *p, const char *data, size_t n);

/* Sends a signal to the process group while the leader lives; an early one waits for exec. */
void proc_signal(struct proc *p, int signo);

/* Sends SIGTERM to it and to the orphans that it left or will leave. */
void proc_ask_to_end(struct proc *p);

/*
 * If the leader lives, kills it and all its descendants: at once, or (grace_ms > 0) with SIGTERM to
 * its group first and SIGKILL to the rest after that time. Whether it was running.
 */
bool proc_terminate(struct proc *p, uint64_t grace_ms);

/*
 * Ends its stdin after the accepted input: closes a pipe, or sends a terminal its end-of-file
 * character. 0; -ENOTCONN: no stdin, or none any more; -ECANCELED: terminated; -ENOMEM.
 */
MUST_CHECK int proc_close_stdin(struct proc *p);

/* Whether it would take that many more chunks of input, even to discard them. */
bool proc_stdin_has_room(const struct proc *p, size_t chunks);

/* Sets the size of its terminal. 0, -ENOTTY, or -errno. */
MUST_CHECK int proc_resize(struct proc *p, unsigned short rows, unsigned short cols);

/*
 * Whether output stays until proc_ack() covers it. Retained output that was not acknowledged counts
 * from the start. Off, a stalled process goes on. Delivers nothing before it returns.
 */
void proc_keep_unacked(struct proc *p, bool on);

/*
 * The client has all events up to `seq`, a number that was given. A lower number than before
 * changes nothing. Delivers nothing before it returns.
 */
void proc_ack(struct proc *p, uint64_t seq);

/* Whether it keeps output that was not acknowledged, and has some. */
bool proc_has_unacked(const struct proc *p);

/* Bytes held for later reading. */
size_t proc_retained(const struct proc *p);

/* Forgets retained output; events and counts stay. */
void proc_drop_output(struct proc *p);

/* Whether the supervisor is gone, so that the memory may be freed. */
static inline bool proc_is_gone(const struct proc *p) {
    return p->child.sup == NULL;
}

/*
 * Closes the streams and frees retained output and input. `kill` also kills its whole tree, but
 * `spare_setsid` spares processes that left its session. ops->gone follows, unless it is gone.
 */
void proc_abandon(struct proc *p, bool kill, bool spare_setsid);

/* Frees the memory of an abandoned or never started process. */
void proc_fini(struct proc *p);

/* "SIGKILL" form of a signal number, to dst. */
void proc_signal_name(int signo, char dst[16]);
