#pragma once
/* The command line of `xs`, read by the table. */

#include "base/err.h"
#include "cli/cli_table.h"

struct cli_pair {
    enum cli_option option;
    const char *value;
};

/* Strings are borrowed from argv. */
struct cli_args {
    enum cli_command command;       /* CLI_COMMANDS: none was given */
    unsigned count[CLI_OPTIONS];    /* how often each option was given */
    const char *value[CLI_OPTIONS]; /* the last value; NULL: none */
    int64_t number[CLI_OPTIONS];    /* CLI_NUMBER, CLI_DURATION in ms, CLI_CHAR (-1: none) */
    struct cli_pair *pairs;         /* owned: the values of repeatable options in their order */
    size_t pair_count;              /* less than argc */
    const char **operands;          /* owned, NULL-terminated */
    size_t operand_count;           /* less than argc */
};

/*
 * Reads argv. 0, or -EINVAL or -ENOMEM with a message in e; *args then needs cli_args_fini() too,
 * and `command` tells whose help to offer. After --help or --version nothing else is checked.
 */
MUST_CHECK int cli_args_parse(int argc, char **argv, struct cli_args *args, struct err *e);
void cli_args_fini(struct cli_args *args);
#define _cleanup_cli_args_ __attribute__((cleanup(cli_args_fini)))

/* A time: digits with a fraction and one of ms, s, m, h, d; seconds without. 0 with milliseconds
 * rounded up, -EINVAL, -ERANGE. */
MUST_CHECK int cli_args_duration(const char *text, int64_t *ms);

/* True if a kept process can have this name: 1 to 64 of letters, digits, `.`, `_`, `-`, the first
 * one a letter or a digit. */
bool cli_args_is_name(const char *name);
