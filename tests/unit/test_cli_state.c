#include "cli/cli_keep.h"

#include "base/crypto.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#define ID "01234567-89ab-4def-8123-456789abcdef"
#define BEGIN "{\"version\":1,\"host\":\"h\",\"sessionId\":\"" ID "\",\"processId\":\"p\","
#define GOOD BEGIN "\"command\":\"ls\",\"name\":\"n\",\"tty\":false,\"startedAtMs\":5}"

static struct cli_state example(void) {
    return (struct cli_state){.name = strdup("job"),
                              .host = strdup("ws://127.0.0.1:1"),
                              .session = strdup(ID),
                              .process = strdup("p-1"),
                              .command = strdup("sh -c 'x \"y\"'"),
                              .tty = true,
                              .started_ms = 1234567890123};
}

static int decode(const char *text, struct cli_state *s) {
    struct err e = ERR_INIT;
    int r = cli_state_decode(str_of(text), s, &e);
    assert_true(r == 0 || e.code != 0);
    err_fini(&e);
    return r;
}

static void round_trip(void **state) {
    (void)state;
    struct cli_state s = example(), back;
    struct buf text = BUF_INIT(CLI_STATE_MAX);
    assert_int_equal(cli_state_encode(&s, &text), 0);
    assert_int_equal(buf_putc(&text, '\0'), 0);
    assert_int_equal(decode(text.p, &back), 0);
    assert_string_equal(back.name, s.name);
    assert_string_equal(back.command, s.command);
    assert_null(back.token_file);
    assert_null(back.owner);
    assert_true(back.tty);
    assert_int_equal(back.started_ms, s.started_ms);
    cli_state_fini(&s);
    cli_state_fini(&back);
    buf_fini(&text);
}

static void strict(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        GOOD "x",
        "{\"version\":2,\"host\":\"h\"}",
        BEGIN "\"command\":\"ls\",\"tty\":false,\"startedAtMs\":5}",
        BEGIN "\"command\":\"ls\",\"name\":\"../n\",\"tty\":false}",
        BEGIN "\"command\":\"ls\",\"name\":\"n\",\"token\":\"secret\"}",
        BEGIN "\"command\":\"ls\",\"name\":\"n\",\"tty\":1}",
        BEGIN "\"command\":\"ls\",\"name\":\"n\",\"startedAtMs\":-1}",
        BEGIN "\"command\":\"\",\"name\":\"n\"}",
        BEGIN "\"command\":7,\"name\":\"n\"}",
        BEGIN "\"command\":\"a\\u0000b\",\"name\":\"n\"}",
        BEGIN "\"command\":\"ls\",\"name\":\"n\",\"owner\":\"x\"}",
        BEGIN "\"command\":\"ls\",\"name\":\"n\",\"name\":\"n\"}",
        ("{\"version\":1,\"host\":\"h\",\"sessionId\":\"x\",\"processId\":\"p\",\"command\":\"c\","
         "\"name\":\"n\"}"),
        "\377",
    };
    struct cli_state s;
    assert_int_equal(decode(GOOD, &s), 0);
    cli_state_fini(&s);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(decode(bad[i], &s), -EINVAL);
}

static void files(void **state) {
    (void)state;
    char place[] = "/tmp/test-cli-state-XXXXXX", directory[64], path[128];
    struct err e = ERR_INIT;
    struct stat st;
    char **names;
    struct cli_state s = example(), back;
    assert_non_null(mkdtemp(place));
    snprintf(directory, sizeof directory, "%s/a/exec-server", place);
    assert_int_equal(cli_keep_names(directory, &names, &e), 0);
    assert_null(names[0]);
    cli_keep_names_free(names);
    assert_int_equal(cli_keep_read(directory, "job", &back, &e), -ENOENT);
    assert_int_equal(cli_keep_create(directory, &s, &e), 0);
    assert_int_equal(cli_keep_create(directory, &s, &e), -EEXIST);
    snprintf(path, sizeof path, "%s/job.json", directory);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    s.owner = strdup(ID);
    assert_int_equal(cli_keep_replace(directory, &s, &e), 0);
    assert_int_equal(cli_keep_read(directory, "job", &back, &e), 0);
    assert_string_equal(back.owner, ID);
    cli_state_fini(&back);
    assert_int_equal(cli_keep_names(directory, &names, &e), 0);
    assert_string_equal(names[0], "job");
    assert_null(names[1]);
    cli_keep_names_free(names);
    assert_int_equal(chmod(path, 0622), 0);
    assert_int_equal(cli_keep_read(directory, "job", &back, &e), -EINVAL);
    assert_int_equal(chmod(path, 0600), 0);
    cli_keep_remove(directory, "job", "another");
    assert_int_equal(access(path, F_OK), 0);
    cli_keep_remove(directory, "job", ID);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    assert_true(cli_keep_read(directory, "job", &back, &e) < 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(directory), 0);
    snprintf(path, sizeof path, "%s/a", place);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(place), 0);
    cli_state_fini(&s);
    err_fini(&e);
}

static void directories(void **state) {
    (void)state;
    struct err e = ERR_INIT;
    char *path = cli_keep_directory("/s", "/h", &e);
    assert_string_equal(path, "/s/exec-server");
    free(path);
    path = cli_keep_directory("relative", "/h", &e);
    assert_string_equal(path, "/h/.local/state/exec-server");
    free(path);
    assert_null(cli_keep_directory(NULL, "", &e));
    err_fini(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(strict),
        cmocka_unit_test(files),
        cmocka_unit_test(directories),
    };
    crypto_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
