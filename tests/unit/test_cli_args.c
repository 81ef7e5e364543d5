#include "cli/cli_args.h"

#include "cli/cli_completion.h"
#include "cli/cli_help.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#define WORDS_MAX 32

/* The words of a line, split at blanks, as argv. */
static int parse(const char *line, struct cli_args *args, struct err *e) {
    static char text[1024];
    static char *argv[WORDS_MAX];
    int argc = 0;
    snprintf(text, sizeof text, "%s", line);
    for (char *p = strtok(text, " "); p != NULL; p = strtok(NULL, " "))
        argv[argc++] = p;
    argv[argc] = NULL;
    return cli_args_parse(argc, argv, args, e);
}

static void refused(const char *line, const char *text) {
    struct cli_args args;
    struct err e = ERR_INIT;
    assert_int_equal(parse(line, &args, &e), -EINVAL);
    if (strstr(err_msg(&e), text) == NULL)
        fail_msg("%s: %s", line, err_msg(&e));
    cli_args_fini(&args);
    err_fini(&e);
}

static void accepted(const char *line, struct cli_args *args) {
    struct err e = ERR_INIT;
    if (parse(line, args, &e) < 0)
        fail_msg("%s: %s", line, err_msg(&e));
}

static void words_of_run(void **state) {
    (void)state;
    struct cli_args a;
    accepted("xs -H here run -it -e A=1 -e B --env=C=2 -w /tmp ls -l --all -- x", &a);
    assert_int_equal(a.command, CLI_RUN);
    assert_string_equal(a.value[CLI_OPT_HOST], "here");
    assert_int_equal(a.count[CLI_OPT_TTY], 1);
    assert_int_equal(a.count[CLI_OPT_INTERACTIVE], 1);
    assert_string_equal(a.value[CLI_OPT_WORKDIR], "/tmp");
    assert_int_equal(a.pair_count, 3);
    assert_string_equal(a.pairs[1].value, "B");
    assert_int_equal(a.operand_count, 5);
    assert_string_equal(a.operands[1], "-l");
    assert_string_equal(a.operands[3], "--");
    assert_null(a.operands[5]);
    cli_args_fini(&a);
}

static void end_of_options(void **state) {
    (void)state;
    struct cli_args a;
    accepted("xs run -- -x -- -y", &a);
    assert_int_equal(a.operand_count, 3);
    assert_string_equal(a.operands[0], "-x");
    assert_string_equal(a.operands[1], "--");
    cli_args_fini(&a);
    accepted("xs rm a -rf b -- -c", &a);
    assert_int_equal(a.operand_count, 3);
    assert_int_equal(a.count[CLI_OPT_RECURSIVE], 1);
    assert_int_equal(a.count[CLI_OPT_FORCE], 1);
    assert_string_equal(a.operands[2], "-c");
    cli_args_fini(&a);
    accepted("xs cat -", &a);
    assert_string_equal(a.operands[0], "-");
    cli_args_fini(&a);
}

static void letters_differ_by_command(void **state) {
    (void)state;
    struct cli_args a;
    accepted("xs ps -w", &a);
    assert_int_equal(a.count[CLI_OPT_PS_WATCH], 1);
    cli_args_fini(&a);
    accepted("xs attach -d x", &a);
    assert_int_equal(a.count[CLI_OPT_STEAL], 1);
    cli_args_fini(&a);
    accepted("xs exec -d -vv x", &a);
    assert_int_equal(a.command, CLI_RUN);
    assert_int_equal(a.count[CLI_OPT_DETACH], 1);
    assert_int_equal(a.count[CLI_OPT_VERBOSE], 2);
    cli_args_fini(&a);
    accepted("xs run -t -T x", &a);
    assert_int_equal(a.count[CLI_OPT_TTY], 0);
    cli_args_fini(&a);
}

static void values(void **state) {
    (void)state;
    struct cli_args a;
    accepted("xs run --timeout 1.5m --escape ^P --status-fd 3 x", &a);
    assert_int_equal(a.number[CLI_OPT_TIMEOUT], 90000);
    assert_int_equal(a.number[CLI_OPT_ESCAPE], 16);
    assert_int_equal(a.number[CLI_OPT_STATUS_FD], 3);
    cli_args_fini(&a);
    accepted("xs run --escape none x", &a);
    assert_int_equal(a.number[CLI_OPT_ESCAPE], -1);
    cli_args_fini(&a);
    accepted("xs kill -sSIGusr1 --grace 0 a b", &a);
    assert_string_equal(a.value[CLI_OPT_SIGNAL], "SIGusr1");
    assert_int_equal(a.count[CLI_OPT_GRACE], 1);
    cli_args_fini(&a);
    accepted("xs run --sandbox read-only --allow-domain a.example --allow-domain b.example x", &a);
    assert_int_equal(a.pair_count, 2);
    cli_args_fini(&a);
}

static void refusals(void **state) {
    (void)state;
    refused("xs", "a command is missing");
    refused("xs frobnicate", "unknown command");
    refused("xs run", "run needs");
    refused("xs run --", "run needs");
    refused("xs ps x", "does not take 'x'");
    refused("xs ps -r", "unknown option '-r'");
    refused("xs --tty run x", "unknown option '--tty'");
    refused("xs run --tty=1 x", "takes no value");
    refused("xs run -w", "needs a value");
    refused("xs run --workdir= x", "not empty");
    refused("xs run --timeout 1y x", "cannot take");
    refused("xs run --timeout 0 x", "out of range");
    refused("xs run --timeout 99999999999999999999 x", "out of range");
    refused("xs run --escape ab x", "cannot take");
    refused("xs run --sandbox open x", "takes one of");
    refused("xs kill -s FOO x", "takes one of");
    refused("xs run --net x", "need --sandbox");
    refused("xs run --sandbox read-only --writable /x x", "workspace-write");
    refused("xs run --sandbox read-only --net --allow-domain a x", "exclude each other");
    refused("xs run --name a/b x", "--name takes");
    refused("xs run -e =x x", "needs a name");
    refused("xs --status-fd 3 ps", "unknown option");
}

