#include "loop/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/time.h>
#include <cmocka.h>

/* -- a clock that only moves when told -- */

static uint64_t fake_now;

static uint64_t fake_clock(void) {
    return fake_now;
}

struct fixture {
    struct loop loop;
    int log[64]; /* numbers of what ran, in order */
    int ran;
};

static struct fixture f;

static int setup(void **state) {
    (void)state;
    f = (struct fixture){0};
    fake_now = 1000 * LOOP_SEC;
    return loop_init(&f.loop, fake_clock);
}

static int teardown(void **state) {
    (void)state;
    loop_fini(&f.loop);
    return 0;
}

static void note(int number) {
    assert_in_range(f.ran, 0, ARRAY_LEN(f.log) - 1);
    f.log[f.ran++] = number;
}

static void assert_ran(const int *want, size_t n) {
    assert_int_equal(f.ran, n);
    assert_memory_equal(f.log, want, n * sizeof *want);
    f.ran = 0;
}
#define ASSERT_RAN(...) assert_ran((const int[]){__VA_ARGS__}, sizeof((int[]){__VA_ARGS__}) / 4)

static void advance(uint64_t by) {
    fake_now += by;
    assert_int_equal(loop_once(&f.loop, 0), 0);
}

/* -- timers -- */

struct numbered {
    struct loop_timer timer;
    int number;
    struct loop_timer *victim; /* removed when this one fires */
    uint64_t again;            /* set again by that much, once */
};

static void on_timer(struct loop_timer *t) {
    struct numbered *n = container_of(t, struct numbered, timer);
    note(n->number);
    if (n->victim != NULL)
        loop_timer_del(&f.loop, n->victim);
    uint64_t again = n->again;
    n->again = 0;
    if (again != 0)
        assert_int_equal(loop_timer_set(&f.loop, t, again), 0);
}

static struct numbered numbered(int number) {
    return (struct numbered){.timer.fn = on_timer, .number = number};
}

static void set_ms(struct numbered *n, uint64_t ms) {
    assert_int_equal(loop_timer_set(&f.loop, &n->timer, ms * LOOP_MS), 0);
}

static void timers_fire_when_due(void **state) {
    (void)state;
    struct numbered a = numbered(1), b = numbered(2), c = numbered(3);
    set_ms(&b, 20);
    set_ms(&c, 30);
    set_ms(&a, 10);
    advance(0);
    assert_int_equal(f.ran, 0);
    advance(10 * LOOP_MS - 1);
    assert_int_equal(f.ran, 0);
    advance(1);
    ASSERT_RAN(1);
    advance(100 * LOOP_MS);
    ASSERT_RAN(2, 3);
    advance(100 * LOOP_MS);
    assert_int_equal(f.ran, 0);
    assert_int_equal(f.loop.timers, 0);
    assert_int_equal(a.timer.pos, 0);
}

static void a_timer_moves(void **state) {
    (void)state;
    struct numbered a = numbered(1), b = numbered(2);
    set_ms(&a, 10);
    set_ms(&b, 20);
    set_ms(&a, 30); /* behind b */
    advance(25 * LOOP_MS);
    ASSERT_RAN(2);
    set_ms(&a, 1); /* forward */
    advance(1 * LOOP_MS);
    ASSERT_RAN(1);
}

static void a_timer_removes_another(void **state) {
    (void)state;
    struct numbered a = numbered(1), b = numbered(2), c = numbered(3);
    set_ms(&a, 10);
    set_ms(&b, 11);
    set_ms(&c, 12);
    a.victim = &b.timer;
    advance(20 * LOOP_MS);
    ASSERT_RAN(1, 3);
    loop_timer_del(&f.loop, &b.timer); /* harmless when not set */
    assert_int_equal(f.loop.timers, 0);
}

static void a_timer_sets_itself_again(void **state) {
    (void)state;
    struct numbered a = numbered(1);
    set_ms(&a, 10);
    a.again = 5 * LOOP_MS;
    advance(10 * LOOP_MS);
    ASSERT_RAN(1);
    advance(4 * LOOP_MS);
    assert_int_equal(f.ran, 0);
    advance(1 * LOOP_MS);
    ASSERT_RAN(1);
}

