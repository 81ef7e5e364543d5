#include "proc/capture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define STREAMS 2
#define STREAM_MAX (1 << 21)
#define HALF 5000

/* A process's output as proc.c keeps it, and beside it every byte there ever was. */
struct fixture {
    struct outlog log;
    struct capture capture[STREAMS];
    uint64_t seq;
    char *all[STREAMS];
    size_t len[STREAMS];
    size_t dropped[STREAMS]; /* of all, what was there when everything was dropped */
    uint64_t random;
    struct buf shown;
};

static struct fixture f;

static uint64_t draw(uint64_t below) {
    f.random = f.random * 6364136223846793005u + 1442695040888963407u;
    return (f.random >> 33) % below;
}

static void on_evict(struct outlog *l, const struct outlog_chunk *c) {
    struct str gone[2];
    outlog_bytes(l, c, gone);
    assert_int_equal(capture_evicted(&f.capture[c->stream], gone, l->stream_bytes[c->stream]), 0);
}

static void begin(size_t half, size_t cap) {
    outlog_init(&f.log, cap);
    f.log.evict = on_evict;
    f.seq = 0;
    for (int i = 0; i < STREAMS; i++) {
        capture_init(&f.capture[i], half);
        f.len[i] = f.dropped[i] = 0;
    }
}

static void end(void) {
    outlog_fini(&f.log);
    for (int i = 0; i < STREAMS; i++)
        capture_fini(&f.capture[i]);
}

static int setup(void **state) {
    (void)state;
    f = (struct fixture){.random = 42, .shown = BUF_INIT(1 << 20)};
    for (int i = 0; i < STREAMS; i++)
        assert_non_null(f.all[i] = malloc(STREAM_MAX));
    return 0;
}

static int teardown(void **state) {
    (void)state;
    end();
    buf_fini(&f.shown);
    for (int i = 0; i < STREAMS; i++)
        free(f.all[i]);
    return 0;
}

static void add(enum outlog_stream stream, size_t n) {
    char *p = f.all[stream] + f.len[stream];
    assert_in_range(n, 1, MIN((size_t)OUTLOG_CHUNK_MAX, STREAM_MAX - f.len[stream]));
    for (size_t i = 0; i < n; i++)
        p[i] = (char)draw(256);
    f.len[stream] += n;
    assert_int_equal(outlog_append(&f.log, ++f.seq, stream, p, n), 0);
    assert_int_equal(capture_add(&f.capture[stream], p, n), 0);
}

static void drop(void) {
    outlog_fini(&f.log);
    for (int i = 0; i < STREAMS; i++) {
        capture_fini(&f.capture[i]);
        f.dropped[i] = f.len[i];
    }
}

/* What must be shown of `total` bytes, of which the first `lost` are kept nowhere. */
static struct capture_view expected(size_t total, size_t lost, size_t half, size_t max) {
    struct capture_view v = {.total = total};
    if (lost == 0)
        v.head = total <= half && total <= max ? total : MIN(MIN(total, half), max / 2);
    if (v.head < total)
        v.tail = MIN(MIN(total - v.head, total - lost), MIN(half, max - v.head));
    v.omitted = total - v.head - v.tail;
    return v;
}

static void check(enum outlog_stream stream, size_t max) {
    const struct capture *c = &f.capture[stream];
    size_t total = f.len[stream];
    struct capture_view want = expected(total, f.dropped[stream], c->half, max);
    struct capture_view got = capture_measure(c, &f.log, stream, max);
    assert_int_equal(got.head, want.head);
    assert_int_equal(got.tail, want.tail);
    assert_int_equal(got.omitted, want.omitted);
    assert_int_equal(got.total, total);
    f.shown.len = 0;
    assert_int_equal(capture_put(c, &got, &f.log, stream, &f.shown), 0);
    assert_int_equal(f.shown.len, want.head + want.tail);
    if (want.head > 0)
        assert_memory_equal(f.shown.p, f.all[stream], want.head);
    if (want.tail > 0)
        assert_memory_equal(f.shown.p + want.head, f.all[stream] + total - want.tail, want.tail);
    assert_true(capture_memory(c) <= 2 * c->half);
}

static void check_all(void) {
    for (enum outlog_stream s = OUTLOG_STDOUT; s <= OUTLOG_STDERR; s++) {
        size_t half = f.capture[s].half;
        const size_t max[] = {0,
                              1,
                              2,
                              3,
                              half - 1,
                              half,
                              half + 1,
                              2 * half - 1,
                              2 * half,
                              f.len[s],
                              f.len[s] + 1,
                              SIZE_MAX - 1,
                              SIZE_MAX,
                              draw(2 * half + 2) | 1};
        for (size_t i = 0; i < ARRAY_LEN(max); i++)
            check(s, max[i]);
    }
}

