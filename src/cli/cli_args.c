#include "cli/cli_args.h"

#include "base/editdist.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NAME_MAX_BYTES 64

struct cli_scan {
    int argc, at; /* `at`: the next argument */
    char **argv;
    struct cli_args *args;
    struct err *e;
};

/* How messages name an option. */
struct cli_label {
    char s[64];
};

static struct cli_label label_of(enum cli_option option) {
    const struct cli_option_spec *spec = &cli_table_options[option];
    struct cli_label l;
    if (spec->letter != '\0')
        snprintf(l.s, sizeof l.s, "-%c, --%s", spec->letter, spec->name);
    else
        snprintf(l.s, sizeof l.s, "--%s", spec->name);
    return l;
}

static int refuse(struct err *e, const char *fmt, ...) PRINTF_LIKE(2, 3);
static int refuse(struct err *e, const char *fmt, ...) {
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return err_set(e, ERR_INVALID_PARAMS, "%s", text);
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* Milliseconds of a unit, or 0. */
static int64_t unit_ms(const char *unit) {
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (strcmp(unit, units[i].name) == 0)
            return units[i].ms;
    }
    return 0;
}

int cli_args_duration(const char *text, int64_t *ms) {
    int64_t whole = 0, fraction = 0, scale = 1, unit, part;
    const char *p = text;
    if (!is_digit(*p))
        return -EINVAL;
    for (; is_digit(*p); p++) {
        if (__builtin_mul_overflow(whole, 10, &whole) ||
            __builtin_add_overflow(whole, *p - '0', &whole))
            return -ERANGE;
    }
    if (*p == '.' && !is_digit(p[1]))
        return -EINVAL;
    for (p += *p == '.'; is_digit(*p); p++) {
        if (scale < 1000000000) {
            fraction = fraction * 10 + (*p - '0');
            scale *= 10;
        }
    }
    unit = unit_ms(p);
    if (unit == 0)
        return -EINVAL;
    part = (fraction * unit + scale - 1) / scale; /* below 2^30 * 2^27 */
    if (__builtin_mul_overflow(whole, unit, &whole) || __builtin_add_overflow(whole, part, ms))
        return -ERANGE;
    return 0;
}

static int parse_number(const char *text, int64_t *out) {
    int64_t v = 0;
    if (*text == '\0')
        return -EINVAL;
    for (const char *p = text; *p != '\0'; p++) {
        if (!is_digit(*p))
            return -EINVAL;
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *p - '0', &v))
            return -ERANGE;
    }
    *out = v;
    return 0;
}

static int parse_char(const char *text, int64_t *out) {
    if (strcmp(text, "none") == 0) {
        *out = -1;
        return 0;
    }
    /* ^A as in ssh, or one printable byte. */
    if (text[0] == '^' && text[1] >= '@' && text[1] <= '_' && text[2] == '\0')
        *out = text[1] & 31;
    else if (text[0] > ' ' && text[0] < 127 && text[1] == '\0')
        *out = text[0];
    else
        return -EINVAL;
    return 0;
}

static bool is_word(const char *words, const char *value) {
    size_t n = strlen(value);
    for (const char *p = words; *p != '\0';) {
        size_t len = strcspn(p, " ");
        if (len == n && strncasecmp(p, value, n) == 0)
            return true;
        p += len + (p[len] == ' ');
    }
    return false;
}

/* Signals are taken with and without SIG, in any case. */
static bool is_choice(enum cli_option option, const char *value) {
    if (option == CLI_OPT_SIGNAL && strncasecmp(value, "SIG", 3) == 0)
        value += 3;
    return is_word(cli_table_options[option].words, value);
}

