#pragma once
/*
 * The event loop: one thread, level-triggered epoll, timers on the monotonic clock, deferred tasks.
 *
 * Descriptors come before timers. When a timer is due, the loop first serves every ready descriptor
 * once: no deadline overtakes input that arrived before it, or while the process was stopped. The
 * number of such rounds is bounded, so busy descriptors cannot delay a timer for ever.
 *
 * Long work is cut into slices. A callback that has worked for LOOP_SLICE yields (loop_yield) and
 * goes on in a later round, after descriptors and timers. Tasks that yielded share LOOP_SLICES of a
 * round in turn; if they are many, their slices are shorter and the round is not longer.
 *
 * Callbacks never block. A callback may remove any io, timer or task, its own included. An object
 * that embeds one must outlive the callback that runs in it; a deferred task (loop_defer) is a safe
 * place to free it.
 */

#include "base/list.h"
#include "base/util.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

struct loop_io;
struct loop_timer;
struct loop_task;
typedef void loop_io_fn(struct loop_io *io, uint32_t events);
typedef void loop_timer_fn(struct loop_timer *t);
typedef void loop_task_fn(struct loop_task *t);

/* A descriptor under watch. The owner closes the descriptor, after loop_io_del(). */
struct loop_io {
    int fd;
    uint32_t events; /* EPOLLIN | EPOLLOUT as armed; 0 = registered without events */
    bool added;
    loop_io_fn *fn;
};

/* A one-shot timer. */
struct loop_timer {
    uint64_t when; /* nanoseconds on the loop's clock */
    size_t pos;    /* place in the heap, from 1; 0 = not set */
    loop_timer_fn *fn;
};

/* Work to do once, after the events of this round and before the next wait. */
struct loop_task {
    struct list node;
    bool queued;
    size_t *yielders; /* borrowed: the loop's counter, while it has yielded; else NULL */
    loop_task_fn *fn;
};

struct loop {
    int epfd;
    bool stop;
    bool coarse;              /* epoll_pwait2 is missing: milliseconds only */
    uint64_t now;             /* nanoseconds, read once a round */
    uint64_t (*clock)(void);  /* CLOCK_MONOTONIC unless a test injects another */
    size_t ios;               /* descriptors under watch */
    struct loop_timer **heap; /* heap[1..timers], earliest first; owned */
    size_t timers, heap_cap;
    struct list tasks;
    struct list yielded;       /* tasks for later rounds, the oldest first */
    size_t yielders;           /* their number */
    struct epoll_event *batch; /* events of this round not handled yet */
    int batch_at, batch_n;
};

#define LOOP_MS 1000000ull
#define LOOP_SEC 1000000000ull
#define LOOP_SLICE (LOOP_MS / 2)      /* nanoseconds of one callback, at most */
#define LOOP_SLICE_MIN (LOOP_MS / 50) /* nanoseconds of one callback, at least */
#define LOOP_SLICES (2 * LOOP_MS)     /* nanoseconds of a round for tasks that yielded */

/* Milliseconds as nanoseconds; more than fits is "never" (UINT64_MAX). */
static inline uint64_t loop_ms(uint64_t ms) {
    return ms > UINT64_MAX / LOOP_MS ? UINT64_MAX : ms * LOOP_MS;
}

/* `clock` NULL: CLOCK_MONOTONIC. 0 or -errno. */
MUST_CHECK int loop_init(struct loop *l, uint64_t (*clock)(void));
void loop_fini(struct loop *l);

/* Starts watching io->fd for `events`. 0 or -errno (-EPERM: a file that is always ready). */
MUST_CHECK int loop_io_add(struct loop *l, struct loop_io *io, uint32_t events);

/* Changes the events to watch for; no system call if they are the same. */
void loop_io_want(struct loop *l, struct loop_io *io, uint32_t events);

/* Stops watching and drops undelivered events of this round. May be called twice. */
void loop_io_del(struct loop *l, struct loop_io *io);

/* Sets (or moves) a timer to `delay` nanoseconds from now. 0 or -ENOMEM. */
MUST_CHECK int loop_timer_set(struct loop *l, struct loop_timer *t, uint64_t delay);
void loop_timer_del(struct loop *l, struct loop_timer *t);

/* Queues a task unless it is queued already. */
void loop_defer(struct loop *l, struct loop_task *t);

/* Queues a task for a later round, behind the others, unless it is queued already. */
void loop_yield(struct loop *l, struct loop_task *t);

/* The time at which a slice that begins now ends, and whether that is over. */
static inline uint64_t loop_slice(const struct loop *l) {
    uint64_t share = LOOP_SLICES / MAX(l->yielders + (size_t)l->batch_n, (size_t)1);
    return l->clock() + MAX(MIN(share, LOOP_SLICE), LOOP_SLICE_MIN);
}
static inline bool loop_slice_over(const struct loop *l, uint64_t end) {
    return l->clock() >= end;
}
void loop_task_del(struct loop_task *t);

/* Runs until loop->stop. 0, or -errno when waiting fails. */
MUST_CHECK int loop_run(struct loop *l);

/* One round: waits at most `max_wait` nanoseconds (UINT64_MAX: no limit). 0 or -errno. */
MUST_CHECK int loop_once(struct loop *l, uint64_t max_wait);
