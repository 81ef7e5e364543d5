#include "proc/stdinq.h"

#include "base/crypto.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

/* -- write ids -- */

static const uint8_t key[16] = "0123456789abcde";

static struct stdinq_id number_id(unsigned i) {
    char text[16];
    int n = snprintf(text, sizeof text, "w%u", i);
    return stdinq_digest(key, (struct str){text, (size_t)n});
}

static bool same(struct stdinq_id a, struct stdinq_id b) {
    return a.lo == b.lo && a.hi == b.hi;
}

static void digests(void **state) {
    (void)state;
    static const uint8_t other[16] = "another key 123";
    struct stdinq_id a = stdinq_digest(key, STR_LIT("id"));
    assert_true(same(a, stdinq_digest(key, STR_LIT("id"))));
    assert_false(same(a, stdinq_digest(other, STR_LIT("id"))));
    assert_false(same(a, stdinq_digest(key, STR_LIT("ie"))));
    assert_false(
        same(stdinq_digest(key, (struct str){"a\0b", 3}), stdinq_digest(key, STR_LIT("a"))));
    assert_true(same(stdinq_digest(key, (struct str){NULL, 0}), stdinq_digest(key, STR_LIT(""))));
}

static void remembers_exactly_so_many(void **state) {
    (void)state;
    struct stdinq q;
    stdinq_init(&q);
    assert_false(stdinq_seen(&q, number_id(0)));
    for (unsigned i = 0; i < STDINQ_IDS_MAX; i++)
        assert_int_equal(stdinq_remember(&q, number_id(i)), 0);
    for (unsigned i = 0; i < STDINQ_IDS_MAX; i++)
        assert_true(stdinq_seen(&q, number_id(i)));
    assert_false(stdinq_seen(&q, number_id(STDINQ_IDS_MAX)));
    for (unsigned i = 0; i < STDINQ_IDS_MAX + 100; i++) { /* the oldest goes, once around and on */
        assert_true(stdinq_seen(&q, number_id(i)));
        assert_int_equal(stdinq_remember(&q, number_id(STDINQ_IDS_MAX + i)), 0);
        assert_false(stdinq_seen(&q, number_id(i)));
        assert_true(stdinq_seen(&q, number_id(i + 1)));
        assert_true(stdinq_seen(&q, number_id(STDINQ_IDS_MAX + i)));
    }
    assert_int_equal(q.ids_len, STDINQ_IDS_MAX);
    stdinq_fini(&q);
}

static void dropping_bytes_keeps_ids(void **state) {
    (void)state;
    struct stdinq q;
    stdinq_init(&q);
    assert_int_equal(stdinq_remember(&q, number_id(1)), 0);
    stdinq_drop(&q);
    assert_true(stdinq_seen(&q, number_id(1)));
    stdinq_fini(&q);
    assert_false(stdinq_seen(&q, number_id(1)));
}

/* -- bytes -- */

struct fixture {
    struct stdinq q;
    int in, out; /* write end and read end of a small non-blocking pipe */
    size_t room;
};

static struct fixture f;

static int setup(void **state) {
    (void)state;
    int p[2];
    if (pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0)
        return -1;
    f = (struct fixture){.in = p[1], .out = p[0]};
    stdinq_init(&f.q);
    f.room = (size_t)fcntl(f.in, F_SETPIPE_SZ, 4096);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    stdinq_fini(&f.q);
    util_close_fd(&f.in);
    util_close_fd(&f.out);
    return 0;
}

static uint64_t put, got; /* bytes so far of one endless counter, both ways */

static char *next_bytes(size_t n) {
    char *p = malloc(n);
    assert_non_null(p);
    for (size_t i = 0; i < n; i++)
        p[i] = (char)((put + i) % 251);
    return p;
}

static int put_bytes(size_t n) {
    _cleanup_free_ char *p = next_bytes(n);
    int r = stdinq_write(&f.q, f.in, p, n);
    if (r == 0)
        put += n;
    return r;
}

/* Reads what is in the pipe and checks that nothing is missing or changed. */
static size_t take_bytes(void) {
    char b[8192];
    size_t total = 0;
    for (ssize_t n; (n = read(f.out, b, sizeof b)) > 0; total += (size_t)n) {
        for (ssize_t i = 0; i < n; i++, got++) {
            if ((unsigned char)b[i] != got % 251)
                fail_msg("byte %llu is wrong", (unsigned long long)got);
        }
    }
    return total;
}

