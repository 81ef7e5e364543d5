#include "cli/cli_help.h"

#include "base/commit.h"

#include <string.h>

#ifndef EXEC_SERVER_VERSION
#define EXEC_SERVER_VERSION "0.0.0"
#endif

#define HELP_COLUMN 26

/* Prints the lines of a text, each after so many blanks; the cursor is at column `at`. */
static void print_lines(FILE *out, int at, const char *text) {
    for (const char *p = text; p != NULL && *p != '\0';) {
        size_t n = strcspn(p, "\n");
        if (at >= HELP_COLUMN) {
            fputc('\n', out);
            at = 0;
        }
        fprintf(out, "%*s%.*s\n", HELP_COLUMN - at, "", (int)n, p);
        p += n + (p[n] == '\n');
        at = 0;
    }
}

static void print_option(FILE *out, enum cli_option option) {
    const struct cli_option_spec *o = &cli_table_options[option];
    int at = o->letter != '\0' ? fprintf(out, "  -%c, --%s", o->letter, o->name)
                               : fprintf(out, "      --%s", o->name);
    if (o->value != NULL)
        at += fprintf(out, " %s", o->value);
    print_lines(out, at + 1 > HELP_COLUMN ? HELP_COLUMN : at, o->help);
}

static void print_options(FILE *out, enum cli_command command, bool general) {
    for (unsigned i = 0; i < CLI_OPTIONS; i++) {
        bool everywhere = cli_table_options[i].commands == CLI_EVERYWHERE;
        if (everywhere == general && cli_table_takes(command, (enum cli_option)i))
            print_option(out, (enum cli_option)i);
    }
}

static void print_command_help(FILE *out, enum cli_command command) {
    const struct cli_command_spec *c = &cli_table_commands[command];
    fprintf(out, "Usage: xs [OPTIONS] %s [OPTIONS]%s%s\n\n", c->name, c->operands[0] ? " " : "",
            c->operands);
    fprintf(out, "xs %s: %s.\n", c->name, c->help);
    if (c->alias != NULL)
        fprintf(out, "Another name of it is %s.\n", c->alias);
    bool own = false;
    for (unsigned i = 0; i < CLI_OPTIONS; i++)
        own = own || ((cli_table_options[i].commands & CLI_OF(command)) != 0 &&
                      cli_table_options[i].commands != CLI_EVERYWHERE);
    if (own) {
        fprintf(out, "\nOptions of this command:\n");
        print_options(out, command, false);
    }
    fprintf(out, "\nOptions of every command:\n");
    print_options(out, command, true);
}

void cli_help_print(FILE *out, enum cli_command command) {
    if (command != CLI_COMMANDS) {
        print_command_help(out, command);
        return;
    }
    fprintf(out, "Usage: xs [OPTIONS] COMMAND [OPTIONS] [ARGUMENTS]\n\n"
                 "Runs commands and works on files on the machine of an exec-server.\n\n"
                 "Commands:\n");
    for (unsigned i = 0; i < CLI_COMMANDS; i++)
        fprintf(out, "  %-*s%s\n", HELP_COLUMN - 2, cli_table_commands[i].name,
                cli_table_commands[i].help);
    fprintf(out, "\nOptions of every command:\n");
    print_options(out, CLI_COMMANDS, true);
    fprintf(out, "\nxs COMMAND --help prints the options of a command; xs(1) has the rest.\n");
}

void cli_help_version(FILE *out) {
    fprintf(out, "xs %s (%s)\n", EXEC_SERVER_VERSION, commit_name);
}

void cli_help_list(FILE *out) {
    for (unsigned i = 0; i < CLI_COMMANDS; i++)
        fprintf(out, "command %s\n", cli_table_commands[i].name);
    for (unsigned i = 0; i < CLI_OPTIONS; i++) {
        const struct cli_option_spec *o = &cli_table_options[i];
        if (o->commands == CLI_EVERYWHERE)
            fprintf(out, "option - %s %c\n", o->name, o->letter ? o->letter : '-');
        for (unsigned c = 0; c < CLI_COMMANDS && o->commands != CLI_EVERYWHERE; c++) {
            if ((o->commands & CLI_OF(c)) != 0)
                fprintf(out, "option %s %s %c\n", cli_table_commands[c].name, o->name,
                        o->letter ? o->letter : '-');
        }
    }
}
