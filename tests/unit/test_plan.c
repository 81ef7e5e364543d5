#include "sandbox/policy/plan.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

static const uint16_t ports[] = {1, 3128, 65535};
static const struct plan_entry entries[] = {
    {"/", PLAN_READ}, {"/srv/ws", PLAN_WRITE}, {"/srv/ws/\xFF key", PLAN_DENY}};
static const struct plan_glob globs[] = {{"/srv/ws/**/*.env", 7, 0},
                                         {"/srv/[a]/b/c*", 8, UINT32_MAX}};

/* Every member differs from its zero value. */
static const struct plan full = {
    .confine_files = true,
    .full_read = true,
    .minimal = true,
    .network = PLAN_NET_MANAGED,
    .all_unix_sockets = true,
    .inherit_pids = true,
    .ports = ports,
    .port_count = ARRAY_LEN(ports),
    .entries = entries,
    .entry_count = ARRAY_LEN(entries),
    .globs = globs,
    .glob_count = ARRAY_LEN(globs),
    .cwd = "/srv/ws",
};

static void assert_same(const struct plan *x, const struct plan *y) {
    assert_int_equal(x->confine_files, y->confine_files);
    assert_int_equal(x->full_read, y->full_read);
    assert_int_equal(x->minimal, y->minimal);
    assert_int_equal(x->network, y->network);
    assert_int_equal(x->all_unix_sockets, y->all_unix_sockets);
    assert_int_equal(x->inherit_pids, y->inherit_pids);
    assert_string_equal(x->cwd, y->cwd);
    assert_int_equal(x->port_count, y->port_count);
    for (size_t i = 0; i < x->port_count; i++)
        assert_int_equal(x->ports[i], y->ports[i]);
    assert_int_equal(x->entry_count, y->entry_count);
    for (size_t i = 0; i < x->entry_count; i++) {
        assert_string_equal(x->entries[i].path, y->entries[i].path);
        assert_int_equal(x->entries[i].access, y->entries[i].access);
    }
    assert_int_equal(x->glob_count, y->glob_count);
    for (size_t i = 0; i < x->glob_count; i++) {
        assert_string_equal(x->globs[i].pattern, y->globs[i].pattern);
        assert_int_equal(x->globs[i].fixed, y->globs[i].fixed);
        assert_int_equal(x->globs[i].max_depth, y->globs[i].max_depth);
    }
}

static int decode(struct str bytes, struct plan *p) {
    static struct arena a = ARENA_INIT(1 << 20);
    arena_reset(&a);
    int r = plan_decode(bytes, &a, p);
    if (r < 0)
        arena_fini(&a);
    return r;
}

static void test_round_trip(void **state) {
    (void)state;
    _cleanup_buf_ struct buf b = BUF_INIT(PLAN_BYTES_MAX);
    _cleanup_arena_ struct arena a = ARENA_INIT(1 << 20);
    const struct plan empty = {.cwd = "/"};
    struct plan p;
    assert_int_equal(plan_encode(&full, &b), 0);
    assert_int_equal(plan_decode(buf_str(&b), &a, &p), 0);
    assert_same(&p, &full);
    size_t first = b.len;
    assert_int_equal(plan_encode(&empty, &b), 0); /* appends */
    assert_int_equal(plan_decode((struct str){b.p + first, b.len - first}, &a, &p), 0);
    assert_same(&p, &empty);
}

static void test_each_flag_is_kept(void **state) {
    (void)state;
    const struct plan variants[] = {
        {.cwd = "/", .confine_files = true}, {.cwd = "/", .full_read = true},
        {.cwd = "/", .minimal = true},       {.cwd = "/", .all_unix_sockets = true},
        {.cwd = "/", .inherit_pids = true},  {.cwd = "/", .network = PLAN_NET_ENABLED}};
    for (size_t i = 0; i < ARRAY_LEN(variants); i++) {
        _cleanup_buf_ struct buf b = BUF_INIT(PLAN_BYTES_MAX);
        _cleanup_arena_ struct arena a = ARENA_INIT(1 << 20);
        struct plan p;
        assert_int_equal(plan_encode(&variants[i], &b), 0);
        assert_int_equal(plan_decode(buf_str(&b), &a, &p), 0);
        assert_same(&p, &variants[i]);
    }
}

static void test_truncated_and_trailing(void **state) {
    (void)state;
    _cleanup_buf_ struct buf b = BUF_INIT(PLAN_BYTES_MAX);
    struct plan p;
    assert_int_equal(plan_encode(&full, &b), 0);
    for (size_t n = 0; n < b.len; n++)
        assert_int_equal(decode((struct str){b.p, n}, &p), -EINVAL);
    assert_int_equal(buf_putc(&b, '\0'), 0);
    assert_int_equal(decode(buf_str(&b), &p), -EINVAL);
}

