#pragma once
/*
 * Files under test: a scratch directory that any user may pass through, errors compared by code and
 * text, and checks that run in a child: as a plain user, or where the child may mount and forbid.
 */

#include "fs/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <grp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <cmocka.h>

#define NOBODY 65534

static char scratch[64]; /* of the running test; empty when it begins */
static size_t scratch_fds;

static inline size_t open_fds(void) {
    size_t n = 0;
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}

static inline int scratch_new(void **state) {
    (void)state;
    umask(022);
    scratch_fds = open_fds();
#ifdef MANY_FILES
    const char *tmp = getenv("TEST_SCRATCH"); /* `make check`: in memory */
#else
    const char *tmp = NULL;
#endif
    snprintf(scratch, sizeof scratch, "%s/test-fs-XXXXXX", tmp != NULL ? tmp : "/tmp");
    return mkdtemp(scratch) != NULL && chmod(scratch, 0755) == 0 ? 0 : -1;
}

static inline int scratch_rm_one(const char *path, const struct stat *st, int kind, struct FTW *w) {
    (void)st;
    (void)kind;
    (void)w;
    return remove(path);
}

/* No test leaves a descriptor open. */
static inline int scratch_rm(void **state) {
    (void)state;
    nftw(scratch, scratch_rm_one, 16, FTW_DEPTH | FTW_PHYS);
    size_t now = open_fds();
    if (now != scratch_fds)
        print_error("%zu descriptors were open, now %zu\n", scratch_fds, now);
    return now == scratch_fds ? 0 : -1;
}

#define scratch_test(f) cmocka_unit_test_setup_teardown(f, scratch_new, scratch_rm)

/* Path of a name in the scratch directory; good for the next seven calls. */
static inline const char *at(const char *name) {
    static char paths[8][8192];
    static unsigned next;
    char *p = paths[next++ % ARRAY_LEN(paths)];
    int n = snprintf(p, sizeof paths[0], "%s/%s", scratch, name);
    assert_in_range(n, 1, (int)sizeof paths[0] - 1);
    return p;
}

static inline void make_file(const char *name, const char *text) {
    int fd = open(at(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static inline void make_dir(const char *name) {
    assert_int_equal(mkdir(at(name), 0777), 0);
}

static inline void make_link(const char *target, const char *name) {
    assert_int_equal(symlink(target, at(name)), 0);
}

static inline void make_fifo(const char *name) {
    assert_int_equal(mkfifo(at(name), 0666), 0);
}

static inline void make_socket(const char *name) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof a.sun_path, "%s/%s", scratch, name);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    close(fd);
}

/*
 * The tree that the tables of cases speak of: file, dir with a file in it, links to both (flink,
 * dlink), to nothing (dangling), to itself (loop), and a fifo and a socket.
 */
static inline void make_tree(void) {
    make_file("file", "content");
    make_dir("dir");
    make_file("dir/file", "inner");
    make_link("file", "flink");
    make_link("dir", "dlink");
    make_link("nothing", "dangling");
    make_link("loop", "loop");
    make_fifo("fifo");
    make_socket("socket");
}

static inline struct stat stat_of(const char *path) {
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    return st;
}

static inline bool missing(const char *path) {
    struct stat st;
    return lstat(path, &st) < 0 && errno == ENOENT;
}

static inline void expect_text(const char *path, const char *text) {
    char got[256] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    ssize_t n = read(fd, got, sizeof got - 1);
    close(fd);
    assert_int_equal(n, strlen(text));
    assert_string_equal(got, text);
}

/* Makes a program and runs it until end_program(); it has begun when this returns. */
static inline pid_t start_program(const char *path) {
    char data[65536];
    int in = open("/bin/sleep", O_RDONLY | O_CLOEXEC), started[2];
    int out = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    assert_true(in >= 0 && out >= 0);
    for (ssize_t n; (n = read(in, data, sizeof data)) > 0;)
        assert_int_equal(write(out, data, (size_t)n), n);
    close(in);
    close(out);
    assert_int_equal(pipe2(started, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        execl(path, "sleep", "600", NULL);
        (void)!write(started[1], "x", 1);
        _exit(127);
    }
    close(started[1]);
    assert_int_equal(read(started[0], data, 1), 0); /* closed by exec */
    close(started[0]);
    return pid;
}

static inline void end_program(pid_t pid) {
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* The call failed with this code and text; gives the error back. */
#define FAILS(call, e, num, txt) fails(call, e, num, txt, #call, __LINE__)
static inline void fails(int r, struct err *e, int code, const char *text, const char *call,
                         int line) {
    if (r >= 0 || e->code != code || strcmp(err_msg(e), text) != 0)
        fail_msg("line %d: %s: %d, error %d `%s` instead of %d `%s`", line, call, r, e->code,
                 e->code != 0 ? err_msg(e) : "", code, text);
    err_fini(e);
}

/* The call failed with errno num and the code that the protocol has for it. */
#define FAILS_OS(call, e, code, num) fails_os(call, e, code, num, #call, __LINE__)
static inline void fails_os(int r, struct err *e, int code, int num, const char *call, int line) {
    char text[128];
    snprintf(text, sizeof text, "%s (os error %d)", err_os_text(num), num);
    fails(r, e, code, text, call, line);
    assert_int_equal(r, -num);
}

/* -- in a child, where an assertion of cmocka would not end the right test -- */

#define CHECK(x)                                                                                   \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            fprintf(stderr, "%s:%d: %s: errno %d\n", __FILE__, __LINE__, #x, errno);               \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

/* The call fails with this errno and code; frees the error. */
#define CHECK_OS(call, e, want, num)                                                               \
    do {                                                                                           \
        int got_ = (call);                                                                         \
        if (got_ != -(num) || (e)->code != (want)) {                                               \
            fprintf(stderr, "%s:%d: %s: %d, code %d\n", __FILE__, __LINE__, #call, got_,           \
                    (e)->code);                                                                    \
            return 1;                                                                              \
        }                                                                                          \
        err_fini(e);                                                                               \
    } while (0)

/* Runs `body` in a child; it returns 0 if all is well. */
static inline void in_child(int (*body)(void)) {
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(body());
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static inline void needs_root(void) {
    if (geteuid() != 0)
        skip();
}

static inline int become_nobody(void) {
    CHECK(setgroups(0, NULL) == 0);
    CHECK(setresgid(NOBODY, NOBODY, NOBODY) == 0);
    CHECK(setresuid(NOBODY, NOBODY, NOBODY) == 0);
    return 0;
}

/* From here on mounts of this child are its own. */
static inline int own_mounts(void) {
    CHECK(unshare(CLONE_NEWNS) == 0);
    CHECK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    return 0;
}

/* From here on the system call fails with errno num. */
static inline int forbid(unsigned call, unsigned num) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | num),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog prog = {.len = ARRAY_LEN(filter), .filter = filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) == 0);
    return 0;
}
