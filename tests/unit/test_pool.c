#include "loop/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define PATIENCE_S 60

/* -- a loop with a clock that only moves when told, and a pool -- */

static uint64_t fake_now;

static uint64_t fake_clock(void) {
    return fake_now;
}

struct fixture {
    struct loop loop;
    struct pool pool;
    pthread_t loop_thread;
    sem_t begun; /* posted by each job that waits at the gate */
    pthread_mutex_t lock;
    pthread_cond_t gate; /* `open` has changed */
    bool open;
    int order[512]; /* numbers of jobs as they began; under `lock` */
    int ran;
    int reported[512]; /* numbers of jobs as they were done */
    int done;
};

static struct fixture f;

static int setup(void **state) {
    (void)state;
    f = (struct fixture){.loop_thread = pthread_self()};
    pthread_mutex_init(&f.lock, NULL);
    pthread_cond_init(&f.gate, NULL);
    sem_init(&f.begun, 0, 0);
    fake_now = 1000 * LOOP_SEC;
    return loop_init(&f.loop, fake_clock) == 0 ? pool_init(&f.pool, &f.loop) : -1;
}

static void end_pool(void) {
    f.pool.stop_ms = PATIENCE_S * 1000;
    assert_true(pool_fini(&f.pool));
    loop_fini(&f.loop);
}

/* Every test ends its pool: a thread that did not end would show here. */
static int teardown(void **state) {
    (void)state;
    pthread_mutex_destroy(&f.lock);
    pthread_cond_destroy(&f.gate);
    sem_destroy(&f.begun);
    return 0;
}

static struct timespec patience(clockid_t clock) {
    struct timespec end;
    clock_gettime(clock, &end);
    end.tv_sec += PATIENCE_S;
    return end;
}

static void turn(void) {
    time_t end = patience(CLOCK_MONOTONIC).tv_sec;
    assert_int_equal(loop_once(&f.loop, PATIENCE_S * LOOP_SEC), 0);
    assert_true(patience(CLOCK_MONOTONIC).tv_sec - PATIENCE_S < end); /* something happened */
}

/* A round that does not wait, `ms` later. */
static void advance(uint64_t ms) {
    fake_now += ms * LOOP_MS;
    assert_int_equal(loop_once(&f.loop, 0), 0);
}

static void run_until_done(int count) {
    while (f.done < count)
        turn();
    assert_int_equal(f.done, count);
}

static void await_begun(size_t count) {
    struct timespec end = patience(CLOCK_REALTIME);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(sem_timedwait(&f.begun, &end), 0);
}

static size_t pool_count(const size_t *field) {
    pthread_mutex_lock(&f.pool.lock);
    size_t n = *field;
    pthread_mutex_unlock(&f.pool.lock);
    return n;
}

static void await_threads(size_t count) {
    struct timespec end = patience(CLOCK_MONOTONIC);
    pthread_mutex_lock(&f.pool.lock);
    while (f.pool.threads != count)
        assert_int_equal(pthread_cond_timedwait(&f.pool.ended, &f.pool.lock, &end), 0);
    pthread_mutex_unlock(&f.pool.lock);
}

/* -- jobs -- */

struct numbered {
    struct pool_job job;
    int number;
};

static void note_begun(struct numbered *n) {
    pthread_mutex_lock(&f.lock);
    f.order[f.ran++] = n->number;
    pthread_mutex_unlock(&f.lock);
}

static void work_quick(struct pool_job *j) {
    note_begun(container_of(j, struct numbered, job));
}

static void work_gated(struct pool_job *j) {
    note_begun(container_of(j, struct numbered, job));
    sem_post(&f.begun);
    pthread_mutex_lock(&f.lock);
    while (!f.open)
        pthread_cond_wait(&f.gate, &f.lock);
    pthread_mutex_unlock(&f.lock);
}

static void open_gate(void) {
    pthread_mutex_lock(&f.lock);
    f.open = true;
    pthread_cond_broadcast(&f.gate);
    pthread_mutex_unlock(&f.lock);
}

