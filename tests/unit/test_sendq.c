#include "net/sendq.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <cmocka.h>

struct fixture {
    struct sendq_pool pool;
    struct sendq q;
    int ours, theirs; /* a connected pair; ours does not block */
    uint64_t put, got;
};

static struct fixture f;

static int setup(void **state) {
    (void)state;
    f = (struct fixture){0};
    int p[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, p) < 0)
        return -1;
    f.ours = p[0];
    f.theirs = p[1];
    sendq_init(&f.q, &f.pool);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    sendq_fini(&f.q);
    sendq_pool_fini(&f.pool);
    util_close_fd(&f.ours);
    util_close_fd(&f.theirs);
    return 0;
}

/* Queues n bytes of an endless counter as one message. */
static void put(size_t n) {
    char *p = sendq_reserve(&f.q, n);
    assert_non_null(p);
    for (size_t i = 0; i < n; i++)
        p[i] = (char)((f.put + i) % 251);
    sendq_commit(&f.q, n);
    f.put += n;
}

/* Reads what has arrived and checks that nothing is missing or changed. */
static size_t take(void) {
    char b[65536];
    size_t total = 0;
    for (ssize_t n; (n = read(f.theirs, b, sizeof b)) > 0; total += (size_t)n) {
        for (ssize_t i = 0; i < n; i++, f.got++) {
            if ((unsigned char)b[i] != f.got % 251)
                fail_msg("byte %llu is wrong", (unsigned long long)f.got);
        }
    }
    return total;
}

static void starts_empty(void **state) {
    (void)state;
    assert_int_equal(f.q.bytes, 0);
    assert_int_equal(sendq_flush(&f.q, f.ours), 0);
    assert_int_equal(take(), 0);
}

static void what_is_reserved_does_not_count(void **state) {
    (void)state;
    assert_non_null(sendq_reserve(&f.q, 100));
    assert_int_equal(f.q.bytes, 0);
    assert_int_equal(sendq_flush(&f.q, f.ours), 0);
    put(50); /* the same space */
    assert_int_equal(f.q.bytes, 50);
    assert_int_equal(sendq_flush(&f.q, f.ours), 0);
    assert_int_equal(take(), 50);
    assert_null(f.q.head);
}

static void messages_of_all_sizes_in_order(void **state) {
    (void)state;
    static const size_t sizes[] = {1,
                                   SENDQ_SMALL - 1,
                                   1,
                                   SENDQ_SMALL,
                                   SENDQ_SMALL + 1,
                                   10,
                                   SENDQ_LARGE,
                                   SENDQ_LARGE + 1,
                                   3,
                                   1 << 20,
                                   2,
                                   5000,
                                   SENDQ_LARGE - 1,
                                   0,
                                   7};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        put(sizes[i]);
    assert_int_equal(f.q.bytes, f.put);
    for (int rounds = 0; f.got < f.put; rounds++) { /* the peer takes a little at a time */
        assert_in_range(rounds, 0, 1000);
        assert_int_equal(sendq_flush(&f.q, f.ours), 0);
        assert_int_equal(f.q.bytes > 0, f.q.head != NULL);
        take();
    }
    assert_int_equal(f.q.bytes, 0);
}

/* More segments than one writev() takes. */
static void many_segments(void **state) {
    (void)state;
    for (int i = 0; i < 200; i++)
        put(SENDQ_SMALL);
    for (int rounds = 0; f.got < f.put; rounds++) {
        assert_in_range(rounds, 0, 1000);
        assert_int_equal(sendq_flush(&f.q, f.ours), 0);
        take();
    }
}

static void adding_while_sending(void **state) {
    (void)state;
    for (size_t i = 0; i < 300; i++) {
        put(1 + i * 97 % 9000);
        if (i % 3 == 0)
            assert_int_equal(sendq_flush(&f.q, f.ours), 0);
        if (i % 7 == 0)
            take();
    }
    for (int rounds = 0; f.got < f.put; rounds++) {
        assert_in_range(rounds, 0, 1000);
        assert_int_equal(sendq_flush(&f.q, f.ours), 0);
        take();
    }
}

