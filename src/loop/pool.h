#pragma once
/*
 * Threads for calls that may block. A thread of the pool runs a job's `work`, then the loop's
 * thread runs its `done`. Threads are made on demand, at most POOL_THREADS, and end when idle.
 * They block all signals and make no children: the parent-death signal of a supervisor is tied to
 * the thread that made it. Jobs begin in the order in which they were submitted. If no thread takes
 * a job up for POOL_WAIT_MS, because all hang, the pool gives it back with `refused` set; likewise
 * if it cannot make even one thread.
 *
 * A job tells the pool which site (a file system) it is about to touch, and how many jobs may be
 * there at a time. A site that hangs thus blocks no more threads than that. Further jobs for it
 * wait without a thread, until one leaves or POOL_WAIT_MS are over.
 *
 * Only the loop's thread may call these functions, except pool_enter().
 */

#include "base/list.h"
#include "loop/loop.h"

#include <pthread.h>

#define POOL_THREADS 256
#define POOL_STACK (256u << 10) /* bytes of a thread's stack */
#define POOL_IDLE_MS 10000      /* after which an idle thread ends */
#define POOL_WAIT_MS 5000
#define POOL_STOP_MS 1000    /* for which pool_fini() waits for running jobs */
#define POOL_STOP_ROUNDS 240 /* of that time in all, for threads that only have to end */

struct pool_job {
    struct list node;
    void (*work)(struct pool_job *j); /* in a thread; touches only its job */
    void (*done)(struct pool_job *j); /* in the loop; may free the job, submit and cancel others */
    bool refused;                     /* no thread took it up, or its site stayed full */
    uint64_t deadline;                /* loop time at which it is refused */
    struct pool *pool;                /* since it was submitted */

    bool begun;        /* a thread took it up; this and all below under the pool's lock */
    bool blocked;      /* its site was full */
    uint64_t site;     /* its site, or while blocked the one it waits for; 0: none */
    size_t site_limit; /* jobs that may be at its site */
    uint64_t let;      /* the site whose room it was resumed for, until it enters; or 0 */
};

struct pool_thread {
    struct list node; /* in `idle`, in `unused`, or in no list */
    struct pool *pool;
    pthread_cond_t call; /* `coming` was set while it was idle */
    bool coming;
};

struct pool {
    struct loop *loop;
    struct loop_io wake;     /* eventfd: jobs are done */
    struct loop_timer timer; /* the first deadline of jobs that wait */
    uint64_t idle_ms; /* the constants above, unless a test sets others before the first job */
    uint64_t stop_ms;
    size_t stack;

    pthread_mutex_t lock;         /* for all below; free during `work` and `done` */
    pthread_cond_t ended;         /* of a thread */
    struct list waiting, blocked; /* jobs, by deadline */
    struct list working, finished;
    struct list idle;   /* threads, the one that became idle last comes first */
    struct list unused; /* threads that do not exist */
    size_t waiting_n;
    size_t coming; /* threads about to look at `waiting`, each for one job */
    size_t threads;
    size_t running; /* jobs in `working` or `finished` */
    bool stopping;
    struct pool_thread thread[POOL_THREADS];
};

/* 0 or -errno. No thread is made yet. */
MUST_CHECK int pool_init(struct pool *p, struct loop *loop);

/*
 * Ends the threads; waits at most POOL_STOP_MS for those that work, and longer for those that do
 * not and need only the CPU. Calls no `done` and drops jobs that wait. After true the owner may
 * free every job. False: a thread hangs in the kernel; neither the pool's memory nor that thread's
 * job may be freed. Another call waits again.
 */
bool pool_fini(struct pool *p);

/* Whether jobs wait, run, or have not been reported. */
bool pool_busy(struct pool *p);

/* Queues a job; it must live until `done`, which is never called from here. */
void pool_submit(struct pool *p, struct pool_job *j);

/* Cancels a job that has not begun: true, and `done` will not follow. */
bool pool_cancel(struct pool *p, struct pool_job *j);

/*
 * For `work`, in a thread, before it touches `site` (not 0): the job leaves its site and enters
 * that one. False: `limit` jobs are there. `work` must return at once, having changed nothing; the
 * pool calls it again from the start when there is room, or refuses the job.
 */
MUST_CHECK bool pool_enter(struct pool_job *j, uint64_t site, size_t limit);
