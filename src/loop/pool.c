#include "loop/pool.h"

#include <errno.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <time.h>

static struct timespec pool_after(uint64_t ms) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    ts.tv_sec += (time_t)(ms / 1000);
    ts.tv_nsec += (long)(ms % 1000) * 1000000;
    if (ts.tv_nsec >= 1000000000) {
        ts.tv_sec++;
        ts.tv_nsec -= 1000000000;
    }
    return ts;
}

/* Tells the loop that there is something in `finished`. The counter never fills: 2^64 jobs. */
static void pool_ring(struct pool *p) {
    eventfd_write(p->wake.fd, 1);
}

/* -- a thread; the lock is held -- */

static void pool_set_coming(struct pool *p, struct pool_thread *t, bool coming) {
    p->coming += coming;
    p->coming -= t->coming;
    t->coming = coming;
}

/* Waits to be called; false when nobody does for the idle time. */
static bool pool_idle(struct pool *p, struct pool_thread *t) {
    struct timespec end = pool_after(p->idle_ms);
    list_insert_before(p->idle.next, &t->node);
    while (!t->coming) {
        if (pthread_cond_timedwait(&t->call, &p->lock, &end) == ETIMEDOUT && !t->coming) {
            list_remove(&t->node);
            return false;
        }
    }
    return true;
}

/* The next job, or NULL when the thread is to end. */
static struct pool_job *pool_take(struct pool *p, struct pool_thread *t) {
    for (;;) {
        pool_set_coming(p, t, false);
        struct list *n = list_first(&p->waiting);
        if (n != NULL) {
            struct pool_job *j = list_entry(n, struct pool_job, node);
            list_remove(n);
            p->waiting_n--;
            p->running++;
            j->begun = true;
            return j;
        }
        if (p->stopping || !pool_idle(p, t))
            return NULL;
    }
}

/* The thread counts as coming before the loop hears of the job, so that the next one finds it. */
static void pool_finish(struct pool *p, struct pool_thread *t, struct pool_job *j) {
    bool first = list_empty(&p->finished);
    list_append(&p->finished, &j->node);
    pool_set_coming(p, t, true);
    if (!first)
        return;
    pthread_mutex_unlock(&p->lock);
    pool_ring(p);
    pthread_mutex_lock(&p->lock);
}

