#include "loop/loop.h"

#include <errno.h>
#include <time.h>

#define LOOP_BATCH 64

static uint64_t loop_monotonic(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * LOOP_SEC + (uint64_t)ts.tv_nsec;
}

int loop_init(struct loop *l, uint64_t (*clock)(void)) {
    *l = (struct loop){.clock = clock ? clock : loop_monotonic};
    list_init(&l->tasks);
    list_init(&l->yielded);
    l->now = l->clock();
    l->epfd = epoll_create1(EPOLL_CLOEXEC);
    return l->epfd < 0 ? -errno : 0;
}

void loop_fini(struct loop *l) {
    util_close_fd(&l->epfd);
    free(l->heap);
    l->heap = NULL;
    l->timers = l->heap_cap = 0;
}

/* -- descriptors -- */

int loop_io_add(struct loop *l, struct loop_io *io, uint32_t events) {
    struct epoll_event ev = {.events = events, .data.ptr = io};
    if (epoll_ctl(l->epfd, EPOLL_CTL_ADD, io->fd, &ev) < 0)
        return -errno;
    io->events = events;
    io->added = true;
    l->ios++;
    return 0;
}

void loop_io_want(struct loop *l, struct loop_io *io, uint32_t events) {
    if (!io->added || io->events == events)
        return;
    struct epoll_event ev = {.events = events, .data.ptr = io};
    epoll_ctl(l->epfd, EPOLL_CTL_MOD, io->fd, &ev);
    io->events = events;
}

void loop_io_del(struct loop *l, struct loop_io *io) {
    if (!io->added)
        return;
    epoll_ctl(l->epfd, EPOLL_CTL_DEL, io->fd, NULL);
    io->added = false;
    l->ios--;
    for (int i = l->batch_at; i < l->batch_n; i++) {
        if (l->batch[i].data.ptr == io)
            l->batch[i].data.ptr = NULL;
    }
}

/* -- timers: a binary heap in which each timer knows its place -- */

static void loop_heap_put(struct loop *l, size_t pos, struct loop_timer *t) {
    l->heap[pos] = t;
    t->pos = pos;
}

static void loop_heap_up(struct loop *l, size_t pos) {
    struct loop_timer *t = l->heap[pos];
    for (; pos > 1 && t->when < l->heap[pos / 2]->when; pos /= 2)
        loop_heap_put(l, pos, l->heap[pos / 2]);
    loop_heap_put(l, pos, t);
}

static void loop_heap_down(struct loop *l, size_t pos) {
    struct loop_timer *t = l->heap[pos];
    for (size_t child; (child = pos * 2) <= l->timers; pos = child) {
        if (child < l->timers && l->heap[child + 1]->when < l->heap[child]->when)
            child++;
        if (t->when <= l->heap[child]->when)
            break;
        loop_heap_put(l, pos, l->heap[child]);
    }
    loop_heap_put(l, pos, t);
}

int loop_timer_set(struct loop *l, struct loop_timer *t, uint64_t delay) {
    uint64_t when;
    if (__builtin_add_overflow(l->now, delay, &when))
        when = UINT64_MAX;
    if (t->pos == 0) {
        if (l->timers + 1 >= l->heap_cap) {
            size_t cap = l->heap_cap ? l->heap_cap * 2 : 64;
            struct loop_timer **heap = reallocarray(l->heap, cap, sizeof *heap);
            if (heap == NULL)
                return -ENOMEM;
            l->heap = heap;
            l->heap_cap = cap;
        }
        loop_heap_put(l, ++l->timers, t);
    }
    t->when = when;
    loop_heap_up(l, t->pos);
    loop_heap_down(l, t->pos);
    return 0;
}

void loop_timer_del(struct loop *l, struct loop_timer *t) {
    if (t->pos == 0)
        return;
    size_t pos = t->pos;
    struct loop_timer *last = l->heap[l->timers--];
    t->pos = 0;
    if (last == t)
        return;
    loop_heap_put(l, pos, last);
    loop_heap_up(l, pos);
    loop_heap_down(l, last->pos);
}

static bool loop_is_due(const struct loop *l, uint64_t when) {
    return l->timers > 0 && l->heap[1]->when <= when;
}

/* Runs the timers that were due at `when`. */
static void loop_run_timers(struct loop *l, uint64_t when) {
    while (loop_is_due(l, when)) {
        struct loop_timer *t = l->heap[1];
        loop_timer_del(l, t);
        t->fn(t);
    }
}

/* -- deferred tasks -- */