static void an_endless_delay_never_ends(void **state) {
    (void)state;
    struct numbered a = numbered(1), b = numbered(2);
    assert_int_equal(loop_timer_set(&f.loop, &a.timer, UINT64_MAX), 0);
    assert_true(a.timer.when == UINT64_MAX);
    set_ms(&b, 1);
    advance(1000000 * LOOP_SEC);
    ASSERT_RAN(2);
    loop_timer_del(&f.loop, &a.timer);
}

/* A due timer ends a wait that has no limit of its own. */
static void a_due_timer_ends_the_wait(void **state) {
    (void)state;
    struct numbered a = numbered(1);
    set_ms(&a, 1);
    fake_now += LOOP_SEC;
    assert_int_equal(loop_once(&f.loop, UINT64_MAX), 0);
    ASSERT_RAN(1);
}

static uint64_t last_fired;
static size_t fired;

static void on_ordered(struct loop_timer *t) {
    assert_true(t->when >= last_fired);
    assert_true(t->when <= fake_now);
    last_fired = t->when;
    fired++;
}

static void many_timers_keep_order(void **state) {
    (void)state;
    enum { COUNT = 3000 };
    static struct loop_timer t[COUNT];
    uint32_t random = 12345;
    last_fired = 0;
    fired = 0;
    size_t removed = 0;
    for (size_t i = 0; i < COUNT; i++) {
        random = random * 1664525 + 1013904223;
        t[i] = (struct loop_timer){.fn = on_ordered};
        assert_int_equal(loop_timer_set(&f.loop, &t[i], random >> 8), 0);
        if (i % 3 == 2) {
            loop_timer_del(&f.loop, &t[i - 1]);
            removed++;
        }
        if (i % 5 == 4) /* moved, or set again after its removal */
            removed -= t[i - 2].pos == 0;
        if (i % 5 == 4)
            assert_int_equal(loop_timer_set(&f.loop, &t[i - 2], random >> 9), 0);
    }
    assert_int_equal(f.loop.timers, COUNT - removed);
    while (f.loop.timers > 0)
        advance(1u << 20);
    assert_int_equal(fired, COUNT - removed);
}

/* -- descriptors -- */

struct watched {
    struct loop_io io;
    int number;
    int other_end;
    struct watched **victim; /* *victim is removed and freed when this one is called */
};

static void watched_free(struct watched *w) {
    loop_io_del(&f.loop, &w->io);
    close(w->io.fd);
    close(w->other_end);
    free(w);
}

static void on_io(struct loop_io *io, uint32_t events) {
    struct watched *w = container_of(io, struct watched, io);
    assert_true(events & EPOLLIN);
    note(w->number);
    char byte;
    assert_int_equal(read(io->fd, &byte, 1), 1);
    if (w->victim != NULL && *w->victim != NULL)
        watched_free(steal_ptr(w->victim));
}

/* A watched pipe with `bytes` bytes to read. */
static struct watched *watched_new(int number, int bytes) {
    struct watched *w = calloc(1, sizeof *w);
    int p[2];
    assert_non_null(w);
    assert_int_equal(pipe2(p, O_CLOEXEC | O_NONBLOCK), 0);
    *w = (struct watched){.io = {.fd = p[0], .fn = on_io}, .number = number, .other_end = p[1]};
    assert_int_equal(loop_io_add(&f.loop, &w->io, EPOLLIN), 0);
    for (int i = 0; i < bytes; i++)
        assert_int_equal(write(p[1], "x", 1), 1);
    return w;
}

static void readable_until_read(void **state) {
    (void)state;
    struct watched *w = watched_new(1, 2);
    advance(0);
    advance(0);
    advance(0);
    ASSERT_RAN(1, 1);
    watched_free(w);
}

static void nothing_wanted_nothing_told(void **state) {
    (void)state;
    struct watched *w = watched_new(1, 1);
    loop_io_want(&f.loop, &w->io, 0);
    advance(0);
    assert_int_equal(f.ran, 0);
    loop_io_want(&f.loop, &w->io, EPOLLIN);
    advance(0);
    ASSERT_RAN(1);
    watched_free(w);
}