static void on_done(struct pool_job *j) {
    assert_true(pthread_equal(pthread_self(), f.loop_thread));
    assert_in_range(f.done, 0, ARRAY_LEN(f.reported) - 1);
    f.reported[f.done++] = container_of(j, struct numbered, job)->number;
}

static void submit(struct numbered *n, int number, void (*work)(struct pool_job *)) {
    *n = (struct numbered){.job = {.work = work, .done = on_done}, .number = number};
    list_init(&n->job.node);
    pool_submit(&f.pool, &n->job);
}

/* Jobs 1000, 1001 ... that hang in every thread there may be. */
static void hang_all(struct numbered hung[POOL_THREADS]) {
    for (int i = 0; i < POOL_THREADS; i++)
        submit(&hung[i], 1000 + i, work_gated);
    await_begun(POOL_THREADS);
    f.ran = 0;
}

static void assert_numbers(const int *got, int first, int count) {
    for (int i = 0; i < count; i++)
        assert_int_equal(got[i], first + i);
}

/* -- running -- */

static pthread_t worked_in;

static void work_look(struct pool_job *j) {
    worked_in = pthread_self();
    work_quick(j);
}

static void work_and_done_have_their_threads(void **state) {
    (void)state;
    struct numbered n;
    assert_int_equal(f.pool.threads, 0);
    submit(&n, 7, work_look);
    assert_int_equal(f.done, 0);
    run_until_done(1);
    assert_false(pthread_equal(worked_in, f.loop_thread));
    assert_false(n.job.refused);
    assert_int_equal(f.order[0], 7);
    assert_int_equal(f.reported[0], 7);
    assert_int_equal(pool_count(&f.pool.running), 0);
    end_pool();
}

#define IMPOSSIBLE_STACK ((size_t)1 << 60) /* of a thread: none can be made any more */

/* With one thread, the order of submission is the order of work and of reports. */
static void jobs_begin_in_order(void **state) {
    (void)state;
    struct numbered n[100];
    submit(&n[0], 0, work_gated);
    await_begun(1);
    f.pool.stack = IMPOSSIBLE_STACK;
    for (int i = 1; i < 100; i++)
        submit(&n[i], i, work_quick);
    assert_int_equal(pool_count(&f.pool.waiting_n), 99);
    open_gate();
    run_until_done(100);
    assert_numbers(f.order, 0, 100);
    assert_numbers(f.reported, 0, 100);
    end_pool();
}

static struct numbered chain[100];

static void on_done_next(struct pool_job *j) {
    on_done(j);
    int next = container_of(j, struct numbered, job)->number + 1;
    if (next < 100) {
        submit(&chain[next], next, work_quick);
        chain[next].job.done = on_done_next;
    }
}

/* A thread that has reported its job is there for the next one; no other is made. */
static void one_thread_serves_a_chain(void **state) {
    (void)state;
    submit(&chain[0], 0, work_quick);
    chain[0].job.done = on_done_next;
    run_until_done(100);
    assert_numbers(f.order, 0, 100);
    assert_numbers(f.reported, 0, 100);
    assert_int_equal(pool_count(&f.pool.threads), 1);
    end_pool();
}

static void grows_to_its_maximum_and_no_further(void **state) {
    (void)state;
    struct numbered hung[POOL_THREADS], more[16];
    hang_all(hung);
    assert_int_equal(pool_count(&f.pool.threads), POOL_THREADS);
    for (int i = 0; i < 16; i++)
        submit(&more[i], i, work_gated);
    assert_int_equal(pool_count(&f.pool.threads), POOL_THREADS);
    assert_int_equal(pool_count(&f.pool.waiting_n), 16);
    assert_int_equal(pool_count(&f.pool.running), POOL_THREADS);
    assert_int_equal(f.ran, 0);
    open_gate();
    run_until_done(POOL_THREADS + 16);
    assert_int_equal(pool_count(&f.pool.running), 0);
    assert_int_equal(pool_count(&f.pool.threads), POOL_THREADS);
    end_pool();
}