static void *pool_main(void *arg) {
    struct pool_thread *t = arg;
    struct pool *p = t->pool;
    pthread_mutex_lock(&p->lock);
    for (struct pool_job *j; (j = pool_take(p, t)) != NULL;) {
        pthread_mutex_unlock(&p->lock);
        j->work(j);
        pthread_mutex_lock(&p->lock);
        pool_finish(p, t, j);
    }
    list_append(&p->unused, &t->node);
    p->threads--;
    pthread_cond_signal(&p->ended);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* -- reporting to the loop -- */

static void pool_report(struct list *jobs) {
    for (struct list *n; (n = list_first(jobs)) != NULL;) {
        list_remove(n);
        struct pool_job *j = list_entry(n, struct pool_job, node);
        j->done(j);
    }
}

static void pool_on_wake(struct loop_io *io, uint32_t events) {
    (void)events;
    struct pool *p = container_of(io, struct pool, wake);
    struct list jobs;
    list_init(&jobs);
    pthread_mutex_lock(&p->lock);
    for (struct list *n; (n = list_first(&p->finished)) != NULL;) {
        list_remove(n);
        list_append(&jobs, n);
        p->running -= list_entry(n, struct pool_job, node)->begun;
    }
    pthread_mutex_unlock(&p->lock);
    pool_report(&jobs);
}

/* Takes out of the queue what no thread has taken up until `now`; the lock is held. */
static void pool_refuse(struct pool *p, uint64_t now, struct list *jobs) {
    for (struct list *n; (n = list_first(&p->waiting)) != NULL;) {
        struct pool_job *j = list_entry(n, struct pool_job, node);
        if (j->deadline > now)
            return;
        list_remove(n);
        p->waiting_n--;
        j->refused = true;
        list_append(jobs, n);
    }
}

static void pool_on_timer(struct loop_timer *timer) {
    struct pool *p = container_of(timer, struct pool, timer);
    struct list jobs;
    list_init(&jobs);
    pthread_mutex_lock(&p->lock);
    pool_refuse(p, p->loop->now, &jobs);
    struct list *next = list_first(&p->waiting);
    if (next != NULL) {
        uint64_t when = list_entry(next, struct pool_job, node)->deadline;
        if (loop_timer_set(p->loop, &p->timer, when - p->loop->now) < 0)
            pool_refuse(p, UINT64_MAX, &jobs);
    }
    pthread_mutex_unlock(&p->lock);
    pool_report(&jobs);
}

/* -- handing over -- */

/* Takes the thread of `list` that is called next; NULL when there is none. The lock is held. */
static struct pool_thread *pool_call(struct pool *p, struct list *list) {
    struct list *n = list_first(list);
    if (n == NULL)
        return NULL;
    struct pool_thread *t = list_entry(n, struct pool_thread, node);
    list_remove(n);
    pool_set_coming(p, t, true);
    return t;
}

/* 0 or an errno. */
static int pool_make(struct pool *p, struct pool_thread *t) {
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, old;
    int e = pthread_attr_init(&attr);
    if (e != 0)
        return e;
    pthread_attr_setstacksize(&attr, p->stack);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    e = pthread_create(&thread, &attr, pool_main, t);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return e;
}

/* Nobody comes for the newest job: it waits for a thread that works, or has none to wait for. */
static void pool_wait(struct pool *p, struct pool_job *j, bool hopeless) {
    if (p->timer.pos == 0 && !hopeless &&
        loop_timer_set(p->loop, &p->timer, j->deadline - p->loop->now) < 0)
        hopeless = true;
    if (!hopeless)
        return;
    pthread_mutex_lock(&p->lock);
    if (!j->begun) {
        list_remove(&j->node);
        p->waiting_n--;
        j->refused = true;
        list_append(&p->finished, &j->node);
    }
    pthread_mutex_unlock(&p->lock);
    pool_ring(p);
}

static void pool_make_or_wait(struct pool *p, struct pool_thread *t, struct pool_job *j) {
    if (pool_make(p, t) == 0)
        return;
    pthread_mutex_lock(&p->lock);
    pool_set_coming(p, t, false);
    list_append(&p->unused, &t->node);
    bool none = --p->threads == 0;
    pthread_mutex_unlock(&p->lock);
    pool_wait(p, j, none);
}

void pool_submit(struct pool *p, struct pool_job *j) {
    j->refused = j->begun = false;
    if (__builtin_add_overflow(p->loop->now, loop_ms(POOL_WAIT_MS), &j->deadline))
        j->deadline = UINT64_MAX;
    struct pool_thread *called = NULL, *made = NULL;
    pthread_mutex_lock(&p->lock);
    list_append(&p->waiting, &j->node);
    bool enough = ++p->waiting_n <= p->coming;
    if (!enough)
        called = pool_call(p, &p->idle);
    if (!enough && called == NULL)
        made = pool_call(p, &p->unused);
    p->threads += made != NULL;
    pthread_mutex_unlock(&p->lock);
    if (called != NULL)
        pthread_cond_signal(&called->call);
    else if (made != NULL)
        pool_make_or_wait(p, made, j);
    else if (!enough)
        pool_wait(p, j, false);
}

bool pool_busy(struct pool *p) {
    pthread_mutex_lock(&p->lock);
    bool busy = p->running > 0 || p->waiting_n > 0 || !list_empty(&p->finished);
    pthread_mutex_unlock(&p->lock);
    return busy;
}

bool pool_cancel(struct pool *p, struct pool_job *j) {
    pthread_mutex_lock(&p->lock);
    bool back = !j->begun;
    if (back) {
        list_remove(&j->node);
        p->waiting_n -= !j->refused;
    }
    pthread_mutex_unlock(&p->lock);
    return back;
}

/* -- life -- */

static void pool_init_locks(struct pool *p) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->ended, &monotonic);
    for (size_t i = 0; i < POOL_THREADS; i++) {
        p->thread[i].pool = p;
        pthread_cond_init(&p->thread[i].call, &monotonic);
        list_append(&p->unused, &p->thread[i].node);
    }
    pthread_condattr_destroy(&monotonic);
}

int pool_init(struct pool *p, struct loop *loop) {
    _cleanup_close_ int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0)
        return -errno;
    *p = (struct pool){
        .loop = loop,
        .wake = {.fd = fd, .fn = pool_on_wake},
        .timer.fn = pool_on_timer,
        .idle_ms = POOL_IDLE_MS,
        .stop_ms = POOL_STOP_MS,
        .stack = POOL_STACK,
    };
    list_init(&p->waiting);
    list_init(&p->finished);
    list_init(&p->idle);
    list_init(&p->unused);
    /* Edge-triggered, each write is an event and nobody has to read. */
    int r = loop_io_add(loop, &p->wake, EPOLLIN | EPOLLET);
    if (r < 0)
        return r;
    steal_fd(&fd);
    pool_init_locks(p);
    return 0;
}

bool pool_fini(struct pool *p) {
    struct timespec end = pool_after(p->stop_ms);
    loop_io_del(p->loop, &p->wake);
    loop_timer_del(p->loop, &p->timer);
    pthread_mutex_lock(&p->lock);
    p->stopping = true;
    list_init(&p->waiting);
    p->waiting_n = 0;
    for (struct pool_thread *t; (t = pool_call(p, &p->idle)) != NULL;)
        pthread_cond_signal(&t->call);
    while (p->threads > 0 && pthread_cond_timedwait(&p->ended, &p->lock, &end) == 0)
        ;
    bool gone = p->threads == 0;
    pthread_mutex_unlock(&p->lock);
    if (!gone)
        return false;
    for (size_t i = 0; i < POOL_THREADS; i++)
        pthread_cond_destroy(&p->thread[i].call);
    pthread_cond_destroy(&p->ended);
    pthread_mutex_destroy(&p->lock);
    util_close_fd(&p->wake.fd);
    return true;
}
