#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define STAMP "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z"

struct fixture {
    int fds[2]; /* a pipe: the log writes to fds[1], the test reads fds[0] without waiting */
    char text[65536];
};

static int setup(void **state) {
    struct fixture *f = calloc(1, sizeof(*f));
    if (f == NULL || pipe2(f->fds, O_CLOEXEC) != 0)
        return -1;
    fcntl(f->fds[0], F_SETFL, O_NONBLOCK);
    log_init(LOG_LEVEL_DEBUG, f->fds[1]);
    *state = f;
    return 0;
}

static int teardown(void **state) {
    struct fixture *f = *state;
    log_init(LOG_LEVEL_ERROR, STDERR_FILENO);
    util_close_fd(&f->fds[0]);
    util_close_fd(&f->fds[1]);
    free(f);
    return 0;
}

/* Everything the log wrote since the last call. */
static const char *written(struct fixture *f) {
    size_t n = 0;
    ssize_t r;
    while (n < sizeof(f->text) - 1 &&
           (r = read(f->fds[0], f->text + n, sizeof(f->text) - 1 - n)) > 0)
        n += (size_t)r;
    f->text[n] = '\0';
    return f->text;
}

static void assert_matches(const char *text, const char *pattern) {
    regex_t re;
    assert_int_equal(regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB), 0);
    if (regexec(&re, text, 0, NULL, 0) != 0)
        fail_msg("`%s` does not match `%s`", text, pattern);
    regfree(&re);
}

/* The message of the one line in text: what follows the time and the level. */
static const char *message(const char *text) {
    const char *p = strchr(text, ' ');
    assert_non_null(p);
    p = strchr(p + 1, ' ');
    assert_non_null(p);
    return p + 1;
}

static void test_line_form(void **state) {
    struct fixture *f = *state;
    log_error("n=%d", 7);
    assert_matches(written(f), "^" STAMP " ERROR n=7\n$");
    log_warn("plain");
    assert_matches(written(f), "^" STAMP " WARN plain\n$");
    log_info("%s", "grüße");
    assert_matches(written(f), "^" STAMP " INFO grüße\n$");
    log_debug("%s", "");
    assert_matches(written(f), "^" STAMP " DEBUG \n$");
}

static int evaluated;

static int evaluate(void) {
    return ++evaluated;
}

static void test_levels(void **state) {
    struct fixture *f = *state;
    log_init(LOG_LEVEL_WARN, f->fds[1]);
    evaluated = 0;
    log_info("%d", evaluate());
    log_debug("%d", evaluate());
    assert_int_equal(evaluated, 0);
    assert_string_equal(written(f), "");
    log_warn("%d", evaluate());
    assert_int_equal(evaluated, 1);
    assert_matches(written(f), " WARN 1\n$");

    log_init(LOG_LEVEL_OFF, f->fds[1]);
    log_error("%d", evaluate());
    assert_int_equal(evaluated, 1);
    assert_string_equal(written(f), "");
}

static void test_level_names(void **state) {
    (void)state;
    static const char *const names[] = {"off", "error", "warn", "info", "debug"};
    for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
        enum log_level level = LOG_LEVEL_OFF;
        assert_true(log_level_parse(names[i], &level));
        assert_int_equal(level, i);
    }
    enum log_level level = LOG_LEVEL_INFO;
    assert_false(log_level_parse("WARN", &level));
    assert_false(log_level_parse("", &level));
    assert_false(log_level_parse("warning", &level));
    assert_int_equal(level, LOG_LEVEL_INFO);
}

static void test_escapes(void **state) {
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"a\nb", "a\\nb\n"},
        {"\r\t", "\\r\\t\n"},
        {"\x1b[31m", "\\x1b[31m\n"},
        {"\x7f\x01", "\\x7f\\x01\n"},
        {"C:\\x", "C:\\\\x\n"},
        {"\xc2\x85", "\\xc2\\x85\n"},          /* U+0085, a line break to some */
        {"\xc2\xa0", "\xc2\xa0\n"},            /* U+00A0 */
        {"\xff\xfe", "\\xff\\xfe\n"},          /* never UTF-8 */
        {"\xc3", "\\xc3\n"},                   /* cut short */
        {"\xed\xa0\x80", "\\xed\\xa0\\x80\n"}, /* a surrogate */
        {"\xf0\x9f\x8c\x8d", "\xf0\x9f\x8c\x8d\n"},
        {"a\xe2\x80\xa8\xe2\x80\xa9z", "a\\u2028\\u2029z\n"}, /* line breaks to some */
        {"\xe2\x80\xae\xe2\x81\xa6\xe2\x80\x8f",
         "\\u202e\\u2066\\u200f\n"}, /* they turn what follows */
        {"\xe2\x80\xa6\xe2\x82\xac", "\xe2\x80\xa6\xe2\x82\xac\n"},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        log_info("%s", cases[i].in);
        assert_string_equal(message(written(f)), cases[i].out);
    }
}