/* The only idle thread is called once: the second job does not wait behind the first. */
static void an_idle_thread_is_not_called_twice(void **state) {
    (void)state;
    struct numbered n[3];
    submit(&n[0], 0, work_quick);
    run_until_done(1);
    submit(&n[1], 1, work_gated);
    submit(&n[2], 2, work_quick);
    run_until_done(2);
    assert_int_equal(f.reported[1], 2);
    open_gate();
    run_until_done(3);
    assert_int_equal(pool_count(&f.pool.threads), 2);
    end_pool();
}

static void idle_threads_end(void **state) {
    (void)state;
    struct numbered n[8];
    f.pool.idle_ms = 1;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 8; i++)
            submit(&n[i], i, work_gated);
        await_begun(8);
        assert_int_equal(pool_count(&f.pool.threads), 8);
        open_gate();
        run_until_done(8 * (round + 1));
        await_threads(0);
        f.open = false; /* no thread is left to see it */
    }
    end_pool();
}

/* A thread that waits longer than the idle time for its job's end is not idle. */
static void a_busy_thread_does_not_end(void **state) {
    (void)state;
    struct numbered gated, n[2];
    f.pool.idle_ms = 1;
    submit(&gated, 0, work_gated);
    submit(&n[0], 1, work_quick);
    run_until_done(1);
    await_threads(1);
    await_begun(1);
    open_gate();
    run_until_done(2);
    await_threads(0);
    end_pool();
}

struct sum {
    struct pool_job job;
    uint64_t seed, result;
    unsigned times; /* done, and submitted again until enough */
};

enum { SUMS = 200, SUM_ROUNDS = 100 };

static struct sum sums[SUMS];

static uint64_t sum_of(uint64_t seed) {
    for (int i = 0; i < 50; i++)
        seed = seed * 6364136223846793005u + 1442695040888963407u;
    return seed;
}

static void work_sum(struct pool_job *j) {
    struct sum *s = container_of(j, struct sum, job);
    s->result = sum_of(s->seed);
}

static int sums_done;

static void on_sum_done(struct pool_job *j) {
    struct sum *s = container_of(j, struct sum, job);
    assert_false(j->refused);
    assert_true(s->result == sum_of(s->seed));
    sums_done++;
    s->seed = s->result;
    if (++s->times < SUM_ROUNDS)
        pool_submit(&f.pool, j);
}

static void many_jobs_keep_their_results(void **state) {
    (void)state;
    sums_done = 0;
    for (size_t i = 0; i < SUMS; i++) {
        sums[i] = (struct sum){.job = {.work = work_sum, .done = on_sum_done}, .seed = i};
        pool_submit(&f.pool, &sums[i].job);
    }
    while (sums_done < SUMS * SUM_ROUNDS)
        turn();
    for (size_t i = 0; i < SUMS; i++)
        assert_int_equal(sums[i].times, SUM_ROUNDS);
    assert_int_equal(sums_done, SUMS * SUM_ROUNDS);
    assert_in_range(pool_count(&f.pool.threads), 1, POOL_THREADS);
    assert_int_equal(pool_count(&f.pool.running), 0);
    end_pool();
}

/* Jobs that finish before the loop looks share one wake-up. */
static void wake_ups_are_shared(void **state) {
    (void)state;
    struct numbered n[8];
    f.pool.idle_ms = 1;
    for (int i = 0; i < 8; i++)
        submit(&n[i], i, work_gated);
    await_begun(8);
    open_gate();
    await_threads(0); /* so all are finished */
    uint64_t count = 0;
    assert_int_equal(read(f.pool.wake.fd, &count, sizeof count), sizeof count);
    assert_true(count == 1);
    assert_int_equal(write(f.pool.wake.fd, &count, sizeof count), sizeof count);
    turn();
    assert_int_equal(f.done, 8);
    end_pool();
}

/* -- sites -- */

#define SITE_LIMIT 10

struct visitor {
    struct numbered n;
    uint64_t site;
    bool gated;
};

static void work_at_site(struct pool_job *j) {
    const struct visitor *v = container_of(j, struct visitor, n.job);
    if (!pool_enter(j, v->site, SITE_LIMIT))
        return;
    if (v->gated)
        work_gated(j);
    else
        work_quick(j);
}