static int take_value(struct cli_scan *s, enum cli_option option, const char *value) {
    const struct cli_option_spec *spec = &cli_table_options[option];
    struct cli_args *a = s->args;
    struct cli_label label = label_of(option);
    int64_t v = 0;
    int r = 0;
    if (*value == '\0')
        return refuse(s->e, "option '%s' needs a value that is not empty", label.s);
    if (spec->kind == CLI_NUMBER)
        r = parse_number(value, &v);
    else if (spec->kind == CLI_DURATION)
        r = cli_args_duration(value, &v);
    else if (spec->kind == CLI_CHAR)
        r = parse_char(value, &v);
    else if (spec->kind == CLI_CHOICE && !is_choice(option, value))
        return refuse(s->e, "option '%s' takes one of: %s; not '%.100s'", label.s, spec->words,
                      value);
    bool counted = spec->kind == CLI_NUMBER || spec->kind == CLI_DURATION;
    if (r == -EINVAL)
        return refuse(s->e, "option '%s' cannot take '%.100s'", label.s, value);
    if (r < 0 || (counted && (v < spec->min || v > spec->max)))
        return refuse(s->e, "option '%s': '%.100s' is out of range", label.s, value);
    a->count[option]++;
    a->value[option] = value;
    a->number[option] = v;
    if (spec->repeatable)
        a->pairs[a->pair_count++] = (struct cli_pair){option, value};
    return 0;
}

static void take_flag(struct cli_args *a, enum cli_option option) {
    a->count[option]++;
    if (option == CLI_OPT_TTY) /* the last of the two counts */
        a->count[CLI_OPT_NO_TTY] = 0;
    if (option == CLI_OPT_NO_TTY)
        a->count[CLI_OPT_TTY] = 0;
}

static int next_value(struct cli_scan *s, enum cli_option option, const char **value) {
    struct cli_label label = label_of(option);
    if (s->at >= s->argc)
        return refuse(s->e, "option '%s' needs a value", label.s);
    *value = s->argv[s->at++];
    return 0;
}

/* The option of the command that a word resembles, or NULL. */
static const char *similar_option(enum cli_command command, struct str word) {
    const char *best = NULL;
    size_t nearest = word.n < EDITDIST_LEAST ? 0 : EDITDIST_FAR;
    for (unsigned i = 0; i < CLI_OPTIONS; i++) {
        const char *name = cli_table_options[i].name;
        size_t d = editdist(word, str_of(name));
        if (cli_table_takes(command, (enum cli_option)i) && d < nearest) {
            best = name;
            nearest = d;
        }
    }
    return best;
}

static int refuse_option(const struct cli_scan *s, const char *arg, struct str word) {
    const char *similar = similar_option(s->args->command, word);
    if (similar != NULL)
        return refuse(s->e, "unknown option '%.100s'; did you mean '--%s'?", arg, similar);
    return refuse(s->e, "unknown option '%.100s'", arg);
}

static int refuse_command(const struct cli_scan *s, const char *arg) {
    const char *best = NULL;
    size_t nearest = strlen(arg) < EDITDIST_LEAST ? 0 : EDITDIST_FAR;
    for (unsigned i = 0; i < CLI_COMMANDS; i++) {
        size_t d = editdist(str_of(arg), str_of(cli_table_commands[i].name));
        best = d < nearest ? cli_table_commands[i].name : best;
        nearest = d < nearest ? d : nearest;
    }
    if (best != NULL)
        return refuse(s->e, "unknown command '%.100s'; did you mean '%s'?", arg, best);
    return refuse(s->e, "unknown command '%.100s'", arg);
}

static int take_long(struct cli_scan *s, const char *arg) {
    const char *name = arg + 2, *value;
    size_t n = strcspn(name, "=");
    enum cli_option option = cli_table_by_name(s->args->command, name, n);
    if (option == CLI_OPTIONS)
        return refuse_option(s, arg, (struct str){name, n});
    bool has_value = name[n] == '=';
    if (cli_table_options[option].value == NULL) {
        if (has_value)
            return refuse(s->e, "option '--%s' takes no value", cli_table_options[option].name);
        take_flag(s->args, option);
        return 0;
    }
    value = name + n + 1;
    int r = has_value ? 0 : next_value(s, option, &value);
    return r < 0 ? r : take_value(s, option, value);
}

/* Letters may stand together; the value of the last is the rest of the word, or the next word. */
static int take_letters(struct cli_scan *s, const char *arg) {
    for (const char *p = arg + 1; *p != '\0'; p++) {
        enum cli_option option = cli_table_by_letter(s->args->command, *p);
        const char *value = p + 1;
        if (option == CLI_OPTIONS)
            return refuse(s->e, "unknown option '-%c'", *p);
        if (cli_table_options[option].value == NULL) {
            take_flag(s->args, option);
            continue;
        }
        int r = *value != '\0' ? 0 : next_value(s, option, &value);
        return r < 0 ? r : take_value(s, option, value);
    }
    return 0;
}