static void removed_means_silent(void **state) {
    (void)state;
    struct watched *w = watched_new(1, 1);
    loop_io_del(&f.loop, &w->io);
    loop_io_del(&f.loop, &w->io);
    assert_false(w->io.added);
    loop_io_want(&f.loop, &w->io, EPOLLIN); /* no effect on what is not watched */
    advance(0);
    assert_int_equal(f.ran, 0);
    assert_int_equal(loop_io_add(&f.loop, &w->io, EPOLLIN), 0);
    advance(0);
    ASSERT_RAN(1);
    watched_free(w);
}

/* Both are ready in one round; the first to be called removes and frees the other. */
static void removal_inside_a_batch(void **state) {
    (void)state;
    struct watched *a = watched_new(1, 1), *b = watched_new(2, 1);
    a->victim = &b;
    b->victim = &a;
    advance(0);
    assert_int_equal(f.ran, 1);
    assert_true((a == NULL) != (b == NULL));
    watched_free(a != NULL ? a : b);
}

static void removal_of_itself(void **state) {
    (void)state;
    struct watched *a = watched_new(1, 5);
    a->victim = &a;
    advance(0);
    ASSERT_RAN(1);
    assert_null(a);
}

static void a_plain_file_is_refused(void **state) {
    (void)state;
    FILE *file = tmpfile();
    assert_non_null(file);
    struct loop_io io = {.fd = fileno(file), .fn = on_io};
    assert_int_equal(loop_io_add(&f.loop, &io, EPOLLIN), -EPERM);
    assert_false(io.added);
    fclose(file);
}

/* More than one batch of events is served in turn, none twice before all. */
static void more_than_a_batch(void **state) {
    (void)state;
    enum { COUNT = 60 };
    struct watched *w[COUNT];
    for (int i = 0; i < COUNT; i++)
        w[i] = watched_new(i, 1);
    for (int rounds = 0; f.ran < COUNT; rounds++) {
        assert_in_range(rounds, 0, COUNT);
        advance(0);
    }
    bool seen[COUNT] = {false};
    for (int i = 0; i < COUNT; i++) {
        assert_false(seen[f.log[i]]);
        seen[f.log[i]] = true;
        watched_free(w[i]);
    }
}

/* -- deferred tasks -- */

struct process {
    struct loop_task task;
    int number;
    struct loop_task *next, *victim;
    bool stop;
};

static void on_task(struct loop_task *t) {
    struct process *j = container_of(t, struct process, task);
    note(j->number);
    if (j->next != NULL)
        loop_defer(&f.loop, steal_ptr(&j->next));
    if (j->victim != NULL)
        loop_task_del(j->victim);
    if (j->stop)
        f.loop.stop = true;
}

static void tasks_run_once_in_order(void **state) {
    (void)state;
    struct process a = {.task.fn = on_task, .number = 1}, b = {.task.fn = on_task, .number = 2};
    loop_defer(&f.loop, &a.task);
    loop_defer(&f.loop, &b.task);
    loop_defer(&f.loop, &a.task);
    advance(0);
    ASSERT_RAN(1, 2);
    advance(0);
    assert_int_equal(f.ran, 0);
    loop_defer(&f.loop, &a.task); /* it can be used again */
    advance(0);
    ASSERT_RAN(1);
}

static void tasks_follow_events(void **state) {
    (void)state;
    struct process a = {.task.fn = on_task, .number = 9};
    struct watched *w = watched_new(1, 1);
    struct numbered t = numbered(5);
    set_ms(&t, 1);
    loop_defer(&f.loop, &a.task);
    advance(LOOP_MS);
    ASSERT_RAN(1, 9, 5);
    watched_free(w);
}

static void a_task_queues_another(void **state) {
    (void)state;
    struct process b = {.task.fn = on_task, .number = 2};
    struct process a = {.task.fn = on_task, .number = 1, .next = &b.task};
    loop_defer(&f.loop, &a.task);
    advance(0);
    ASSERT_RAN(1, 2);
}

