#include "client/evqueue.h"

#include "json/base64.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#define WINDOW 100000

static char texts[8][64];
static int texts_next;

static struct evqueue_chunk chunk(uint64_t seq, const char *data) {
    char *text = texts[texts_next++ % 8];
    size_t n = base64_encode(text, data, strlen(data));
    return (struct evqueue_chunk){.seq = seq, .stream = EVQUEUE_STDOUT, .base64 = {text, n}};
}

static int output(struct evqueue *q, uint64_t seq, const char *data) {
    struct evqueue_chunk c = chunk(seq, data);
    return evqueue_output(q, &c);
}

/* All that can be handed out, as text: "1:a 2:b E3 C4 G5-6". */
static const char *drain(struct evqueue *q) {
    static char out[512];
    size_t at = 0;
    out[0] = '\0';
    struct evqueue_event *e;
    while ((e = evqueue_pop(q)) != NULL && at < sizeof(out) - 64) {
        const char *space = at > 0 ? " " : "";
        if (e->type == EVQUEUE_OUTPUT)
            at += (size_t)sprintf(out + at, "%s%d:%.*s", space, (int)e->seq, (int)e->n, e->data);
        else if (e->type == EVQUEUE_GAP)
            at += (size_t)sprintf(out + at, "%sG%d-%d", space, (int)e->seq, (int)e->to);
        else
            at += (size_t)sprintf(out + at, "%s%c%d", space, e->type == EVQUEUE_EXITED ? 'E' : 'C',
                                  (int)e->seq);
        free(e);
    }
    return out;
}

static void test_order(void **state) {
    (void)state;
    struct evqueue q;
    evqueue_init(&q, 0, WINDOW);
    assert_int_equal(output(&q, 2, "b"), 1);
    assert_string_equal(drain(&q), "");
    assert_int_equal(output(&q, 2, "b"), 0);
    assert_int_equal(output(&q, 1, "a"), 1);
    assert_int_equal(output(&q, 1, "a"), 0);
    assert_int_equal(output(&q, 4, "d"), 1);
    assert_string_equal(drain(&q), "1:a 2:b");
    assert_int_equal(evqueue_exited(&q, 3), 1);
    assert_int_equal(evqueue_exited(&q, 3), 0);
    assert_string_equal(drain(&q), "E3 4:d");
    assert_int_equal(evqueue_closed(&q, 5), 1);
    assert_int_equal(output(&q, 6, "x"), -EPROTO);
    assert_string_equal(drain(&q), "C5");
    assert_false(q.behind);
    evqueue_fini(&q);
}

/* Behind the end nothing follows that could fill a hole. */
static void test_end_with_a_hole(void **state) {
    (void)state;
    struct evqueue q;
    evqueue_init(&q, 0, WINDOW);
    assert_int_equal(output(&q, 1, "a"), 1);
    assert_int_equal(output(&q, 3, "c"), 1);
    assert_false(q.behind);
    assert_int_equal(evqueue_closed(&q, 5), 1);
    assert_true(q.behind);
    assert_string_equal(drain(&q), "1:a");
    evqueue_fini(&q);
}

static void test_refused(void **state) {
    (void)state;
    struct evqueue q;
    evqueue_init(&q, 0, WINDOW);
    assert_int_equal(output(&q, 0, "x"), -EPROTO);
    struct evqueue_chunk bad = {.seq = 1, .base64 = STR_LIT("!!!!")};
    assert_int_equal(evqueue_output(&q, &bad), -EPROTO);
    assert_int_equal(output(&q, 3, "c"), 1);
    assert_int_equal(evqueue_closed(&q, 2), -EPROTO);
    assert_int_equal(evqueue_closed(&q, 4), 1);
    assert_int_equal(evqueue_closed(&q, 5), -EPROTO);
    assert_int_equal(evqueue_exited(&q, 4), -EPROTO);
    evqueue_fini(&q);
}

