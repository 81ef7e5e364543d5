#include "proc/outlog.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

/* Byte i of chunk `seq`: every chunk is recognisable wherever it lies in the ring. */
static char pattern(uint64_t seq, size_t i) {
    return (char)(seq * 31 + i * 7 + 1);
}

static void append(struct outlog *l, uint64_t seq, enum outlog_stream stream, size_t n) {
    static char data[OUTLOG_CHUNK_MAX];
    assert_in_range(n, 1, sizeof data);
    for (size_t i = 0; i < n; i++)
        data[i] = pattern(seq, i);
    assert_int_equal(outlog_append(l, seq, stream, data, n), 0);
}

static void check_chunk(const struct outlog *l, const struct outlog_chunk *c) {
    struct str s[2];
    outlog_bytes(l, c, s);
    assert_int_equal(s[0].n + s[1].n, c->len);
    for (size_t i = 0; i < c->len; i++) {
        char got = i < s[0].n ? s[0].p[i] : s[1].p[i - s[0].n];
        if (got != pattern(c->seq, i))
            fail_msg("chunk %llu is damaged at byte %zu", (unsigned long long)c->seq, i);
    }
}

/* The log holds exactly the chunks first..last, whole. */
static void check_range(const struct outlog *l, uint64_t first, uint64_t last) {
    assert_int_equal(l->count, last - first + 1);
    size_t bytes = 0;
    for (size_t i = 0; i < l->count; i++) {
        const struct outlog_chunk *c = outlog_at(l, i);
        assert_int_equal(c->seq, first + i);
        check_chunk(l, c);
        bytes += c->len;
    }
    assert_int_equal(bytes, l->tail - l->head);
    assert_true(bytes <= l->cap);
}

static void starts_without_memory(void **state) {
    (void)state;
    struct outlog l;
    outlog_init(&l, 1 << 20);
    assert_int_equal(outlog_memory(&l), 0);
    assert_int_equal(outlog_find(&l, 0), 0);
    outlog_shrink(&l);
    assert_int_equal(l.count, 0);
    outlog_fini(&l);
}

static void a_cap_is_at_least_one_chunk(void **state) {
    (void)state;
    struct outlog l;
    outlog_init(&l, 0);
    append(&l, 1, OUTLOG_PTY, OUTLOG_CHUNK_MAX);
    check_range(&l, 1, 1);
    append(&l, 2, OUTLOG_PTY, 1);
    check_range(&l, 2, 2);
    outlog_fini(&l);
}

static void keeps_streams_and_numbers(void **state) {
    (void)state;
    struct outlog l;
    outlog_init(&l, 1 << 20);
    append(&l, 1, OUTLOG_STDOUT, 3);
    append(&l, 2, OUTLOG_STDERR, 5);
    append(&l, 4, OUTLOG_PTY, 1); /* 3 was not output */
    assert_int_equal(l.count, 3);
    assert_int_equal(outlog_at(&l, 0)->stream, OUTLOG_STDOUT);
    assert_int_equal(outlog_at(&l, 1)->stream, OUTLOG_STDERR);
    assert_int_equal(outlog_at(&l, 2)->stream, OUTLOG_PTY);
    assert_int_equal(outlog_at(&l, 2)->seq, 4);
    check_chunk(&l, outlog_at(&l, 2));
    outlog_fini(&l);
}

/* A little output takes a little memory, whatever the cap is. */
static void memory_follows_use(void **state) {
    (void)state;
    struct outlog l;
    outlog_init(&l, 1 << 20);
    append(&l, 1, OUTLOG_STDOUT, 10);
    assert_in_range(outlog_memory(&l), 10, 8192);
    for (uint64_t seq = 2; seq < 100; seq++)
        append(&l, seq, OUTLOG_STDOUT, OUTLOG_CHUNK_MAX);
    assert_true(outlog_memory(&l) < (1u << 20) + 65536);
    outlog_fini(&l);
    assert_int_equal(outlog_memory(&l), 0);
}

static void evicts_whole_chunks_oldest_first(void **state) {
    (void)state;
    struct outlog l;
    outlog_init(&l, 128 * 8192);
    for (uint64_t seq = 1; seq <= 128; seq++)
        append(&l, seq, OUTLOG_STDOUT, 8192);
    check_range(&l, 1, 128); /* exactly the cap is kept */
    append(&l, 129, OUTLOG_STDOUT, 1);
    check_range(&l, 2, 129);
    append(&l, 130, OUTLOG_STDOUT, 8191);
    check_range(&l, 2, 130);
    append(&l, 131, OUTLOG_STDOUT, 8193);
    check_range(&l, 4, 131);
    outlog_fini(&l);
}

