#include "ops/refusals.h"

#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* How many of n refusals of one address at one time get a line. */
static int admitted(struct refusals *r, const char *peer, uint64_t now, int n) {
    int lines = 0;
    for (int i = 0; i < n; i++)
        lines += refusals_admit(r, peer, now, true);
    return lines;
}

static uint64_t taken(struct refusals *r, const char *want) {
    const char *key;
    uint64_t count, sum = 0;
    while (refusals_take(r, &key, &count)) {
        if (strcmp(key, want) == 0)
            sum += count;
    }
    return sum;
}

static void one_address(void **state) {
    (void)state;
    struct refusals r = {0};
    assert_int_equal(admitted(&r, "10.0.0.1:1", 5000, 1000), REFUSALS_PEER_BURST);
    assert_int_equal(admitted(&r, "10.0.0.1:2", 5999, 10), 0); /* the port does not matter */
    assert_int_equal(admitted(&r, "10.0.0.1:3", 6000, 10), 1); /* one a second */
    assert_int_equal(admitted(&r, "[::1]:80", 6000, 1), 1);
    assert_true(r.waiting);
    assert_int_equal(r.since, 5000);
    assert_int_equal(taken(&r, "10.0.0.1"), 990 + 10 + 9);
    assert_false(r.waiting);
    assert_int_equal(taken(&r, "10.0.0.1"), 0);
    assert_int_equal(admitted(&r, "10.0.0.1:1", 1u << 30, 1000), REFUSALS_PEER_BURST);
}

static void many_addresses(void **state) {
    (void)state;
    struct refusals r = {0};
    char peer[32];
    int lines = 0;
    for (int i = 0; i < 10000; i++) {
        snprintf(peer, sizeof peer, "10.0.%d.%d:1", i / 200, i % 200);
        lines += refusals_admit(&r, peer, 100, true);
    }
    assert_int_equal(lines, REFUSALS_TOTAL_BURST);
    const char *key;
    uint64_t count, sum = 0;
    size_t sums = 0;
    while (refusals_take(&r, &key, &count)) {
        sum += count;
        sums++;
    }
    assert_int_equal(sum, 10000 - REFUSALS_TOTAL_BURST); /* none is lost */
    assert_in_range(sums, 2, REFUSALS_PEERS + 1);
    lines = 0;
    for (int i = 0; i < 1000; i++) {
        snprintf(peer, sizeof peer, "10.1.0.%d:1", i);
        lines += refusals_admit(&r, peer, 1100, true);
    }
    assert_int_equal(lines, REFUSALS_TOTAL_RATE);
}

/* Without room in the log all are counted. */
static void no_room(void **state) {
    (void)state;
    struct refusals r = {0};
    for (int i = 0; i < 5; i++)
        assert_false(refusals_admit(&r, "unix: user 7, process 9", 1, false));
    assert_int_equal(taken(&r, "unix: user 7"), 5);
}

static void odd_names(void **state) {
    (void)state;
    struct refusals r = {0};
    char longest[200];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    static const char *const names[] = {"", ":", "unix", ",", "a:b:c"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_true(refusals_admit(&r, names[i], 1, true));
    assert_true(refusals_admit(&r, longest, 1, true));
    assert_int_equal(strlen(r.peers[3].key), REFUSALS_KEY_MAX - 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_address),
        cmocka_unit_test(many_addresses),
        cmocka_unit_test(no_room),
        cmocka_unit_test(odd_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
