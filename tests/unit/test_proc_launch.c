/* Commands that a launcher starts: its word, signals through it, what is left when it ends. */
#include "proc_run.h"

#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

/* A shell is the launcher. On descriptor 4 it says `R` (the command runs) or `F` (it does not), and
 * then perhaps `E` and the exit status. */
static int report(int channel, struct err *e) {
    char word;
    ssize_t n = recv(channel, &word, 1, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN)
        return 0;
    if (n == 1 && word == 'R')
        return 1;
    err_set(e, ERR_INTERNAL, n == 1 ? "it said no" : "it said nothing");
    return n == 1 ? -ENOEXEC : -EIO;
}

static int ended(int channel, struct child_end *end) {
    unsigned char word[2];
    ssize_t n = recv(channel, word, sizeof word, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN)
        return 0;
    if (n != 2 || word[0] != 'E')
        return -EIO;
    *end = (struct child_end){.status = word[1] << 8, .usage = {.ru_maxrss = 4711}};
    return 1;
}

struct launched {
    struct child_launch launch;
    struct child_spec spec;
    struct placeholders *list;
};

static void prepare(struct launched *l, const char *script) {
    int pair[2];
    int request = memfd_create("request", MFD_CLOEXEC);
    int list = memfd_create("list", MFD_CLOEXEC);
    assert_true(request >= 0 && list >= 0);
    assert_int_equal(write(request, "asked\n", 6), 6);
    assert_int_equal(lseek(request, 0, SEEK_SET), 0);
    assert_int_equal(ftruncate(list, PLACEHOLDERS_BYTES), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    l->list = mmap(NULL, PLACEHOLDERS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, list, 0);
    assert_true(l->list != MAP_FAILED);
    l->launch = (struct child_launch){.program = open("/bin/sh", O_PATH | O_CLOEXEC),
                                      .handed = {request, pair[1], list, -1, -1, -1},
                                      .channel = pair[0],
                                      .placeholders = l->list,
                                      .report = report,
                                      .ended = ended};
    assert_true(l->launch.program >= 0);
    static char *argv[4] = {"launcher", "-c"};
    argv[2] = (char *)script;
    l->spec = spec_of(argv);
    l->spec.launch = &l->launch;
    l->spec.pipe_stdin = true;
}

/* As start(); what was handed over is closed when the start is under way. */
static void launch(struct run *r, struct launched *l, const struct proc_ops *heard_by) {
    memset(r, 0, sizeof *r);
    proc_init(&r->p, &f.host, heard_by, NULL, 1 << 20);
    assert_int_equal(proc_start(&r->p, &l->spec), 0);
    for (int i = 0; i < SUPERVISOR_HANDED; i++)
        util_close_fd(&l->launch.handed[i]);
    close(l->launch.program);
    until(&r->started);
}

static void start_launched(struct run *r, struct launched *l, const char *script) {
    prepare(l, script);
    launch(r, l, &ops);
}

static void finish_launched(struct run *r, struct launched *l) {
    finish(r);
    munmap(l->list, PLACEHOLDERS_BYTES);
}

static void it_runs_when_the_launcher_says_so(void **state) {
    (void)state;
    static struct run r;
    struct launched l;
    start_launched(&r, &l, "read x <&3; echo $0 $x; echo $PATH; pwd; printf R >&4; exit 7");
    assert_int_equal(r.error, 0);
    finish_launched(&r, &l);
    assert_out(&r, "launcher asked\n" ENV_PATH "\n/\n");
    assert_int_equal(r.p.exit_code, 7);
}

static void it_has_no_other_descriptors(void **state) {
    (void)state;
    static struct run r;
    struct launched l;
    start_launched(&r, &l, "printf R >&4; exec ls -m /proc/self/fd");
    finish_launched(&r, &l);
    assert_out(&r, "0, 1, 2, 3, 4, 5, 6\n"); /* 6 is the directory itself */
}

static void it_gets_all_that_is_handed(void **state) {
    (void)state;
    static struct run r;
    struct launched l;
    prepare(&l, "printf R >&4; exec ls -m /proc/self/fd");
    l.launch.handed[3] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    launch(&r, &l, &ops);
    finish_launched(&r, &l);
    assert_out(&r, "0, 1, 2, 3, 4, 5, 6, 7\n");
}

static void it_can_say_no(void **state) {
    (void)state;
    static struct run r;
    struct launched l;
    start_launched(&r, &l, "printf F >&4; sleep 1000");
    assert_int_equal(r.error, ENOEXEC);
    finish_launched(&r, &l);
    assert_false(r.exited);
}

static char heard[64];

static void on_started_refused(struct proc *p, int error) {
    snprintf(heard, sizeof heard, "%d %s", p->refusal.code, err_msg(&p->refusal));
    on_started(p, error);
}

static void its_reason_is_there_when_the_owner_hears(void **state) {
    (void)state;
    static struct run r;
    struct launched l;
    struct proc_ops other = ops;
    other.started = on_started_refused;
    prepare(&l, "printf F >&4");
    launch(&r, &l, &other);
    finish_launched(&r, &l);
    assert_string_equal(heard, "-32603 it said no");
}

static void it_can_end_without_a_word(void **state) {
    (void)state;
    static struct run r;
    struct launched l;
    static const char *const ends[] = {"exit 0", "kill -9 $$", "exec 4>&-; sleep 1000"};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        start_launched(&r, &l, ends[i]);
        assert_int_equal(r.error, EIO);
        finish_launched(&r, &l);
        assert_false(r.exited);
    }
}

