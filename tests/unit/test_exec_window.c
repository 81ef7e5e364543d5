#include "client/exec_window.h"

#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void windows_are_clamped(void **state) {
    (void)state;
    assert_int_equal(exec_window_command(-1), 10000);
    assert_int_equal(exec_window_command(0), 250);
    assert_int_equal(exec_window_command(251), 251);
    assert_int_equal(exec_window_command(30000), 30000);
    assert_int_equal(exec_window_command(INT64_MAX), 30000);
    assert_int_equal(exec_window_write(-1, true, -1), 250);
    assert_int_equal(exec_window_write(0, true, -1), 250);
    assert_int_equal(exec_window_write(30001, true, 300000), 30000);
    assert_int_equal(exec_window_write(-1, false, -1), 5000);
    assert_int_equal(exec_window_write(4999, false, -1), 5000);
    assert_int_equal(exec_window_write(5001, false, -1), 5001);
    assert_int_equal(exec_window_write(INT64_MAX, false, -1), 300000);
    assert_int_equal(exec_window_write(INT64_MAX, false, 60000), 60000);
    assert_int_equal(exec_window_write(7000, false, 0), 5000);
    assert_int_equal(exec_window_write(INT64_MAX, false, 600000), 600000);
}

static struct exec_window_slot slots[EXEC_WINDOW_PROCESSES];

static void reset(void) {
    for (size_t i = 0; i < ARRAY_LEN(slots); i++)
        slots[i] = (struct exec_window_slot){.used = 100 + i};
}

static int victim(void) {
    return exec_window_victim(slots, ARRAY_LEN(slots));
}

static void the_oldest_makes_room(void **state) {
    (void)state;
    reset();
    assert_int_equal(victim(), 0);
    slots[0].used = 1000;
    assert_int_equal(victim(), 1);
    slots[40].exited = true;
    assert_int_equal(victim(), 40);
    slots[30].exited = true;
    assert_int_equal(victim(), 30);
}

static void the_newest_stay(void **state) {
    (void)state;
    reset();
    for (size_t i = 0; i < ARRAY_LEN(slots) - EXEC_WINDOW_NEWEST; i++)
        slots[i].busy = true;
    assert_int_equal(victim(), -1);
    slots[63].exited = slots[56].exited = true;
    assert_int_equal(victim(), -1);
    slots[55].busy = false;
    assert_int_equal(victim(), 55);
    assert_int_equal(exec_window_victim(slots, 0), -1);
    assert_int_equal(exec_window_victim(slots + 56, EXEC_WINDOW_NEWEST), -1);
}

static void a_busy_one_stays(void **state) {
    (void)state;
    reset();
    slots[0].busy = true;
    assert_int_equal(victim(), 1);
    slots[20].exited = true;
    slots[20].busy = true;
    assert_int_equal(victim(), -1);
    slots[21].exited = true;
    assert_int_equal(victim(), 21);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_are_clamped),
        cmocka_unit_test(the_oldest_makes_room),
        cmocka_unit_test(the_newest_stay),
        cmocka_unit_test(a_busy_one_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
