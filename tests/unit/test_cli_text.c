/* Texts: foreign ones, operands, the meter. */

#include "cli/cli_text.h"

#include "cli/cli_meter.h"
#include "cli/cli_path.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

static void shown(struct str s, const char *wanted) {
    char *text = cli_text_dup(s, 1000);
    assert_string_equal(text, wanted);
    free(text);
}

static void foreign_texts(void **state) {
    (void)state;
    shown(STR_LIT("a b\\c"), "a b\\c");
    shown(STR_LIT("\033]0;x\007\n\0y"), "\\x1b]0;x\\x07\\x0a\\x00y");
    shown(STR_LIT("\177\303\244"), "\\x7f\303\244");
    shown(STR_LIT("\302\233x"), "\\u{009b}x");         /* CSI as one character */
    shown(STR_LIT("\233x\377"), "\\x9bx\\xff");        /* and as one byte */
    shown(STR_LIT("\342\200\256x"), "\\u{202e}x");     /* turns the direction round */
    shown(STR_LIT("\355\240\200"), "\\xed\\xa0\\x80"); /* a surrogate */
    shown(STR_LIT(""), "");
    char *text = cli_text_dup(STR_LIT("abcdef"), 3);
    assert_string_equal(text, "abc...");
    free(text);
}

static void operand(const char *text, const char *host, const char *path) {
    struct cli_path p = cli_path_parse(text);
    assert_int_equal(p.remote, host != NULL);
    if (host != NULL)
        assert_true(str_eqz(p.host, host));
    assert_string_equal(p.path, path);
}

static void operands(void **state) {
    (void)state;
    operand("a", NULL, "a");
    operand("./a:b", NULL, "./a:b");
    operand("/a:b", NULL, "/a:b");
    operand("", NULL, "");
    operand(":/tmp", "", "/tmp");
    operand(":", "", ".");
    operand("dev:", "dev", ".");
    operand("dev:a:b", "dev", "a:b");
    operand("local:/x", "local", "/x");
    operand("ws://127.0.0.1:8080:/tmp/x", "ws://127.0.0.1:8080", "/tmp/x");
    operand("ws://127.0.0.1:8080:x", "ws://127.0.0.1:8080", "x");
    operand("ws://h:/tmp", "ws://h", "/tmp");
    operand("ws://[::1]:80:/x", "ws://[::1]:80", "/x");
    operand("ws://[::1]:", "ws://[::1]", ".");
    operand("unix:///run/s:/etc", "unix:///run/s", "/etc");
    operand("wss://h:443/p:rel", "wss://h:443/p", "rel");
    operand("ws://h:80", "ws://h", "80"); /* not a port: nothing would be left */
}

static void bases(void **state) {
    (void)state;
    assert_true(str_eqz(cli_path_base("/a/b"), "b"));
    assert_true(str_eqz(cli_path_base("a/b//"), "b"));
    assert_true(str_eqz(cli_path_base("b"), "b"));
    assert_true(str_eqz(cli_path_base("/"), ""));
    assert_true(str_eqz(cli_path_base(""), ""));
    char *joined = cli_path_join("a", STR_LIT("b"));
    assert_string_equal(joined, "a/b");
    free(joined);
    joined = cli_path_join("/", STR_LIT("b"));
    assert_string_equal(joined, "/b");
    free(joined);
}

static void meter(void **state) {
    (void)state;
    char line[CLI_METER_LINE];
    struct cli_meter m = {.file = "name", .bytes = 500000, .total = 1000000, .rate = 100000};
    cli_meter_line(&m, 80, line);
    assert_string_equal(line, "name   50%  500.0 kB  100.0 kB/s  00:05");
    m.still_ms = CLI_METER_STALLED_MS;
    cli_meter_line(&m, 80, line);
    assert_non_null(strstr(line, "stalled"));
    m = (struct cli_meter){.file = "\033[2J", .bytes = 1, .rate = 0};
    cli_meter_line(&m, 80, line);
    assert_string_equal(line, "\\x1b[2J         1 B       0 B/s  --:--");
    char name[1000];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    m = (struct cli_meter){.file = name, .bytes = UINT64_MAX, .total = UINT64_MAX, .rate = 1e300};
    for (unsigned width = 0; width < 1000; width++) {
        cli_meter_line(&m, width, line);
        assert_true(strlen(line) <= (width > 60 ? width : 60));
    }
    m.bytes = 0;
    m.rate = 1e15;
    cli_meter_line(&m, 80, line);
    assert_non_null(strstr(line, "5:07:27"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(foreign_texts),
        cmocka_unit_test(operands),
        cmocka_unit_test(bases),
        cmocka_unit_test(meter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