static void take_rest(struct cli_scan *s) {
    while (s->at < s->argc)
        s->args->operands[s->args->operand_count++] = s->argv[s->at++];
}

/* True if options end at the first operand of the command. */
static bool takes_words(enum cli_command command) {
    return command != CLI_COMMANDS && cli_table_commands[command].words;
}

static int take_operand(struct cli_scan *s, const char *arg) {
    struct cli_args *a = s->args;
    if (a->command == CLI_COMMANDS) {
        a->command = cli_table_command(arg);
        return a->command == CLI_COMMANDS ? refuse_command(s, arg) : 0;
    }
    a->operands[a->operand_count++] = arg;
    if (takes_words(a->command))
        take_rest(s);
    return 0;
}

static int scan(struct cli_scan *s) {
    int r = 0;
    while (r == 0 && s->at < s->argc) {
        const char *arg = s->argv[s->at++];
        if (strcmp(arg, "--") == 0 && s->args->command != CLI_COMMANDS)
            take_rest(s);
        else if (strncmp(arg, "--", 2) == 0)
            r = take_long(s, arg);
        else if (arg[0] == '-' && arg[1] != '\0')
            r = take_letters(s, arg);
        else
            r = take_operand(s, arg);
    }
    return r;
}

bool cli_args_is_name(const char *name) {
    size_t n = strlen(name);
    if (n == 0 || n > NAME_MAX_BYTES || strchr("._-", name[0]) != NULL)
        return false;
    return strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == n;
}

/* What options demand of each other. */
static int check_run(const struct cli_args *a, struct err *e) {
    const char *mode = a->value[CLI_OPT_SANDBOX];
    if (mode == NULL && (a->count[CLI_OPT_NET] > 0 || a->count[CLI_OPT_ALLOW_DOMAIN] > 0 ||
                         a->count[CLI_OPT_WRITABLE] > 0))
        return refuse(e, "--net, --allow-domain and --writable need --sandbox");
    if (a->count[CLI_OPT_NET] > 0 && a->count[CLI_OPT_ALLOW_DOMAIN] > 0)
        return refuse(e, "--net and --allow-domain exclude each other");
    if (a->count[CLI_OPT_WRITABLE] > 0 && strcasecmp(mode, "workspace-write") != 0)
        return refuse(e, "--writable needs --sandbox workspace-write");
    if (a->value[CLI_OPT_NAME] != NULL && !cli_args_is_name(a->value[CLI_OPT_NAME]))
        return refuse(e, "--name takes 1 to 64 letters, digits, '.', '_' and '-'; not '%.100s'",
                      a->value[CLI_OPT_NAME]);
    for (size_t i = 0; i < a->pair_count; i++) {
        const struct cli_pair *p = &a->pairs[i];
        if (p->option == CLI_OPT_ENV && p->value[0] == '=')
            return refuse(e, "--env needs a name before '='");
    }
    return 0;
}

static int check(const struct cli_args *a, struct err *e) {
    if (a->command == CLI_COMMANDS)
        return refuse(e, "a command is missing");
    const struct cli_command_spec *spec = &cli_table_commands[a->command];
    if (a->operand_count < spec->min)
        return refuse(e, "%s needs %s", spec->name, spec->operands);
    if (a->operand_count > spec->max)
        return refuse(e, "%s does not take '%.100s'", spec->name, a->operands[spec->max]);
    return check_run(a, e);
}

int cli_args_parse(int argc, char **argv, struct cli_args *args, struct err *e) {
    *args = (struct cli_args){.command = CLI_COMMANDS};
    args->pairs = calloc((size_t)argc + 1, sizeof *args->pairs);
    args->operands = calloc((size_t)argc + 1, sizeof *args->operands);
    if (args->pairs == NULL || args->operands == NULL) {
        err_set(e, ERR_INTERNAL, "out of memory");
        return -ENOMEM;
    }
    struct cli_scan s = {.argc = argc, .at = 1, .argv = argv, .args = args, .e = e};
    int r = scan(&s);
    if (r < 0 || args->count[CLI_OPT_HELP] > 0 || args->count[CLI_OPT_VERSION] > 0)
        return r;
    return check(args, e);
}

void cli_args_fini(struct cli_args *args) {
    free(args->pairs);
    free(args->operands);
    *args = (struct cli_args){.command = CLI_COMMANDS};
}
