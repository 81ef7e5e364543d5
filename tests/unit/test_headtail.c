#include "client/headtail.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static char text[1 << 17];

/* Puts the first n bytes of `text` in pieces; head and tail must be exactly its ends. */
static void check(size_t n, size_t max, size_t piece) {
    struct headtail h;
    headtail_init(&h, max);
    for (size_t i = 0; i < n; i += piece)
        assert_int_equal(headtail_put(&h, text + i, n - i < piece ? n - i : piece), 0);
    assert_int_equal(h.total, n);
    size_t half = max / 2, head = n < half ? n : half;
    size_t tail = n - head < half ? n - head : half;
    assert_int_equal(h.head_len, head);
    assert_int_equal(h.tail_len, tail);
    assert_int_equal(headtail_len(&h), head + tail);
    char *out = malloc(head + tail + 1);
    headtail_copy(&h, out);
    if (head > 0)
        assert_memory_equal(out, text, head);
    if (tail > 0)
        assert_memory_equal(out + head, text + n - tail, tail);
    free(out);
    assert_true(h.head_cap <= half && h.tail_cap <= half);
    headtail_fini(&h);
}

static void test_ends(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (char)(i * 7 + i / 251);
    static const size_t sizes[] = {0, 1, 2, 9, 10, 11, 19, 20, 21, 4095, 4096, 4097, 70000, 131072};
    static const size_t maxima[] = {0, 1, 2, 20, 8192, 10000, 70000, 200000};
    static const size_t pieces[] = {1, 3, 4096, 5000, 131072};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        for (size_t j = 0; j < sizeof(maxima) / sizeof(*maxima); j++)
            for (size_t k = 0; k < sizeof(pieces) / sizeof(*pieces); k++)
                check(sizes[i], maxima[j], pieces[k]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
