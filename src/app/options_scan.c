#include "app/options_table.h"

#include "base/editdist.h"
#include "base/str.h"
#include "base/utf8.h"

#include <string.h>

struct scan {
    struct options_args *args;
    FILE *out, *err;
};

/* How messages name an option: "--listen <URL>", or the variable that stands for it. */
struct label {
    char s[160];
};

static struct label label_of(const struct scan *s, const struct option_spec *spec) {
    struct label l;
    if (s->args->from_env[spec - options_table])
        snprintf(l.s, sizeof(l.s), "--%s' from the environment variable '%s", spec->name,
                 spec->env);
    else if (spec->value != NULL)
        snprintf(l.s, sizeof(l.s), "--%s <%s>", spec->name, spec->value);
    else
        snprintf(l.s, sizeof(l.s), "--%s", spec->name);
    return l;
}

static const struct option_spec *find_name(struct str name) {
    for (unsigned id = 0; id < OPT_COUNT; id++) {
        if (str_eqz(name, options_table[id].name))
            return &options_table[id];
    }
    return NULL;
}

static const struct option_spec *find_letter(char letter) {
    for (unsigned id = 0; id < OPT_COUNT; id++) {
        if (letter != '\0' && options_table[id].letter == letter)
            return &options_table[id];
    }
    return NULL;
}

/* The name in "--name" or "--name=value". */
static struct str long_name(const char *arg) {
    return (struct str){arg + 2, strcspn(arg + 2, "=")};
}

static const struct option_spec *find_option(const char *arg) {
    return arg[1] == '-' ? find_name(long_name(arg)) : find_letter(arg[1]);
}

/* The option whose name resembles a word, or NULL. */
static const struct option_spec *find_similar(struct str name) {
    const struct option_spec *best = NULL;
    size_t nearest = EDITDIST_FAR;
    if (name.n < EDITDIST_LEAST)
        return NULL;
    for (unsigned id = 0; id < OPT_COUNT; id++) {
        const struct option_spec *spec = &options_table[id];
        struct str other = str_of(spec->name);
        bool begins =
            spec->help != NULL && other.n > name.n && memcmp(other.p, name.p, name.n) == 0;
        size_t d = begins ? EDITDIST_FAR - 1 : editdist(name, other);
        if (d < nearest) {
            best = spec;
            nearest = d;
        }
    }
    return best;
}

static enum options_result unexpected(const struct scan *s, const char *arg) {
    bool is_long = strncmp(arg, "--", 2) == 0;
    int n = is_long ? (int)strcspn(arg, "=") : (int)strlen(arg);
    const char *word = is_long ? arg + 2 : arg + strspn(arg, "-");
    const struct option_spec *similar = find_similar((struct str){word, strcspn(word, "=")});
    bool exact = similar != NULL && is_long && str_eqz(long_name(arg), similar->name);
    if (similar != NULL && !exact) /* an option in the wrong place is no advice */
        return options_table_usage(s->err, "unexpected argument '%.*s' found; did you mean '--%s'?",
                                   n, arg, similar->name);
    return options_table_usage(s->err, "unexpected argument '%.*s' found", n, arg);
}

static enum options_result missing_value(const struct scan *s, const struct option_spec *spec) {
    return options_table_usage(s->err, "a value is required for '%s' but none was supplied",
                               label_of(s, spec).s);
}

static enum options_result bad_choice(const struct scan *s, const struct option_spec *spec,
                                      const char *value, const char *const *choices) {
    char list[128] = "";
    for (size_t n = 0; *choices != NULL && n < sizeof(list); choices++)
        n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", n > 0 ? ", " : "", *choices);
    return options_table_usage(s->err, "invalid value '%s' for '%s'; possible values: %s", value,
                               label_of(s, spec).s, list);
}

static const char *const booleans[] = {"true", "false", NULL};