static void visit(struct visitor *v, int number, uint64_t site, bool gated) {
    v->site = site;
    v->gated = gated;
    submit(&v->n, number, work_at_site);
}

/* Jobs that hang at a site, as many as it takes. */
static void fill_site(struct visitor hung[SITE_LIMIT], uint64_t site) {
    for (int i = 0; i < SITE_LIMIT; i++)
        visit(&hung[i], 1000 + i, site, true);
    await_begun(SITE_LIMIT);
}

/* Waits until so many jobs have been found to be blocked. */
static void await_blocked(size_t count) {
    for (size_t n = 0; n < count;) {
        n = 0;
        pthread_mutex_lock(&f.pool.lock);
        list_for_each(it, &f.pool.blocked) n++;
        pthread_mutex_unlock(&f.pool.lock);
        if (n < count)
            turn();
    }
}

static void a_full_site_keeps_nobody_else_waiting(void **state) {
    (void)state;
    struct visitor one[SITE_LIMIT], two[SITE_LIMIT], more[2], elsewhere;
    struct numbered nowhere;
    fill_site(one, 1);
    fill_site(two, 2);
    f.ran = 0;
    visit(&more[0], 0, 1, false);
    visit(&more[1], 1, 2, false);
    await_blocked(2);
    visit(&elsewhere, 2, 3, false);
    submit(&nowhere, 3, work_quick);
    run_until_done(2);
    assert_int_equal(f.ran, 2);
    assert_int_equal(pool_count(&f.pool.running), 2 * SITE_LIMIT);
    assert_true(pool_busy(&f.pool));
    advance(POOL_WAIT_MS);
    assert_int_equal(f.done, 4);
    assert_true(more[0].n.job.refused && more[1].n.job.refused);
    assert_int_equal(f.ran, 2);
    open_gate();
    run_until_done(4 + 2 * SITE_LIMIT);
    visit(&more[0], 0, 1, false);
    run_until_done(5 + 2 * SITE_LIMIT);
    assert_false(more[0].n.job.refused);
    assert_int_equal(f.loop.timers, 0);
    end_pool();
}

/* They begin in their order, and each in a thread of its own if there are many. */
static void blocked_jobs_go_on_when_the_site_does(void **state) {
    (void)state;
    struct visitor hung[SITE_LIMIT], more[20];
    fill_site(hung, 1);
    f.ran = 0;
    for (int i = 0; i < 20; i++)
        visit(&more[i], i, 1, i % 2 == 0);
    await_blocked(20);
    assert_int_equal(f.ran, 0);
    open_gate();
    run_until_done(SITE_LIMIT + 20);
    assert_int_equal(f.ran, 20);
    for (int i = 0; i < 20; i++)
        assert_false(more[i].n.job.refused);
    end_pool();
}

static void work_passing_through(struct pool_job *j) {
    if (pool_enter(j, 1, SITE_LIMIT) && pool_enter(j, 2, SITE_LIMIT))
        work_gated(j);
}

/* A job counts where it is, not where it was. */
static void a_job_moves_from_site_to_site(void **state) {
    (void)state;
    struct numbered through[SITE_LIMIT], more;
    struct visitor first, second;
    for (int i = 0; i < SITE_LIMIT; i++)
        submit(&through[i], 1000 + i, work_passing_through);
    await_begun(SITE_LIMIT);
    visit(&first, 0, 1, false);
    run_until_done(1);
    visit(&second, 1, 2, false);
    submit(&more, 2, work_passing_through);
    await_blocked(2);
    visit(&first, 3, 1, false); /* the blocked one is not at the site that it left */
    run_until_done(2);
    open_gate();
    run_until_done(SITE_LIMIT + 4);
    end_pool();
}

static void a_blocked_job_can_be_taken_back(void **state) {
    (void)state;
    struct visitor hung[SITE_LIMIT], more[2];
    fill_site(hung, 1);
    visit(&more[0], 0, 1, false);
    visit(&more[1], 1, 1, false);
    await_blocked(2);
    assert_true(pool_cancel(&f.pool, &more[0].n.job));
    advance(POOL_WAIT_MS);
    assert_int_equal(f.done, 1);
    assert_true(more[1].n.job.refused);
    assert_int_equal(pool_count(&f.pool.waiting_n), 0);
    open_gate();
    run_until_done(1 + SITE_LIMIT);
    assert_false(pool_busy(&f.pool));
    end_pool();
}