static void empty(void **state) {
    (void)state;
    begin(HALF, OUTLOG_CAP_MIN);
    check_all();
    assert_int_equal(capture_memory(&f.capture[0]), 0);
    capture_shrink(&f.capture[0]);
    drop();
    check_all();
}

static void around_the_halves(void **state) {
    (void)state;
    begin(HALF, OUTLOG_CAP_MIN);
    add(OUTLOG_STDOUT, HALF - 1);
    for (int i = 0; i < 3; i++) {
        check_all();
        add(OUTLOG_STDOUT, 1);
    }
    add(OUTLOG_STDOUT, HALF - 4);
    for (int i = 0; i < 4; i++) {
        check_all();
        add(OUTLOG_STDOUT, 1);
    }
    assert_null(f.capture[0].tail); /* the log has it all */
}

/* A flood on one stream pushes the other out of the log, but not its last bytes. */
static void flood_beside_a_quiet_stream(void **state) {
    (void)state;
    begin(HALF, OUTLOG_CAP_MIN);
    for (int i = 0; i < 40; i++)
        add(OUTLOG_STDERR, 997);
    for (int i = 0; i < 20; i++) {
        add(OUTLOG_STDOUT, OUTLOG_CHUNK_MAX / 3);
        check_all();
    }
    assert_int_equal(f.log.stream_bytes[OUTLOG_STDERR], 0);
    assert_int_equal(f.capture[OUTLOG_STDERR].tail_len, HALF);
    add(OUTLOG_STDERR, 1);
    check_all();
    add(OUTLOG_STDERR, 2 * HALF);
    check_all();
}

/* One eviction of more than a whole tail. */
static void chunks_above_the_halves(void **state) {
    (void)state;
    begin(7, OUTLOG_CAP_MIN);
    for (int i = 0; i < 4; i++) {
        add(OUTLOG_STDOUT, OUTLOG_CHUNK_MAX);
        check_all();
        add(OUTLOG_STDERR, OUTLOG_CHUNK_MAX);
        check_all();
    }
}

/* Many sizes and mixtures; `odds` of 16 chunks are stdout. */
static void random_run(size_t half, size_t cap, uint64_t odds, size_t biggest) {
    begin(half, cap);
    for (int i = 0; i < 400; i++) {
        enum outlog_stream s = draw(16) < odds ? OUTLOG_STDOUT : OUTLOG_STDERR;
        size_t n = 1 + (size_t)draw(draw(4) == 0 ? biggest : 64);
        if (f.len[s] + n > STREAM_MAX)
            break;
        add(s, n);
        if (i % 8 == 0)
            check_all();
    }
    check_all();
    outlog_shrink(&f.log);
    capture_shrink(&f.capture[0]);
    capture_shrink(&f.capture[1]);
    check_all();
    end();
}

static void random_streams(void **state) {
    (void)state;
    const size_t halves[] = {1, 2, 7, 1000, 32767, 32768, 65536};
    const uint64_t odds[] = {1, 8, 15};
    for (size_t h = 0; h < ARRAY_LEN(halves); h++) {
        for (size_t o = 0; o < ARRAY_LEN(odds); o++) {
            random_run(halves[h], MAX(2 * halves[h], (size_t)OUTLOG_CAP_MIN), odds[o], 3000);
            random_run(halves[h], OUTLOG_CAP_MIN + 1, odds[o], 20000);
        }
    }
}

/* Nothing is shown that is not there; the counts stay right. */
static void dropped_output(void **state) {
    (void)state;
    const size_t sizes[] = {6, HALF, 3 * HALF, 20 * HALF};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        begin(HALF, OUTLOG_CAP_MIN);
        for (size_t left = sizes[i]; left > 0; left -= MIN(left, (size_t)HALF))
            add(OUTLOG_STDOUT, MIN(left, (size_t)HALF));
        drop();
        check_all();
        struct capture_view v = capture_measure(&f.capture[0], &f.log, OUTLOG_STDOUT, SIZE_MAX);
        assert_int_equal(v.head + v.tail, 0);
        assert_int_equal(v.omitted, sizes[i]);
        assert_int_equal(capture_memory(&f.capture[0]), 0);
        add(OUTLOG_STDOUT, 3); /* what comes later is the tail */
        add(OUTLOG_STDERR, 4); /* had nothing yet: also a head */
        check_all();
        add(OUTLOG_STDOUT, 4 * HALF);
        check_all();
        end();
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(empty),
        TEST(around_the_halves),
        TEST(flood_beside_a_quiet_stream),
        TEST(chunks_above_the_halves),
        TEST(random_streams),
        TEST(dropped_output),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