/* Keeps a value. NULL, or why it cannot be used. */
static const char *keep_value(struct options_args *args, const struct option_spec *spec,
                              const char *value, char reason[OPTIONS_REASON_MAX]) {
    size_t id = (size_t)(spec - options_table);
    switch (spec->kind) {
    case OPTION_COUNT:
    case OPTION_SECONDS: return options_value_number(spec, value, &args->number[id], reason);
    case OPTION_HOSTS:
    case OPTION_CONSOLE_HOSTS:
    case OPTION_NETS: return options_value_add(args, spec->kind, value);
    case OPTION_BOOL: args->on[id] = strcmp(value, "true") == 0; return NULL;
    case OPTION_FLAG:
    case OPTION_TEXT:
    case OPTION_PATH:
    case OPTION_CHOICE: args->value[id] = value; return NULL;
    }
    return NULL;
}

static enum options_result take_value(const struct scan *s, const struct option_spec *spec,
                                      const char *value) {
    bool path = spec->kind == OPTION_PATH;
    const char *const *choices = spec->kind == OPTION_BOOL ? booleans : spec->choices;
    char text[OPTIONS_REASON_MAX];
    if (path && *value == '\0')
        return missing_value(s, spec);
    if (!path && !utf8_valid(value, strlen(value)))
        return options_table_usage(s->err, "the value of '%s' is not valid UTF-8",
                                   label_of(s, spec).s);
    if (choices != NULL && !options_value_is_choice(value, choices))
        return bad_choice(s, spec, value, choices);
    const char *reason = keep_value(s->args, spec, value, text);
    if (reason != NULL)
        return options_table_usage(s->err, "invalid value '%s' for '%s': %s", value,
                                   label_of(s, spec).s, reason);
    return OPTIONS_RUN;
}

/* Marks the option as given, with its value (NULL for a flag). */
static enum options_result take_option(const struct scan *s, const struct option_spec *spec,
                                       const char *value) {
    bool *given = &s->args->given[spec - options_table];
    if (*given && !spec->repeatable)
        return options_table_usage(s->err, "the argument '%s' cannot be used multiple times",
                                   label_of(s, spec).s);
    *given = true;
    if (spec == &options_table[OPT_HELP]) {
        options_table_print_help(s->out);
        return OPTIONS_EXIT_0;
    }
    if (spec == &options_table[OPT_VERSION]) {
        options_table_print_version(s->out);
        return OPTIONS_EXIT_0;
    }
    if (spec->kind != OPTION_FLAG)
        return take_value(s, spec, value);
    s->args->on[spec - options_table] = true;
    return OPTIONS_RUN;
}

/* Handles argv[*i], which begins with a dash, and moves *i on when the next word is its value. */
static enum options_result scan_option(const struct scan *s, int argc, char **argv, int *i) {
    const char *arg = argv[*i];
    const struct option_spec *spec = find_option(arg);
    if (spec == NULL)
        return unexpected(s, arg);

    bool is_long = arg[1] == '-';
    const char *rest = is_long ? arg + 2 + long_name(arg).n : arg + 2;
    const char *attached = *rest == '=' ? rest + 1 : *rest != '\0' ? rest : NULL;
    if (spec->value == NULL && is_long && attached != NULL)
        return options_table_usage(s->err,
                                   "unexpected value '%s' for '--%s' found; no more were expected",
                                   attached, spec->name);
    if (spec->value == NULL || attached != NULL)
        return take_option(s, spec, attached);

    const char *next = *i + 1 < argc ? argv[*i + 1] : NULL;
    if (next == NULL)
        return missing_value(s, spec);
    bool negative = next[0] == '-' && next[1] >= '0' && next[1] <= '9';
    if (negative && (spec->kind == OPTION_COUNT || spec->kind == OPTION_SECONDS))
        return options_table_usage(s->err, "invalid value '%s' for '%s': must not be negative",
                                   next, label_of(s, spec).s);
    if (next[0] == '-' && next[1] != '\0')
        return strcmp(next, "--") == 0 || find_option(next) != NULL ? missing_value(s, spec)
                                                                    : unexpected(s, next);
    (*i)++;
    return take_option(s, spec, next);
}