static void test_forged_line(void **state) {
    struct fixture *f = *state;
    log_info("%s", "x\n2030-01-01T00:00:00.000Z ERROR forged");
    const char *text = written(f);
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

static void test_length(void **state) {
    static const struct {
        char c;
        const char *escaped;
    } fills[] = {{'a', "a"}, {'\n', "\\n"}, {'\x01', "\\x01"}, {'\\', "\\\\"}, {'\xff', "\\xff"}};
    struct fixture *f = *state;
    char big[2 * LOG_LINE_MAX];
    for (size_t i = 0; i < ARRAY_LEN(fills); i++) {
        size_t width = strlen(fills[i].escaped);
        for (size_t n = 1; n < sizeof(big); n++) {
            memset(big, fills[i].c, n);
            big[n] = '\0';
            log_info("%s", big);
            const char *text = written(f), *msg = message(text);
            size_t len = strlen(text);
            assert_true(len <= LOG_LINE_MAX);
            assert_ptr_equal(strchr(text, '\n'), text + len - 1);
            size_t shown = 0;
            while (strncmp(msg + shown * width, fills[i].escaped, width) == 0)
                shown++;
            assert_true(shown <= n);
            assert_string_equal(msg + shown * width, shown == n ? "\n" : "...\n");
            assert_true(shown == n || len > LOG_LINE_MAX - 12);
        }
    }
}

/* Fills the pipe through the log itself; the number of lines it took. */
static unsigned fill(void) {
    unsigned n = 0;
    while (log_dropped() == 0) {
        log_info("line %u", n);
        n++;
    }
    return n - 1;
}

static void test_full_pipe(void **state) {
    struct fixture *f = *state;
    fcntl(f->fds[1], F_SETPIPE_SZ, 4096);
    unsigned taken = fill();
    assert_true(taken > 0);
    log_info("lost too");
    assert_int_equal(log_dropped(), 2);
    assert_int_equal(fcntl(f->fds[1], F_GETFL) & O_NONBLOCK, 0);

    char expected[64];
    snprintf(expected, sizeof(expected), "INFO line %u\n", taken - 1);
    const char *last = strstr(written(f), expected);
    assert_non_null(last);
    assert_string_equal(last, expected);

    log_info("back");
    assert_int_equal(log_dropped(), 0);
    assert_int_equal(log_dropped_total(), 2);
    assert_matches(written(f), "^" STAMP " WARN 2 log lines were dropped\n" STAMP " INFO back\n$");
}

/* SIGPIPE keeps its default action here: a write would end the test. */
static void test_reader_gone(void **state) {
    struct fixture *f = *state;
    util_close_fd(&f->fds[0]);
    log_error("nobody reads this");
    assert_int_equal(log_dropped(), 1);
}

static void test_closed_descriptor(void **state) {
    struct fixture *f = *state;
    util_close_fd(&f->fds[1]);
    log_error("nowhere");
    assert_int_equal(log_dropped(), 1);
    log_init(LOG_LEVEL_DEBUG, -1);
    log_error("nowhere");
    assert_int_equal(log_dropped(), 1);
}

static void test_errno_kept(void **state) {
    struct fixture *f = *state;
    errno = ENOTTY;
    log_info("x");
    assert_int_equal(errno, ENOTTY);
    util_close_fd(&f->fds[1]);
    errno = ENOTTY;
    log_info("x");
    assert_int_equal(errno, ENOTTY);
}

/* -- events -- */

static void event(const char *value) {
    const struct log_field fields[] = {
        {"cwd", str_of(value)}, {"none", STR_LIT("")}, {"peer", STR_LIT("[::1]:5")}};
    log_fields(LOG_LEVEL_INFO, "process started", fields, ARRAY_LEN(fields));
}

static void test_fields(void **state) {
    static const struct {
        const char *in, *text, *json;
    } cases[] = {
        {"/tmp", "/tmp", "/tmp"},
        {"/a b", "\"/a b\"", "/a b"},
        {"a=b", "\"a=b\"", "a=b"},
        {"a\"b\\", "\"a\\\"b\\\\\"", "a\\\"b\\\\"},
        {"a\nb\x01", "\"a\\nb\\x01\"", "a\\nb\\u0001"},
        {"\xff", "\"\\xff\"", "\xef\xbf\xbd"},
        {"\xc2\x85", "\"\\xc2\\x85\"", "\xef\xbf\xbd\xef\xbf\xbd"},
    };
    struct fixture *f = *state;
    char want[256];
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        log_set_format(LOG_FORMAT_TEXT, false);
        event(cases[i].in);
        snprintf(want, sizeof want, "process started: cwd=%s peer=[::1]:5\n", cases[i].text);
        assert_string_equal(message(written(f)), want);
        log_set_format(LOG_FORMAT_JSON, false);
        event(cases[i].in);
        const char *text = written(f);
        assert_matches(text, "^\\{\"ts\":\"" STAMP "\",\"level\":\"info\",");
        snprintf(want, sizeof want,
                 "\"message\":\"process started\",\"cwd\":\"%s\",\"peer\":\"[::1]:5\"}\n",
                 cases[i].json);
        assert_string_equal(strstr(text, "\"message\""), want);
    }
    log_set_format(LOG_FORMAT_JSON, false);
    log_warn("%s", "say \"x\"");
    assert_non_null(strstr(written(f), "\"message\":\"say \\\"x\\\"\"}\n"));
}