static void written_at_once_when_there_is_room(void **state) {
    (void)state;
    put = got = 0;
    assert_int_equal(put_bytes(100), 0);
    assert_int_equal(f.q.count, 0);
    assert_int_equal(f.q.bytes, 0);
    assert_int_equal(take_bytes(), 100);
}

static void partial_writes_keep_order(void **state) {
    (void)state;
    put = got = 0;
    size_t sizes[] = {1, f.room - 10, 100, 3 * f.room, 1, 2 * f.room + 7, 5};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        assert_int_equal(put_bytes(sizes[i]), 0);
    assert_true(f.q.count > 0);
    assert_in_range(f.q.bytes, put - f.room, put - 1); /* a pipe takes small writes whole */
    for (int rounds = 0; got < put; rounds++) {
        assert_in_range(rounds, 0, 100);
        take_bytes();
        assert_int_equal(stdinq_flush(&f.q, f.in), 0);
    }
    assert_int_equal(f.q.count, 0);
    assert_int_equal(f.q.bytes, 0);
}

/* A later chunk never overtakes one that waits, even when there is room again. */
static void no_overtaking(void **state) {
    (void)state;
    put = got = 0;
    assert_int_equal(put_bytes(f.room + 1), 0);
    assert_int_equal(f.q.count, 1);
    take_bytes();
    assert_int_equal(put_bytes(1), 0);
    assert_int_equal(f.q.count, 2);
    assert_int_equal(stdinq_flush(&f.q, f.in), 0);
    assert_int_equal(take_bytes(), 2);
    assert_int_equal(f.q.count, 0);
}

static void flush_of_a_full_pipe_waits(void **state) {
    (void)state;
    put = got = 0;
    assert_int_equal(put_bytes(f.room + 5), 0);
    assert_int_equal(stdinq_flush(&f.q, f.in), 0);
    assert_int_equal(f.q.bytes, 5);
}

static void full_by_chunks(void **state) {
    (void)state;
    put = got = 0;
    assert_int_equal(put_bytes(f.room), 0);
    for (int i = 0; i < STDINQ_CHUNKS_MAX; i++) {
        assert_false(stdinq_full(&f.q));
        assert_int_equal(put_bytes(1), 0);
    }
    assert_true(stdinq_full(&f.q));
    take_bytes();
    assert_int_equal(stdinq_flush(&f.q, f.in), 0);
    assert_false(stdinq_full(&f.q));
    take_bytes();
    assert_int_equal(got, put);
}

static void full_by_bytes(void **state) {
    (void)state;
    put = got = 0;
    assert_int_equal(put_bytes(f.room), 0);
    assert_int_equal(put_bytes(STDINQ_BYTES_MAX - 1), 0);
    assert_false(stdinq_full(&f.q));
    assert_int_equal(put_bytes(2), 0);
    assert_true(stdinq_full(&f.q));
    stdinq_drop(&f.q);
    assert_false(stdinq_full(&f.q));
    assert_int_equal(f.q.bytes, 0);
}

static void nobody_reads(void **state) {
    (void)state;
    put = got = 0;
    assert_int_equal(put_bytes(f.room + 10), 0);
    util_close_fd(&f.out);
    assert_int_equal(stdinq_flush(&f.q, f.in), -EPIPE);
    assert_int_equal(f.q.count, 0);
    assert_int_equal(f.q.bytes, 0);
    assert_int_equal(put_bytes(1), -EPIPE);
    assert_int_equal(f.q.count, 0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digests),
        cmocka_unit_test(remembers_exactly_so_many),
        cmocka_unit_test(dropping_bytes_keeps_ids),
        TEST(written_at_once_when_there_is_room),
        TEST(partial_writes_keep_order),
        TEST(no_overtaking),
        TEST(flush_of_a_full_pipe_waits),
        TEST(full_by_chunks),
        TEST(full_by_bytes),
        TEST(nobody_reads),
    };
    signal(SIGPIPE, SIG_IGN);
    crypto_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
