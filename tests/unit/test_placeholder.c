#include "sandbox/host/placeholder.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static char dir[] = "/tmp/test-synth-XXXXXX";
static char path[64];
static struct placeholders *list;

static int set_up(void **state) {
    (void)state;
    strcpy(dir + strlen(dir) - 6, "XXXXXX");
    assert_non_null(mkdtemp(dir));
    assert_int_equal(chmod(dir, 0755), 0);
    snprintf(path, sizeof path, "%s/.git", dir);
    list =
        mmap(NULL, PLACEHOLDERS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return list == MAP_FAILED;
}

static int tear_down(void **state) {
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    munmap(list, PLACEHOLDERS_BYTES);
    return system(command);
}

static bool is_there(void) {
    struct stat st;
    return lstat(path, &st) == 0;
}

/* Another sandbox: makes the directory and holds it until the descriptor is closed. */
static pid_t other_sandbox(int *release) {
    int ready[2], hold[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(hold), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct stat st;
        close(hold[1]);
        if (placeholder_make(NULL, dir, ".git", &st) != 1 || write(ready[1], "x", 1) != 1)
            _exit(1);
        _exit(read(hold[0], &byte, 1) == 0 ? 0 : 2);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(hold[0]);
    *release = hold[1];
    return pid;
}

static void end_other(pid_t pid, int release) {
    int status;
    close(release);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* Makes it as a sandbox does whose process then ends; its list is kept. */
static void make_and_end(int expected) {
    pid_t pid = fork();
    if (pid == 0) {
        struct stat st;
        _exit(placeholder_make(list, dir, ".git", &st) == expected ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void made_and_removed(void **state) {
    (void)state;
    struct stat st;
    make_and_end(1);
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISDIR(st.st_mode));
    assert_int_equal(st.st_mtim.tv_sec, PLACEHOLDERS_MTIME);
    placeholder_sweep(list);
    assert_false(is_there());
    assert_int_equal(list->used, 0);
    placeholder_sweep(list);
}

static void held_by_another(void **state) {
    (void)state;
    int release;
    pid_t pid = other_sandbox(&release);
    make_and_end(1); /* adopts it */
    placeholder_sweep(list);
    assert_true(is_there());
    end_other(pid, release);
    /* The other was killed: the next user of the directory removes it. */
    make_and_end(1);
    placeholder_sweep(list);
    assert_false(is_there());
}

static void own_lock_must_be_closed(void **state) {
    (void)state;
    struct stat st;
    int first = dup(0); /* the lock's number is beyond */
    assert_int_equal(placeholder_make(list, dir, ".git", &st), 1);
    assert_false(placeholder_sweep(list)); /* it stays in the list */
    assert_true(is_there());
    for (int fd = first; fd < first + 8; fd++)
        close(fd);
    assert_true(placeholder_sweep(list));
    assert_false(is_there());
}

static void what_is_not_ours_stays(void **state) {
    (void)state;
    struct stat st;
    char file[80];
    snprintf(file, sizeof file, "%s/HEAD", path);
    assert_int_equal(mkdir(path, 0755), 0);
    make_and_end(1); /* somebody may be about to mark it: it is held */
    placeholder_sweep(list);
    assert_true(is_there());
    assert_int_equal(mknod(file, S_IFREG | 0644, 0), 0);
    make_and_end(-EEXIST);
    placeholder_sweep(list);
    assert_true(is_there());
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(symlink(dir, path), 0);
    assert_int_equal(placeholder_make(list, dir, ".git", &st), -EEXIST);
    placeholder_sweep(list);
    assert_true(is_there());
}

static void what_was_filled_stays(void **state) {
    (void)state;
    char file[80];
    make_and_end(1);
    snprintf(file, sizeof file, "%s/HEAD", path);
    assert_int_equal(mknod(file, S_IFREG | 0644, 0), 0);
    placeholder_sweep(list);
    assert_true(is_there());
    /* Emptied again it is no longer marked. */
    make_and_end(-EEXIST);
    assert_int_equal(unlink(file), 0);
    placeholder_sweep(list);
    assert_true(is_there());
}

/* Killed between mkdir() and the time; the modes it has until then and afterwards. */
static void an_end_while_being_made(void **state) {
    (void)state;
    struct stat st;
    make_and_end(1);
    assert_int_equal(lstat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0755);
    struct timespec now[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_NOW}};
    assert_int_equal(utimensat(AT_FDCWD, path, now, 0), 0);
    assert_int_equal(chmod(path, PLACEHOLDERS_BIRTH), 0);
    assert_int_equal(lstat(path, &st), 0);
    assert_true(placeholders_is_marked(&st));
    placeholder_sweep(list);
    assert_false(is_there());
}

/* A sandbox was killed while it made the place; who then holds it removes it. */
static void one_that_is_adopted_half_made(void **state) {
    (void)state;
    assert_int_equal(mkdir(path, 0755), 0);
    assert_int_equal(chmod(path, PLACEHOLDERS_BIRTH), 0);
    make_and_end(1);
    placeholder_sweep(list);
    assert_false(is_there());
}

/* Noted, but the user was first: his directory is empty, and stays. */
static void an_end_before_it_was_made(void **state) {
    (void)state;
    make_and_end(1);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(mkdir(path, 0755), 0);
    assert_true(placeholder_sweep(list));
    assert_true(is_there());
}

/* Modes that users give. */
static void what_is_no_mark(void **state) {
    (void)state;
    static const mode_t modes[] = {0755,  0555,  0700, 01777, 01755,
                                   01770, 02755, 0500, 04555, 05555};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        struct stat st = {.st_mode = S_IFDIR | modes[i]};
        assert_false(placeholders_is_marked(&st));
    }
    struct stat file = {.st_mode = S_IFREG | PLACEHOLDERS_BIRTH};
    assert_false(placeholders_is_marked(&file));
    struct stat group = {.st_mode =
                             S_IFDIR | S_ISGID | S_ISVTX | 0500}; /* of a parent with an ACL */
    assert_true(placeholders_is_marked(&group));
}

static void where_nothing_may_be_made(void **state) {
    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        struct stat st;
        if (getuid() == 0 && setresuid(65534, 65534, 65534) < 0)
            _exit(1);
        _exit(placeholder_make(list, "/usr", ".git", &st) == 0 ? 0 : 2);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(list->records[0], PLACEHOLDERS_GONE);
}

static void lists_are_bounded(void **state) {
    (void)state;
    struct stat st;
    char name[256];
    memset(name, 'n', 250);
    name[250] = '\0';
    int r = 1;
    for (int i = 0; r == 1 && i < 1000; i++) {
        snprintf(name, sizeof name, "n%0200d", i);
        r = placeholder_make(list, dir, name, &st);
    }
    assert_int_equal(r, -ENOBUFS);
    assert_true(list->used <= sizeof list->records);
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    placeholder_sweep(list);
    snprintf(name, sizeof name, "%s/n%0200d", dir, 0);
    assert_int_equal(lstat(name, &st), -1);
    assert_int_equal(rmdir(dir), 0); /* nothing is left in it */
    assert_int_equal(mkdir(dir, 0755), 0);
}

/* A list that a broken launcher left behind harms nobody. */
static void damaged_lists(void **state) {
    (void)state;
    char empty[80];
    snprintf(empty, sizeof empty, "%s/empty", dir);
    assert_int_equal(mkdir(empty, 0755), 0);
    uint32_t seed = 1;
    for (int round = 0; round < 2000; round++) {
        for (size_t i = 0; i < 256; i++) {
            seed = seed * 1664525u + 1013904223u;
            list->records[i] = "m/x.\0tc-"[seed >> 29];
        }
        list->used = round % 3 == 0 ? UINT32_MAX : (uint32_t)(round % 257);
        placeholder_sweep(list);
        assert_int_equal(list->used, 0);
    }
    assert_int_equal(rmdir(empty), 0);
}

int main(void) {
    if (getenv("EXEC_SERVER_EMULATED") != NULL) {
        printf("an emulator does not know openat2()\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(made_and_removed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(held_by_another, set_up, tear_down),
        cmocka_unit_test_setup_teardown(own_lock_must_be_closed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_not_ours_stays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_filled_stays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_end_while_being_made, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_is_adopted_half_made, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_end_before_it_was_made, set_up, tear_down),
        cmocka_unit_test(what_is_no_mark),
        cmocka_unit_test_setup_teardown(where_nothing_may_be_made, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lists_are_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(damaged_lists, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