/* An answer with the chunks whose numbers are in `seqs`, 0 at the end. */
static int page(struct evqueue *q, uint64_t after, const uint64_t *seqs, uint64_t next,
                const char *flags) {
    struct evqueue_chunk chunks[8];
    size_t n = 0;
    for (; seqs[n] != 0; n++)
        chunks[n] = chunk(seqs[n], "p");
    struct evqueue_page p = {.after = after,
                             .chunks = chunks,
                             .count = n,
                             .next_seq = next,
                             .exited = strchr(flags, 'e') != NULL,
                             .closed = strchr(flags, 'c') != NULL,
                             .limited = strchr(flags, 'l') != NULL,
                             .held = strchr(flags, 'h') != NULL};
    evqueue_asked(q);
    return evqueue_page(q, &p);
}
#define SEQS(...) ((const uint64_t[]){__VA_ARGS__, 0})

static void check_page(uint64_t after, const uint64_t *seqs, uint64_t next, const char *flags,
                       const char *want) {
    struct evqueue q;
    evqueue_init(&q, after, WINDOW);
    assert_int_equal(page(&q, after, seqs, next, flags), 0);
    assert_string_equal(drain(&q), want);
    evqueue_fini(&q);
}

static void test_pages(void **state) {
    (void)state;
    check_page(0, SEQS(1, 2), 3, "", "1:p 2:p");
    check_page(0, SEQS(3, 4), 5, "", "G1-2 3:p 4:p");
    check_page(0, SEQS(1, 3), 5, "ec", "1:p E2 3:p C4");
    check_page(0, SEQS(1, 2), 5, "ec", "1:p 2:p E3 C4");
    check_page(0, SEQS(0), 3, "ec", "E1 C2");
    check_page(0, SEQS(0), 2, "e", "E1");
    /* EXITED may be among the numbers before the first chunk. */
    check_page(10, SEQS(12), 14, "ec", "E11 12:p C13");
    check_page(10, SEQS(14), 16, "ec", "G11-12 E13 14:p C15");
    check_page(10, SEQS(14), 17, "ec", "G11-13 14:p E15 C16");
    check_page(10, SEQS(0), 15, "ec", "G11-12 E13 C14");
    /* Of part of the answer the end cannot be inferred, except from a server that keeps all. */
    check_page(10, SEQS(12), 13, "ecl", "G11-11 12:p");
    check_page(10, SEQS(12), 13, "eclh", "E11 12:p");
    check_page(10, SEQS(11), 12, "eclh", "11:p");
    check_page(10, SEQS(0), 13, "eclh", "E11 C12");
}

static void test_page_and_live(void **state) {
    (void)state;
    struct evqueue q;
    evqueue_init(&q, 0, WINDOW);
    assert_int_equal(output(&q, 1, "a"), 1);
    assert_int_equal(output(&q, 4, "d"), 1);
    assert_int_equal(page(&q, 1, SEQS(3), 4, ""), 0);
    assert_string_equal(drain(&q), "1:a G2-2 3:p 4:d");
    /* The server knows fewer events than we had. */
    assert_int_equal(page(&q, 4, SEQS(0), 4, ""), -EPROTO);
    /* A known EXITED is not guessed again. */
    assert_int_equal(evqueue_exited(&q, 7), 1);
    assert_int_equal(page(&q, 4, SEQS(6), 9, "ec"), 0);
    assert_string_equal(drain(&q), "G5-5 6:p E7 C8");
    evqueue_fini(&q);
}

static void test_late_exit(void **state) {
    (void)state;
    struct evqueue q;
    evqueue_init(&q, 0, WINDOW);
    assert_int_equal(page(&q, 0, SEQS(2), 3, "el"), 0);
    assert_string_equal(drain(&q), "G1-1 2:p");
    assert_int_equal(evqueue_exited(&q, 1), 1);
    assert_int_equal(evqueue_closed(&q, 3), 1);
    assert_string_equal(drain(&q), "E1 C3");
    evqueue_fini(&q);
    evqueue_init(&q, 0, WINDOW);
    assert_int_equal(page(&q, 0, SEQS(2), 3, "el"), 0);
    assert_int_equal(evqueue_closed(&q, 3), 1);
    assert_string_equal(drain(&q), "G1-1 2:p E2 C3");
    evqueue_fini(&q);
}