/* What it started goes with it, also before it has said anything. */
static void a_refused_start_leaves_nothing(void **state) {
    (void)state;
    static struct run r;
    struct launched l;
    start_launched(&r, &l, "setsid sleep 1000 & printf F >&4");
    assert_int_equal(r.error, ENOEXEC);
    finish_launched(&r, &l); /* `gone` needs the end of all */
}

static void it_ends_at_once(void **state) {
    (void)state;
    static struct run r;
    struct launched l;
    for (int i = 0; i < 20; i++) { /* its word and its end may come together */
        start_launched(&r, &l, "printf R >&4; kill -15 $$");
        assert_int_equal(r.error, 0);
        finish_launched(&r, &l);
        assert_int_equal(r.p.signal, SIGTERM);
    }
}

/* Nobody waits for what the launcher does after it has told of the end. */
static void its_word_for_the_end_counts(void **state) {
    (void)state;
    static struct run r;
    struct launched l;
    start_launched(&r, &l,
                   "printf R >&4; echo last; exec >&- 2>&-; printf 'E\\003' >&4; "
                   "read x; exit 9");
    until(&r.closed); /* with it goes stdin, and so the launcher */
    assert_int_equal(r.p.exit_code, 3);
    assert_int_equal(r.p.usage.ru_maxrss, 4711);
    assert_false(proc_terminate(&r.p, 0));
    proc_signal(&r.p, SIGKILL);
    finish_launched(&r, &l);
    assert_out(&r, "last\n");
    assert_int_equal(r.p.exit_code, 3);
    assert_int_equal(r.last, 3); /* one output, one `exited`, one `closed` */
}

/* It may come with the first word, or with the end of the launcher; or make no sense. */
static void its_words_may_come_together(void **state) {
    (void)state;
    static struct run r;
    struct launched l;
    for (int i = 0; i < 20; i++) {
        start_launched(&r, &l, "printf R >&4; printf 'E\\003' >&4; exit 3");
        finish_launched(&r, &l);
        assert_int_equal(r.p.exit_code, 3);
    }
    start_launched(&r, &l, "printf R >&4; printf nonsense >&4; exit 5");
    finish_launched(&r, &l);
    assert_int_equal(r.p.exit_code, 5);
}

/* Output that others still hold is waited for. */
static void the_end_is_not_the_end_of_output(void **state) {
    (void)state;
    static struct run r;
    struct launched l;
    start_launched(&r, &l, "printf R >&4; printf 'E\\003' >&4; read x; echo late");
    until(&r.exited);
    assert_false(r.closed);
    assert_int_equal(proc_write(&r.p, "\n", 1), 0);
    finish_launched(&r, &l);
    assert_out(&r, "late\n");
    assert_int_equal(r.p.exit_code, 3);
}

static void signals_go_through_the_channel(void **state) {
    (void)state;
    static struct run r;
    struct launched l;
    /* The byte of SIGUSR1 is a line feed: read returns. The shell itself must not get a signal. */
    start_launched(&r, &l,
                   "trap 'echo hit' INT TERM USR1; printf R >&4; read x <&4; echo got; "
                   "read x <&4; exit 3");
    assert_int_equal(SIGUSR1, '\n');
    proc_signal(&r.p, SIGUSR1);
    until_output(&r, 4);
    proc_signal(&r.p, SIGINT); /* no line end */
    proc_signal(&r.p, SIGUSR1);
    finish_launched(&r, &l);
    assert_out(&r, "got\n");
    assert_int_equal(r.p.exit_code, 3);
}

static void terminate_kills_the_launcher(void **state) {
    (void)state;
    static struct run r;
    struct launched l;
    start_launched(&r, &l, "trap '' TERM; setsid sleep 1000 & printf R >&4; sleep 1000");
    assert_true(proc_terminate(&r.p, 0));
    finish_launched(&r, &l);
    assert_int_equal(r.p.signal, SIGKILL);
}

/* Those that left the session are spared elsewhere, not here. */
static void nothing_outlives_it(void **state) {
    (void)state;
    static struct run r;
    struct launched l;
    start_launched(&r, &l, "setsid sleep 1000 & printf R >&4; echo ready; sleep 1000");
    until_output(&r, 6);
    proc_abandon(&r.p, true, true);
    r.closed = true;
    finish_launched(&r, &l);
}