static void large_segments_are_reused(void **state) {
    (void)state;
    for (int i = 0; i < SENDQ_POOLED * 3; i++)
        put(SENDQ_LARGE);
    while (f.got < f.put) {
        assert_int_equal(sendq_flush(&f.q, f.ours), 0);
        take();
    }
    assert_int_equal(f.pool.count, SENDQ_POOLED); /* no more than that is kept */
    put(SENDQ_SMALL);
    assert_int_equal(f.pool.count, SENDQ_POOLED);
    put(SENDQ_SMALL + 1);
    assert_int_equal(f.pool.count, SENDQ_POOLED - 1);
    sendq_fini(&f.q);
    assert_int_equal(f.q.bytes, 0);
    assert_int_equal(f.pool.count, SENDQ_POOLED);
}

/* A segment for n bytes of which `used` are filled with what comes next. */
static struct sendq_seg *filled(size_t n, size_t used) {
    struct sendq_seg *s = sendq_seg_new(&f.pool, n);
    assert_non_null(s);
    for (; s->len < used; s->len++)
        s->data[s->len] = (char)(f.put++ % 251);
    return s;
}

static void sent_all(void) {
    assert_int_equal(f.q.bytes, f.put - f.got);
    for (int rounds = 0; f.got < f.put; rounds++) {
        assert_in_range(rounds, 0, 1000);
        assert_int_equal(sendq_flush(&f.q, f.ours), 0);
        take();
    }
    assert_int_equal(f.q.bytes, 0);
}

static void chains_in_order(void **state) {
    (void)state;
    static const size_t sizes[][2] = {{SENDQ_BLOCK, 10},     {SENDQ_BLOCK, SENDQ_BLOCK},
                                      {SENDQ_BLOCK, 0},      {SENDQ_LARGE, SENDQ_LARGE / 4},
                                      {SENDQ_SMALL, 2000},   {SENDQ_LARGE, SENDQ_LARGE / 4 + 1},
                                      {SENDQ_BLOCK, 300000}, {SENDQ_BLOCK, 1}};
    for (size_t start = 0; start < ARRAY_LEN(sizes); start++) {
        struct sendq_seg *chain = NULL, **end = &chain;
        put(start % 2 * 100);
        for (size_t i = start; i < ARRAY_LEN(sizes); i++) {
            *end = filled(sizes[i][0], sizes[i][1]);
            end = &(*end)->next;
        }
        sendq_append(&f.q, chain);
        put(7);
    }
    sent_all();
}

/* Many short answers, each made in a segment for a long one. */
static void nearly_empty_segments_are_not_kept(void **state) {
    (void)state;
    for (int i = 0; i < 1000; i++)
        sendq_append(&f.q, filled(SENDQ_BLOCK, 20));
    size_t memory = 0;
    for (const struct sendq_seg *s = f.q.head; s != NULL; s = s->next)
        memory += s->cap;
    assert_in_range(memory, 20 * 1000, 4 * 20 * 1000);
    assert_in_range(f.pool.block_count, 1, SENDQ_BLOCKS_POOLED);
    sent_all();
}

static void full_segments_are_not_copied(void **state) {
    (void)state;
    struct sendq_seg *s = filled(SENDQ_BLOCK, SENDQ_BLOCK / 2);
    sendq_append(&f.q, s);
    assert_ptr_equal(f.q.head, s);
    sent_all();
}

static void the_peer_is_gone(void **state) {
    (void)state;
    put(10);
    util_close_fd(&f.theirs);
    assert_int_equal(sendq_flush(&f.q, f.ours), -EPIPE);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(starts_empty),
        TEST(what_is_reserved_does_not_count),
        TEST(messages_of_all_sizes_in_order),
        TEST(many_segments),
        TEST(adding_while_sending),
        TEST(large_segments_are_reused),
        TEST(chains_in_order),
        TEST(nearly_empty_segments_are_not_kept),
        TEST(full_segments_are_not_copied),
        TEST(the_peer_is_gone),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
