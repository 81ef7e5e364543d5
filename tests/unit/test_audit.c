#include "ops/audit.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

#define PATIENCE_MS 60000

static char dir[] = "/tmp/test-audit-XXXXXX";

static int setup(void **state) {
    (void)state;
    return mkdtemp(dir) != NULL && chdir(dir) == 0 ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    return chdir("/") == 0 && rmdir(dir) == 0 ? 0 : -1;
}

/* -- redaction -- */

static void expect_shown(const char *arg, bool script, const char *want) {
    _cleanup_buf_ struct buf b = BUF_INIT(AUDIT_ARGV_MAX);
    struct redact r = {.script = script};
    assert_int_equal(redact_arg(&r, str_of(arg), AUDIT_ARGV_MAX, &b), 0);
    assert_int_equal(buf_putc(&b, '\0'), 0);
    assert_string_equal(b.p, want);
}

/* Arguments of their own: what follows the name is the value, blanks and all. */
static void redact_arguments(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"--token=x", "--token=[redacted]"},
        {"--api-key=x y", "--api-key=[redacted]"},
        {"TOKEN=x", "TOKEN=[redacted]"},
        {"GITHUB_TOKEN=a=b", "GITHUB_TOKEN=[redacted]"},
        {"my_Secret_1=x", "my_Secret_1=[redacted]"},
        {"PASSWORD=two words", "PASSWORD=[redacted]"},
        {"Authorization: Bearer x", "Authorization: [redacted]"},
        {"authorization:Basic dXNlcjpwYXNz", "authorization:[redacted]"},
        {"X-Api-Key: two words", "X-Api-Key: [redacted]"},
        {"Cookie: session=1; other=2", "Cookie: [redacted]"},
        {"-H=Authorization: Bearer x", "-H=Authorization: [redacted]"},
        {"Bearer x", "Bearer [redacted]"},
        {"https://user:pass@host/path", "https://[redacted]@host/path"},
        {"https://ghp_0123@host/path", "https://[redacted]@host/path"},
        {"postgres://u:p@ss@db/x", "postgres://[redacted]@db/x"},
        {"https://host/?access_token=x&page=2", "https://host/?access_token=[redacted]&page=2"},
        {"{\"password\":\"x\",\"user\":\"y\"}", "{\"password\":[redacted],\"user\":\"y\"}"},
        {"{\"token\": 17}", "{\"token\": [redacted]"},
        {"-Dsecret=x", "-Dsecret=[redacted]"},
        {"user.password=x", "user.password=[redacted]"},
        {"TOKEN=", "TOKEN="},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        expect_shown(cases[i][0], false, cases[i][1]);
}

