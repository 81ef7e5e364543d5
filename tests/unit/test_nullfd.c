#include "base/nullfd.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/resource.h>
#include <cmocka.h>

static void reading_finds_the_end(void **state) {
    (void)state;
    char c;
    _cleanup_close_ int fd = nullfd_open(O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(read(fd, &c, 1), 0);
    assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
}

/* Being out of descriptors is no missing device. */
static void other_errors_stay(void **state) {
    (void)state;
    struct rlimit old, none = {0, 0};
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    none.rlim_max = old.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    int r = nullfd_open(O_RDONLY);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_equal(r, -EMFILE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reading_finds_the_end),
        cmocka_unit_test(other_errors_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