/* Sizes that divide neither the ring nor each other, around it many times. */
static void wraps(void **state) {
    (void)state;
    struct outlog l;
    outlog_init(&l, OUTLOG_CAP_MIN);
    size_t wrapped = 0;
    for (uint64_t seq = 1; seq <= 2000; seq++) {
        append(&l, seq, OUTLOG_STDOUT, 1 + (size_t)(seq * 7919 % 5003));
        const struct outlog_chunk *newest = outlog_at(&l, l.count - 1);
        struct str s[2];
        outlog_bytes(&l, newest, s);
        wrapped += s[1].n > 0;
        assert_int_equal(newest->seq, seq);
        check_chunk(&l, newest);
        check_chunk(&l, outlog_at(&l, 0));
    }
    assert_true(wrapped > 10);
    check_range(&l, 2000 - l.count + 1, 2000);
    outlog_fini(&l);
}

/* Growing moves what is retained, also when the ring is in the middle of a turn. */
static void grows_while_wrapped(void **state) {
    (void)state;
    struct outlog l;
    outlog_init(&l, 1 << 20);
    uint64_t seq = 0;
    for (int i = 0; i < 40; i++)
        append(&l, ++seq, OUTLOG_STDOUT, 50);
    l.head = outlog_at(&l, 30)->pos; /* as if the first thirty had been evicted */
    l.first += 30;
    l.count -= 30;
    for (int i = 0; i < 30; i++)
        append(&l, ++seq, OUTLOG_STDOUT, 50);
    for (size_t n = 100; n < 60000; n *= 2)
        append(&l, ++seq, OUTLOG_STDERR, n);
    check_range(&l, 31, seq);
    outlog_fini(&l);
}

static void shrinks_to_what_is_retained(void **state) {
    (void)state;
    struct outlog l;
    outlog_init(&l, OUTLOG_CAP_MIN);
    uint64_t seq = 0;
    while (seq < 500) {
        seq++;
        append(&l, seq, OUTLOG_STDOUT, 1 + (size_t)(seq % 700));
    }
    uint64_t first = outlog_at(&l, 0)->seq;
    outlog_shrink(&l);
    size_t used = (size_t)(l.tail - l.head);
    assert_int_equal(outlog_memory(&l), used + l.count * sizeof(struct outlog_chunk));
    check_range(&l, first, seq);
    append(&l, ++seq, OUTLOG_STDOUT, 30000); /* it can still grow */
    append(&l, ++seq, OUTLOG_STDOUT, 30000);
    check_range(&l, outlog_at(&l, 0)->seq, seq);
    outlog_fini(&l);
    outlog_shrink(&l);
    append(&l, ++seq, OUTLOG_STDOUT, 10);
    check_range(&l, seq, seq);
    outlog_fini(&l);
}

static void keeps_at_most_so_many_chunks(void **state) {
    (void)state;
    struct outlog l;
    outlog_init(&l, 1 << 20);
    uint64_t last = OUTLOG_CHUNKS_MAX + 12345;
    for (uint64_t seq = 1; seq <= last; seq++)
        append(&l, seq, OUTLOG_STDOUT, 1);
    assert_int_equal(l.count, OUTLOG_CHUNKS_MAX);
    check_range(&l, last - OUTLOG_CHUNKS_MAX + 1, last);
    assert_int_equal(outlog_find(&l, last - 1), OUTLOG_CHUNKS_MAX - 1);
    outlog_shrink(&l);
    check_range(&l, last - OUTLOG_CHUNKS_MAX + 1, last);
    outlog_fini(&l);
}

static void finds_what_follows(void **state) {
    (void)state;
    struct outlog l;
    outlog_init(&l, 1 << 20);
    for (uint64_t seq = 10; seq <= 30; seq += 2)
        append(&l, seq, OUTLOG_STDOUT, 1);
    assert_int_equal(outlog_find(&l, 0), 0);
    assert_int_equal(outlog_find(&l, 9), 0);
    for (uint64_t seq = 10; seq < 30; seq++)
        assert_int_equal(outlog_find(&l, seq), (seq - 10) / 2 + 1);
    assert_int_equal(outlog_find(&l, 30), l.count);
    assert_int_equal(outlog_find(&l, UINT64_MAX), l.count);
    outlog_fini(&l);
}