static void test_details(void **state) {
    (void)state;
    struct evqueue q;
    evqueue_init(&q, 0, WINDOW);
    q.wants_details = true;
    assert_int_equal(page(&q, 0, SEQS(1), 4, "ec"), 0);
    assert_string_equal(drain(&q), "1:p");
    assert_true(q.exit_held);
    assert_false(evqueue_wants_page(&q));
    assert_int_equal(evqueue_release_exit(&q), 0);
    assert_string_equal(drain(&q), "E2 C3");
    evqueue_fini(&q);
    /* Late output waits behind it and is fetched again. */
    evqueue_init(&q, 0, WINDOW);
    q.wants_details = true;
    assert_int_equal(page(&q, 0, SEQS(1, 3), 4, "e"), 0);
    assert_string_equal(drain(&q), "1:p");
    assert_int_equal(evqueue_release_exit(&q), 0);
    assert_string_equal(drain(&q), "E2");
    assert_true(evqueue_wants_page(&q));
    assert_int_equal(page(&q, 2, SEQS(3), 4, "e"), 0);
    assert_string_equal(drain(&q), "3:p");
    evqueue_fini(&q);
}

static void test_window(void **state) {
    (void)state;
    struct evqueue q;
    evqueue_init(&q, 0, 2 * sizeof(struct evqueue_event));
    assert_int_equal(output(&q, 1, "a"), 1);
    assert_int_equal(output(&q, 2, "b"), 1);
    assert_true(evqueue_is_full(&q));
    assert_int_equal(output(&q, 3, "c"), 1);
    assert_int_equal(output(&q, 4, "d"), 1);
    assert_int_equal(evqueue_exited(&q, 5), 1);
    assert_int_equal(evqueue_closed(&q, 6), 1);
    assert_false(evqueue_wants_page(&q));
    assert_string_equal(drain(&q), "1:a 2:b");
    assert_true(evqueue_wants_page(&q));
    assert_int_equal(page(&q, 2, SEQS(4), 5, "ecl"), 0);
    assert_string_equal(drain(&q), "G3-3 4:p E5 C6");
    assert_false(evqueue_wants_page(&q));
    evqueue_fini(&q);
}

static void test_holes(void **state) {
    (void)state;
    struct evqueue q;
    evqueue_init(&q, 0, WINDOW);
    for (uint64_t i = 0; i < EVQUEUE_EARLY_COUNT; i++)
        assert_int_equal(output(&q, 300 - i, "x"), 1);
    assert_false(evqueue_wants_page(&q));
    assert_int_equal(output(&q, 301, "x"), 1);
    assert_true(evqueue_wants_page(&q));
    evqueue_fini(&q);
}

/* -- a server, a network and a consumer at random -- */

#define EVENTS 200

static uint32_t seed;
static uint32_t any(uint32_t n) {
    seed = seed * 1664525 + 1013904223;
    return (seed >> 10) % n;
}

struct world {
    struct evqueue q;
    uint64_t exit_seq, made, first; /* numbers of the server; the first that it retains */
    uint64_t live[EVENTS * 2];      /* notifications on their way */
    size_t nlive;
    uint64_t next; /* what the consumer must get now */
    bool exited, closed, keeps_all;
};

static char letter(uint64_t seq) {
    return (char)('a' + seq % 26);
}

static void world_make(struct world *w) {
    if (w->made == EVENTS)
        return;
    w->live[w->nlive++] = ++w->made;
    if (!w->keeps_all && w->made - w->first > 20)
        w->first = w->made - 20;
}

static void world_deliver(struct world *w) {
    if (w->nlive == 0)
        return;
    size_t i = any(4) == 0 ? any((uint32_t)w->nlive) : 0; /* sometimes out of order */
    uint64_t seq = w->live[i];
    memmove(w->live + i, w->live + i + 1, (--w->nlive - i) * sizeof(*w->live));
    char data[2] = {letter(seq), '\0'};
    int r = seq == EVENTS        ? evqueue_closed(&w->q, seq)
            : seq == w->exit_seq ? evqueue_exited(&w->q, seq)
                                 : output(&w->q, seq, data);
    assert_true(r >= 0);
}