static void a_task_removes_another(void **state) {
    (void)state;
    struct process b = {.task.fn = on_task, .number = 2};
    struct process a = {.task.fn = on_task, .number = 1, .victim = &b.task};
    loop_defer(&f.loop, &a.task);
    loop_defer(&f.loop, &b.task);
    advance(0);
    ASSERT_RAN(1);
    loop_task_del(&b.task);
    assert_false(b.task.queued);
}

static void running_until_stopped(void **state) {
    (void)state;
    struct process stop = {.task.fn = on_task, .number = 2, .stop = true};
    struct process first = {.task.fn = on_task, .number = 1, .next = &stop.task};
    loop_defer(&f.loop, &first.task);
    assert_int_equal(loop_run(&f.loop), 0);
    ASSERT_RAN(1, 2);
}

/* -- descriptors before timers -- */

static size_t served, served_before;

static void on_served(struct loop_io *io, uint32_t events) {
    (void)events;
    char byte;
    served += read(io->fd, &byte, 1) == 1;
}

static void on_deadline(struct loop_timer *t) {
    (void)t;
    note(0);
    served_before = served;
}

/* More than the kernel tells of at once. */
static void every_descriptor_before_a_timer(void **state) {
    (void)state;
    enum { COUNT = 200 };
    static struct watched *w[COUNT];
    struct loop_timer deadline = {.fn = on_deadline};
    served = 0;
    for (int i = 0; i < COUNT; i++) {
        w[i] = watched_new(i, 1);
        w[i]->io.fn = on_served;
    }
    assert_int_equal(loop_timer_set(&f.loop, &deadline, LOOP_SEC), 0);
    advance(LOOP_SEC);
    ASSERT_RAN(0);
    assert_int_equal(served_before, COUNT);
    for (int i = 0; i < COUNT; i++)
        watched_free(w[i]);
}

static int alarm_pipe;

/* What happens while a process is stopped: time passes and bytes arrive. */
static void on_alarm(int number) {
    (void)number;
    fake_now += 10 * LOOP_SEC;
    (void)!write(alarm_pipe, "x", 1);
}

