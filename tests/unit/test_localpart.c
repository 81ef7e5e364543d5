#include "client/localpart.h"

#include "local_run.h"

#include <fcntl.h>
#include <sys/file.h>
#include <time.h>

static struct partnote source(uint64_t bytes) {
    struct partnote n = {.bytes = bytes, .modified_ns = 7};
    partnote_source(STR_LIT("file:///s"), n.source);
    return n;
}

static const struct localtree_traits none = {.mode = 0};

static void whole(void **state) {
    (void)state;
    int dir = local_open(".");
    struct localpart p;
    struct partnote want = source(6);
    uint64_t kept = 9;
    mode_t old = umask(022);
    assert_int_equal(localpart_open(&p, dir, "f", 0755, &want, true, &kept), 0);
    umask(old);
    assert_int_equal(kept, 0);
    assert_int_equal(localpart_note(&p, &want), 0);
    assert_int_equal(localpart_write(&p, 3, "def", 3), 0);
    assert_int_equal(localpart_write(&p, 0, "abc", 3), 0);
    assert_int_equal(access("f", F_OK), -1);
    local_expect(".f.xs-part", "abcdef");
    struct localtree_traits traits = {false, true, 0, 1234567890123456789};
    assert_int_equal(localpart_finish(&p, 6, &traits, true), 0);
    local_expect("f", "abcdef");
    assert_int_equal(local_stat("f").st_mode & 07777, 0755);
    assert_int_equal(localtree_ns(local_stat("f").st_mtim), 1234567890123456789);
    assert_int_equal(access(".f.xs-part", F_OK), -1);
    assert_int_equal(access(".f.xs-part.json", F_OK), -1);
    close(dir);
}

static void goes_on(void **state) {
    (void)state;
    int dir = local_open(".");
    struct localpart p;
    struct partnote want = source(6), other = source(7);
    uint64_t kept;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(localpart_open(&p, dir, "f", 0600, &want, true, &kept), 0);
        assert_int_equal(kept, i == 1 ? 3 : 0);
        assert_int_equal(localpart_note(&p, &want), 0);
        assert_int_equal(localpart_write(&p, 0, "abc", 3), 0);
        localpart_close(&p, true);
        local_expect(".f.xs-part", "abc");
        if (i == 1) { /* the part of another source is not gone on with */
            assert_int_equal(localpart_open(&p, dir, "f", 0600, &other, true, &kept), 0);
            assert_int_equal(kept, 0);
            localpart_close(&p, true);
        }
    }
    assert_int_equal(localpart_open(&p, dir, "f", 0600, &want, true, &kept), 0);
    localpart_close(&p, false);
    assert_int_equal(access(".f.xs-part", F_OK), -1);
    assert_int_equal(access(".f.xs-part.json", F_OK), -1);
    close(dir);
}

static void two_at_once(void **state) {
    (void)state;
    int dir = local_open(".");
    struct localpart a, b;
    struct partnote want = source(1);
    uint64_t kept;
    assert_int_equal(localpart_open(&a, dir, "f", 0600, &want, true, &kept), 0);
    assert_int_equal(localpart_open(&b, dir, "f", 0600, &want, true, &kept), 0);
    assert_true(a.noted && !b.noted);
    assert_int_equal(localpart_write(&a, 0, "a", 1), 0);
    assert_int_equal(localpart_write(&b, 0, "b", 1), 0);
    assert_int_equal(localpart_finish(&b, 1, &none, false), 0);
    local_expect("f", "b");
    assert_int_equal(localpart_finish(&a, 1, &none, false), 0);
    local_expect("f", "a");
    assert_int_equal(localpart_open(&b, dir, "f", 0600, NULL, true, &kept), 0);
    localpart_close(&b, true);
    unlink("f");
    assert_int_equal(rmdir(local_root), 0); /* nothing is left */
    assert_int_equal(mkdir(local_root, 0700), 0);
    close(dir);
}