void loop_defer(struct loop *l, struct loop_task *t) {
    if (t->queued)
        return;
    t->queued = true;
    list_append(&l->tasks, &t->node);
}

void loop_yield(struct loop *l, struct loop_task *t) {
    if (t->queued)
        return;
    t->queued = true;
    t->yielders = &l->yielders;
    l->yielders++;
    list_append(&l->yielded, &t->node);
}

void loop_task_del(struct loop_task *t) {
    if (!t->queued)
        return;
    t->queued = false;
    if (t->yielders != NULL)
        --*t->yielders;
    t->yielders = NULL;
    list_remove(&t->node);
}

/* Runs all tasks, including those that tasks queue. */
static void loop_run_tasks(struct loop *l) {
    for (struct list *n; (n = list_first(&l->tasks)) != NULL;) {
        struct loop_task *t = list_entry(n, struct loop_task, node);
        loop_task_del(t);
        t->fn(t);
    }
}

/* Runs tasks that had yielded before the mark was set, until their share of the round is over. */
static void loop_run_yielded(struct loop *l, const struct list *mark) {
    if (list_first(&l->yielded) == mark)
        return;
    uint64_t end = l->clock() + LOOP_SLICES;
    for (struct list *n; (n = list_first(&l->yielded)) != mark;) {
        struct loop_task *t = list_entry(n, struct loop_task, node);
        loop_task_del(t);
        t->fn(t);
        loop_run_tasks(l);
        if (l->clock() >= end)
            break;
    }
}

/* -- running -- */

static int loop_wait(struct loop *l, struct epoll_event *ev, uint64_t wait) {
    if (!l->coarse) {
        struct timespec ts = {(time_t)(wait / LOOP_SEC), (long)(wait % LOOP_SEC)};
        int n = epoll_pwait2(l->epfd, ev, LOOP_BATCH, wait == UINT64_MAX ? NULL : &ts, NULL);
        if (n >= 0 || (errno != ENOSYS && errno != EPERM))
            return n;
        l->coarse = true;
    }
    uint64_t ms = wait / LOOP_MS + (wait % LOOP_MS != 0);
    return epoll_wait(l->epfd, ev, LOOP_BATCH, wait == UINT64_MAX ? -1 : (int)MIN(ms, 3600000u));
}

/*
 * Waits and serves the ready descriptors, at most LOOP_BATCH. Their number, or -errno; a signal
 * counts as one, because descriptors may be ready then.
 */
static int loop_round(struct loop *l, uint64_t wait) {
    struct epoll_event batch[LOOP_BATCH];
    int n = loop_wait(l, batch, wait);
    if (n < 0 && errno != EINTR)
        return -errno;
    l->now = l->clock();
    l->batch = batch;
    l->batch_n = MAX(n, 0);
    for (l->batch_at = 0; l->batch_at < l->batch_n;) {
        struct epoll_event *ev = &batch[l->batch_at++];
        struct loop_io *io = ev->data.ptr;
        if (io != NULL)
            io->fn(io, ev->events);
    }
    l->batch = NULL;
    l->batch_at = l->batch_n = 0;
    loop_run_tasks(l);
    return n < 0 ? 1 : n;
}

/* Serves the ready descriptors, and those that become ready by it. The kernel rotates them. */
static int loop_settle(struct loop *l) {
    for (size_t rounds = 2 + l->ios / LOOP_BATCH; rounds > 0; rounds--) {
        int n = loop_round(l, 0);
        if (n <= 0)
            return n;
    }
    return 0;
}

int loop_once(struct loop *l, uint64_t max_wait) {
    uint64_t wait = list_empty(&l->yielded) ? max_wait : 0;
    if (l->timers > 0) {
        uint64_t due = l->heap[1]->when;
        l->now = l->clock();
        wait = MIN(wait, due > l->now ? due - l->now : 0);
    }
    struct list mark; /* tasks that yield from now on wait for the next round */
    list_append(&l->yielded, &mark);
    int n = loop_round(l, wait);
    if (n >= 0 && loop_is_due(l, l->now)) {
        /* The timer may have become due after the kernel looked at the descriptors. */
        uint64_t when = l->now;
        n = loop_settle(l);
        if (n >= 0)
            loop_run_timers(l, when);
        loop_run_tasks(l);
    }
    loop_run_yielded(l, &mark);
    list_remove(&mark);
    return MIN(n, 0);
}

int loop_run(struct loop *l) {
    loop_run_tasks(l);
    while (!l->stop) {
        int r = loop_once(l, UINT64_MAX);
        if (r < 0)
            return r;
    }
    return 0;
}