/* A wait that a signal ends says nothing of descriptors. */
static void a_signal_is_no_excuse(void **state) {
    (void)state;
    struct watched *w = watched_new(1, 0);
    struct numbered t = numbered(5);
    set_ms(&t, 10000);
    alarm_pipe = w->other_end;
    struct sigaction sa = {.sa_handler = on_alarm};
    struct itimerval soon = {.it_value = {.tv_usec = 20000}};
    assert_int_equal(sigaction(SIGALRM, &sa, NULL), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
    assert_int_equal(loop_once(&f.loop, UINT64_MAX), 0);
    ASSERT_RAN(1, 5);
    signal(SIGALRM, SIG_DFL);
    watched_free(w);
}

static struct watched *follower;

static void on_first(struct loop_io *io, uint32_t events) {
    on_io(io, events);
    (void)!write(follower->other_end, "x", 1);
}

/* A descriptor that is ready because of another: a connection, once it is accepted. */
static void what_follows_before_a_timer(void **state) {
    (void)state;
    struct watched *first = watched_new(1, 1);
    struct numbered t = numbered(5);
    follower = watched_new(2, 0);
    first->io.fn = on_first;
    set_ms(&t, 1);
    advance(LOOP_MS);
    ASSERT_RAN(1, 2, 5);
    watched_free(first);
    watched_free(follower);
}

static void busy_ones_hold_no_timer_up(void **state) {
    (void)state;
    struct watched *w = watched_new(1, 60);
    struct numbered t = numbered(5);
    set_ms(&t, 1);
    advance(LOOP_MS);
    assert_int_equal(f.log[f.ran - 1], 5);
    assert_in_range(f.ran, 2, 10);
    watched_free(w);
}

/* -- work in slices -- */

struct worker {
    struct loop_task task;
    int number, slices; /* how many are left */
};

/* Takes a slice, and yields when there is more to do. */
static void on_slice(struct loop_task *t) {
    struct worker *w = container_of(t, struct worker, task);
    note(w->number);
    fake_now += LOOP_SLICE;
    if (--w->slices > 0)
        loop_yield(&f.loop, t);
}

/* Descriptors and timers come between two slices, and those that yield take turns. */
static void who_yields_goes_last(void **state) {
    (void)state;
    struct worker a = {.task.fn = on_slice, .number = 1, .slices = 3};
    struct worker b = {.task.fn = on_slice, .number = 2, .slices = 2};
    struct watched *w = watched_new(8, 3);
    struct numbered t = numbered(9);
    assert_int_equal(loop_timer_set(&f.loop, &t.timer, 1), 0);
    loop_yield(&f.loop, &a.task);
    loop_yield(&f.loop, &b.task);
    loop_yield(&f.loop, &b.task); /* it is queued */
    assert_int_equal(loop_once(&f.loop, UINT64_MAX), 0);
    assert_int_equal(loop_once(&f.loop, UINT64_MAX), 0);
    ASSERT_RAN(8, 1, 2, 8, 8, 9, 1, 2);
    assert_int_equal(loop_once(&f.loop, UINT64_MAX), 0);
    ASSERT_RAN(1);
    watched_free(w);
}

static void slices_of_a_round_are_bounded(void **state) {
    (void)state;
    enum { COUNT = 2 * (int)(LOOP_SLICES / LOOP_SLICE) };
    struct worker w[COUNT];
    for (int i = 0; i < COUNT; i++) {
        w[i] = (struct worker){.task.fn = on_slice, .number = i, .slices = 1};
        loop_yield(&f.loop, &w[i].task);
    }
    advance(0);
    assert_int_equal(f.ran, COUNT / 2);
    loop_task_del(&w[COUNT - 1].task);
    advance(0);
    assert_int_equal(f.ran, COUNT - 1);
    for (int i = 0; i < COUNT - 1; i++)
        assert_int_equal(f.log[i], i);
}

static uint64_t slice(void) {
    return loop_slice(&f.loop) - fake_now;
}

/* However many have much to do, each has its turn in time. */
static void many_have_short_slices(void **state) {
    (void)state;
    enum { COUNT = 64 };
    struct worker w[COUNT];
    assert_int_equal(slice(), LOOP_SLICE);
    for (int i = 0; i < COUNT; i++) {
        w[i] = (struct worker){.task.fn = on_slice, .number = i, .slices = 1};
        loop_yield(&f.loop, &w[i].task);
    }
    assert_int_equal(slice(), LOOP_SLICES / COUNT);
    loop_task_del(&w[0].task);
    loop_task_del(&w[0].task);
    assert_int_equal(slice(), LOOP_SLICES / (COUNT - 1));
    while (!list_empty(&f.loop.yielded))
        advance(0);
    assert_int_equal(slice(), LOOP_SLICE);
    f.loop.yielders = SIZE_MAX / 2;
    assert_int_equal(slice(), LOOP_SLICE_MIN);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(timers_fire_when_due),          TEST(a_timer_moves),
        TEST(a_timer_removes_another),       TEST(a_timer_sets_itself_again),
        TEST(an_endless_delay_never_ends),   TEST(a_due_timer_ends_the_wait),
        TEST(many_timers_keep_order),        TEST(readable_until_read),
        TEST(nothing_wanted_nothing_told),   TEST(removed_means_silent),
        TEST(removal_inside_a_batch),        TEST(removal_of_itself),
        TEST(a_plain_file_is_refused),       TEST(more_than_a_batch),
        TEST(tasks_run_once_in_order),       TEST(tasks_follow_events),
        TEST(a_task_queues_another),         TEST(a_task_removes_another),
        TEST(running_until_stopped),         TEST(every_descriptor_before_a_timer),
        TEST(a_signal_is_no_excuse),         TEST(what_follows_before_a_timer),
        TEST(busy_ones_hold_no_timer_up),    TEST(who_yields_goes_last),
        TEST(slices_of_a_round_are_bounded), TEST(many_have_short_slices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
