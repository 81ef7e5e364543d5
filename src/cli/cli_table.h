#pragma once
/*
 * The commands and options of `xs`. Help, completions, the parser and the check of the manual page
 * read this table and nothing else.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cli_command {
    CLI_RUN,
    CLI_SHELL,
    CLI_PS,
    CLI_ATTACH,
    CLI_LOGS,
    CLI_WAIT,
    CLI_KILL,
    CLI_CP,
    CLI_LS,
    CLI_CAT,
    CLI_WRITE,
    CLI_STAT,
    CLI_RM,
    CLI_MKDIR,
    CLI_MV,
    CLI_CHMOD,
    CLI_WATCH,
    CLI_INFO,
    CLI_PING,
    CLI_ENV,
    CLI_COMPLETION,
    CLI_COMMANDS,
};

enum cli_option {
    CLI_OPT_HOST,
    CLI_OPT_TOKEN_FILE,
    CLI_OPT_QUIET,
    CLI_OPT_VERBOSE,
    CLI_OPT_JSON,
    CLI_OPT_HELP,
    CLI_OPT_VERSION,
    /* run, shell */
    CLI_OPT_TTY,
    CLI_OPT_NO_TTY,
    CLI_OPT_NO_STDIN,
    CLI_OPT_INTERACTIVE,
    CLI_OPT_DETACH,
    CLI_OPT_WORKDIR,
    CLI_OPT_ENV,
    CLI_OPT_COMMAND,
    CLI_OPT_TIMEOUT,
    CLI_OPT_SANDBOX,
    CLI_OPT_WRITABLE,
    CLI_OPT_NET,
    CLI_OPT_ALLOW_DOMAIN,
    CLI_OPT_LIMIT,
    CLI_OPT_NAME,
    CLI_OPT_ESCAPE,
    CLI_OPT_STATUS_FD,
    /* the others */
    CLI_OPT_PS_WATCH,
    CLI_OPT_STEAL,
    CLI_OPT_TAIL,
    CLI_OPT_FOLLOW,
    CLI_OPT_SIGNAL,
    CLI_OPT_GRACE,
    CLI_OPT_RECURSIVE,
    CLI_OPT_PRESERVE,
    CLI_OPT_DEREFERENCE,
    CLI_OPT_LONG,
    CLI_OPT_ALL,
    CLI_OPT_FORCE,
    CLI_OPT_PARENTS,
    CLI_OPT_COUNT,
    CLI_OPTIONS,
};

enum cli_kind {
    CLI_FLAG,     /* no value; may be repeated */
    CLI_TEXT,     /* not empty */
    CLI_NUMBER,   /* min to max */
    CLI_DURATION, /* "10", "1.5s", "500ms", "2m", "1h"; kept in ms, min to max */
    CLI_CHOICE,   /* one of the words in `words` */
    CLI_CHAR,     /* one byte, or `none` (-1) */
};

/* What a shell offers for an operand or a value. */
enum cli_complete {
    CLI_COMPLETE_NONE,
    CLI_COMPLETE_FILE,
    CLI_COMPLETE_HOST,   /* environments known */
    CLI_COMPLETE_NAME,   /* names of kept processes */
    CLI_COMPLETE_REMOTE, /* a path there */
    CLI_COMPLETE_BOTH,   /* a path here or there */
    CLI_COMPLETE_WORDS,  /* the words of the entry */
};

#define CLI_OF(command) (UINT32_C(1) << (command))
#define CLI_EVERYWHERE UINT32_MAX

struct cli_option_spec {
    const char *name;  /* without the dashes */
    char letter;       /* 0 = none */
    const char *value; /* placeholder; NULL for a flag, and for nothing else */
    enum cli_kind kind;
    uint32_t commands; /* CLI_OF() of those that take it */
    bool repeatable;   /* every value counts; otherwise the last */
    const char *words; /* CLI_CHOICE, or what a shell offers; separated by blanks */
    enum cli_complete complete;
    int64_t min, max;
    const char *help; /* one or more lines of at most 50 characters */
};

struct cli_command_spec {
    const char *name, *alias; /* alias NULL: none */
    const char *operands;     /* of the usage line */
    unsigned min, max;        /* number of operands; UINT_MAX: any */
    bool words;               /* options end at the first operand */
    enum cli_complete complete;
    const char *choices; /* CLI_COMPLETE_WORDS */
    const char *help;    /* one line */
};

extern const struct cli_option_spec cli_table_options[CLI_OPTIONS];
extern const struct cli_command_spec cli_table_commands[CLI_COMMANDS];

/* The command with this name or alias, or CLI_COMMANDS. */
enum cli_command cli_table_command(const char *name);

/* The option of a command (CLI_COMMANDS: before any) by name of n bytes or by letter, or
 * CLI_OPTIONS. */
enum cli_option cli_table_by_name(enum cli_command command, const char *name, size_t n);
enum cli_option cli_table_by_letter(enum cli_command command, char letter);

/* True if `command` takes the option. With CLI_COMMANDS: if every command does. */
bool cli_table_takes(enum cli_command command, enum cli_option option);