/* A job that is let go on, and then is led elsewhere, takes the room from nobody. */
static void room_that_is_not_taken_is_passed_on(void **state) {
    (void)state;
    struct visitor hung[SITE_LIMIT], more[2];
    fill_site(hung, 1);
    visit(&more[0], 0, 1, false);
    await_blocked(1);
    visit(&more[1], 1, 1, false);
    await_blocked(2);
    more[0].site = 2;
    assert_true(pool_enter(&hung[0].n.job, 3, SITE_LIMIT)); /* for it, while it hangs */
    run_until_done(2);
    assert_false(more[1].n.job.refused);
    open_gate();
    run_until_done(2 + SITE_LIMIT);
    end_pool();
}

static void ends_with_blocked_jobs(void **state) {
    (void)state;
    struct visitor hung[SITE_LIMIT], more;
    fill_site(hung, 1);
    visit(&more, 0, 1, false);
    await_blocked(1);
    open_gate();
    end_pool();
}

/* -- refusing -- */

static void a_job_nobody_takes_is_refused(void **state) {
    (void)state;
    struct numbered hung[POOL_THREADS], n[4];
    hang_all(hung);
    submit(&n[0], 0, work_quick);
    submit(&n[1], 1, work_quick);
    advance(1);
    submit(&n[2], 2, work_quick);
    advance(POOL_WAIT_MS - 2);
    assert_int_equal(f.done, 0);
    advance(1);
    assert_int_equal(f.done, 2);
    assert_true(n[0].job.refused && n[1].job.refused);
    advance(1);
    assert_int_equal(f.done, 3);
    assert_true(n[2].job.refused);
    assert_numbers(f.reported, 0, 3);
    submit(&n[3], 3, work_quick); /* in time */
    advance(POOL_WAIT_MS - 1);
    open_gate();
    run_until_done(3 + POOL_THREADS + 1);
    assert_false(n[3].job.refused);
    assert_int_equal(f.ran, 1);
    assert_int_equal(f.order[0], 3);
    advance(10 * POOL_WAIT_MS); /* a timer left over does nothing */
    assert_int_equal(f.loop.timers, 0);
    assert_int_equal(f.done, 3 + POOL_THREADS + 1);
    end_pool();
}

/* A job that was refused may be tried again. */
static void a_refused_job_can_be_submitted_again(void **state) {
    (void)state;
    struct numbered hung[POOL_THREADS], n;
    hang_all(hung);
    submit(&n, 0, work_quick);
    advance(POOL_WAIT_MS);
    assert_int_equal(f.done, 1);
    assert_true(n.job.refused);
    pool_submit(&f.pool, &n.job);
    open_gate();
    run_until_done(POOL_THREADS + 2);
    assert_false(n.job.refused);
    assert_int_equal(f.ran, 1);
    end_pool();
}

static void without_any_thread_a_job_is_refused(void **state) {
    (void)state;
    struct numbered n[2];
    f.pool.stack = IMPOSSIBLE_STACK;
    submit(&n[0], 0, work_quick);
    submit(&n[1], 1, work_quick);
    assert_int_equal(f.done, 0);
    assert_int_equal(pool_count(&f.pool.threads), 0);
    run_until_done(2);
    assert_numbers(f.reported, 0, 2);
    assert_true(n[0].job.refused && n[1].job.refused);
    assert_int_equal(f.ran, 0);
    f.pool.stack = POOL_STACK;
    submit(&n[0], 5, work_quick);
    run_until_done(3);
    assert_false(n[0].job.refused);
    assert_int_equal(pool_count(&f.pool.running), 0);
    end_pool();
}

