/* Which clock timers go by: both are injected below the loop's own call, as a kernel would. */
#include "loop/loop.h"
#include "loop/pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/time.h>
#include <time.h>
#include <cmocka.h>

#define DAY (86400 * LOOP_SEC)

static uint64_t monotonic, wall; /* nanoseconds */
static int wall_asked;

/* Take the place of the C library's. */

int clock_gettime(clockid_t id, struct timespec *ts) {
    bool steady = id == CLOCK_MONOTONIC;
    uint64_t now = steady ? monotonic : wall;
    wall_asked += !steady;
    *ts = (struct timespec){(time_t)(now / LOOP_SEC), (long)(now % LOOP_SEC)};
    return 0;
}

time_t time(time_t *t) {
    wall_asked++;
    time_t now = (time_t)(wall / LOOP_SEC);
    if (t != NULL)
        *t = now;
    return now;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone) {
    (void)zone;
    wall_asked++;
    *tv = (struct timeval){(time_t)(wall / LOOP_SEC), 0};
    return 0;
}

static struct loop loop;
static int fired;

static void on_timer(struct loop_timer *t) {
    (void)t;
    fired++;
}

static int setup(void **state) {
    (void)state;
    monotonic = 1000 * LOOP_SEC;
    wall = 20000 * DAY;
    wall_asked = fired = 0;
    return loop_init(&loop, NULL);
}

static int teardown(void **state) {
    (void)state;
    loop_fini(&loop);
    return 0;
}

static void turn(void) {
    assert_int_equal(loop_once(&loop, 0), 0);
}

static void set_ten_seconds(struct loop_timer *t) {
    *t = (struct loop_timer){.fn = on_timer};
    assert_int_equal(loop_timer_set(&loop, t, 10 * LOOP_SEC), 0);
}

static void a_wall_clock_set_forward_fires_nothing(void **state) {
    (void)state;
    struct loop_timer t;
    set_ten_seconds(&t);
    wall += 365 * DAY;
    turn();
    monotonic += 10 * LOOP_SEC - 1;
    turn();
    assert_int_equal(fired, 0);
    monotonic += 1;
    turn();
    assert_int_equal(fired, 1);
}

static void a_wall_clock_set_back_delays_nothing(void **state) {
    (void)state;
    struct loop_timer t;
    set_ten_seconds(&t);
    wall = 0;
    monotonic += 10 * LOOP_SEC;
    turn();
    assert_int_equal(fired, 1);
}

static void a_timer_set_after_the_jump_is_as_long(void **state) {
    (void)state;
    wall += 365 * DAY;
    turn();
    struct loop_timer t;
    set_ten_seconds(&t);
    wall -= 700 * DAY;
    monotonic += 9 * LOOP_SEC;
    turn();
    assert_int_equal(fired, 0);
    monotonic += 1 * LOOP_SEC;
    turn();
    assert_int_equal(fired, 1);
}

static void the_time_of_day_is_never_asked_for(void **state) {
    (void)state;
    struct loop_timer t;
    struct pool pool;
    set_ten_seconds(&t);
    assert_int_equal(pool_init(&pool, &loop), 0);
    turn();
    assert_true(pool_fini(&pool));
    loop_timer_del(&loop, &t);
    assert_int_equal(wall_asked, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_wall_clock_set_forward_fires_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(a_wall_clock_set_back_delays_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(a_timer_set_after_the_jump_is_as_long, setup, teardown),
        cmocka_unit_test_setup_teardown(the_time_of_day_is_never_asked_for, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
