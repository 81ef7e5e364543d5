#pragma once
/* Calls options_parse() on a list of words and checks what it says. */

#include "app/options.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define ARGS_MAX 32 /* words of one command line */

/* A run of the parser: arguments in, result and texts out. */
struct run {
    enum options_result result;
    struct options o;
    char *out, *err; /* owned */
};

static inline void run_free(struct run *r) {
    options_fini(&r->o);
    free(r->out);
    free(r->err);
}
#define _cleanup_run_ __attribute__((cleanup(run_free)))

static inline struct run run_argv(int argc, char **argv) {
    struct run r = {0};
    size_t n;
    FILE *out = open_memstream(&r.out, &n);
    FILE *err = open_memstream(&r.err, &n);
    assert_non_null(out);
    assert_non_null(err);
    r.result = options_parse(argc, argv, &r.o, out, err);
    fclose(out);
    fclose(err);
    return r;
}

static inline struct run run_list(const char *const *args) {
    char *argv[ARGS_MAX] = {(char *)"exec-server"};
    int argc = 1;
    for (; *args != NULL; args++) {
        assert_true(argc < ARGS_MAX - 1);
        argv[argc++] = (char *)*args;
    }
    return run_argv(argc, argv);
}

#define ARGS(...) ((const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})
#define RUN(...) run_list(ARGS(__VA_ARGS__))

static inline void expect_run(const char *const *args) {
    _cleanup_run_ struct run r = run_list(args);
    assert_string_equal(r.err, "");
    assert_string_equal(r.out, "");
    assert_int_equal(r.result, OPTIONS_RUN);
}

/* `text` is the whole of standard error but for "Error: " and the newline. */
static inline void expect_error(const char *text, const char *const *args) {
    _cleanup_run_ struct run r = run_list(args);
    assert_int_equal(r.result, OPTIONS_ERROR);
    assert_string_equal(r.out, "");
    char expected[4 * PATH_MAX];
    snprintf(expected, sizeof(expected), "Error: %s\n", text);
    assert_string_equal(r.err, expected);
    assert_null(r.o.auth.secret);
    assert_null(r.o.auth_file);
}

/* `text` is what stands between "error: " and the hint. */
static inline void expect_usage(const char *text, const char *const *args) {
    _cleanup_run_ struct run r = run_list(args);
    assert_int_equal(r.result, OPTIONS_USAGE);
    assert_string_equal(r.out, "");
    char expected[1024];
    snprintf(expected, sizeof(expected), "error: %s; see 'exec-server --help'\n", text);
    assert_string_equal(r.err, expected);
}