static void without_another_thread_a_job_waits(void **state) {
    (void)state;
    struct numbered n[3];
    submit(&n[0], 0, work_gated);
    await_begun(1);
    f.pool.stack = IMPOSSIBLE_STACK;
    submit(&n[1], 1, work_quick);
    submit(&n[2], 2, work_quick);
    assert_int_equal(pool_count(&f.pool.threads), 1);
    assert_int_equal(pool_count(&f.pool.waiting_n), 2);
    advance(POOL_WAIT_MS - 1);
    assert_int_equal(f.done, 0);
    open_gate();
    run_until_done(3);
    assert_numbers(f.order, 0, 3);
    assert_false(n[1].job.refused || n[2].job.refused);
    end_pool();
}

/* -- taking back -- */

static void a_waiting_job_can_be_taken_back(void **state) {
    (void)state;
    struct numbered hung[POOL_THREADS], n[3];
    hang_all(hung);
    for (int i = 0; i < 3; i++)
        submit(&n[i], i, work_quick);
    assert_true(pool_cancel(&f.pool, &n[1].job));
    assert_false(pool_cancel(&f.pool, &hung[0].job));
    assert_int_equal(pool_count(&f.pool.waiting_n), 2);
    memset(&n[1], 0xff, sizeof n[1]); /* as if it were freed */
    open_gate();
    run_until_done(POOL_THREADS + 2);
    assert_int_equal(f.ran, 2);
    for (int i = 0; i < f.ran; i++)
        assert_int_not_equal(f.order[i], 1);
    end_pool();
}

static void a_refused_job_can_be_taken_back(void **state) {
    (void)state;
    struct numbered n[2];
    f.pool.stack = IMPOSSIBLE_STACK;
    submit(&n[0], 0, work_quick);
    submit(&n[1], 1, work_quick);
    assert_true(pool_cancel(&f.pool, &n[0].job));
    run_until_done(1);
    assert_int_equal(f.reported[0], 1);
    assert_int_equal(pool_count(&f.pool.waiting_n), 0);
    end_pool();
}

static struct numbered victim;

static void on_done_cancel(struct pool_job *j) {
    on_done(j);
    assert_true(pool_cancel(&f.pool, &victim.job));
}

/* Also when both are being reported: `done` of one takes back the other. */
static void done_can_take_back_another(void **state) {
    (void)state;
    struct numbered n;
    f.pool.stack = IMPOSSIBLE_STACK;
    submit(&n, 0, work_quick);
    submit(&victim, 1, work_quick);
    n.job.done = on_done_cancel;
    run_until_done(1);
    advance(0);
    assert_int_equal(f.done, 1);
    end_pool();
}

/* A thread that was called for a job that is taken back stays for the next one. */
static void a_call_for_nothing_is_harmless(void **state) {
    (void)state;
    struct numbered n;
    int taken_back = 0, done = 0;
    for (int i = 0; i < 1000; i++) {
        submit(&n, i, work_quick);
        if (pool_cancel(&f.pool, &n.job))
            taken_back++;
        else
            run_until_done(1);
        done += f.done;
        f.ran = f.done = 0;
    }
    assert_int_equal(taken_back + done, 1000);
    submit(&n, 1, work_quick);
    run_until_done(1);
    assert_int_equal(pool_count(&f.pool.waiting_n), 0);
    assert_int_equal(pool_count(&f.pool.threads), 1);
    end_pool();
}

/* -- ending -- */

static void ends_without_ever_a_job(void **state) {
    (void)state;
    int fd = f.pool.wake.fd;
    end_pool();
    assert_int_equal(fcntl(fd, F_GETFD), -1);
}

static void a_hanging_job_is_left_behind(void **state) {
    (void)state;
    struct numbered hung[POOL_THREADS], n;
    hang_all(hung);
    submit(&n, 1, work_quick);
    f.pool.stop_ms = 1;
    assert_false(pool_fini(&f.pool));
    assert_int_equal(pool_count(&f.pool.threads), POOL_THREADS);
    memset(&n, 0xff, sizeof n); /* dropped: its owner may free it at once */
    assert_int_equal(f.loop.timers, 0);
    advance(10 * POOL_WAIT_MS);
    open_gate();
    end_pool();
    assert_int_equal(f.done, 0);
    assert_int_equal(f.ran, 0);
}