/* Text for a shell: only the word is the value, the rest of the command stays. */
static void redact_scripts(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"TOKEN=x make all", "TOKEN=[redacted] make all"},
        {"export A_KEY=x; run", "export A_KEY=[redacted]; run"},
        {"TOKEN='two words' run", "TOKEN=[redacted] run"},
        {"TOKEN=\"a\\\" b\"c run", "TOKEN=[redacted] run"},
        {"TOKEN=a\\ b run", "TOKEN=[redacted] run"},
        {"env \"TOKEN=two words\" run", "env \"TOKEN=[redacted]\" run"},
        {"run --password x --verbose", "run --password [redacted] --verbose"},
        {"run --password 'a b' y", "run --password [redacted] y"},
        {"run --password=x y", "run --password=[redacted] y"},
        {"run \"--password\" x y", "run \"--password\" [redacted] y"},
        {"run --password \\\n  x y", "run --password \\\n  [redacted] y"},
        {"curl -H 'Authorization: Bearer x' u", "curl -H 'Authorization: [redacted]' u"},
        {"curl -H \"X-Key: a b\" u", "curl -H \"X-Key: [redacted]\" u"},
        {"curl -H Authorization:\\ Bearer\\ x u", "curl -H Authorization:[redacted] u"},
        {"echo token: Bearer x y", "echo token: [redacted]"},
        {"curl -d '{\"secret\": \"x\", \"n\": 1}' u",
         "curl -d '{\"secret\": [redacted], \"n\": 1}' u"},
        {"curl -d \"{\\\"secret\\\":\\\"x\\\",\\\"n\\\":1}\" u",
         "curl -d \"{\\\"secret\\\":[redacted],\\\"n\\\":1}\" u"},
        {"git clone https://u:p@host/r && rm x", "git clone https://[redacted]@host/r && rm x"},
        {"password = x\nnext", "password = [redacted]\nnext"},
        {"TOKEN=$(cat file)", "TOKEN=[redacted]"},
        {"TOKEN=`cat file` run", "TOKEN=[redacted] run"},
        {"cat <<EOF >f\na\nb\nEOF\nls", "cat <<EOF >f\n[redacted]\nEOF\nls"},
        {"cat <<-'A B'\nx\n\tA B\nls", "cat <<-'A B'\n[redacted]\n\tA B\nls"},
        {"cat <<A <<B\nx\nA\ny\nB\nls", "cat <<A <<B\n[redacted]\nB\nls"},
        {"cat <<EOF\nnever ends", "cat <<EOF\n[redacted]"},
        {"login <<< \"x y\" now", "login <<< [redacted] now"},
        {"mysql -px db; mkdir -p d", "mysql -p[redacted] db; mkdir -p d"},
        {"curl -u me:x http://h/", "curl -u [redacted] http://h/"},
        {"echo $((1 + 2)) && ls", "echo $((1 + 2)) && ls"},
        {"TOKEN='open", "TOKEN=[redacted]"},
        {"token\"=x", "token\"=[redacted]"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        expect_shown(cases[i][0], true, cases[i][1]);
}

static void redact_spares(void **state) {
    (void)state;
    static const char *const cases[] = {"",
                                        "ls",
                                        "-l",
                                        "--color=auto",
                                        "a=b",
                                        "http://h/",
                                        "h:80",
                                        "user@host:/p",
                                        "--",
                                        "=",
                                        ":",
                                        "'",
                                        "\\",
                                        "echo \"a: b\"",
                                        "ssh-keygen -t ed25519",
                                        "x://",
                                        "git@h:r.g",
                                        "{\"a\":\"b\"}",
                                        "\xC3\xA4=\xC3\xB6"};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        expect_shown(cases[i], false, cases[i]);
        expect_shown(cases[i], true, cases[i]);
    }
}

/* Whatever the bytes: it ends, stays within its bounds, and a cut splits no character. */
static void redact_bounds(void **state) {
    (void)state;
    static const char parts[] = "token= :\"'\\-://@;\n x\xC3\xA4";
    unsigned seed = 1;
    for (int round = 0; round < 20000; round++) {
        char text[24];
        size_t n = 0, max = (size_t)round % 40;
        while (n < sizeof text - 2) {
            seed = seed * 1103515245 + 12345;
            size_t k = (seed >> 16) % (sizeof parts - 2);
            text[n++] = parts[k];
            if (parts[k] == '\xC3')
                text[n++] = '\xA4';
        }
        _cleanup_buf_ struct buf b = BUF_INIT(AUDIT_ARGV_MAX);
        struct redact r = {.script = round % 2 == 0};
        int rc = redact_arg(&r, (struct str){text, n}, max, &b);
        assert_in_range(rc, 0, 1);
        assert_in_range(b.len, 0, max);
        if (rc == 1 && b.len > 0 && b.p[b.len - 1] == '\xC3')
            fail_msg("cut in the middle of a character");
    }
}

/* -- lines -- */

/* All that is in a file. */
static void read_all(const char *path, struct buf *b) {
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    ssize_t n;
    do {
        assert_int_equal(buf_reserve(b, 4096), 0);
        n = read(fd, b->p + b->len, 4096);
        assert_true(n >= 0);
        b->len += (size_t)n;
    } while (n > 0);
}

