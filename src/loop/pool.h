#pragma once
/*
 * Threads for calls that may block. A job's `work` runs in a thread of the pool, then its `done`
 * in the loop's thread. Threads are made on demand, at most POOL_THREADS, and end when idle; they
 * have all signals blocked and make no children (the parent-death signal of a supervisor is tied
 * to the thread that made it). Jobs begin in the order they were submitted. A job that no thread
 * has taken up after POOL_WAIT_MS, because all hang, is given back with `refused` set; so is one
 * for which not even a first thread can be made.
 *
 * A job tells the pool which site (a file system) it is about to touch, and how many jobs may be
 * there at a time. A site that hangs keeps no more threads than that, and the others stay free:
 * further jobs for it wait without a thread, until one leaves or POOL_WAIT_MS are over.
 *
 * Every call below but pool_enter() is for the loop's thread.
 */

#include "base/list.h"
#include "loop/loop.h"

#include <pthread.h>

#define POOL_THREADS 256
#define POOL_STACK (256u << 10) /* bytes of a thread's stack */
#define POOL_IDLE_MS 10000      /* after which an idle thread ends */
#define POOL_WAIT_MS 5000
#define POOL_STOP_MS 1000 /* for which pool_fini() waits for running jobs */

struct pool_job {
    struct list node;
    void (*work)(struct pool_job *j); /* in a thread; touches nothing but its job */
    void (*done)(struct pool_job *j); /* in the loop; may free the job, submit, cancel others */
    bool refused;                     /* no thread took it up, or its site stayed full */
    uint64_t deadline;                /* loop time at which it is refused */
    struct pool *pool;                /* since it was submitted */

    bool begun;        /* a thread took it up; here and below under the pool's lock */
    bool blocked;      /* its site was full */
    uint64_t site;     /* where it is, or wants to be while blocked; 0: nowhere */
    size_t site_limit; /* jobs that may be there */
    uint64_t let;      /* the site that it was let go on for, and has not come to yet; or 0 */
};

struct pool_thread {
    struct list node; /* in `idle` or `unused`, or none */
    struct pool *pool;
    pthread_cond_t call; /* `coming` was set while it was idle */
    bool coming;
};

struct pool {
    struct loop *loop;
    struct loop_io wake;     /* eventfd: jobs are done */
    struct loop_timer timer; /* set when a job has to wait: the deadline of the oldest */
    uint64_t idle_ms;        /* the constants above; a test may set others before the first job */
    uint64_t stop_ms;
    size_t stack;

    pthread_mutex_t lock;         /* for all below; not held during work and done */
    pthread_cond_t ended;         /* of a thread */
    struct list waiting, blocked; /* jobs, by deadline */
    struct list working, finished;
    struct list idle;   /* threads, the last one to become idle first */
    struct list unused; /* threads that do not exist */
    size_t waiting_n;
    size_t coming; /* threads about to look at `waiting`: as many jobs need no other thread */
    size_t threads;
    size_t running; /* jobs being worked on, or finished but not reported */
    bool stopping;
    struct pool_thread thread[POOL_THREADS];
};

/* 0 or -errno. No thread is made yet. */
MUST_CHECK int pool_init(struct pool *p, struct loop *loop);

/*
 * Ends the threads, waiting POOL_STOP_MS at most for those that work. No `done` is called: jobs
 * that wait are dropped, and after true every job is its owner's again. A thread whose job hangs
 * in the kernel is left behind: false is returned then, and neither the pool's memory nor that of
 * the job may be given back. Another call waits again.
 */
bool pool_fini(struct pool *p);

/* Whether jobs wait, run, or have yet to be reported. */
bool pool_busy(struct pool *p);

/* Queues a job; it must live until `done`, which is never called from here. */
void pool_submit(struct pool *p, struct pool_job *j);

/* Takes back a job that has not begun: true, and `done` will not follow. */
bool pool_cancel(struct pool *p, struct pool_job *j);

/*
 * In a thread, called by `work` before it touches `site` (not 0); it leaves the site it was at.
 * False: `limit` jobs are there. `work` must return at once, having changed nothing; the pool calls
 * it again from the start when there is room, or refuses the job.
 */
MUST_CHECK bool pool_enter(struct pool_job *j, uint64_t site, size_t limit);