/* Those that work a little longer are waited for, the idle ones are called. */
static void ends_idle_and_busy_threads(void **state) {
    (void)state;
    struct numbered n[4];
    for (int i = 0; i < 4; i++)
        submit(&n[i], i, work_gated);
    await_begun(4);
    open_gate();
    run_until_done(4);
    submit(&n[0], 0, work_quick);
    end_pool();
    assert_int_equal(f.done, 4);
}

/* -- signals -- */

static sigset_t mask_in_thread;

static void work_mask(struct pool_job *j) {
    (void)j;
    pthread_sigmask(SIG_BLOCK, NULL, &mask_in_thread);
}

static void signals_are_blocked_in_threads(void **state) {
    (void)state;
    struct numbered n;
    sigset_t before, after;
    sigemptyset(&before);
    sigaddset(&before, SIGUSR1);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    submit(&n, 0, work_mask);
    pthread_sigmask(SIG_BLOCK, NULL, &after);
    run_until_done(1);
    /* An emulator keeps signals of its own, above the classic ones. */
    int most = getenv("EXEC_SERVER_EMULATED") != NULL ? SIGSYS : SIGRTMAX;
    for (int s = 1; s <= most; s++) {
        if (s == SIGKILL || s == SIGSTOP || (s > SIGSYS && s < SIGRTMIN))
            continue; /* cannot be blocked, or the library's own */
        assert_int_equal(sigismember(&mask_in_thread, s), 1);
        assert_int_equal(sigismember(&before, s), sigismember(&after, s));
    }
    end_pool();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(work_and_done_have_their_threads, setup, teardown),
        cmocka_unit_test_setup_teardown(jobs_begin_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(one_thread_serves_a_chain, setup, teardown),
        cmocka_unit_test_setup_teardown(grows_to_its_maximum_and_no_further, setup, teardown),
        cmocka_unit_test_setup_teardown(an_idle_thread_is_not_called_twice, setup, teardown),
        cmocka_unit_test_setup_teardown(idle_threads_end, setup, teardown),
        cmocka_unit_test_setup_teardown(a_busy_thread_does_not_end, setup, teardown),
        cmocka_unit_test_setup_teardown(many_jobs_keep_their_results, setup, teardown),
        cmocka_unit_test_setup_teardown(wake_ups_are_shared, setup, teardown),
        cmocka_unit_test_setup_teardown(a_full_site_keeps_nobody_else_waiting, setup, teardown),
        cmocka_unit_test_setup_teardown(blocked_jobs_go_on_when_the_site_does, setup, teardown),
        cmocka_unit_test_setup_teardown(a_job_moves_from_site_to_site, setup, teardown),
        cmocka_unit_test_setup_teardown(a_blocked_job_can_be_taken_back, setup, teardown),
        cmocka_unit_test_setup_teardown(room_that_is_not_taken_is_passed_on, setup, teardown),
        cmocka_unit_test_setup_teardown(ends_with_blocked_jobs, setup, teardown),
        cmocka_unit_test_setup_teardown(a_job_nobody_takes_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_refused_job_can_be_submitted_again, setup, teardown),
        cmocka_unit_test_setup_teardown(without_any_thread_a_job_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(without_another_thread_a_job_waits, setup, teardown),
        cmocka_unit_test_setup_teardown(a_waiting_job_can_be_taken_back, setup, teardown),
        cmocka_unit_test_setup_teardown(a_refused_job_can_be_taken_back, setup, teardown),
        cmocka_unit_test_setup_teardown(done_can_take_back_another, setup, teardown),
        cmocka_unit_test_setup_teardown(a_call_for_nothing_is_harmless, setup, teardown),
        cmocka_unit_test_setup_teardown(ends_without_ever_a_job, setup, teardown),
        cmocka_unit_test_setup_teardown(a_hanging_job_is_left_behind, setup, teardown),
        cmocka_unit_test_setup_teardown(ends_idle_and_busy_threads, setup, teardown),
        cmocka_unit_test_setup_teardown(signals_are_blocked_in_threads, setup, teardown),
    };
    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