/* Opens a log, lets `fill` write one line, closes it; the line without its time, owned. */
static char *line_of(void (*fill)(struct audit *a)) {
    struct audit a;
    _cleanup_err_ struct err e = ERR_INIT;
    assert_int_equal(audit_open(&a, "log", &e), 0);
    audit_begin(&a, "test");
    fill(&a);
    audit_end(&a);
    audit_close(&a);
    struct buf b = BUF_INIT(1u << 20);
    read_all("log", &b);
    unlink("log");
    assert_true(b.len > AUDIT_TIME_LEN + 10 && b.p[b.len - 1] == '\n');
    b.p[b.len - 1] = '\0';
    assert_memory_equal(b.p, "{\"ts\":\"20", 9);
    assert_memory_equal(b.p + 7 + AUDIT_TIME_LEN, "\",\"event\":\"test\"", 16);
    char *rest = strdup(b.p + 7 + AUDIT_TIME_LEN + 16);
    buf_fini(&b);
    return rest;
}

static void add_argv(struct audit *a, const char *const *argv) {
    struct audit_argv v;
    audit_argv_begin(a, &v);
    for (; *argv != NULL; argv++)
        audit_argv_add(a, &v, str_of(*argv));
    audit_argv_end(a, &v);
}

static void fill_members(struct audit *a) {
    audit_text(a, "text",
               STR_LIT("a\"\n\xFF"
                       "b\xC3"),
               100);
    audit_text(a, "cut", STR_LIT("ab\xC3\xA4"), 3);
    audit_text(a, "none", (struct str){NULL, 0}, 3);
    audit_number(a, "n", -5);
    audit_flag(a, "f", true);
    audit_json(a, "j", STR_LIT("[1]"));
}

static void members(void **state) {
    (void)state;
    _cleanup_free_ char *line = line_of(fill_members);
    assert_string_equal(line, ",\"text\":\"a\\\"\\n\xEF\xBF\xBD"
                              "b\xEF\xBF\xBD\",\"cut\":\"ab\","
                              "\"none\":\"\",\"n\":-5,\"f\":true,\"j\":[1]}");
}

static void fill_argv(struct audit *a) {
    const char *const argv[] = {"sh", "-c", "TOKEN=x run", "--token", "y", "z", "", NULL};
    add_argv(a, argv);
}

static void argv_line(void **state) {
    (void)state;
    _cleanup_free_ char *line = line_of(fill_argv);
    assert_string_equal(line, ",\"argv\":[\"sh\",\"-c\",\"TOKEN=[redacted] run\",\"--token\","
                              "\"[redacted]\",\"z\",\"\"]}");
}

static char long_text[3 * AUDIT_ARGV_MAX];

static void fill_long_argv(struct audit *a) {
    const char *const argv[] = {"echo", long_text, "more", NULL};
    memset(long_text, 'x', sizeof long_text - 1);
    add_argv(a, argv);
}

static void argv_cut(void **state) {
    (void)state;
    _cleanup_free_ char *line = line_of(fill_long_argv);
    assert_memory_equal(line, ",\"argv\":[\"echo\",\"xxx", 20);
    const char *end = strstr(line, "xxx...\"],\"argvCut\":true}");
    assert_non_null(end);
    assert_in_range(strlen(line), AUDIT_ARGV_MAX, AUDIT_ARGV_MAX + 100);
    assert_null(strstr(line, "more"));
}

/* Control characters take six bytes each: the longest argv still makes a line. */
static void fill_control_argv(struct audit *a) {
    const char *const argv[] = {long_text, NULL};
    memset(long_text, 1, sizeof long_text - 1);
    add_argv(a, argv);
}

static void argv_escapes(void **state) {
    (void)state;
    _cleanup_free_ char *line = line_of(fill_control_argv);
    assert_in_range(strlen(line), 6 * AUDIT_ARGV_MAX, AUDIT_LINE_MAX);
}

