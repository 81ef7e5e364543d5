#include "rules/decide_script.h"

#include "base/buf.h"

#include <errno.h>

#define SCRIPT_WORDS_MAX 65536 /* words of one command */
#define SCRIPT_WORD_MAX (4u << 20)

struct script {
    struct str in; /* what is left */
    bool plain;
    unsigned depth;
    struct arena *a;
    decide_script_fn *each;
    void *user;
    enum decide_script_result result; /* of the first failure */
    struct buf word;
};

/* The command in the making. */
struct script_command {
    struct str *words;
    size_t n, cap;
    bool skip_word; /* the next word belongs to a redirection */
    bool dropped;   /* the words are no command: of `for`, `case` */
};

static void script_list(struct script *s, char end);

static bool script_ok(const struct script *s) {
    return s->result == DECIDE_SCRIPT_DONE;
}

static void script_set(struct script *s, enum decide_script_result r) {
    if (script_ok(s))
        s->result = r;
}

static char script_peek(const struct script *s, size_t i) {
    return i < s->in.n ? s->in.p[i] : '\0';
}

static void script_put(struct script *s, char c) {
    if (buf_putc(&s->word, c) < 0)
        script_set(s, DECIDE_SCRIPT_NOMEM);
}

/* -- substitutions -- */

/* Reports the commands of a part of the text up to `end`. */
static void script_nested(struct script *s, char end) {
    struct buf outer = s->word;
    s->word = BUF_INIT(SCRIPT_WORD_MAX);
    if (++s->depth > DECIDE_SCRIPT_NESTING || s->plain)
        script_set(s, DECIDE_SCRIPT_ODD);
    else
        script_list(s, end);
    s->depth--;
    buf_fini(&s->word);
    s->word = outer;
}

/* A substitution in backquotes: its text without one level of backslashes. */
static void script_backquotes(struct script *s) {
    _cleanup_buf_ struct buf text = BUF_INIT(SCRIPT_WORD_MAX);
    str_take(&s->in, 1);
    while (s->in.n > 0 && s->in.p[0] != '`') {
        if (s->in.p[0] == '\\' && s->in.n > 1)
            str_take(&s->in, 1);
        if (buf_putc(&text, s->in.p[0]) < 0)
            script_set(s, DECIDE_SCRIPT_NOMEM);
        str_take(&s->in, 1);
    }
    str_take(&s->in, MIN(s->in.n, (size_t)1));
    struct str rest = s->in;
    s->in = buf_str(&text);
    script_nested(s, '\0');
    s->in = rest;
}

/* "$" and what follows it. */
static void script_dollar(struct script *s) {
    if (s->plain)
        script_set(s, DECIDE_SCRIPT_ODD);
    str_take(&s->in, 1);
    script_put(s, '$');
    if (script_peek(s, 0) != '(')
        return;
    str_take(&s->in, 1); /* $((...)) is read as a group in a substitution: nothing is lost */
    script_nested(s, ')');
}

static void script_double_quotes(struct script *s) {
    str_take(&s->in, 1);
    while (s->in.n > 0 && s->in.p[0] != '"' && script_ok(s)) {
        char c = s->in.p[0];
        if (c == '$') {
            script_dollar(s);
        } else if (c == '`') {
            script_backquotes(s);
        } else {
            if (c == '\\' && s->in.n > 1 && strchr("\\\"$`\n", s->in.p[1]) != NULL)
                str_take(&s->in, 1);
            script_put(s, s->in.p[0]);
            str_take(&s->in, 1);
        }
    }
    str_take(&s->in, MIN(s->in.n, (size_t)1));
}

static void script_single_quotes(struct script *s) {
    str_take(&s->in, 1);
    const char *end = s->in.n == 0 ? NULL : memchr(s->in.p, '\'', s->in.n);
    size_t n = end == NULL ? s->in.n : (size_t)(end - s->in.p);
    if (buf_put(&s->word, s->in.p, n) < 0)
        script_set(s, DECIDE_SCRIPT_NOMEM);
    str_take(&s->in, end == NULL ? n : n + 1);
}

/* -- words -- */

static bool script_ends_word(char c) {
    return c == '\0' || strchr(" \t\n;&|()<>", c) != NULL;
}

/* Reads a word into s->word. */
static void script_word(struct script *s) {
    s->word.len = 0;
    while (s->in.n > 0 && !script_ends_word(s->in.p[0]) && script_ok(s)) {
        char c = s->in.p[0];
        if (c == '\'') {
            script_single_quotes(s);
        } else if (c == '"') {
            script_double_quotes(s);
        } else if (c == '$') {
            script_dollar(s);
        } else if (c == '`') {
            script_backquotes(s);
        } else {
            if (s->plain && strchr("*?[]{}~!#", c) != NULL)
                script_set(s, DECIDE_SCRIPT_ODD);
            if (c == '\\' && s->in.n > 1)
                str_take(&s->in, 1);
            script_put(s, s->in.p[0]);
            str_take(&s->in, 1);
        }
    }
    if (s->in.n > 0 && s->in.p[0] == '\0') /* no shell could be given it */
        str_take(&s->in, 1);
}

