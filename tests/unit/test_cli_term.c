/* Terminals: escapes, modes, raw mode on a real pseudo-terminal. */

#include "cli/cli_escape.h"
#include "cli/cli_modes.h"
#include "cli/cli_term.h"

#include <fcntl.h>
#include <pty.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <cmocka.h>

/* What is sent of a text that is typed in pieces of `step` bytes; actions as {NUMBER}. */
static void typed(const char *text, size_t step, char *out) {
    struct cli_escape s = CLI_ESCAPE_INIT('~');
    size_t n = strlen(text), sent = 0;
    for (size_t at = 0; at < n;) {
        enum cli_escape_action action;
        size_t got, piece = n - at < step ? n - at : step;
        at += cli_escape_feed(&s, text + at, piece, out + sent, &got, &action);
        sent += got;
        if (action != CLI_ESCAPE_NONE) {
            out[sent++] = '{';
            out[sent++] = (char)('0' + action);
            out[sent++] = '}';
        }
    }
    out[sent] = '\0';
}

static void escapes(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"ls\r", "ls\r"},      {"~.", "{1}"},          {"a~.", "a~."},     {"a\r~.b", "a\r{1}b"},
        {"\n~d", "\n{2}"},     {"~\032x", "{3}x"},     {"~r~r", "{4}{4}"}, {"~?~.", "{5}{1}"},
        {"~~", "~"},           {"~~.", "~."},          {"~x", "~x"},       {"~\r~.", "~\r{1}"},
        {"a~\r~~~", "a~\r~~"}, {"\r\r~\r", "\r\r~\r"},
    };
    char out[64];
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        for (size_t step = 1; step < 8; step++) {
            typed(cases[i][0], step, out);
            assert_string_equal(out, cases[i][1]);
        }
    }
}

static void no_escapes(void **state) {
    (void)state;
    struct cli_escape s = CLI_ESCAPE_INIT(-1);
    enum cli_escape_action action;
    char out[8];
    size_t n;
    assert_int_equal(cli_escape_feed(&s, "\r~.\377", 4, out, &n, &action), 4);
    assert_int_equal(n, 4);
    assert_memory_equal(out, "\r~.\377", 4);
}

static void restored(const char *output, const char *wanted) {
    char text[CLI_MODES_RESTORE_MAX];
    for (size_t step = 1; step < 6; step++) {
        struct cli_modes m = {0};
        for (size_t at = 0, n = strlen(output); at < n; at += step)
            cli_modes_feed(&m, output + at, n - at < step ? n - at : step);
        text[cli_modes_restore(&m, text)] = '\0';
        assert_string_equal(text, wanted);
    }
}

static void modes(void **state) {
    (void)state;
    restored("plain", "");
    restored("\033[?1049h", "\033[?1049l");
    restored("\033[?1049hx\033[?1049l", "");
    restored("\033[?1049;2004;25h", "\033[?2004l\033[?1049l");
    restored("\033[?25l", "\033[?25h");
    restored("\033[?1000h\033[?1006h", "\033[?1000l\033[?1006l");
    restored("\033=\033[?1h", "\033>\033[?1l");
    restored("\033[?1049h\033c", "");
    restored("\033[1049h", "");
    restored("\033[?1049\0331", "");
    restored("\033[31m\033[?2004h\033[0m", "\033[?2004l");
    restored("\033[?999999999999999049h", "");
    restored("\033\033[?1049h", "\033[?1049l");
    restored("\033[?10\n49h", "\033[?1049l");
}

static void all_modes_fit(void **state) {
    (void)state;
    char text[CLI_MODES_RESTORE_MAX];
    struct cli_modes m = {.on = UINT32_MAX};
    assert_true(cli_modes_restore(&m, text) < sizeof text);
    for (int i = 0; i < 256; i++) { /* no byte in any state does harm */
        for (m.state = 0; m.state < 5; m.state++) {
            struct cli_modes copy = m;
            char c = (char)i;
            cli_modes_feed(&copy, &c, 1);
        }
    }
}

static void same_modes(int fd, const struct termios *before) {
    struct termios now;
    assert_int_equal(tcgetattr(fd, &now), 0);
    assert_int_equal(now.c_lflag, before->c_lflag);
    assert_int_equal(now.c_iflag, before->c_iflag);
    assert_int_equal(now.c_oflag, before->c_oflag);
    assert_memory_equal(now.c_cc, before->c_cc, sizeof now.c_cc);
}

static void raw_and_back(void **state) {
    (void)state;
    int master, slave;
    unsigned rows, cols;
    struct termios before, now;
    struct winsize size = {.ws_row = 33, .ws_col = 99};
    struct cli_term t = {.raw = false};
    assert_int_equal(openpty(&master, &slave, NULL, NULL, &size), 0);
    assert_int_equal(tcgetattr(slave, &before), 0);
    assert_int_equal(cli_term_raw(&t, slave), 0);
    assert_int_equal(cli_term_raw(&t, slave), 0);
    assert_int_equal(tcgetattr(slave, &now), 0);
    assert_int_equal(now.c_lflag & (ICANON | ECHO | ISIG), 0);
    cli_term_restore(&t);
    cli_term_restore(&t);
    same_modes(slave, &before);
    assert_true(cli_term_size(slave, &rows, &cols));
    assert_int_equal(rows, 33);
    assert_int_equal(cols, 99);
    assert_false(cli_term_size(-1, &rows, &cols));
    assert_true(cli_term_raw(&(struct cli_term){.raw = false}, -1) < 0);
    close(master);
    close(slave);
}

static void faults_restore(void **state) {
    (void)state;
    static const int signals[] = {SIGSEGV, SIGABRT, SIGALRM};
    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        int master, slave, status;
        struct termios before;
        assert_int_equal(openpty(&master, &slave, NULL, NULL, NULL), 0);
        assert_int_equal(tcgetattr(slave, &before), 0);
        pid_t pid = fork();
        if (pid == 0) {
            struct cli_term t = {.raw = false};
            if (cli_term_raw(&t, slave) == 0)
                raise(signals[i]);
            _exit(9);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), signals[i]);
        same_modes(slave, &before);
        close(master);
        close(slave);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(escapes),      cmocka_unit_test(no_escapes),
        cmocka_unit_test(modes),        cmocka_unit_test(all_modes_fit),
        cmocka_unit_test(raw_and_back), cmocka_unit_test(faults_restore),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
