#include "app/execpolicy_cmd.h"

#include "base/err.h"
#include "base/utf8.h"
#include "rules/amend.h"
#include "rules/execpolicy.h"
#include "starlark/star.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define CMD_ERROR_MAX (256u << 10) /* bytes of an error text */

struct cmd {
    FILE *out, *err;
    char **rules; /* paths, in argv */
    size_t rule_count;
    bool pretty, resolve;
    char **command;
    size_t command_count;
};

static const char cmd_help[] =
    "Checks `.rules` files against a command and prints the decision as JSON; or allows commands.\n"
    "\n"
    "Usage: exec-server execpolicy check [OPTIONS] --rules <PATH> <COMMAND>...\n"
    "       exec-server execpolicy allow <COMMAND>...\n"
    "\n"
    "`allow` adds the rule that commands which begin with these words are allowed to\n"
    "$CODEX_HOME/rules/default.rules, unless it is there, and prints it.\n"
    "\n"
    "Arguments:\n"
    "  <COMMAND>...\n"
    "          The words of the command; `--` before them if the first begins with `-`\n"
    "\n"
    "Options:\n"
    "  -r, --rules <PATH>\n"
    "          A file of rules (repeatable)\n"
    "      --pretty\n"
    "          Print the JSON on several lines\n"
    "      --resolve-host-executables\n"
    "          Let rules for a program's name match its path too, as host_executable() allows\n"
    "  -h, --help\n"
    "          Print help\n";

static int cmd_usage(const struct cmd *c, const char *before, const char *what, const char *after) {
    fprintf(c->err, "error: %s%s%s", before, what, after);
    fputs("\n\nUsage: exec-server execpolicy check --rules <PATH> <COMMAND>...\n"
          "\nFor more information, try '--help'.\n",
          c->err);
    return 2;
}

/* -- command line -- */

/* The value of an option: `rest` of its word, or the next word; NULL: none. */
static char *cmd_value(int argc, char **argv, int *i, char *rest) {
    if (rest != NULL && *rest != '\0')
        return rest[0] == '=' ? rest + 1 : rest;
    return *i + 1 < argc ? argv[++*i] : NULL;
}

/* Whether a word is an option of ours; any other word begins the command. */
static bool cmd_is_option(const char *word) {
    static const char *const names[] = {"--rules", "--pretty", "--resolve-host-executables",
                                        "-h",      "--help",   "--"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (strcmp(word, names[i]) == 0)
            return true;
    }
    return strncmp(word, "--rules=", 8) == 0 || (word[0] == '-' && word[1] == 'r');
}

/* 0, or the exit status plus 1. */
static int cmd_option(struct cmd *c, int argc, char **argv, int *i) {
    char *word = argv[*i];
    bool longer = strncmp(word, "--rules", 7) == 0 && (word[7] == '\0' || word[7] == '=');
    if (longer || strncmp(word, "-r", 2) == 0) {
        char *path = cmd_value(argc, argv, i, longer ? word + 7 : word + 2);
        if (path == NULL)
            return 1 + cmd_usage(c, "a value is required for '", "--rules <PATH>",
                                 "' but none was supplied");
        c->rules[c->rule_count++] = path;
        return 0;
    }
    if (strcmp(word, "--pretty") == 0 || strcmp(word, "--resolve-host-executables") == 0) {
        *(word[2] == 'p' ? &c->pretty : &c->resolve) = true;
        return 0;
    }
    fputs(cmd_help, c->out);
    return 1;
}

/* As cmd_option(). */
static int cmd_parse(struct cmd *c, int argc, char **argv) {
    int i = 0;
    for (; i < argc && cmd_is_option(argv[i]); i++) {
        if (strcmp(argv[i], "--") == 0) {
            i++;
            break;
        }
        int r = cmd_option(c, argc, argv, &i);
        if (r != 0)
            return r;
    }
    c->command = argv + i;
    c->command_count = (size_t)(argc - i);
    const char *missing = "the following required arguments were not provided:\n  ";
    if (c->rule_count == 0)
        return 1 + cmd_usage(c, missing, "--rules <PATH>", "");
    return c->command_count == 0 ? 1 + cmd_usage(c, missing, "<COMMAND>...", "") : 0;
}

/* -- files -- */

static int cmd_read(const char *path, struct buf *b) {
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    for (;;) {
        int r = buf_reserve(b, 65536);
        if (r < 0)
            return r == -ENOBUFS ? -EFBIG : r;
        ssize_t n = read(fd, b->p + b->len, 65536);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : 0;
        b->len += (size_t)n;
    }
}

/* Prints an error whose cause may have several lines. */
static int cmd_fail(const struct cmd *c, const char *what, const char *path, struct str cause) {
    fprintf(c->err, "Error: failed to %s policy at %s\n\nCaused by:\n", what, path);
    while (cause.n > 0) {
        const char *end = memchr(cause.p, '\n', cause.n);
        size_t n = end == NULL ? cause.n : (size_t)(end - cause.p);
        fprintf(c->err, "    %.*s\n", (int)n, cause.p);
        str_take(&cause, end == NULL ? n : n + 1);
    }
    return 1;
}