/* Any byte may be wrong: refused, or a plan that keeps the promises of the header. */
static void test_every_byte(void **state) {
    (void)state;
    _cleanup_buf_ struct buf b = BUF_INIT(PLAN_BYTES_MAX);
    _cleanup_arena_ struct arena a = ARENA_INIT(8 << 20);
    size_t refused = 0;
    assert_int_equal(plan_encode(&full, &b), 0);
    for (size_t i = 0; i < b.len; i++) {
        char old = b.p[i];
        for (unsigned v = 0; v < 256; v += 51) {
            struct plan p;
            b.p[i] = (char)v;
            arena_reset(&a);
            int r = plan_decode(buf_str(&b), &a, &p);
            refused += r < 0;
            assert_true(r == 0 || r == -EINVAL);
            for (size_t k = 0; r == 0 && k < p.entry_count; k++)
                assert_true(p.entries[k].path[0] == '/' && p.entries[k].access <= PLAN_DENY);
            for (size_t k = 0; r == 0 && k < p.glob_count; k++)
                assert_true(p.globs[k].fixed < strlen(p.globs[k].pattern));
        }
        b.p[i] = old;
    }
    assert_true(refused > b.len);
}

/* The encoded plan with one text replaced by another of the same length. */
static int decode_with(const char *from, const char *to) {
    _cleanup_buf_ struct buf b = BUF_INIT(PLAN_BYTES_MAX);
    struct plan p;
    assert_int_equal(plan_encode(&full, &b), 0);
    char *at = memmem(b.p, b.len, from, strlen(from));
    assert_non_null(at);
    memcpy(at, to, strlen(from));
    return decode(buf_str(&b), &p);
}

static void test_bad_paths(void **state) {
    (void)state;
    assert_int_equal(decode_with("/srv/ws/\xFF", "/srv/ws/y"), 0);
    assert_int_equal(decode_with("/srv/ws/\xFF", "xsrv/ws/\xFF"), -EINVAL);
    assert_int_equal(decode_with("/srv/ws/\xFF", "/srv\0ws/\xFF"), -EINVAL);
    assert_int_equal(decode_with("/srv/[a]/b", "/srv/[a]xb"), -EINVAL); /* where `fixed` ends */
}

static void test_limits(void **state) {
    (void)state;
    _cleanup_buf_ struct buf b = BUF_INIT(2 * PLAN_BYTES_MAX);
    _cleanup_free_ struct plan_entry *many = calloc(PLAN_ENTRIES_MAX + 1, sizeof *many);
    _cleanup_free_ char *longest = malloc(PLAN_BYTES_MAX + 1);
    assert_non_null(many);
    assert_non_null(longest);
    for (size_t i = 0; i <= PLAN_ENTRIES_MAX; i++)
        many[i].path = "/";
    memset(longest, '/', PLAN_BYTES_MAX);
    longest[PLAN_BYTES_MAX] = '\0';
    struct plan p = {.cwd = "/", .entries = many, .entry_count = PLAN_ENTRIES_MAX};
    assert_int_equal(buf_putz(&b, "before"), 0);
    assert_int_equal(plan_encode(&p, &b), 0);
    b.len = 6;
    p.entry_count++;
    assert_int_equal(plan_encode(&p, &b), -ENOBUFS);
    p = (struct plan){.cwd = longest};
    assert_int_equal(plan_encode(&p, &b), -ENOBUFS);
    longest[PLAN_BYTES_MAX - 1] = '\0'; /* fits a text, but not with what surrounds it */
    assert_int_equal(plan_encode(&p, &b), -ENOBUFS);
    assert_true(str_eqz(buf_str(&b), "before"));
    struct buf small = BUF_INIT(16);
    assert_int_equal(plan_encode(&full, &small), -ENOBUFS);
    assert_int_equal(small.len, 0);
    buf_fini(&small);
}

static void test_no_memory(void **state) {
    (void)state;
    _cleanup_buf_ struct buf b = BUF_INIT(PLAN_BYTES_MAX);
    _cleanup_arena_ struct arena none = ARENA_INIT(0);
    struct plan p;
    assert_int_equal(plan_encode(&full, &b), 0);
    assert_int_equal(plan_decode(buf_str(&b), &none, &p), -ENOMEM);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_each_flag_is_kept),
        cmocka_unit_test(test_truncated_and_trailing),
        cmocka_unit_test(test_every_byte),
        cmocka_unit_test(test_bad_paths),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