static bool script_is_assignment(struct str w) {
    size_t i = 0;
    while (i < w.n &&
           (w.p[i] == '_' || (w.p[i] >= 'a' && w.p[i] <= 'z') || (w.p[i] >= 'A' && w.p[i] <= 'Z') ||
            (i > 0 && w.p[i] >= '0' && w.p[i] <= '9')))
        i++;
    return i > 0 && i < w.n &&
           (w.p[i] == '=' || (w.p[i] == '+' && i + 1 < w.n && w.p[i + 1] == '='));
}

/* Whether a command may follow this word, so that it is none itself. */
static bool script_is_lead(struct str w) {
    static const char *const words[] = {"if", "then", "elif", "else", "while", "until", "do",
                                        "{",  "!",    "time", "fi",   "done",  "esac",  "}"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (str_eqz(w, words[i]))
            return true;
    }
    return false;
}

static bool script_is_compound(struct str w) {
    return str_eqz(w, "for") || str_eqz(w, "case") || str_eqz(w, "select") ||
           str_eqz(w, "function");
}

static void script_keep(struct script *s, struct script_command *c) {
    struct str w = buf_str(&s->word);
    if (c->skip_word) {
        c->skip_word = false;
        return;
    }
    bool first = c->n == 0;
    if (first && !s->plain && (script_is_lead(w) || script_is_assignment(w)))
        return;
    if (first && s->plain && script_is_assignment(w))
        script_set(s, DECIDE_SCRIPT_ODD);
    c->dropped |= first && script_is_compound(w);
    struct str *words = arena_grow(s->a, c->words, c->n, &c->cap, 8, sizeof *words);
    char *copy = arena_strdup(s->a, w);
    if (words == NULL || copy == NULL || c->n == SCRIPT_WORDS_MAX) {
        script_set(s, DECIDE_SCRIPT_NOMEM);
        return;
    }
    c->words = words;
    c->words[c->n++] = (struct str){copy, w.n};
}

/* -- lists -- */

static void script_flush(struct script *s, struct script_command *c) {
    if (c->n > 0 && !c->dropped && script_ok(s) && !s->each(s->user, c->words, c->n))
        script_set(s, DECIDE_SCRIPT_STOP);
    *c = (struct script_command){0};
}

/* "<", ">" with what belongs to the operator. A number before it became a word: harmless. */
static void script_redirect(struct script *s, struct script_command *c) {
    if (s->plain)
        script_set(s, DECIDE_SCRIPT_ODD);
    char first = s->in.p[0];
    str_take(&s->in, 1);
    if (script_peek(s, 0) == '(') { /* <(...) */
        str_take(&s->in, 1);
        script_nested(s, ')');
        return;
    }
    while (s->in.n > 0 && (s->in.p[0] == first || strchr("&|-", s->in.p[0]) != NULL))
        str_take(&s->in, 1);
    c->skip_word = true;
}

static void script_comment(struct script *s) {
    while (s->in.n > 0 && s->in.p[0] != '\n')
        str_take(&s->in, 1);
}

static void script_operator(struct script *s, struct script_command *c) {
    char op = s->in.p[0];
    bool twice = (op == '&' || op == '|') && script_peek(s, 1) == op;
    if (s->plain && (op == '(' || op == ')' || (op == '&' && !twice)))
        script_set(s, DECIDE_SCRIPT_ODD);
    str_take(&s->in, twice ? 2 : 1);
    if (op == ')') /* the pattern of a case */
        c->dropped = true;
    script_flush(s, c);
    if (op == '(')
        script_nested(s, ')');
}

/* A list of commands up to `end`, or the end of the text. Here documents are read as commands. */
static void script_list(struct script *s, char end) {
    struct script_command c = {0};
    while (s->in.n > 0 && script_ok(s)) {
        char ch = s->in.p[0];
        if (ch == end && end != '\0') {
            str_take(&s->in, 1);
            break;
        }
        if (ch == ' ' || ch == '\t')
            str_take(&s->in, 1);
        else if (ch == '#')
            script_comment(s);
        else if (ch == '<' || ch == '>')
            script_redirect(s, &c);
        else if (script_ends_word(ch) && ch != '\0')
            script_operator(s, &c);
        else {
            script_word(s);
            script_keep(s, &c);
        }
    }
    script_flush(s, &c);
}

static bool script_nothing(void *user, const struct str *words, size_t n) {
    (void)user;
    (void)words;
    (void)n;
    return true;
}

static enum decide_script_result script_run(struct str text, bool plain, struct arena *a,
                                            decide_script_fn *each, void *user) {
    struct script s = {.in = text,
                       .plain = plain,
                       .a = a,
                       .each = each,
                       .user = user,
                       .word = BUF_INIT(SCRIPT_WORD_MAX)};
    script_list(&s, '\0');
    buf_fini(&s.word);
    return s.result;
}

enum decide_script_result decide_script(struct str text, bool plain, struct arena *a,
                                        decide_script_fn *each, void *user) {
    if (plain) {
        enum decide_script_result r = script_run(text, true, a, script_nothing, NULL);
        if (r != DECIDE_SCRIPT_DONE)
            return r;
    }
    return script_run(text, plain, a, each, user);
}