/* Only --json or --help may follow. */
static enum options_result scan_doctor(const struct scan *s, int argc, char **argv, int i) {
    if (i == argc)
        return OPTIONS_DOCTOR;
    if (i + 1 == argc && strcmp(argv[i], "--json") == 0)
        return OPTIONS_DOCTOR_JSON;
    if (argv[i][0] == '-' && find_option(argv[i]) == &options_table[OPT_HELP])
        return take_option(s, &options_table[OPT_HELP], NULL);
    return unexpected(s, argv[i]);
}

static enum options_result scan_argv(const struct scan *s, int argc, char **argv) {
    int i = 1;
    bool only_words = false;
    if (i < argc && strcmp(argv[i], "exec-server") == 0)
        i++;
    if (i < argc && strcmp(argv[i], "doctor") == 0)
        return scan_doctor(s, argc, argv, i + 1);
    for (; i < argc; i++) {
        if (!only_words && strcmp(argv[i], "--") == 0) {
            only_words = true;
            continue;
        }
        if (only_words || argv[i][0] != '-' || argv[i][1] == '\0')
            return unexpected(s, argv[i]);
        enum options_result r = scan_option(s, argc, argv, &i);
        if (r != OPTIONS_RUN)
            return r;
    }
    return OPTIONS_RUN;
}

static enum options_result take_flag_text(const struct scan *s, const struct option_spec *spec,
                                          const char *text) {
    if (!options_value_is_choice(text, booleans))
        return bad_choice(s, spec, text, booleans);
    bool on = strcmp(text, "true") == 0;
    s->args->given[spec - options_table] = on;
    s->args->on[spec - options_table] = on;
    return OPTIONS_RUN;
}

/* Environment variables stand in for the options that argv left out. */
static enum options_result scan_environment(const struct scan *s) {
    for (unsigned id = 0; id < OPT_COUNT; id++) {
        const struct option_spec *spec = &options_table[id];
        const char *text = spec->env != NULL && !s->args->given[id] ? getenv(spec->env) : NULL;
        if (text == NULL || (spec->value != NULL && *text == '\0'))
            continue;
        s->args->from_env[id] = true;
        enum options_result r =
            spec->value != NULL ? take_option(s, spec, text) : take_flag_text(s, spec, text);
        if (r != OPTIONS_RUN)
            return r;
    }
    return OPTIONS_RUN;
}

/* Checks the rules between options. */
static enum options_result check_together(const struct scan *s) {
    const bool *given = s->args->given;
    if (given[OPT_REMOTE] && given[OPT_LISTEN])
        return options_table_usage(s->err, "the argument '%s' cannot be used with '%s'",
                                   label_of(s, &options_table[OPT_REMOTE]).s,
                                   label_of(s, &options_table[OPT_LISTEN]).s);
    for (unsigned id = 0; id < OPT_COUNT; id++) {
        if (given[id] && options_table[id].needs_remote && !given[OPT_REMOTE])
            return options_table_usage(s->err, "the argument '%s' requires '%s'",
                                       label_of(s, &options_table[id]).s,
                                       label_of(s, &options_table[OPT_REMOTE]).s);
    }
    return OPTIONS_RUN;
}

enum options_result options_scan(int argc, char **argv, struct options_args *args, FILE *out,
                                 FILE *err) {
    const struct scan s = {.args = args, .out = out, .err = err};
    *args = (struct options_args){0};
    for (unsigned id = 0; id < OPT_COUNT; id++) {
        args->number[id] = options_table[id].initial;
        args->on[id] = options_table[id].kind == OPTION_BOOL && options_table[id].initial != 0;
    }
    enum options_result r = scan_argv(&s, argc, argv);
    if (r == OPTIONS_RUN)
        r = scan_environment(&s);
    if (r == OPTIONS_RUN)
        r = check_together(&s);
    return r;
}