static void foreign_parts(void **state) {
    (void)state;
    int dir = local_open(".");
    struct localpart p;
    struct partnote want = source(1);
    uint64_t kept;
    local_file("victim", "v");
    assert_int_equal(symlink("victim", ".f.xs-part"), 0);
    assert_int_equal(symlink("victim", ".f.xs-part.json"), 0);
    assert_int_equal(localpart_open(&p, dir, "f", 0600, &want, true, &kept), 0);
    assert_false(p.noted);
    assert_int_equal(localpart_write(&p, 0, "x", 1), 0);
    localpart_close(&p, false);
    unlink(".f.xs-part");
    assert_int_equal(link("victim", ".f.xs-part"), 0);
    assert_int_equal(localpart_open(&p, dir, "f", 0600, &want, true, &kept), 0);
    assert_false(p.noted);
    localpart_close(&p, false);
    unlink(".f.xs-part");
    assert_int_equal(localpart_open(&p, dir, "f", 0600, &want, true, &kept), 0);
    assert_int_equal(localpart_note(&p, &want), 0); /* replaces the link */
    localpart_close(&p, false);
    local_expect("victim", "v");
    close(dir);
}

static void destinations(void **state) {
    (void)state;
    int dir = local_open(".");
    struct localpart p;
    uint64_t kept;
    mkdir("d", 0700);
    mkfifo("p", 0600);
    assert_int_equal(symlink("d", "l"), 0);
    assert_int_equal(localpart_open(&p, dir, "d", 0600, NULL, true, &kept), -EISDIR);
    assert_int_equal(localpart_open(&p, dir, "p", 0600, NULL, true, &kept), -ENXIO);
    assert_int_equal(localpart_open(&p, dir, "l", 0600, NULL, true, &kept), 0);
    assert_int_equal(localpart_finish(&p, 0, &none, false), 0); /* replaces the link */
    assert_true(S_ISREG(local_stat("l").st_mode));
    close(dir);
}

static void in_place(void **state) {
    (void)state;
    int dir = local_open(".");
    struct localpart p;
    uint64_t kept;
    local_file("f", "before");
    assert_int_equal(localpart_open(&p, dir, "f", 0600, NULL, false, &kept), 0);
    local_expect("f", "");
    assert_int_equal(localpart_write(&p, 0, "x", 1), 0);
    localpart_close(&p, false);
    local_expect("f", "x");
    assert_int_equal(localpart_open(&p, dir, "f", 0600, NULL, false, &kept), 0);
    assert_int_equal(localpart_write(&p, 0, "yz", 2), 0);
    assert_int_equal(localpart_finish(&p, 2, &none, false), 0);
    local_expect("f", "yz");
    close(dir);
}

/* Someone else takes the part away before the end. */
static void stolen(void **state) {
    (void)state;
    int dir = local_open(".");
    struct localpart p;
    struct partnote want = source(1);
    uint64_t kept;
    assert_int_equal(localpart_open(&p, dir, "f", 0600, &want, true, &kept), 0);
    unlink(".f.xs-part");
    local_file(".f.xs-part", "other");
    assert_int_equal(localpart_finish(&p, 0, &none, false), -ESTALE);
    localpart_close(&p, false);
    local_expect(".f.xs-part", "other");
    assert_int_equal(access("f", F_OK), -1);
    close(dir);
}

/* What dead copies have left goes, and nothing that somebody has locked or written to lately. */
static void sweeps(void **state) {
    (void)state;
    static const char *const names[] = {
        ".f.xs-part-0123456789abcdef", /* dead */
        ".f.xs-part-1123456789abcdef", /* locked */
        ".f.xs-part-2123456789abcdef", /* young */
        ".f.xs-part-3123456789abcdeg", ".f.xs-part-", ".g.xs-part-0123456789abcdef",
    };
    int dir = local_open(".");
    struct localpart p;
    const uint64_t size = LOCALPART_SWEEP_MIN;
    struct partnote want = source(size);
    uint64_t kept;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        local_file(names[i], "x");
        const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
                                          {.tv_sec = time(NULL) - LOCALPART_STALE_S - 60}};
        if (i != 2)
            assert_int_equal(utimensat(AT_FDCWD, names[i], times, 0), 0);
    }
    int locked = openat(dir, names[1], O_RDONLY | O_CLOEXEC);
    assert_int_equal(flock(locked, LOCK_EX), 0);
    assert_int_equal(localpart_open(&p, dir, "f", 0600, &want, true, &kept), 0);
    assert_int_equal(localpart_finish(&p, size, &none, false), 0);
    assert_int_equal(local_stat("f").st_size, size);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_int_equal(access(names[i], F_OK), i == 0 ? -1 : 0);
    close(locked);
    close(dir);
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, local_setup, local_teardown)
    const struct CMUnitTest tests[] = {
        CASE(whole),        CASE(goes_on), CASE(two_at_once), CASE(foreign_parts),
        CASE(destinations), CASE(stolen),  CASE(in_place),    CASE(sweeps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
