#include "sandbox/host/launch_request.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <cmocka.h>

static const struct plan_entry entries[] = {{"/", PLAN_READ}, {"/srv", PLAN_WRITE}};
static const struct launch_limit limits[] = {{RLIMIT_NOFILE, 64, 128},
                                             {RLIMIT_AS, 1ull << 40, RLIM_INFINITY}};
static char *argv[] = {"sh", "-c", "", NULL};
static char *envp[] = {"A=\xFF", "B=", NULL};

static struct launch_request full(void) {
    return (struct launch_request){
        .mode = LAUNCH_COMMAND,
        .backend = LAUNCH_ROOT,
        .landlock_max = 5,
        .advice = "; do so",
        .tty = true,
        .plan = {.confine_files = true,
                 .full_read = true,
                 .entries = entries,
                 .entry_count = 2,
                 .cwd = "/srv"},
        .program = "sh",
        .search = "/bin:/usr/bin",
        .argv = argv,
        .envp = envp,
        .limits = limits,
        .limit_count = 2,
    };
}

static void all_of_it_crosses(void **state) {
    (void)state;
    _cleanup_buf_ struct buf b = BUF_INIT(1u << 20);
    _cleanup_arena_ struct arena a = ARENA_INIT(1u << 20);
    struct launch_request q = full(), r;
    assert_int_equal(launch_request_encode(&q, &b), 0);
    assert_int_equal(launch_request_decode(buf_str(&b), &a, &r), 0);
    assert_int_equal(r.mode, LAUNCH_COMMAND);
    assert_int_equal(r.backend, LAUNCH_ROOT);
    assert_int_equal(r.landlock_max, 5);
    assert_string_equal(r.advice, "; do so");
    assert_true(r.tty);
    assert_int_equal(r.plan.entry_count, 2);
    assert_string_equal(r.plan.entries[1].path, "/srv");
    assert_string_equal(r.program, "sh");
    assert_string_equal(r.search, "/bin:/usr/bin");
    assert_string_equal(r.argv[2], "");
    assert_null(r.argv[3]);
    assert_string_equal(r.envp[0], "A=\xFF");
    assert_null(r.envp[2]);
    assert_int_equal(r.limit_count, 2);
    assert_int_equal(r.limits[1].resource, RLIMIT_AS);
    assert_true(r.limits[1].soft == 1ull << 40 && r.limits[1].hard == RLIM_INFINITY);
}

static void absent_is_not_empty(void **state) {
    (void)state;
    _cleanup_buf_ struct buf b = BUF_INIT(1u << 20);
    _cleanup_arena_ struct arena a = ARENA_INIT(1u << 20);
    struct launch_request q = {.mode = LAUNCH_HELPER, .plan = {.cwd = "/"}}, r;
    assert_int_equal(launch_request_encode(&q, &b), 0);
    assert_int_equal(launch_request_decode(buf_str(&b), &a, &r), 0);
    assert_null(r.program);
    assert_null(r.search);
    assert_null(r.argv[0]);
    /* A command needs a program and a name for it. */
    q.mode = LAUNCH_COMMAND;
    b.len = 0;
    assert_int_equal(launch_request_encode(&q, &b), 0);
    assert_int_equal(launch_request_decode(buf_str(&b), &a, &r), -EINVAL);
}

/* Every cut and every flipped bit is refused or decodes to something whole; nothing crashes. */
static void damaged_requests(void **state) {
    (void)state;
    _cleanup_buf_ struct buf b = BUF_INIT(1u << 20);
    struct launch_request q = full(), r;
    assert_int_equal(launch_request_encode(&q, &b), 0);
    for (size_t n = 0; n < b.len; n++) {
        _cleanup_arena_ struct arena a = ARENA_INIT(1u << 20);
        assert_int_equal(launch_request_decode((struct str){b.p, n}, &a, &r), -EINVAL);
    }
    for (size_t i = 0; i < 8 * b.len; i++) {
        _cleanup_arena_ struct arena a = ARENA_INIT(1u << 20);
        b.p[i / 8] = (char)(b.p[i / 8] ^ 1 << i % 8);
        int e = launch_request_decode(buf_str(&b), &a, &r);
        assert_true(e == 0 || e == -EINVAL || e == -ENOMEM);
        for (size_t k = 0; e == 0 && r.argv[k] != NULL; k++)
            assert_true(strlen(r.argv[k]) < b.len);
        b.p[i / 8] = (char)(b.p[i / 8] ^ 1 << i % 8);
    }
}

static void too_much_is_refused(void **state) {
    (void)state;
    _cleanup_buf_ struct buf b = BUF_INIT(LAUNCH_BYTES_MAX + 4096);
    _cleanup_free_ char **many = calloc(LAUNCH_STRINGS_MAX + 2, sizeof *many);
    assert_non_null(many);
    for (size_t i = 0; i <= LAUNCH_STRINGS_MAX; i++)
        many[i] = "x";
    struct launch_request q = full();
    q.argv = many;
    assert_int_equal(launch_request_encode(&q, &b), -ENOBUFS);
    assert_int_equal(b.len, 0);
    many[LAUNCH_STRINGS_MAX] = NULL;
    assert_int_equal(launch_request_encode(&q, &b), 0);
    b.len = 0;
    q = full();
    q.limit_count = LAUNCH_LIMITS_MAX + 1;
    assert_int_equal(launch_request_encode(&q, &b), -ENOBUFS);
}

static void the_descriptor_cannot_be_changed(void **state) {
    (void)state;
    struct launch_request q = full(), r;
    _cleanup_arena_ struct arena a = ARENA_INIT(1u << 20);
    _cleanup_close_ int fd = launch_request_memfd(&q);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, "x", 1, 0), -1);
    assert_int_equal(ftruncate(fd, 0), -1);
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    char *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    assert_true(p != MAP_FAILED);
    assert_int_equal(launch_request_decode((struct str){p, (size_t)st.st_size}, &a, &r), 0);
    munmap(p, (size_t)st.st_size);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_it_crosses),
        cmocka_unit_test(absent_is_not_empty),
        cmocka_unit_test(damaged_requests),
        cmocka_unit_test(too_much_is_refused),
        cmocka_unit_test(the_descriptor_cannot_be_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
