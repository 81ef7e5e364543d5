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

/* Wakes the loop to look at `finished`. The eventfd's counter cannot overflow: 2^64 jobs. */
static void pool_ring(struct pool *p) {
    eventfd_write(p->wake.fd, 1);
}

/* Queues a job by its deadline; most belong at the end. The lock is held. */
static void pool_insert(struct list *head, struct pool_job *j) {
    struct list *pos = head;
    while (pos->prev != head &&
           list_entry(pos->prev, struct pool_job, node)->deadline > j->deadline)
        pos = pos->prev;
    list_insert_before(pos, &j->node);
}

/* -- sites; the lock is held -- */

static size_t pool_site_room(const struct pool *p, uint64_t site, size_t limit) {
    size_t there = 0;
    list_for_each(n, &p->working) {
        const struct pool_job *j = list_entry(n, struct pool_job, node);
        there += j->site == site && !j->blocked;
    }
    return limit - MIN(there, limit);
}

/* Resumes jobs that wait for the site, as far as there is room. Whether there were any. */
static bool pool_unblock(struct pool *p, uint64_t site) {
    size_t going = 0;
    list_for_each(n, &p->blocked) {
        struct pool_job *j = list_entry(n, struct pool_job, node);
        if (j->site != site)
            continue;
        if (pool_site_room(p, site, j->site_limit) <= going)
            break;
        going++;
        list_remove(n);
        j->blocked = false;
        j->site = 0;
        j->let = site;
        pool_insert(&p->waiting, j);
        p->waiting_n++;
    }
    return going > 0;
}

static bool pool_leave(struct pool *p, struct pool_job *j) {
    uint64_t site = j->site;
    j->site = 0;
    return site != 0 && pool_unblock(p, site);
}

/* Gives the room for which the job was resumed to the next one. Whether a job took it. */
static bool pool_pass_on(struct pool *p, struct pool_job *j) {
    uint64_t site = j->let;
    j->let = 0;
    return site != 0 && pool_unblock(p, site);
}

bool pool_enter(struct pool_job *j, uint64_t site, size_t limit) {
    struct pool *p = j->pool;
    bool ring = false;
    pthread_mutex_lock(&p->lock);
    if (j->site != site) {
        ring = pool_leave(p, j);
        j->blocked = pool_site_room(p, site, limit) == 0;
        j->site = site;
        j->site_limit = limit;
        if (j->let == site)
            j->let = 0;
        else if (j->blocked)
            ring |= pool_pass_on(p, j);
    }
    bool entered = !j->blocked;
    pthread_mutex_unlock(&p->lock);
    if (ring)
        pool_ring(p);
    return entered;
}

/* -- a thread; the lock is held -- */

static void pool_set_coming(struct pool *p, struct pool_thread *t, bool coming) {
    p->coming += coming;
    p->coming -= t->coming;
    t->coming = coming;
}

/* Waits for a call; false when the idle time is over. */
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

/* The next job, or NULL when the thread has to end. */
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
            list_append(&p->working, &j->node);
            return j;
        }
        if (p->stopping || !pool_idle(p, t))
            return NULL;
    }
}

/* The site was full when the job asked. The job waits, unless there is room by now. */
static void pool_block(struct pool *p, struct pool_job *j) {
    p->running--;
    j->begun = false;
    pool_insert(&p->blocked, j);
    pool_unblock(p, j->site);
}

/* Counts the thread as coming before the loop hears of the job: a job submitted then finds it. */
static void pool_finish(struct pool *p, struct pool_thread *t, struct pool_job *j) {
    list_remove(&j->node);
    bool ring = j->blocked || list_empty(&p->finished);
    pool_set_coming(p, t, true);
    if (j->blocked) {
        pool_block(p, j);
    } else {
        ring |= pool_leave(p, j);
        ring |= pool_pass_on(p, j);
        list_append(&p->finished, &j->node);
    }
    if (!ring)
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

/* Removes jobs whose deadline has passed from the queues. The lock is held. */
static void pool_refuse(struct pool *p, uint64_t now, struct list *jobs) {
    struct list *const queues[] = {&p->waiting, &p->blocked};
    for (size_t i = 0; i < 2; i++) {
        for (struct list *n; (n = list_first(queues[i])) != NULL;) {
            struct pool_job *j = list_entry(n, struct pool_job, node);
            if (j->deadline > now)
                break;
            list_remove(n);
            p->waiting_n -= !j->blocked;
            j->blocked = false;
            j->site = 0;
            j->refused = true;
            pool_pass_on(p, j);
            list_append(jobs, n);
        }
    }
}

/* Sets the timer to the first deadline, if any; without a timer all are refused. Lock held. */
static void pool_set_timer(struct pool *p, struct list *jobs) {
    uint64_t when = UINT64_MAX;
    struct list *const first[] = {list_first(&p->waiting), list_first(&p->blocked)};
    for (size_t i = 0; i < 2; i++) {
        if (first[i] != NULL)
            when = MIN(when, list_entry(first[i], struct pool_job, node)->deadline);
    }
    if (first[0] == NULL && first[1] == NULL)
        return;
    uint64_t now = p->loop->now;
    if (loop_timer_set(p->loop, &p->timer, when > now ? when - now : 0) < 0)
        pool_refuse(p, UINT64_MAX, jobs);
}

static void pool_staff(struct pool *p);

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
    if (!list_empty(&p->blocked))
        pool_set_timer(p, &jobs);
    bool short_of = p->waiting_n > p->coming;
    pthread_mutex_unlock(&p->lock);
    if (short_of)
        pool_staff(p);
    pool_report(&jobs);
}