/* -- the file -- */

static void open_errors(void **state) {
    (void)state;
    struct audit a;
    _cleanup_err_ struct err e = ERR_INIT;
    assert_true(audit_open(&a, "no/such/dir", &e) < 0);
    assert_string_equal(err_msg(&e), "cannot open the audit log no/such/dir: "
                                     "No such file or directory (os error 2)");
    assert_false(audit_enabled(&a));
    audit_close(&a);
    assert_int_equal(audit_dropped(&a), 0);
}

static void put_number(struct audit_ring *r, unsigned n) {
    char line[64];
    int len = snprintf(line, sizeof line, "{\"n\":%u}\n", n);
    audit_ring_put(r, line, (size_t)len);
}

static struct audit_ring *ring_open(const char *path) {
    _cleanup_err_ struct err e = ERR_INIT;
    struct audit_ring *r = audit_ring_new(path, &e);
    assert_non_null(r);
    return r;
}

/* Appended to what is there, private, close-on-exec; everything is in it after the close. */
static void file_append(void **state) {
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        struct audit_ring *r = ring_open("log");
        put_number(r, i);
        audit_ring_close(r);
    }
    struct stat st;
    _cleanup_buf_ struct buf b = BUF_INIT(4096 * 2);
    assert_int_equal(stat("log", &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    read_all("log", &b);
    assert_int_equal(b.len, 24);
    assert_memory_equal(b.p, "{\"n\":0}\n{\"n\":1}\n{\"n\":2}\n", 24);
    unlink("log");
}

/* Waits until a file has as many bytes. */
static void wait_size(const char *path, off_t want) {
    struct stat st;
    for (int i = 0; i < PATIENCE_MS; i++) {
        if (stat(path, &st) == 0 && st.st_size == want)
            return;
        poll(NULL, 0, 1);
    }
    fail_msg("%s does not get %jd bytes", path, (intmax_t)want);
}

static void file_rotation(void **state) {
    (void)state;
    struct audit_ring *r = ring_open("log");
    put_number(r, 1);
    wait_size("log", 8);
    assert_int_equal(rename("log", "old"), 0);
    audit_ring_reopen(r);
    wait_size("log", 0);
    put_number(r, 2);
    wait_size("log", 8);
    audit_ring_close(r);
    struct stat st;
    assert_int_equal(stat("old", &st), 0);
    assert_int_equal(st.st_size, 8);
    unlink("old");
    unlink("log");
}

/* -- drops -- */

/* Reads a line off a FIFO; false at the deadline. */
static bool next_line(FILE *f, char *line, size_t size) {
    return fgets(line, (int)size, f) != NULL;
}

/* What the reader of a FIFO found. */
struct tally {
    unsigned lines, next; /* numbered lines; the number expected next */
    unsigned reports;     /* lines about dropped ones */
    uint64_t dropped;     /* lines they tell of */
};

static void count_line(struct tally *t, const char *line) {
    unsigned n;
    uint64_t count;
    char ts[AUDIT_TIME_LEN + 1];
    if (sscanf(line, "{\"n\":%u", &n) == 1) {
        assert_int_equal(n, t->next); /* the report stands in the place of what is missing */
        t->next++;
        t->lines++;
    } else {
        int got = sscanf(line, "{\"ts\":\"%24[^\"]\",\"event\":\"dropped\",\"count\":%" SCNu64 "}",
                         ts, &count);
        assert_int_equal(got, 2);
        assert_int_equal(strlen(ts), AUDIT_TIME_LEN);
        t->reports++;
        t->dropped += count;
        t->next += (unsigned)count;
    }
}

/* Nobody reads: the ring fills up, puts do not wait, and every missing line is accounted for. */
static void ring_full(void **state) {
    (void)state;
    enum { LINES = 200000 };
    struct tally t = {0};
    char line[256];
    assert_int_equal(mkfifo("fifo", 0600), 0);
    struct audit_ring *r = ring_open("fifo");
    for (unsigned i = 0; i < LINES; i++)
        put_number(r, i);
    uint64_t dropped = audit_ring_dropped(r);
    assert_in_range(dropped, 1, LINES - AUDIT_RING / 16);
    assert_in_range(audit_ring_waiting(r), AUDIT_RING / 8, AUDIT_RING); /* no share for refusals */
    FILE *f = fopen("fifo", "re");
    assert_non_null(f);
    while (t.lines + t.dropped < LINES && next_line(f, line, sizeof line))
        count_line(&t, line);
    assert_int_equal(t.lines + t.dropped, LINES);
    assert_int_equal(t.dropped, dropped);
    assert_int_equal(audit_ring_dropped(r), dropped);
    assert_int_equal(t.reports, 1);
    /* It goes on as if nothing had happened. */
    put_number(r, LINES);
    assert_true(next_line(f, line, sizeof line));
    count_line(&t, line);
    assert_int_equal(t.next, LINES + 1);
    audit_ring_close(r);
    fclose(f);
    unlink("fifo");
}

/* A line that could not be made counts too. */
static void ring_drop(void **state) {
    (void)state;
    struct audit_ring *r = ring_open("log");
    audit_ring_drop(r);
    put_number(r, 1);
    assert_int_equal(audit_ring_dropped(r), 1);
    audit_ring_close(r);
    _cleanup_buf_ struct buf b = BUF_INIT(4096 * 2);
    read_all("log", &b);
    assert_int_equal(buf_putc(&b, '\0'), 0);
    struct tally t = {0};
    const char *second = strchr(b.p, '\n') + 1;
    count_line(&t, b.p);
    assert_int_equal(t.dropped, 1);
    count_line(&t, second);
    assert_int_equal(t.lines, 1);
    unlink("log");
}

/* A full disk: what fits in the ring waits there, the rest is dropped; closing does not hang. */
static void disk_full(void **state) {
    (void)state;
    struct audit_ring *r = ring_open("/dev/full");
    put_number(r, 0);
    assert_int_equal(audit_ring_dropped(r), 0);
    for (unsigned i = 1; i < 2 * AUDIT_RING / 8; i++)
        put_number(r, i);
    assert_true(audit_ring_dropped(r) > 0);
    audit_ring_close(r);
}

/* The log moves from a full disk to a new file: nothing is lost. */
static void disk_replaced(void **state) {
    (void)state;
    assert_int_equal(symlink("/dev/full", "log"), 0);
    struct audit_ring *r = ring_open("log");
    put_number(r, 0);
    put_number(r, 1);
    assert_int_equal(unlink("log"), 0);
    audit_ring_reopen(r);
    wait_size("log", 16);
    assert_int_equal(audit_ring_dropped(r), 0);
    audit_ring_close(r);
    unlink("log");
}

/* Nobody ever reads: closing gives up. */
static void close_stuck(void **state) {
    (void)state;
    assert_int_equal(mkfifo("fifo", 0600), 0);
    struct audit_ring *r = ring_open("fifo");
    for (unsigned i = 0; i < AUDIT_RING / 8; i++)
        put_number(r, i);
    audit_ring_close(r);
    unlink("fifo");
}

int main(void) {
    log_init(LOG_LEVEL_OFF, STDERR_FILENO);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(redact_arguments), cmocka_unit_test(redact_scripts),
        cmocka_unit_test(redact_spares),    cmocka_unit_test(redact_bounds),
        cmocka_unit_test(members),          cmocka_unit_test(argv_line),
        cmocka_unit_test(argv_cut),         cmocka_unit_test(argv_escapes),
        cmocka_unit_test(open_errors),      cmocka_unit_test(file_append),
        cmocka_unit_test(file_rotation),    cmocka_unit_test(ring_full),
        cmocka_unit_test(ring_drop),        cmocka_unit_test(disk_full),
        cmocka_unit_test(disk_replaced),    cmocka_unit_test(close_stuck),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
