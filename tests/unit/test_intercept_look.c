/* The file behind an exec, as another process sees it. */
#include "intercept/intercept_look.h"
#include "intercept/intercept_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <cmocka.h>

static char dir[] = "/tmp/test_intercept_look.XXXXXX";

static void make(const char *name, const char *text, mode_t mode) {
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static int prepare(void **state) {
    (void)state;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(chdir(dir), 0);
    assert_int_equal(mkdir("sub", 0755), 0);
    make("program", "\177ELF....", 0755);
    make("plain", "\177ELF....", 0644);
    make("text", "echo\n", 0755);
    make("script", "#!./program -x y \nrest", 0755);
    make("outer", "#! ./script\n", 0755);
    make("loop", "#!./loop\n", 0755);
    make("lost", "#!/nonexistent/x\n", 0755);
    assert_int_equal(symlink("../program", "sub/link"), 0);
    assert_int_equal(symlink("round", "round"), 0);
    assert_int_equal(symlink("/proc/self/exe", "self"), 0);
    return 0;
}

static int clean(void **state) {
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command);
}

static struct arena arena = {.max = 1 << 20};

/* Looks from the caches, and where these do not suffice thoroughly; both must agree. */
static int look(struct intercept_look *l, const char *path) {
    *l = (struct intercept_look){
        .tid = getpid(), .tgid = getpid(), .arena = &arena, .path = path, .dirfd = AT_FDCWD};
    int quick = intercept_look(l, true);
    int thorough = intercept_look(l, false);
    assert_true(quick == thorough || quick == -EAGAIN);
    return thorough;
}

static void it_finds_files(void **state) {
    (void)state;
    struct intercept_look l;
    struct stat st;
    char name[128];
    assert_int_equal(stat("program", &st), 0);
    snprintf(name, sizeof name, "%s/program", dir);
    const char *const paths[] = {
        "program", "./sub/../program",       "sub/link",
        name,      "/proc/self/cwd/program", "/proc/thread-self/root/../../proc/self/cwd/sub/link"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        assert_int_equal(look(&l, paths[i]), 0);
        assert_string_equal(l.file, name);
        assert_true(l.dev == st.st_dev && l.ino == st.st_ino);
        assert_true(!l.text && !l.unreadable && l.memfd == NULL);
    }
}

static void it_fails_as_the_kernel_does(void **state) {
    (void)state;
    static const struct {
        const char *path;
        int error;
    } cases[] = {
        {"missing", ENOENT}, {"program/x", ENOTDIR}, {"plain", EACCES},           {"sub", EACCES},
        {"round", ELOOP},    {"program/", ENOTDIR},  {"/proc/self/none", ENOENT}, {"loop", ELOOP},
        {"lost", ENOENT}};
    struct intercept_look l;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_int_equal(look(&l, cases[i].path), -cases[i].error);
}

static void it_follows_scripts(void **state) {
    (void)state;
    struct intercept_look l;
    assert_int_equal(look(&l, "outer"), 0);
    assert_int_equal(l.interpreter_count, 2);
    assert_string_equal(l.interpreters[0].path, "./script");
    assert_null(l.interpreters[0].arg);
    assert_string_equal(l.interpreters[1].path, "./program");
    assert_string_equal(l.interpreters[1].arg, "-x y");
    assert_int_equal(look(&l, "text"), 0);
    assert_true(l.text);
}

static void it_knows_descriptors_and_memory(void **state) {
    (void)state;
    char path[64];
    int low = memfd_create("a name", MFD_CLOEXEC);
    int fd = fcntl(low, F_DUPFD_CLOEXEC, 500); /* a number that looking does not take */
    close(low);
    assert_int_equal(write(fd, "\177ELF....", 8), 8);
    struct intercept_look l = {
        .tid = getpid(), .tgid = getpid(), .arena = &arena, .path = "", .dirfd = fd, .at_fd = true};
    int r = intercept_look(&l, false);
    assert_int_equal(r, 0);
    assert_string_equal(l.memfd, "a name");
    snprintf(path, sizeof path, "/dev/fd/%d", fd);
    assert_int_equal(look(&l, path), 0);
    assert_string_equal(l.memfd, "a name");
    close(fd);
    assert_int_equal(look(&l, path), -ENOENT);
}

static void it_notices_that_a_program_became_a_script(void **state) {
    (void)state;
    static struct intercept_known known[INTERCEPT_KNOWN];
    struct intercept_look l = {.tid = getpid(),
                               .tgid = getpid(),
                               .arena = &arena,
                               .known = known,
                               .path = "changing",
                               .dirfd = AT_FDCWD};
    make("changing", "\177ELF....", 0755);
    assert_int_equal(intercept_look(&l, false), 0);
    assert_int_equal(l.interpreter_count, 0);
    struct timespec later[2] = {{1, 0}, {1, 0}};
    make("changing", "#!./program\n", 0755);
    assert_int_equal(utimensat(AT_FDCWD, "changing", later, 0), 0); /* times that programs set */
    assert_int_equal(intercept_look(&l, false), 0);
    assert_int_equal(l.interpreter_count, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_finds_files),
        cmocka_unit_test(it_fails_as_the_kernel_does),
        cmocka_unit_test(it_follows_scripts),
        cmocka_unit_test(it_knows_descriptors_and_memory),
        cmocka_unit_test(it_notices_that_a_program_became_a_script),
    };
    return cmocka_run_group_tests(tests, prepare, clean);
}