static void help_is_always_possible(void **state) {
    (void)state;
    struct cli_args a;
    accepted("xs run --help", &a);
    assert_int_equal(a.count[CLI_OPT_HELP], 1);
    cli_args_fini(&a);
    accepted("xs -V", &a);
    assert_int_equal(a.count[CLI_OPT_VERSION], 1);
    cli_args_fini(&a);
}

static void durations(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {{"0", 0},         {"90", 90000},  {"500ms", 500},
                {"0.0001", 1},    {"1.5s", 1500}, {"2h", 7200000},
                {"1d", 86400000}, {"0.5ms", 1},   {"1.0000000001s", 1000}};
    static const char *const bad[] = {"", "s", "-1", "1.", ".5", "1 s", "1ss", "1e3", "0x1"};
    int64_t ms;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        assert_int_equal(cli_args_duration(good[i].text, &ms), 0);
        assert_int_equal(ms, good[i].ms);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(cli_args_duration(bad[i], &ms), -EINVAL);
    assert_int_equal(cli_args_duration("9223372036854775807", &ms), -ERANGE);
    assert_int_equal(cli_args_duration("92233720368547758070", &ms), -ERANGE);
}

static void names(void **state) {
    (void)state;
    char longest[66];
    memset(longest, 'a', sizeof longest);
    longest[64] = '\0';
    assert_true(cli_args_is_name(longest));
    longest[64] = 'a';
    longest[65] = '\0';
    assert_false(cli_args_is_name(longest));
    assert_true(cli_args_is_name("a.b-c_1"));
    assert_false(cli_args_is_name(""));
    assert_false(cli_args_is_name(".a"));
    assert_false(cli_args_is_name("-a"));
    assert_false(cli_args_is_name("a/b"));
}

/* No command has two options of one name or letter, and no help is missing. */
static void table_is_sound(void **state) {
    (void)state;
    for (unsigned c = 0; c < CLI_COMMANDS; c++) {
        assert_non_null(cli_table_commands[c].help);
        assert_int_equal(cli_table_command(cli_table_commands[c].name), c);
        for (unsigned i = 0; i < CLI_OPTIONS; i++) {
            const struct cli_option_spec *o = &cli_table_options[i];
            assert_non_null(o->help);
            assert_true((o->value == NULL) == (o->kind == CLI_FLAG));
            assert_true(o->complete != CLI_COMPLETE_WORDS || o->words != NULL);
            if (!cli_table_takes((enum cli_command)c, (enum cli_option)i))
                continue;
            assert_int_equal(cli_table_by_name((enum cli_command)c, o->name, strlen(o->name)), i);
            if (o->letter != '\0')
                assert_int_equal(cli_table_by_letter((enum cli_command)c, o->letter), i);
        }
    }
}

/* What a printer prints, to be freed. */
static char *printed(void (*print)(FILE *out)) {
    static char *text; /* gcc takes a local one for the returned pointer's target */
    static size_t n;
    FILE *f = open_memstream(&text, &n);
    print(f);
    fclose(f);
    return text;
}

static void print_all_help(FILE *out) {
    for (unsigned c = 0; c <= CLI_COMMANDS; c++)
        cli_help_print(out, (enum cli_command)c);
}

static void help_fits(void **state) {
    (void)state;
    char *text = printed(print_all_help);
    assert_non_null(strstr(text, "  -e, --env NAME[=VALUE]"));
    assert_non_null(strstr(text, "  completion              print completions for a shell\n"));
    for (char *p = strtok(text, "\n"); p != NULL; p = strtok(NULL, "\n")) {
        if (strlen(p) > 80)
            fail_msg("too long: %s", p);
    }
    free(text);
}

static void print_bash(FILE *out) {
    assert_true(cli_completion_print(out, "bash"));
}

static void print_zsh(FILE *out) {
    assert_true(cli_completion_print(out, "zsh"));
}

static void print_fish(FILE *out) {
    assert_true(cli_completion_print(out, "fish"));
    assert_false(cli_completion_print(out, "csh"));
}

static void completions_name_everything(void **state) {
    (void)state;
    void (*const printers[])(FILE *) = {print_bash, print_zsh, print_fish};
    for (size_t s = 0; s < ARRAY_LEN(printers); s++) {
        char *text = printed(printers[s]), wanted[80];
        for (unsigned c = 0; c < CLI_COMMANDS; c++)
            assert_non_null(strstr(text, cli_table_commands[c].name));
        for (unsigned i = 0; i < CLI_OPTIONS; i++) {
            snprintf(wanted, sizeof wanted, s == 2 ? "-l %s" : "--%s", cli_table_options[i].name);
            assert_non_null(strstr(text, wanted));
        }
        free(text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_run),
        cmocka_unit_test(end_of_options),
        cmocka_unit_test(letters_differ_by_command),
        cmocka_unit_test(values),
        cmocka_unit_test(refusals),
        cmocka_unit_test(help_is_always_possible),
        cmocka_unit_test(durations),
        cmocka_unit_test(names),
        cmocka_unit_test(table_is_sound),
        cmocka_unit_test(help_fits),
        cmocka_unit_test(completions_name_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