static void pool_on_timer(struct loop_timer *timer) {
    struct pool *p = container_of(timer, struct pool, timer);
    struct list jobs;
    list_init(&jobs);
    pthread_mutex_lock(&p->lock);
    pool_refuse(p, p->loop->now, &jobs);
    pool_set_timer(p, &jobs);
    pthread_mutex_unlock(&p->lock);
    pool_report(&jobs);
}

/* -- handing over -- */

/* Takes the next thread to call out of `list`; NULL when it is empty. The lock is held. */
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

/* No thread comes for the newest job: it waits for one that works, or is refused without one. */
static void pool_wait(struct pool *p, struct pool_job *j, bool hopeless) {
    if (p->timer.pos == 0 && !hopeless &&
        loop_timer_set(p->loop, &p->timer, j->deadline - p->loop->now) < 0)
        hopeless = true;
    if (!hopeless)
        return;
    pthread_mutex_lock(&p->lock);
    if (!j->begun) {
        list_remove(&j->node);
        p->waiting_n -= !j->blocked;
        j->blocked = false;
        j->site = 0;
        j->refused = true;
        list_append(&p->finished, &j->node);
    }
    pthread_mutex_unlock(&p->lock);
    pool_ring(p);
}

/* A thread could not be made. Whether there is no other. */
static bool pool_unmake(struct pool *p, struct pool_thread *t) {
    pthread_mutex_lock(&p->lock);
    pool_set_coming(p, t, false);
    list_append(&p->unused, &t->node);
    bool none = --p->threads == 0;
    pthread_mutex_unlock(&p->lock);
    return none;
}

static void pool_make_or_wait(struct pool *p, struct pool_thread *t, struct pool_job *j) {
    if (pool_make(p, t) != 0)
        pool_wait(p, j, pool_unmake(p, t));
}

/* Calls a thread for each resumed job that needs one: no submission does. */
static void pool_staff(struct pool *p) {
    for (bool more = true; more;) {
        struct pool_thread *called = NULL, *made = NULL;
        pthread_mutex_lock(&p->lock);
        if (p->waiting_n > p->coming && (called = pool_call(p, &p->idle)) == NULL)
            made = pool_call(p, &p->unused);
        p->threads += made != NULL;
        pthread_mutex_unlock(&p->lock);
        more = called != NULL || (made != NULL && pool_make(p, made) == 0);
        if (called != NULL)
            pthread_cond_signal(&called->call);
        else if (made != NULL && !more)
            pool_unmake(p, made);
    }
}

void pool_submit(struct pool *p, struct pool_job *j) {
    j->pool = p;
    j->refused = j->begun = j->blocked = false;
    j->site = j->let = 0;
    if (__builtin_add_overflow(p->loop->now, loop_ms(POOL_WAIT_MS), &j->deadline))
        j->deadline = UINT64_MAX;
    struct pool_thread *called = NULL, *made = NULL;
    pthread_mutex_lock(&p->lock);
    pool_insert(&p->waiting, j);
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
    bool busy =
        p->running > 0 || p->waiting_n > 0 || !list_empty(&p->blocked) || !list_empty(&p->finished);
    pthread_mutex_unlock(&p->lock);
    return busy;
}

bool pool_cancel(struct pool *p, struct pool_job *j) {
    pthread_mutex_lock(&p->lock);
    bool back = !j->begun, ring = false;
    if (back) {
        list_remove(&j->node);
        p->waiting_n -= !j->refused && !j->blocked;
        ring = pool_pass_on(p, j);
    }
    pthread_mutex_unlock(&p->lock);
    if (ring)
        pool_ring(p);
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
    list_init(&p->blocked);
    list_init(&p->working);
    list_init(&p->finished);
    list_init(&p->idle);
    list_init(&p->unused);
    /* Edge-triggered: each write is an event, so the counter need not be read. */
    int r = loop_io_add(loop, &p->wake, EPOLLIN | EPOLLET);
    if (r < 0)
        return r;
    steal_fd(&fd);
    pool_init_locks(p);
    return 0;
}

bool pool_fini(struct pool *p) {
    loop_io_del(p->loop, &p->wake);
    loop_timer_del(p->loop, &p->timer);
    pthread_mutex_lock(&p->lock);
    p->stopping = true;
    list_init(&p->waiting);
    list_init(&p->blocked);
    p->waiting_n = 0;
    for (struct pool_thread *t; (t = pool_call(p, &p->idle)) != NULL;)
        pthread_cond_signal(&t->call);
    for (unsigned i = 0; p->threads > 0 && i < POOL_STOP_ROUNDS; i++) {
        struct timespec end = pool_after(p->stop_ms);
        while (p->threads > 0 && pthread_cond_timedwait(&p->ended, &p->lock, &end) == 0)
            ;
        if (!list_empty(&p->working))
            break;
    }
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