/* Adds a file to the policy. The exit status. */
static int cmd_load(const struct cmd *c, struct execpolicy *p, const char *path) {
    _cleanup_buf_ struct buf text = BUF_INIT(STAR_SOURCE_MAX + (1u << 20));
    _cleanup_buf_ struct buf error = BUF_INIT(CMD_ERROR_MAX);
    _cleanup_err_ struct err e = ERR_INIT;
    int r = cmd_read(path, &text);
    if (r < 0) {
        err_os(&e, ERR_INTERNAL, -r);
        return cmd_fail(c, "read", path, err_str(&e));
    }
    if (!utf8_valid(text.p, text.len))
        return cmd_fail(c, "read", path, STR_LIT("stream did not contain valid UTF-8"));
    r = execpolicy_add(p, path, buf_str(&text), &error);
    if (r == 0)
        return 0;
    return cmd_fail(c, "parse", path, r == -EINVAL ? buf_str(&error) : STR_LIT("out of memory"));
}

/* -- the check -- */

static int cmd_print(const struct cmd *c, const struct execpolicy *p) {
    _cleanup_arena_ struct arena a = ARENA_INIT(EXECPOLICY_MEMORY_MAX);
    _cleanup_buf_ struct buf b = BUF_INIT(EXECPOLICY_MEMORY_MAX);
    struct execpolicy_matches m;
    char cwd[4096];
    struct execpolicy_place place = {getcwd(cwd, sizeof cwd) != NULL ? cwd : "/", getenv("HOME")};
    struct str *words = arena_calloc(&a, c->command_count, sizeof *words);
    if (words == NULL)
        return 1;
    for (size_t i = 0; i < c->command_count; i++) {
        words[i] = str_of(c->command[i]);
        utf8_mend(c->command[i], words[i].n);
    }
    struct execpolicy_words command = {words, c->command_count};
    int r = execpolicy_check(p, &command, c->resolve ? &place : NULL, &a, &m);
    if (r == 0)
        r = execpolicy_put_json(&b, &command, &m, c->pretty);
    if (r < 0) {
        fputs("Error: out of memory\n", c->err);
        return 1;
    }
    fprintf(c->out, "%.*s\n", (int)b.len, b.p);
    return fflush(c->out) == 0 ? 0 : 1;
}

static int cmd_check(struct cmd *c, int argc, char **argv) {
    int r = cmd_parse(c, argc, argv);
    if (r != 0)
        return r - 1;
    struct execpolicy *p = execpolicy_new();
    for (size_t i = 0; r == 0 && p != NULL && i < c->rule_count; i++)
        r = cmd_load(c, p, c->rules[i]);
    if (r == 0)
        r = p == NULL ? 1 : cmd_print(c, p);
    execpolicy_free(p);
    return r;
}

/* -- allow -- */

/* $CODEX_HOME, else .codex in the home directory; the caller frees it. NULL: unknown. */
static char *cmd_user_dir(void) {
    const char *set = getenv("CODEX_HOME"), *home = getenv("HOME");
    char *dir = NULL;
    if (set != NULL && set[0] != '\0')
        return strdup(set);
    if (home == NULL || home[0] == '\0' || asprintf(&dir, "%s/.codex", home) < 0)
        return NULL;
    return dir;
}

static int cmd_allow_words(const struct cmd *c, const struct execpolicy_words *words) {
    _cleanup_free_ char *dir = cmd_user_dir();
    _cleanup_buf_ struct buf line = BUF_INIT(AMEND_LINE_MAX);
    _cleanup_err_ struct err e = ERR_INIT;
    if (dir == NULL) {
        fputs("Error: neither CODEX_HOME nor HOME says where the rules are\n", c->err);
        return 1;
    }
    if (amend_allow(dir, words, &line, &e) < 0) {
        fprintf(c->err, "Error: %s\n", err_msg(&e));
        return 1;
    }
    fprintf(c->out, "%.*s\n", (int)line.len, line.p);
    return fflush(c->out) == 0 ? 0 : 1;
}

static int cmd_allow(struct cmd *c, int argc, char **argv) {
    int first = argc > 0 && strcmp(argv[0], "--") == 0 ? 1 : 0;
    if (first == 0 && argc > 0 && argv[0][0] == '-') {
        if (strcmp(argv[0], "-h") != 0 && strcmp(argv[0], "--help") != 0)
            return cmd_usage(c, "unexpected argument '", argv[0], "' found");
        fputs(cmd_help, c->out);
        return 0;
    }
    size_t n = (size_t)(argc - first);
    if (n == 0)
        return cmd_usage(c, "the following required arguments were not provided:\n  ",
                         "<COMMAND>...", "");
    _cleanup_free_ struct str *words = calloc(n, sizeof *words);
    for (size_t i = 0; words != NULL && i < n; i++) {
        words[i] = str_of(argv[first + (int)i]);
        if (!utf8_valid(words[i].p, words[i].n))
            return cmd_usage(c, "", "a word is not UTF-8", "");
    }
    return words == NULL ? 1 : cmd_allow_words(c, &(struct execpolicy_words){words, n});
}

bool execpolicy_cmd_is(int argc, char **argv) {
    return argc > 1 && strcmp(argv[1], "execpolicy") == 0;
}

int execpolicy_cmd_run(int argc, char **argv, FILE *out, FILE *err) {
    struct cmd c = {.out = out, .err = err};
    const char *word = argc > 2 ? argv[2] : "";
    if (strcmp(word, "allow") == 0)
        return cmd_allow(&c, argc - 3, argv + 3);
    if (strcmp(word, "check") != 0) {
        bool help = strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0;
        if (*word != '\0' && !help)
            return cmd_usage(&c, "unrecognized subcommand '", word, "'");
        fputs(cmd_help, help ? out : err);
        return help ? 0 : 2;
    }
    _cleanup_free_ char **rules = calloc((size_t)argc, sizeof *rules);
    if (rules == NULL)
        return 1;
    c.rules = rules;
    return cmd_check(&c, argc - 3, argv + 3);
}
