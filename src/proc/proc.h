#pragma once
/*
 * One managed process: its streams, its numbered events, its retained output and its input.
 *
 *   starting ── exec ok ──> running ── leader reaped ──> exited ── all streams ended ──> closed
 *       └── exec failed: the owner hears of it and drops the process
 *
 * Events (output, exited, closed) share one counter that starts at 1 and has no gaps, and reach the
 * owner in that order. Before `exited` takes its number, what was readable when the leader was
 * reaped is read (at most PROC_DRAIN_MAX bytes).
 *
 * Slow client rule: a process is read only while its gate is open. A closed gate (the owner's
 * connection has PROC output queued up to its mark) leaves bytes in the kernel's pipe and so stalls
 * the command; nothing is dropped, the order stays, other gates are not affected.
 */

#include "proc/capture.h"
#include "proc/flood.h"
#include "proc/stdinq.h"
#include "proc/outlog.h"
#include "proc/child.h"

#define PROC_DRAIN_MAX (1024 * 1024) /* read between the leader's end and `exited` */
#define PROC_PIPE_SIZE (256 * 1024)  /* asked of the kernel for a busy pipe; more is slower */
#define PROC_ROUND_MAX (128 * 1024)  /* read from one stream per turn of the loop */
#define PROC_TTY_ENOUGH (16 * 1024)  /* bytes of a terminal that make a chunk */
#define PROC_FORCE_CLOSE_MS 1000     /* then a killed process is closed, even if it cannot die */
#define PROC_FORCE_AGAIN_MS 50       /* but not while its supervisor is still killing */
#define PROC_GRACE_MS 2000           /* between SIGTERM and SIGKILL unless said otherwise */

/* What all processes of a server share. */
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

/* What the owner hears. */
struct proc_ops {
    /* 0, or the errno of the failed start; p->refusal says more when its code is set. */
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
    struct proc_flow *gate; /* borrowed; NULL = always open */
    struct list held_node;
    struct child child;
    struct loop_io channel; /* to the launcher of a sandboxed one; fd -1 = none, or gone */
    int (*report)(int channel, struct err *e); /* child_launch.report; NULL: not sandboxed */
    int (*ended_by)(int channel, struct child_end *end); /* child_launch.ended */
    struct err refusal;                                  /* why the launcher could not start it */
    enum proc_state state;
    bool tty, has_stdin;
    bool terminated;     /* killed on request */
    bool timed_out;      /* its time was up */
    bool stdin_closing;  /* stdin ends when what is queued was written */
    bool exit_pending;   /* leader reaped, `exited` not yet numbered */
    bool force_close;    /* streams need not end by themselves */
    bool abandoned;      /* only `gone` is of interest */
    bool reaped;         /* the leader has ended: exit_code, signal, usage are set */
    pid_t pid;           /* of the leader, from PROC_RUNNING on */
    int exit_code;       /* from PROC_EXITED on */
    int signal;          /* that killed the leader, or 0 */
    int early_signal;    /* to send once it runs, or 0 */
    struct rusage usage; /* of the leader and what it waited for; from PROC_EXITED on */
    uint64_t started;    /* loop time of the exec, nanoseconds */
    uint64_t ended;      /* loop time of the leader's end */
    int64_t started_ms;  /* Unix time of the exec, milliseconds */
    bool peak_known; /* until exec a command counts the server's memory: below, nothing is known */
    uint64_t next_seq;               /* number the next event takes */
    uint64_t exited_seq, closed_seq; /* numbers of those events; 0 = not yet */
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

/* Prepares *p. `retain` bytes of output are kept. */
void proc_init(struct proc *p, struct proc_host *h, const struct proc_ops *ops,
               struct proc_flow *gate, size_t retain);

/* Starts it; 0 or -errno. ops->started follows, never before this returns. */
MUST_CHECK int proc_start(struct proc *p, const struct child_spec *spec);

/* Begins to read output; call when the answer to the start is on its way. */
void proc_begin_output(struct proc *p);

/*
 * Input: 0 accepted (written, queued, or discarded because nobody reads); -EAGAIN the queue is full
 * (ops->stdin_room follows); -ENOTCONN it has no stdin; -ECANCELED terminated; -ENOMEM.
 */
MUST_CHECK int proc_write(struct proc *p, const char *data, size_t n);

/* Sends a signal to the process group while the leader lives; one sent too early waits for exec. */
void proc_signal(struct proc *p, int signo);

/* Asks it, and what it left or will leave behind, to end: SIGTERM. */
void proc_ask_to_end(struct proc *p);

/*
 * Kills it and all its descendants, if the leader lives: at once, or (grace_ms > 0) with SIGTERM to
 * its group first and SIGKILL to all that is left after that time. Whether it was running.
 */
bool proc_terminate(struct proc *p, uint64_t grace_ms);

/*
 * Ends its stdin after what was accepted: a pipe is closed, a terminal gets its end-of-file
 * character. 0; -ENOTCONN it has none (any more); -ECANCELED terminated; -ENOMEM.
 */
MUST_CHECK int proc_close_stdin(struct proc *p);

/* Whether that many more chunks of input would be taken (also when they would be thrown away). */
bool proc_stdin_has_room(const struct proc *p, size_t chunks);

/* Sets the size of its terminal. 0, -ENOTTY, or -errno. */
MUST_CHECK int proc_resize(struct proc *p, unsigned short rows, unsigned short cols);

/* Bytes held for later reading. */
size_t proc_retained(const struct proc *p);

/* Forgets retained output; events and counts stay. */
void proc_drop_output(struct proc *p);

/* Whether the supervisor is gone, so that the memory may be freed. */
static inline bool proc_is_gone(const struct proc *p) {
    return p->child.sup == NULL;
}

/*
 * Gives up interest: closes the streams, frees retained output and input. With `kill` everything it
 * started is killed (`spare_setsid`: but what left its session). ops->gone follows, unless it is
 * gone.
 */
void proc_abandon(struct proc *p, bool kill, bool spare_setsid);

/* Frees what an abandoned or never started process holds. */
void proc_fini(struct proc *p);

/* "SIGKILL" form of a signal number, to dst. */
void proc_signal_name(int signo, char dst[16]);