/* Appends chunks while none above `after` can be lost; the last number given. */
static uint64_t fill_after(struct outlog *l, uint64_t seq, uint64_t after, size_t n) {
    while (!outlog_is_full_after(l, after))
        append(l, ++seq, OUTLOG_STDOUT, n);
    return seq;
}

/* Chunks of any size fill it without the loss of one that follows; what lies before may go. */
static void is_full_before_it_loses(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 7, 4096, 30000, OUTLOG_CHUNK_MAX - 1, OUTLOG_CHUNK_MAX};
    static const size_t caps[] = {0, OUTLOG_CAP_MIN, OUTLOG_CAP_MIN + 1, 70000, 1 << 20};
    for (size_t i = 0; i < ARRAY_LEN(sizes) * ARRAY_LEN(caps); i++) {
        struct outlog l;
        outlog_init(&l, caps[i / ARRAY_LEN(sizes)]);
        assert_false(outlog_is_full_after(&l, 0));
        uint64_t seq = fill_after(&l, 0, 0, sizes[i % ARRAY_LEN(sizes)]);
        check_range(&l, 1, seq); /* nothing is lost */
        for (uint64_t after = 1; after < seq && seq < 1000; after += 3) {
            seq = fill_after(&l, seq, after, OUTLOG_CHUNK_MAX);
            assert_true(outlog_at(&l, 0)->seq <= after + 1);
        }
        assert_false(outlog_is_full_after(&l, seq));
        assert_false(outlog_is_full_after(&l, UINT64_MAX));
        outlog_fini(&l);
        assert_false(outlog_is_full_after(&l, 0));
    }
}

static void is_full_at_a_chunk_less_than_the_cap(void **state) {
    (void)state;
    struct outlog l;
    outlog_init(&l, 3 * OUTLOG_CHUNK_MAX);
    append(&l, 1, OUTLOG_STDOUT, OUTLOG_CHUNK_MAX);
    append(&l, 2, OUTLOG_STDERR, OUTLOG_CHUNK_MAX - 1);
    assert_false(outlog_is_full_after(&l, 0));
    append(&l, 4, OUTLOG_STDOUT, 1); /* number 3 was no output */
    assert_true(outlog_is_full_after(&l, 0));
    assert_false(outlog_is_full_after(&l, 1));
    append(&l, 5, OUTLOG_STDOUT, OUTLOG_CHUNK_MAX);
    assert_true(outlog_is_full_after(&l, 1));
    assert_false(outlog_is_full_after(&l, 2));
    assert_false(outlog_is_full_after(&l, 3));
    outlog_fini(&l);
}

/* Chunks that are lost already do not count. */
static void is_full_of_what_is_left(void **state) {
    (void)state;
    struct outlog l;
    outlog_init(&l, 3 * OUTLOG_CHUNK_MAX);
    for (uint64_t seq = 1; seq <= 10; seq++)
        append(&l, seq, OUTLOG_STDOUT, OUTLOG_CHUNK_MAX);
    assert_true(outlog_is_full_after(&l, 0));
    assert_true(outlog_is_full_after(&l, 8));
    assert_false(outlog_is_full_after(&l, 9));
    outlog_fini(&l);
}

static void is_full_of_chunks(void **state) {
    (void)state;
    struct outlog l;
    outlog_init(&l, 1 << 20);
    uint64_t seq = fill_after(&l, 0, 0, 1);
    assert_int_equal(seq, OUTLOG_CHUNKS_MAX);
    assert_int_equal(fill_after(&l, seq, 10, 1), seq + 10);
    assert_int_equal(outlog_at(&l, 0)->seq, 11);
    outlog_fini(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(starts_without_memory),
        cmocka_unit_test(a_cap_is_at_least_one_chunk),
        cmocka_unit_test(keeps_streams_and_numbers),
        cmocka_unit_test(memory_follows_use),
        cmocka_unit_test(evicts_whole_chunks_oldest_first),
        cmocka_unit_test(wraps),
        cmocka_unit_test(grows_while_wrapped),
        cmocka_unit_test(shrinks_to_what_is_retained),
        cmocka_unit_test(keeps_at_most_so_many_chunks),
        cmocka_unit_test(finds_what_follows),
        cmocka_unit_test(is_full_before_it_loses),
        cmocka_unit_test(is_full_at_a_chunk_less_than_the_cap),
        cmocka_unit_test(is_full_of_what_is_left),
        cmocka_unit_test(is_full_of_chunks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