static void record(struct placeholders *list, char kind, const char *name) {
    uint32_t used = list->used;
    int n = snprintf(list->records + used, sizeof list->records - used, "%c%s%c%s", kind, f.dir,
                     '\0', name);
    list->used = used + (uint32_t)n + 1;
}

static bool is_there(const char *name) {
    char path[300];
    snprintf(path, sizeof path, "%s/%s", f.dir, name);
    return access(path, F_OK) == 0;
}

static void mark(const char *name) {
    char path[300];
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = PLACEHOLDERS_MTIME}};
    snprintf(path, sizeof path, "%s/%s", f.dir, name);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* The supervisor removes the directories of a launcher that was killed, and only those. */
static void directories_go_with_it(void **state) {
    (void)state;
    static struct run r;
    static const char *const names[] = {"marked", "fresh", "other", "full", "held", "gone"};
    struct launched l;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        make_dir(names[i]);
    make_file("full/x", 0644, "");
    mark("marked");
    mark("full");
    mark("held");
    mark("gone");
    char path[300];
    snprintf(path, sizeof path, "%s/fresh", f.dir);
    assert_int_equal(chmod(path, PLACEHOLDERS_BIRTH), 0);
    snprintf(path, sizeof path, "%s/held", f.dir);
    int held = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(flock(held, LOCK_SH), 0);
    start_launched(&r, &l, "printf R >&4; sleep 1000");
    record(l.list, PLACEHOLDERS_NOTED, "marked");
    record(l.list, PLACEHOLDERS_NOTED, "fresh"); /* with the mark of its birth alone */
    record(l.list, PLACEHOLDERS_NOTED, "other"); /* somebody else's: it has no mark */
    record(l.list, PLACEHOLDERS_NOTED, "full");
    record(l.list, PLACEHOLDERS_NOTED, "held"); /* of another sandbox, too */
    record(l.list, PLACEHOLDERS_GONE, "gone");
    assert_true(proc_terminate(&r.p, 0));
    finish_launched(&r, &l);
    close(held);
    assert_false(is_there("marked"));
    assert_false(is_there("fresh"));
    assert_true(is_there("other"));
    assert_true(is_there("full"));
    assert_true(is_there("held"));
    assert_true(is_there("gone"));
}

/* Resource limits and the terminal are the launcher's business, niceness is not. */
static void limits_that_are_left_to_it(void **state) {
    (void)state;
    static struct run r;
    struct launched l;
    char expected[64];
    struct rlimit now;
    prepare(&l, "ulimit -n; nice; printf R >&4");
    l.spec.limits = (struct limits_steps){
        .set_open_files = true, .open_files = {9, 9}, .set_nice = true, .nice = 5};
    launch(&r, &l, &ops);
    finish_launched(&r, &l);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
    snprintf(expected, sizeof expected, "%llu\n5\n", (unsigned long long)now.rlim_cur);
    assert_out(&r, expected);
}

static void a_terminal_is_not_made_the_controlling_one(void **state) {
    (void)state;
    static struct run r;
    struct launched l;
    _cleanup_close_ int own = open("/dev/tty", O_RDWR | O_CLOEXEC);
    if (own >= 0) /* or the launcher would have this one */
        assert_int_equal(ioctl(own, TIOCNOTTY), 0);
    prepare(&l, "tty >/dev/null && echo terminal; (: </dev/tty) 2>/dev/null || echo none; "
                "printf R >&4");
    l.spec.tty = true;
    launch(&r, &l, &ops);
    finish_launched(&r, &l);
    assert_out(&r, "terminal\r\nnone\r\n");
}

static void a_launcher_that_cannot_be_executed(void **state) {
    (void)state;
    static struct run r;
    struct launched l;
    prepare(&l, "");
    close(l.launch.program);
    l.launch.program = open("/etc/passwd", O_PATH | O_CLOEXEC);
    launch(&r, &l, &ops);
    assert_int_equal(r.error, EACCES);
    finish_launched(&r, &l);
}

int main(void) {
    if (getenv("EXEC_SERVER_EMULATED") != NULL) {
        printf("an emulator does not know execveat()\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        TEST(it_runs_when_the_launcher_says_so),
        TEST(it_has_no_other_descriptors),
        TEST(it_gets_all_that_is_handed),
        TEST(it_can_say_no),
        TEST(its_reason_is_there_when_the_owner_hears),
        TEST(it_can_end_without_a_word),
        TEST(a_refused_start_leaves_nothing),
        TEST(it_ends_at_once),
        TEST(its_word_for_the_end_counts),
        TEST(its_words_may_come_together),
        TEST(the_end_is_not_the_end_of_output),
        TEST(signals_go_through_the_channel),
        TEST(terminate_kills_the_launcher),
        TEST(nothing_outlives_it),
        TEST(directories_go_with_it),
        TEST(limits_that_are_left_to_it),
        TEST(a_terminal_is_not_made_the_controlling_one),
        TEST(a_launcher_that_cannot_be_executed),
    };
    return run_twice(tests, ARRAY_LEN(tests));
}
