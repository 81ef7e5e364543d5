#include "base/passwd.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static char path[64];

/* Makes `text` the contents of the file at `path`. */
static void file_is(const char *text) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static int setup(void **state) {
    (void)state;
    strcpy(path, "/tmp/passwd-XXXXXX");
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int teardown(void **state) {
    (void)state;
    return unlink(path);
}

static void assert_entry(uid_t uid, const char *home, const char *shell) {
    struct passwd_entry e;
    passwd_read(path, uid, &e);
    if (home == NULL)
        assert_null(e.home);
    else
        assert_string_equal(e.home, home);
    if (shell == NULL)
        assert_null(e.shell);
    else
        assert_string_equal(e.shell, shell);
    passwd_fini(&e);
    assert_null(e.home);
    assert_null(e.shell);
}

static void finds_by_number(void **state) {
    (void)state;
    file_is("root:x:0:0:root:/root:/bin/bash\n"
            "anna:x:1000:100:Anna, Room 5:/home/anna:/usr/bin/zsh\n"
            "bert:x:1001:100::/home/bert:/bin/sh");
    assert_entry(0, "/root", "/bin/bash");
    assert_entry(1000, "/home/anna", "/usr/bin/zsh");
    assert_entry(1001, "/home/bert", "/bin/sh"); /* no newline at the end */
    assert_entry(100, NULL, NULL);
    assert_entry(10, NULL, NULL);
}

static void the_first_of_several(void **state) {
    (void)state;
    file_is("root:x:0:0:root:/root:/bin/bash\ntoor:x:0:0:root:/other:/bin/csh\n");
    assert_entry(0, "/root", "/bin/bash");
}

static void an_empty_shell_is_unknown(void **state) {
    (void)state;
    file_is("root:x:0:0:root:/root:\n");
    assert_entry(0, "/root", NULL);
}

static void damaged_lines_are_passed_over(void **state) {
    (void)state;
    file_is("\n# a comment\n:\nroot\nroot:x:0\nroot:x::0:root:/empty:/bin/a\n"
            "root:x:0x:0:root:/hex:/bin/b\nroot:x:zero:0:root:/word:/bin/c\n"
            "+::::::\nroot:x:0:0:root:/root:/bin/bash\n");
    assert_entry(0, "/root", "/bin/bash");
}

static void no_file_no_entry(void **state) {
    (void)state;
    struct passwd_entry e;
    passwd_read("/nonexistent/passwd", 0, &e);
    assert_null(e.home);
    assert_null(e.shell);
    passwd_fini(&e);
    file_is("");
    assert_entry(0, NULL, NULL);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(finds_by_number),           TEST(the_first_of_several),
        TEST(an_empty_shell_is_unknown), TEST(damaged_lines_are_passed_over),
        TEST(no_file_no_entry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
