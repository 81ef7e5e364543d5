/* Rules added to a file: what is written, by many at once, and when it cannot be. */
#include "rules/amend.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <cmocka.h>

#define WRITERS 6
#define RULES 40

static char place[] = "/tmp/test-amend-XXXXXX";
static char path[64];

static int amend_quietly(const char *first, const char *second, int *error) {
    struct str list[] = {str_of(first), str_of(second == NULL ? "" : second)};
    struct execpolicy_words words = {list, second == NULL ? 1 : 2};
    _cleanup_err_ struct err e = ERR_INIT;
    int r = amend_allow(place, &words, NULL, &e);
    if (error != NULL)
        *error = r < 0 ? -r : 0;
    return r;
}

static int add(const char *first, const char *second) {
    return amend_quietly(first, second, NULL);
}

static const char *content(void) {
    static char text[1 << 20];
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    text[n] = '\0';
    fclose(f);
    return text;
}

static void put(const char *text) {
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static int set_up(void **state) {
    (void)state;
    if (mkdtemp(place) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/rules/default.rules", place);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", place);
    return system(command);
}

static int clear(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s/rules", place);
    return system(command);
}

#define LINE(words) "prefix_rule(pattern=[" words "], decision=\"allow\")\n"

static void test_lines(void **state) {
    (void)state;
    assert_int_equal(add("mkdir", "/w/a b"), 1);
    assert_int_equal(add("mkdir", "/w/a b"), 0);
    assert_int_equal(add("a\"\\/\n\x01\x7f\xc3\xa9", NULL), 1);
    assert_string_equal(content(),
                        LINE("\"mkdir\", \"/w/a b\"") LINE("\"a\\\"\\\\/\\n\\u0001\x7f\xc3\xa9\""));
}

static void test_what_was_there(void **state) {
    (void)state;
    assert_int_equal(add("a", NULL), 1);
    put("# mine\nx = 1");
    assert_int_equal(add("a", NULL), 1);
    assert_string_equal(content(), "# mine\nx = 1\n" LINE("\"a\""));
    put("prefix_rule(pattern=[\"a\"], decision=\"allow\")"); /* without a newline */
    assert_int_equal(add("a", NULL), 0);
    put("prefix_rule(pattern=[\"a\"], decision=\"allow\")\r\nx = 1\r\n");
    assert_int_equal(add("a", NULL), 0);
    assert_int_equal(add("a", "b"), 1);
    put("# prefix_rule(pattern=[\"a\"], decision=\"allow\")\n");
    assert_int_equal(add("a", NULL), 1);
}

/* A rule that was written is read back as itself. */
static void test_reading_back(void **state) {
    (void)state;
    static const char *const words[] = {"\x01\x02\x1f\x7f", "\b\f\n\r\t\v", "\\q \\/ \"'`$",
                                        "\xf0\x9f\x90\x9a", ""};
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        _cleanup_arena_ struct arena a = ARENA_INIT(1u << 20);
        _cleanup_buf_ struct buf error = BUF_INIT(65536);
        struct str list[] = {STR_LIT("first"), str_of(words[i])};
        struct execpolicy_words command = {list, 2};
        struct execpolicy_matches m;
        assert_int_equal(clear(NULL), 0);
        assert_int_equal(add("first", words[i]), 1);
        struct execpolicy *p = execpolicy_new();
        assert_int_equal(execpolicy_add(p, "x", str_of(content()), &error), 0);
        assert_int_equal(execpolicy_check(p, &command, NULL, &a, &m), 0);
        assert_int_equal(m.n, 1);
        execpolicy_free(p);
    }
}

static void test_refusals(void **state) {
    (void)state;
    int error;
    assert_int_equal(add("a", NULL), 1);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("elsewhere", path), 0);
    assert_true(amend_quietly("a", NULL, &error) < 0);
    assert_int_equal(error, ELOOP);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_true(amend_quietly("a", NULL, &error) < 0);
    assert_int_equal(error, EINVAL);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_true(amend_quietly("a", NULL, &error) < 0);
    assert_int_equal(error, EISDIR);
}

/* A write that comes short leaves the file as it was. */
static void test_a_full_disk(void **state) {
    (void)state;
    assert_int_equal(add("first", NULL), 1);
    char before[256];
    snprintf(before, sizeof before, "%s", content());
    for (size_t room = 0; room < 40; room += 13) {
        pid_t pid = fork();
        if (pid == 0) {
            signal(SIGXFSZ, SIG_IGN);
            struct rlimit limit = {strlen(before) + room, strlen(before) + room};
            _exit(setrlimit(RLIMIT_FSIZE, &limit) == 0 && add("a longer rule", NULL) < 0 ? 0 : 1);
        }
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        assert_string_equal(content(), before);
    }
}

static _Noreturn void write_rules(unsigned first, bool for_ever) {
    char word[32];
    for (unsigned i = 0; for_ever || i < RULES; i++) {
        snprintf(word, sizeof word, "rule%u", for_ever ? first + i : (first + i) % RULES);
        if (add(word, NULL) < 0)
            _exit(1);
    }
    _exit(0);
}

/* The number of rules; each must be there once, in a file that is as it should be. */
static int count_rules(void) {
    _cleanup_buf_ struct buf error = BUF_INIT(65536);
    const char *text = content();
    int n = 0;
    struct execpolicy *p = execpolicy_new();
    assert_int_equal(execpolicy_add(p, "x", str_of(text), &error), 0);
    execpolicy_free(p);
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
        n++;
    for (unsigned i = 0; i < RULES; i++) {
        char line[128];
        snprintf(line, sizeof line, LINE("\"rule%u\""), i);
        const char *at = strstr(text, line);
        assert_true(at == NULL || strstr(at + 1, line) == NULL);
    }
    return n;
}

static void test_many_writers(void **state) {
    (void)state;
    pid_t pids[WRITERS];
    for (unsigned i = 0; i < WRITERS; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            write_rules(i * 7, false);
    }
    for (unsigned i = 0; i < WRITERS; i++) {
        int status;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(count_rules(), RULES);
}

static off_t file_size(void) {
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_size;
}

/* Writers that are killed at any instant leave whole lines. */
static void test_killed_writers(void **state) {
    (void)state;
    assert_int_equal(add("zero", NULL), 1);
    for (int i = 0; i < 50; i++) {
        int before = count_rules();
        off_t size = file_size();
        pid_t pid = fork();
        if (pid == 0)
            write_rules((unsigned)i * 1000000, true);
        while (file_size() == size)
            ; /* until it has written */
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        assert_true(count_rules() > before);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_lines, clear),
        cmocka_unit_test_setup(test_what_was_there, clear),
        cmocka_unit_test_setup(test_reading_back, clear),
        cmocka_unit_test_setup(test_refusals, clear),
        cmocka_unit_test_setup(test_a_full_disk, clear),
        cmocka_unit_test_setup(test_many_writers, clear),
        cmocka_unit_test_setup(test_killed_writers, clear),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
