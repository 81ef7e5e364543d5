/* Paths and vectors from the memory of a process: here our own. */
#include "intercept/intercept_read.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#define PAGE 4096u
#define MAX_BYTES (1u << 20)

static struct arena arena = {.max = 16 << 20};
static char *pages; /* three, and a hole behind them */

static int prepare(void **state) {
    (void)state;
    pages = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED || munmap(pages + 3 * PAGE, PAGE) < 0;
}

static uint64_t at(const void *p) {
    return (uint64_t)(uintptr_t)p;
}

static void texts_may_end_a_page(void **state) {
    (void)state;
    const char *text;
    char *end = pages + 3 * PAGE;
    memset(pages, 'x', 3 * PAGE);
    end[-1] = '\0';
    for (size_t n = 1; n < 2 * PAGE; n += 97) {
        assert_int_equal(intercept_read_text(getpid(), at(end - n), 3 * PAGE, &arena, &text), 0);
        assert_int_equal(strlen(text), n - 1);
    }
    end[-1] = 'x';
    assert_int_equal(intercept_read_text(getpid(), at(end - 8), 3 * PAGE, &arena, &text), -EFAULT);
    assert_int_equal(intercept_read_text(getpid(), at(pages), PAGE, &arena, &text), -ENAMETOOLONG);
    assert_int_equal(intercept_read_text(getpid(), 8, PAGE, &arena, &text), -EFAULT);
}

static void vectors_are_read_whole(void **state) {
    (void)state;
    static char *many[1001];
    static char text[1000][300];
    char *const *got;
    size_t count, bytes = 0;
    for (size_t i = 0; i < 1000; i++) {
        memset(text[i], 'a' + (int)(i % 26), i % 299);
        many[i] = text[i];
    }
    assert_int_equal(
        intercept_read_vector(getpid(), at(many), false, MAX_BYTES, &bytes, &arena, &got, &count),
        0);
    assert_int_equal(count, 1000);
    for (size_t i = 0; i < 1000; i++)
        assert_string_equal(got[i], many[i]);
    assert_null(got[1000]);
    bytes = 0;
    assert_int_equal(
        intercept_read_vector(getpid(), at(many), false, 20000, &bytes, &arena, &got, &count),
        -E2BIG);
    bytes = 0;
    assert_int_equal(intercept_read_vector(getpid(), 0, false, 100, &bytes, &arena, &got, &count),
                     0);
    assert_int_equal(count, 0);
    many[500] = (char *)8;
    bytes = 0;
    assert_int_equal(
        intercept_read_vector(getpid(), at(many), false, MAX_BYTES, &bytes, &arena, &got, &count),
        -EFAULT);
}

static void vectors_of_32_bit_pointers(void **state) {
    (void)state;
    char *low = mmap((void *)0x10000000, PAGE, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    char *const *got;
    size_t count, bytes = 0;
    assert_true(low != MAP_FAILED);
    strcpy(low + 100, "one");
    strcpy(low + 200, "two");
    memcpy(low, (uint32_t[3]){(uint32_t)at(low + 100), (uint32_t)at(low + 200), 0}, 12);
    assert_int_equal(
        intercept_read_vector(getpid(), at(low), true, MAX_BYTES, &bytes, &arena, &got, &count), 0);
    assert_int_equal(count, 2);
    assert_string_equal(got[1], "two");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_may_end_a_page),
        cmocka_unit_test(vectors_are_read_whole),
        cmocka_unit_test(vectors_of_32_bit_pointers),
    };
    return cmocka_run_group_tests(tests, prepare, NULL);
}