/* A line of JSON stays whole, however long its texts are and however much they grow. */
static void test_long_json(void **state) {
    static const char fills[] = {'a', '\x01', '"', '\xff'};
    struct fixture *f = *state;
    char big[2 * LOG_LINE_MAX];
    log_set_format(LOG_FORMAT_JSON, false);
    for (size_t i = 0; i < sizeof fills; i++) {
        for (size_t n = 1; n < sizeof big; n += 7) {
            memset(big, fills[i], n);
            big[n] = '\0';
            const struct str value = str_of(big);
            const struct log_field fields[] = {{"a", value}, {"b", value}, {"c", value},
                                               {"d", value}, {"e", value}, {"f", value}};
            log_fields(LOG_LEVEL_INFO, "m", fields, ARRAY_LEN(fields));
            const char *text = written(f);
            size_t len = strlen(text), quotes = 0;
            assert_true(len <= LOG_LINE_MAX);
            assert_string_equal(text + len - 3, "\"}\n");
            for (size_t at = 0; at < len; at++) {
                if (text[at] == '\\')
                    at++;
                else
                    quotes += text[at] == '"';
            }
            assert_int_equal(quotes % 2, 0);
            log_info("%s", big);
            text = written(f);
            assert_string_equal(text + strlen(text) - 3, "\"}\n");
        }
    }
}

static void test_journal(void **state) {
    struct fixture *f = *state;
    struct stat st;
    char own[64];
    assert_int_equal(fstat(f->fds[1], &st), 0);
    snprintf(own, sizeof own, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    assert_true(log_is_journal(f->fds[1], own));
    assert_false(log_is_journal(f->fds[1], "1:2"));
    assert_false(log_is_journal(f->fds[1], ""));
    assert_false(log_is_journal(f->fds[1], NULL));
    log_set_format(LOG_FORMAT_TEXT, true);
    log_error("a");
    log_warn("b");
    event("/");
    log_debug("d");
    assert_string_equal(written(f), "<3>a\n<4>b\n<6>process started: cwd=/ peer=[::1]:5\n<7>d\n");
    log_set_format(LOG_FORMAT_JSON, true);
    log_warn("b");
    assert_matches(written(f), "^<4>\\{\"ts\":");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_line_form),  TEST(test_levels),      TEST(test_level_names),
        TEST(test_escapes),    TEST(test_forged_line), TEST(test_length),
        TEST(test_full_pipe),  TEST(test_reader_gone), TEST(test_closed_descriptor),
        TEST(test_errno_kept), TEST(test_fields),      TEST(test_long_json),
        TEST(test_journal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