/* A cut loses what is on its way; process/read follows. */
static void world_read(struct world *w, bool limited) {
    static char text[EVENTS + 1][8];
    struct evqueue_chunk chunks[EVENTS];
    struct evqueue_page p = {.after = w->q.last, .chunks = chunks, .limited = limited};
    p.held = w->keeps_all;
    uint64_t most = limited ? 1 + any(10) : EVENTS;
    evqueue_asked(&w->q);
    for (uint64_t s = p.after + 1; s <= w->made && p.count < most; s++) {
        if (s < w->first || s == w->exit_seq || s == EVENTS)
            continue;
        char c = letter(s);
        size_t n = base64_encode(text[s], &c, 1);
        chunks[p.count++] = (struct evqueue_chunk){.seq = s, .base64 = {text[s], n}};
    }
    p.next_seq = limited && p.count > 0 ? chunks[p.count - 1].seq + 1 : w->made + 1;
    p.exited = w->made >= w->exit_seq;
    p.closed = w->made == EVENTS;
    assert_int_equal(evqueue_page(&w->q, &p), 0);
    if (w->q.exit_held)
        assert_int_equal(evqueue_release_exit(&w->q), 0);
}

static void world_consume(struct world *w) {
    struct evqueue_event *e = evqueue_pop(&w->q);
    if (e == NULL)
        return;
    assert_false(w->closed);
    if (e->type == EVQUEUE_EXITED) {
        assert_false(w->exited);
        w->exited = true;
        if (w->keeps_all)
            assert_int_equal(e->seq, w->exit_seq);
        if (e->seq == w->next) /* else its number was inside a GAP */
            w->next++;
    } else {
        assert_int_equal(e->seq, w->next);
        assert_true(e->to >= e->seq);
        w->next = e->to + 1;
    }
    assert_true(e->type != EVQUEUE_GAP || !w->keeps_all);
    if (e->type == EVQUEUE_OUTPUT)
        assert_int_equal(e->data[0], letter(e->seq));
    if (e->type == EVQUEUE_CLOSED)
        w->closed = true;
    free(e);
}

static void world_run(uint32_t s, bool keeps_all) {
    seed = s;
    struct world w = {.first = 1, .next = 1, .keeps_all = keeps_all};
    w.exit_seq = 1 + any(EVENTS - 1);
    evqueue_init(&w.q, 0, sizeof(struct evqueue_event) * (5 + any(100)));
    w.q.wants_details = any(2) == 0;
    uint32_t cuts = any(3) == 0 ? 0 : 40, reader = 1 + any(8);
    while (!w.closed) {
        uint32_t what = any(20);
        if (what < 7)
            world_make(&w);
        else if (what < 14)
            world_deliver(&w);
        else if (any(reader) == 0)
            world_consume(&w);
        if (cuts > 0 && any(60) == 0) {
            cuts--;
            w.nlive = 0;
            evqueue_cut(&w.q);
            world_read(&w, keeps_all);
        }
        if (evqueue_wants_page(&w.q))
            world_read(&w, true);
        assert_true(w.q.early_count <= EVQUEUE_EARLY_COUNT);
    }
    assert_true(w.exited);
    assert_int_equal(w.next, EVENTS + 1);
    assert_null(evqueue_pop(&w.q));
    evqueue_fini(&w.q);
}

static void test_worlds(void **state) {
    (void)state;
    for (uint32_t i = 0; i < 4000; i++)
        world_run(i, i % 2 == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),         cmocka_unit_test(test_end_with_a_hole),
        cmocka_unit_test(test_refused),       cmocka_unit_test(test_pages),
        cmocka_unit_test(test_page_and_live), cmocka_unit_test(test_late_exit),
        cmocka_unit_test(test_details),       cmocka_unit_test(test_window),
        cmocka_unit_test(test_holes),         cmocka_unit_test(test_worlds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
